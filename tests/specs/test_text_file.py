"""What lies on disk: nothing there hangs, exhausts or ends a command that can do without it."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from napkin import train_time
from napkin.questions import lint
from napkin.specs import accelerators, hardware_file, measured, yaml_file
from napkin.specs.folders import hardware_names, measured_folder, own_folder
from tests.running import ROOT, answer, answers, napkin

QUESTION = "train-time --params 70e9 --tokens 15e12 --gpus 1024"
CALCULATORS = (QUESTION, "mfu --params 7e9 --tokens-per-second 9600 --gpus 1", "hardware h100")
QUICK = "bench --device cpu --size 64 --seconds 0.02"
TOO_LONG = "x" * 300
CARD = "name: {}\npeak: {{bf16: 1e14}}\nmemory: 40 GB\n"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 * 10**9)


def folder(path: Path) -> None:
    path.mkdir()


Make = Callable[[Path], None]
THINGS: dict[Make, str] = {
    pipe: "is not a file",
    endless: "is not a file",
    huge: "is larger than 1 MB, which no {kind} is",
    folder: "is not a file",
}
things = pytest.mark.parametrize("make", THINGS, ids=lambda make: make.__name__)


@things
def test_what_is_no_hardware_file_costs_no_answer_and_is_named_in_the_list(make: Make) -> None:
    own = Path(own_folder())
    own.mkdir(parents=True)
    make(own / "odd.yaml")
    (own / "mine.yaml").write_text(CARD.format("Mine") + "aliases: [ours]\n")
    assert answer("hardware ours")["inputs"]["hardware"] == "mine"
    assert answer(f"{QUESTION} --hardware h100")["result"]["days"] > 100
    unknown = napkin("hardware nosuchthing").err
    assert unknown.startswith("Error: no hardware is called 'nosuchthing'; ")
    ran = napkin("hardware")
    says = THINGS[make].format(kind="hardware file")
    assert (ran.code, ran.err) == (0, f"warning: left out: {own}/odd.yaml: {says}\n")
    assert napkin("hardware odd").err == f"Error: {own}/odd.yaml: {says}\n"


@things
def test_what_is_no_measured_figure_costs_no_answer_and_is_a_warning(make: Make) -> None:
    path = measured.path_of("NVIDIA H100 80GB HBM3", "bf16")
    path.parent.mkdir(parents=True)
    make(path)
    says = f"{path.name}: {THINGS[make].format(kind='measured figure')}"
    unread = f"a measured figure cannot be read: {says}"
    assert answer(QUESTION)["warnings"] == [unread]
    assert napkin("hardware h100").err == f"warning: {unread}\n"
    assert napkin("bench --list").err == f"warning: {says}\n"


@things
@pytest.mark.parametrize(
    ("line", "name", "kind"),
    [
        ("hardware --lint", "odd.csv", "table"),
        ("hardware --lint", "odd.yaml", "table"),
        ("hardware --check", "odd.yaml", "hardware file"),
    ],
)
def test_what_is_no_file_is_refused_where_a_file_is_asked_for(
    line: str, name: str, kind: str, make: Make, tmp_path: Path
) -> None:
    make(tmp_path / name)
    ran = napkin([*line.split(), str(tmp_path / name)])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"{tmp_path / name}: {THINGS[make].format(kind=kind)}\n")


@pytest.mark.parametrize("make", [pipe, endless, huge], ids=lambda make: make.__name__)
def test_what_is_no_file_is_no_model_s(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "odd.json")
    ran = napkin(["models", str(tmp_path / "odd.json")])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"Error: {tmp_path}/odd.json: {THINGS[make].format(kind='config.json')}\n"


@things
def test_what_is_no_branch_of_a_model_leaves_its_snapshots(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    of_model = tmp_path / "models--a--b"
    snapshot = of_model / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128}
    sizes |= {"vocab_size": 1000, "num_attention_heads": 4}
    (snapshot / "config.json").write_text(json.dumps({"model_type": "llama", **sizes}))
    (of_model / "refs").mkdir()
    make(of_model / "refs" / "main")
    assert answer("models a/b")["result"]["params"] == 210_240


def give_up_privileges() -> None:
    """Root may read everything: in a process of its own, before it starts, it gives that up."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


linux = pytest.mark.skipif(sys.platform != "linux", reason="privileges are given up as in Linux")


