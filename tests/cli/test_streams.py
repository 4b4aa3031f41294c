"""Streams, colours, widths and exit codes, in processes of their own."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from napkin import __version__
from napkin.specs.folders import models_folder
from tests.running import ROOT, napkin, process

QUESTION = "train-time --params 70e9 --tokens 15e12 --gpus 1024"
SPARSE = f"{QUESTION} --sparse"
ESCAPE = b"\x1b"


def terminal(command: str, columns: int, **env: str) -> str:
    """What the command writes to a terminal of that width."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "napkin", *command.split()],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color", **env},
        stdout=child,
        stderr=child,
        stdin=subprocess.DEVNULL,
    )
    os.close(child)
    written = b""
    while select.select([parent], [], [], 60)[0]:
        try:
            chunk = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        written += chunk
    process.wait()
    os.close(parent)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "command",
    [
        QUESTION,
        "max-model --gpus 8",
        "mfu --params 6.738e9 --tokens-per-second 9600 --gpus 1",
        "bench --dtype bf16 --size 256 --seconds 0.1",
    ],
)
def test_the_default_screens_fit_80_by_24(command: str) -> None:
    # What goes on is written over.
    lines = [line.rpartition("\r")[2] for line in terminal(command, 80, NO_COLOR="1").split("\n")]
    assert len(lines) <= 24  # the last is the prompt's
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_nothing_is_cut_at_any_width(columns: int) -> None:
    screen = terminal(QUESTION, columns, NO_COLOR="1")
    assert max(map(len, screen.splitlines())) <= columns
    assert "…" not in screen
    whole = ("6.3e24 FLOP", "h100-sxm.yaml:16", "989.4 TFLOP/s/GPU", "143.9 days")
    assert all(part in screen for part in whole if columns >= 60)


def test_a_terminal_gets_colour_unless_no_color_says_not() -> None:
    assert "\x1b[" in terminal(QUESTION, 80)
    for command in (QUESTION, "--help", "train-time --help", "hardware", "train-time --x"):
        assert "\x1b" not in terminal(command, 80, NO_COLOR="1")
        assert "\x1b" not in terminal(command, 80, NO_COLOR="1", FORCE_COLOR="1")


def test_cl_01_a_pipe_gets_whole_lines_and_no_colour() -> None:
    for columns in ("40", "80"):
        out = process("hardware h100-sxm a100 rtx-4090", env={"COLUMNS": columns}).stdout
        assert ESCAPE not in out
        assert "…".encode() not in out
        row = next(line for line in out.decode().splitlines() if line.startswith("device names"))
        for name in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090"):
            assert name in row


