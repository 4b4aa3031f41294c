"""A file is put in place whole, keeps what it was, and leaves nothing beside it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from napkin import files
from tests.running import ROOT, napkin, process

NOBODY = 65534
ANSWER = ["max-model", "--gpus", "8", "--format", "json"]

as_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="needs two users"
)


def as_nobody(task: Callable[[], None]) -> str:
    """What the task does without root's rights, in a process of its own: its error, or nothing."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            task()
        except OSError as error:
            os.write(write, str(error.strerror).encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(child, 0)
    return said


def owned(path: Path, owner: int, mode: int) -> Path:
    os.chown(path, owner, owner)
    path.chmod(mode)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that other users can reach too."""
    for parent in (tmp_path, *tmp_path.parents[:3]):
        if parent.stat().st_uid == os.getuid() and parent != Path("/tmp"):
            parent.chmod(0o755)
    return tmp_path


def test_a_new_file_has_what_the_umask_leaves(tmp_path: Path) -> None:
    usual = os.umask(0o027)
    try:
        files.put(str(tmp_path / "new"), b"1")
    finally:
        os.umask(usual)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


@as_root
def test_a_file_keeps_its_owner_and_mode(folder: Path) -> None:
    theirs = folder / "theirs"
    theirs.write_text("old")
    owned(theirs, NOBODY, 0o604)
    files.put(str(theirs), b"new")
    there = theirs.stat()
    assert (theirs.read_bytes(), there.st_uid, there.st_gid) == (b"new", NOBODY, NOBODY)
    assert there.st_mode & 0o777 == 0o604


@as_root
def test_another_user_s_file_that_may_be_written_stays_theirs(folder: Path) -> None:
    owned(folder, NOBODY, 0o755)
    ours = folder / "ours"
    ours.write_text("old, and longer")
    ours.chmod(0o666)
    assert as_nobody(lambda: files.put(str(ours), b"new")) == ""
    assert (ours.read_bytes(), ours.stat().st_uid) == (b"new", 0)


@as_root
def test_in_a_shared_folder_a_newer_figure_replaces_another_user_s(folder: Path) -> None:
    owned(folder, NOBODY, 0o755)
    ours = folder / "ours"
    ours.write_text("old")
    ours.chmod(0o600)
    assert as_nobody(lambda: files.put(str(ours), b"new")) == ""
    assert (ours.read_bytes(), ours.stat().st_mode & 0o777) == (b"new", 0o644)


@as_root
def test_a_file_in_a_folder_that_is_only_to_be_read_is_overwritten(folder: Path) -> None:
    file = folder / "file"
    file.write_text("old, and longer")
    owned(file, NOBODY, 0o600)
    assert as_nobody(lambda: files.put(str(file), b"new")) == ""
    assert as_nobody(lambda: files.put(str(folder / "other"), b"new")) == "Permission denied"
    assert as_nobody(lambda: files.try_beside(str(folder / "other"))) == "Permission denied"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"file": b"new"}


@pytest.mark.parametrize("length", [245, 246, 250, 255])
def test_a_name_may_be_as_long_as_names_can_be(length: int, tmp_path: Path) -> None:
    path = tmp_path / ("x" * (length - 5) + ".json")
    for _ in range(2):
        assert napkin([*ANSWER, "-o", str(path)]) == (0, "", f"wrote {path} (json)\n")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_longer_name_a_folder_and_a_folder_that_is_not_there_are_refused(tmp_path: Path) -> None:
    for name, says in (
        ("x" * 256, "File name too long"),
        ("nodir/", "Is a directory"),
        ("nodir/.", "Is a directory"),
        ("nodir/x", "No such file or directory"),
    ):
        path = f"{tmp_path}/{name}"
        assert napkin([*ANSWER, "-o", path]) == (2, "", f"Error: --output: {path}: {says}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_file_that_is_not_there_yet_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("real.json")
    assert napkin([*ANSWER, "-o", str(link)]).code == 0
    assert link.is_symlink()
    assert (tmp_path / "real.json").read_text().startswith("{")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no such paths")
@pytest.mark.parametrize(
    "path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link", "sub/link"]
)
@pytest.mark.parametrize("redirection", [">", ">>"])
def test_what_a_process_holds_open_is_written_behind_what_is_there(
    path: str, redirection: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("first\n")
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link").symlink_to("../link")
    call = f"{sys.executable} -m napkin {' '.join(ANSWER)} -o {path}"
    script = f"{{ echo second; {call}; echo last; }} {redirection} log"
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, check=True)
    lines = (tmp_path / "log").read_text().splitlines()
    before = ["first", "second"] if redirection == ">>" else ["second"]
    assert lines[: len(before)] == before
    assert (lines[len(before)], lines[-2:]) == ("{", ["}", "last"])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no such paths")
def test_what_another_process_holds_open_is_written_behind_what_is_there(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\n")
    with log.open("a"):
        holder = f"/proc/{os.getpid()}/fd"
        (number,) = (n for n in os.listdir(holder) if os.path.realpath(f"{holder}/{n}") == str(log))
        assert process([*ANSWER, "-o", f"{holder}/{number}"]).returncode == 0
    lines = log.read_text().splitlines()
    assert (lines[:2], lines[-1]) == (["first", "{"], "}")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no such paths")
def test_a_pipe_by_its_path_gets_the_answer_and_what_is_not_open_is_named() -> None:
    assert process([*ANSWER, "-o", "/dev/stdout"]).stdout.startswith(b"{")
    ran = process([*ANSWER, "-o", "/dev/fd/9"])
    assert ran.stderr == b"Error: --output: /dev/fd/9: Bad file descriptor\n"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_killed_run_leaves_nothing_beside_the_file(name: str, tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    out.write_text("old")
    command = [sys.executable, "-m", "napkin", "bench", "--size", "64", "--seconds", "60"]
    ran = subprocess.Popen([*command, "-o", str(out)], cwd=ROOT)
    maps = Path(f"/proc/{ran.pid}/maps")
    while "libtorch" not in maps.read_text() and ran.poll() is None:
        time.sleep(0.05)
    ran.send_signal(getattr(signal, name))
    assert ran.wait() == -getattr(signal, name)
    assert (list(tmp_path.iterdir()), out.read_text()) == ([out], "old")


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no such signals")
def test_what_would_end_the_process_waits_until_the_file_is_whole(tmp_path: Path) -> None:
    """A signal at the worst moment: when the new file stands there and has no name yet."""
    script = (
        "import os, signal\n"
        "from napkin import files\n"
        "replace = os.replace\n"
        "def worst(*paths):\n"
        "    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): os.kill(os.getpid(), each)\n"
        "    replace(*paths)\n"
        "os.replace = worst\n"
        f"files.put({str(tmp_path / 'x')!r}, b'whole')\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True)
    assert ran.returncode < 0
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"whole")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "x.json"
    out.write_text("old")
    created = files._created_beside

    def full(path: str) -> tuple[int, str]:
        descriptor, beside = created(path)
        os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)
        return descriptor, beside

    monkeypatch.setattr(files, "_made_alike", lambda descriptor, path: True)
    monkeypatch.setattr(files, "_created_beside", full)
    ran = napkin([*ANSWER, "-o", str(out)])
    assert ran == (2, "", f"Error: --output: {out}: No space left on device\n")
    assert (list(tmp_path.iterdir()), out.read_text()) == ([out], "old")