def unprivileged(command: str, **env: str) -> subprocess.CompletedProcess[str]:
    names = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE")
    usual = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(
        [sys.executable, "-m", "napkin", *command.split()],
        env={**usual, **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=give_up_privileges,
    )


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody may look into."""
    path = tmp_path / "locked"
    path.mkdir(mode=0)
    yield path
    path.chmod(0o700)


@linux
def test_a_home_of_somebody_else_costs_no_answer(locked: Path) -> None:
    for line in CALCULATORS:
        ran = unprivileged(line, HOME=str(locked))
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, napkin(line).out, "")


@linux
def test_a_home_of_somebody_else_costs_no_finished_measurement(locked: Path) -> None:
    ran = unprivileged(f"{QUICK} --format json", HOME=str(locked))
    (found,) = json.loads(ran.stdout)["answers"]
    assert (ran.returncode, found["result"]["saved_to"]) == (0, None)
    name = measured.path_of(found["result"]["device_name"], "bf16").name
    path = locked / ".local/share/napkin/measured" / name
    if not found["warnings"]:  # else it was not to be saved anyhow
        assert ran.stderr == (
            f"warning: nothing was saved: {path}: cannot be written: Permission denied\n"
        )


@linux
def test_a_home_of_somebody_else_is_named_where_it_is_asked_for(locked: Path) -> None:
    ran = unprivileged("bench --list", HOME=str(locked))
    place = locked / ".local/share/napkin/measured"
    assert (ran.returncode, ran.stdout.strip()) == (0, f"nothing can be read in {place}")
    assert ran.stderr == f"warning: {place}: cannot be read: Permission denied\n"
    ran = unprivileged("models a/b", HOME=str(locked))
    place = locked / ".cache/huggingface/hub/models--a--b/snapshots"
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"Error: {place}: cannot be read: Permission denied\n"


@linux
def test_a_folder_of_figures_that_cannot_be_looked_into_is_a_warning(tmp_path: Path) -> None:
    place = tmp_path / "napkin" / "measured"
    place.mkdir(parents=True, mode=0o755)
    place.chmod(0)
    unread = f"a measured figure cannot be read: {place}: cannot be read: Permission denied"
    for line in CALCULATORS:
        ran = unprivileged(f"{line} --format json", XDG_DATA_HOME=str(tmp_path))
        (found,) = json.loads(ran.stdout)["answers"]
        said = ran.stderr if line.startswith("hardware") else found["warnings"]
        assert said == (f"warning: {unread}\n" if line.startswith("hardware") else [unread])
        assert ran.returncode == 0
    ran = unprivileged(f"{QUESTION} --peak measured", XDG_DATA_HOME=str(tmp_path))
    says = f"Error: --peak: {place}: cannot be read: Permission denied\n"
    assert (ran.returncode, ran.stderr) == (2, says)
    place.chmod(0o700)


@linux
def test_hardware_files_that_cannot_be_looked_at_are_a_warning(tmp_path: Path) -> None:
    place = tmp_path / "napkin" / "hardware"
    place.mkdir(parents=True, mode=0o755)
    place.chmod(0)
    unseen = f"your own hardware files are not looked at: {place} cannot be read"
    ran = unprivileged(f"{QUESTION} --format json", XDG_CONFIG_HOME=str(tmp_path))
    (found,) = json.loads(ran.stdout)["answers"]
    assert (ran.returncode, found["warnings"]) == (0, [unseen])
    ran = unprivileged("hardware h100", XDG_CONFIG_HOME=str(tmp_path))
    assert (ran.returncode, ran.stderr) == (0, f"warning: {unseen}\n")
    ran = unprivileged("hardware", XDG_CONFIG_HOME=str(tmp_path))
    left_out = f"warning: left out: {place}: cannot be read: Permission denied\n"
    assert (ran.returncode, ran.stderr) == (0, left_out)
    place.chmod(0o700)


def unreachable(tmp_path: Path) -> dict[str, tuple[str, str]]:
    (tmp_path / "file").write_text("")
    return {
        "a name of 300 letters": (str(tmp_path / TOO_LONG), "File name too long"),
        "a file in a folder's place": (str(tmp_path / "file"), "Not a directory"),
    }


@pytest.mark.parametrize("kind", ["a name of 300 letters", "a file in a folder's place"])
def test_folders_that_nobody_could_reach_cost_no_answer(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = {line: napkin(line) for line in CALCULATORS}
    path, reason = unreachable(tmp_path)[kind]
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, path)
    assert {line: napkin(line) for line in CALCULATORS} == usual
    assert train_time(params="70B", tokens="15T", gpus=1024).warnings == []
    assert "h100-sxm" in hardware_names()
    assert napkin("hardware").err == (
        f"warning: left out: {path}/napkin/hardware: cannot be read: {reason}\n"
    )
    ran = napkin("bench --list")
    assert ran.out.strip() == f"nothing can be read in {path}/napkin/measured"
    assert ran.err == f"warning: {path}/napkin/measured: cannot be read: {reason}\n"
    ran = napkin(f"{QUICK} --format json")
    (found,) = json.loads(ran.out)["answers"]
    assert (ran.code, found["result"]["saved_to"]) == (0, None)
    if not found["warnings"]:
        assert ran.err.endswith(f".yaml: cannot be written: {reason}\n")


def test_a_figure_that_links_to_itself_is_named(tmp_path: Path) -> None:
    path = measured.path_of("NVIDIA H100 80GB HBM3", "bf16")
    path.parent.mkdir(parents=True)
    path.symlink_to(path)
    says = f"{path}: cannot be read: Too many levels of symbolic links"
    assert answer(QUESTION)["warnings"] == [f"a measured figure cannot be read: {says}"]


def test_a_device_s_name_of_any_length_has_a_file(tmp_path: Path) -> None:
    card = tmp_path / "card.yaml"
    card.write_text(CARD.format("Mine") + f"device_names: [{TOO_LONG}]\n")
    path = measured.write(
        TOO_LONG,
        "bf16",
        {"type": "cuda", "rate": 9e13, "shape": "8x8x8", "torch": "2.13.0"},
    )
    assert path.is_file()
    assert answer(f"hardware {card}")["result"]["measured"] == {"bf16": 9e13}


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be deleted")
@pytest.mark.parametrize("line", [QUESTION, f"{QUICK} --no-save", "bench --list"])
def test_a_deleted_working_directory_costs_no_answer(line: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec {sys.executable} -m napkin "$@"'
    ran = subprocess.run(
        ["bash", "-c", script, "bash", *line.split()],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout != ""


def test_a_relative_xdg_path_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for relative in ("", "here", "./here", "../here", "~/here"):
        monkeypatch.setenv("XDG_DATA_HOME", relative)
        monkeypatch.setenv("XDG_CONFIG_HOME", relative)
        assert measured_folder() == f"{tmp_path}/.local/share/napkin/measured"
        assert own_folder() == f"{tmp_path}/.config/napkin/hardware"


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """The arguments of every call to a function, which works as it did."""
    calls: list[Any] = []
    usual = getattr(module, name)

    def call(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return usual(*args, **options)

    monkeypatch.setattr(module, name, call)
    return calls


def test_the_first_few_unknown_keys_have_suggestions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sought = counted(monkeypatch, yaml_file, "suggestion")
    path = tmp_path / "card.yaml"
    path.write_text(CARD.format("x") + "".join(f"memro{'y' * n}: 1\n" for n in range(1, 501)))
    says = [str(problem) for problem in hardware_file.problems(path, "card.yaml")]
    assert says[0] == "card.yaml:4: unknown key 'memroy'; did you mean 'memory'?"
    assert says[20] == f"card.yaml:24: unknown key 'memro{'y' * 21}'"
    assert (len(says), len(sought)) == (500, yaml_file.SUGGESTIONS)


def test_the_first_few_unknown_rows_of_a_table_have_suggestions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = counted(monkeypatch, accelerators, "content_of")
    sought = counted(monkeypatch, accelerators, "not_found")
    path = tmp_path / "theirs.csv"
    path.write_text("h100sxm,1\n" + "".join(f"Acme {n},1\n" for n in range(200)))
    said = [each["result"]["said"] for each in answers(f"hardware --lint {path}")]
    assert said[0].startswith("no hardware is called 'h100sxm'; ")
    assert "h100-sxm" in said[0]
    assert said[-1].startswith("no hardware is called 'Acme 199'; ")
    assert len([known for _, known in sought if known]) == lint.SUGGESTIONS
    assert len(read) <= len(accelerators.everything())  # each file once, not once a row


def test_of_many_own_files_each_is_read_once_for_the_list_and_few_for_a_suggestion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Path(own_folder())
    own.mkdir(parents=True)
    for n in range(300):
        (own / f"card-{n:03}.yaml").write_text(CARD.format(f"Card {n}"))
    parsed = counted(monkeypatch, hardware_file, "read")
    (own / "broken.yaml").write_text("name: [\n")
    assert len(answers("hardware")) == 300 + len(list((ROOT / "hardware").glob("*.yaml")))
    files = [args[0] for args in parsed if args[0].parent == own]
    assert len(files) == len(set(files)) == 301
    parsed.clear()
    assert napkin("hardware card-00").code == 2
    assert len([args for args in parsed if args[0].parent == own]) <= accelerators.SUGGESTED_OF