def test_force_color_colours_a_pipe_and_cuts_nothing() -> None:
    plain = process(SPARSE).stdout.decode()
    coloured = process(SPARSE, env={"FORCE_COLOR": "1", "COLUMNS": "40"}).stdout
    assert ESCAPE in coloured
    bare = subprocess.run(["sed", r"s/\x1b\[[0-9;]*m//g"], input=coloured, capture_output=True)
    assert [line.rstrip() for line in bare.stdout.decode().splitlines()] == plain.splitlines()
    assert ESCAPE not in process(SPARSE, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout


@pytest.mark.parametrize("format", ["json", "csv"])
def test_documents_hold_no_escape_codes_even_when_colour_is_forced(format: str) -> None:
    ran = process(f"{SPARSE} --format {format}", env={"FORCE_COLOR": "1"})
    assert ESCAPE not in ran.stdout


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize(
    "arguments",
    [
        *("", "--help", "mfu --help", QUESTION, f"{QUESTION} --format json"),
        *("max-model --gpus 8 --format markdown", "hardware h100-sxm", "hardware --format csv"),
        "bench --size 64 --seconds 0.01",
    ],
)
def test_cl_02_any_terminal_gets_readable_text(arguments: str, encoding: str) -> None:
    ran = process(arguments, env={"PYTHONIOENCODING": encoding})
    assert (ran.returncode, ran.stderr) == (0, b"")
    text = ran.stdout.decode(encoding)
    assert "\\u" not in text
    assert text.count("?") == process(arguments).stdout.count(b"?")  # none for want of a letter


def test_cl_02_an_error_is_readable_in_ascii() -> None:
    ran = process(["hardware", "h100×"], env={"PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"Error: no hardware is called 'h100x'")


def test_cl_03_stdout_is_one_json_document() -> None:
    ran = process("mfu --params 46.7e9 --tokens-per-second 5000 --gpus 1 --format json")
    document = json.loads(ran.stdout, parse_constant=pytest.fail)
    assert (document["napkin"], document["schema"], document["question"]) == (__version__, 1, "mfu")
    assert document["answers"][0]["warnings"] != []
    assert ran.stderr == b""
    failed = process("train-time --params x --format json")
    assert (failed.returncode, failed.stdout) == (2, b"")


def test_csv_is_a_header_and_a_row_per_answer_with_warnings_apart() -> None:
    ran = process(f"{SPARSE} --format csv")
    rows = list(csv.DictReader(io.StringIO(ran.stdout.decode())))
    assert [(row["days"][:5], row["sparse"], row["cost"]) for row in rows] == [
        ("71.96", "true", "")
    ]
    assert ran.stderr.startswith(b"warning: dense training cannot reach the 2:4 sparse figure")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such devices")
def test_devices_and_closed_streams_are_written_to_or_named_in_one_line(tmp_path: Path) -> None:
    for output, code, error in (
        ("/dev/null", 0, ""),
        ("/dev/full", 2, "Error: --output: /dev/full: No space left on device\n"),
        (str(tmp_path), 2, f"Error: --output: {tmp_path}: Is a directory\n"),
    ):
        written = napkin(f"max-model --gpus 8 --format json --output {output}")
        assert (written.code, written.out, written.err) == (code, "", error)
    for redirection, says in (
        (">/dev/full", "Error: stdout: No space left on device\n"),
        (">&-", "Error: stdout: is closed\n"),
    ):
        command = f"{sys.executable} -m napkin max-model --gpus 8 {redirection}"
        ran = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True)
        assert (ran.returncode, ran.stderr.decode()) == (2, says)


@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE")
def test_head_ends_it_quietly() -> None:
    command = f"{sys.executable} -m napkin hardware h100-sxm | head -n 1; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True)
    assert ran.stderr == b""
    assert ran.returncode in (0, 141)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_exits_130_without_a_traceback() -> None:
    bench = subprocess.Popen(
        [sys.executable, "-m", "napkin", "bench", "--size", "256", "--seconds", "60"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    maps = Path(f"/proc/{bench.pid}/maps")
    while "libtorch" not in maps.read_text() and bench.poll() is None:
        time.sleep(0.1)
    time.sleep(3)
    bench.send_signal(signal.SIGINT)
    out, err = bench.communicate()
    assert (bench.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def test_the_environment_sets_hardware_and_peak() -> None:
    ran = process(QUESTION, env={"NAPKIN_HARDWARE": "a100", "NAPKIN_PEAK": "200 TFLOP/s"})
    assert "A100 SXM 80GB" in ran.stdout.decode()
    assert "bf16 at 200 TFLOP/s/GPU" in ran.stdout.decode()


def test_napkin_alone_shows_the_questions_and_exits_0() -> None:
    ran = napkin([])
    assert ran.code == 0
    assert ran.out.splitlines()[2:8] == [
        "how long, how much",
        "  napkin train-time --params 70e9 --tokens 15e12 --gpus 1024",
        "how large a model",
        "  napkin max-model --gpus 8",
        "my own GPU",
        "  napkin bench --dtype bf16",
    ]
    assert napkin("--version").out == f"napkin {__version__}\n"


@pytest.mark.parametrize("term", ["dumb", "unknown", "xterm-256color", ""])
@pytest.mark.parametrize("forced", ["", "1"])
def test_a_pipe_is_as_wide_as_its_lines_whatever_term_says(term: str, forced: str) -> None:
    command = "hardware h100-sxm a100 rtx-4090 mi300x"
    lines = process(command).stdout.splitlines()
    assert max(map(len, lines)) > 100
    env = {"TERM": term, "FORCE_COLOR": forced, "COLUMNS": "80"}
    coloured = process(command, env=env).stdout.decode()
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured).encode()
    assert [line.rstrip() for line in bare.splitlines()] == lines


def test_a_picture_is_the_same_whatever_term_says() -> None:
    command = "max-model --gpus 8 --format svg"
    assert process(command, env={"TERM": "dumb"}).stdout == process(command).stdout


@pytest.mark.skipif(os.name == "nt", reason="another shell")
@pytest.mark.parametrize(
    ("command", "code", "writes"),
    [
        ("max-model --gpus 0", 2, False),
        ("max-model --gpu", 2, False),
        ("nonsense", 2, False),
        (f"{SPARSE} --format csv", 0, True),
        (f"{SPARSE} --format csv -o x.csv", 0, False),
        ("bench --size 64 --seconds 0.01 --format json", 0, True),
    ],
)
def test_nothing_meant_for_a_closed_stderr_goes_elsewhere(
    command: str, code: int, writes: bool, tmp_path: Path
) -> None:
    def run(redirection: str) -> tuple[int, bytes]:
        script = f"{sys.executable} -m napkin {command} {redirection}"
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, stdout=subprocess.PIPE)
        return ran.returncode, ran.stdout

    found = run("2>&-")
    assert (found[0], bool(found[1])) == (code, writes)
    assert b"warning" not in found[1].replace(b'"warnings"', b"")
    assert b"Error" not in found[1]
    for file in tmp_path.glob("*.csv"):
        assert len(list(csv.reader(file.open()))) == 2
    assert run("2>&- >&-") == (code if "-o" in command or code else 2, b"")


# Says on a pipe when napkin's first lines have run, and interrupts itself when told to.
WATCHED = """
import os, sys
import napkin.cli
pipe, at, *sys.argv[1:] = map(str, sys.argv[1:])
imports = 0

def watch(event, details):
    global imports
    if event == "import":
        imports += 1
        if imports == 1:
            os.write(int(pipe), b"!")
        if imports == int(at):
            os.kill(os.getpid(), 2)

sys.addaudithook(watch)
try:
    napkin.cli.main()
finally:
    os.write(int(pipe), b"%d" % imports)
"""


def watched(at: int, delay: float | None = None) -> tuple[int, bytes, int]:
    """The exit code, what stood on stderr, and how many modules were loaded before the end."""
    read, write = os.pipe()
    line = [sys.executable, "-c", WATCHED, str(write), str(at), *QUESTION.split()]
    ran = subprocess.Popen(
        line, cwd=ROOT, pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    os.close(write)
    assert os.read(read, 1) == b"!"
    if delay is not None:
        time.sleep(delay)
        ran.send_signal(signal.SIGINT)
    err = ran.communicate()[1]
    loaded = int(os.read(read, 20) or 0)
    os.close(read)
    return ran.returncode, err, loaded


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_while_anything_is_loaded_exits_130_without_a_word() -> None:
    code, err, loaded = watched(at=0)
    assert (code, err) == (0, b"")
    assert loaded > 100
    for at in (1, 2, 3, *range(5, loaded, loaded // 25)):
        assert watched(at)[:2] == (130, b""), at


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_at_any_moment_never_shows_a_traceback() -> None:
    started = time.perf_counter()
    watched(at=0)
    whole = time.perf_counter() - started
    for number in range(25):
        # At its very end the interpreter has let go of every handler: the signal itself ends it.
        code, err, _ = watched(at=0, delay=whole * number / 25)
        assert code in (130, 0, -signal.SIGINT)
        assert err == b""


def test_a_run_from_a_zip_file_says_that_it_cannot_find_its_files(tmp_path: Path) -> None:
    archive = tmp_path / "napkin.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in [*(ROOT / "napkin").rglob("*.py"), *models_folder().glob("*.json")]:
            packed.write(path, path.relative_to(ROOT))
    # Isolated from the checkout, which an editable install would find as well.
    start = f"import sys; sys.path.insert(0, {str(archive)!r}); sys.argv[0] = 'napkin'; "
    start += "from napkin.cli import main; main()"

    def run(*arguments: str) -> tuple[int, str, str]:
        line = [sys.executable, "-c", start, *arguments]
        ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
        return ran.returncode, ran.stdout, ran.stderr

    assert run("--version") == (0, f"napkin {__version__}\n", "")
    says = (
        "no such folder; napkin reads its own files from a disk: "
        "install it, or unpack its zip file\n"
    )
    assert run("hardware") == (2, "", f"Error: {archive}/hardware: {says}")
    assert run("models") == (2, "", f"Error: {archive}/napkin/data/models: {says}")
    assert run("max-model", "--gpus", "8") == (
        2,
        "",
        f"Error: --hardware: {archive}/hardware: {says}",
    )
    assert run("flops", "--model", "linear:L=2,d=8")[0] == 0


def test_a_terminal_s_error_ends_its_lines_between_words() -> None:
    shown = terminal("train-time -N 7B -D 1T -g 8 -H v100", 60)
    piped = napkin("train-time -N 7B -D 1T -g 8 -H v100").err
    assert max(map(len, shown.splitlines())) <= 60
    assert shown.split() == piped.split()
