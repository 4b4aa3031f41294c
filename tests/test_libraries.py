"""Importing what is heavy: broken, or interrupted on the way."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from napkin import libraries
from napkin.errors import DeviceError
from tests.running import napkin

SWALLOWS = """
__version__ = "1"
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass
except BaseException:
    pass
"""


@contextmanager
def interrupts_are(handler: Any) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def written(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)


def test_an_interrupt_that_the_import_swallows_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "swallows_interrupts", SWALLOWS, monkeypatch)
    with interrupts_are(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        libraries.load("swallows_interrupts", "it")


def test_an_interrupt_that_is_ignored_stays_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "swallows_again", SWALLOWS, monkeypatch)
    with interrupts_are(signal.SIG_IGN):
        libraries.load("swallows_again", "it")


@pytest.mark.parametrize("raised", ["OSError", "ModuleNotFoundError", "RuntimeError"])
def test_a_broken_installation_is_said_with_its_cause(
    raised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "is_broken", f"raise {raised}('lib.so: no such file\\nmore')", monkeypatch)
    with pytest.raises(DeviceError) as error:
        libraries.load("is_broken", "PyTorch")
    assert str(error.value) == ("PyTorch is installed but cannot be imported: lib.so: no such file")


@pytest.mark.parametrize("is_folder", [True, False], ids=["a leftover folder", "a script"])
@pytest.mark.parametrize(
    ("asked", "module", "name"),
    [
        ("bench --device cpu", "torch", "PyTorch"),
        ("flops --model gpt2 --check", "torch", "PyTorch"),
        ("flops --model gpt2 --check", "transformers", "transformers"),
    ],
)
def test_what_stands_in_a_library_s_place_is_named(
    asked: str,
    module: str,
    name: str,
    is_folder: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Under a name of its own: the real one is installed here.
    other = f"{module}_of_{'folder' if is_folder else 'script'}"
    place = tmp_path / (other if is_folder else f"{other}.py")
    place.mkdir() if is_folder else place.write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, other, raising=False)
    load = libraries.load
    monkeypatch.setattr(
        libraries, "load", lambda wanted, name: load(other if wanted == module else wanted, name)
    )
    ran = napkin(asked)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"Error: {place} is not {name} and stands in its place; rename it\n"


@pytest.mark.parametrize("asked", ["flops --model gpt2 --check", "bench --device cpu"])
def test_a_broken_torch_is_one_line(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("raise OSError('libtorch_cpu.so: cannot open')")
    monkeypatch.syspath_prepend(str(tmp_path))
    load = libraries.load
    monkeypatch.setattr(libraries, "load", lambda module, name: load("broken", name))
    says = "PyTorch is installed but cannot be imported: libtorch_cpu.so: cannot open"
    ran = napkin(asked)
    assert (ran.code, ran.out, ran.err) == (1, "", f"Error: {says}\n")


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be deleted")
def test_a_deleted_working_directory_does_not_end_a_check(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec {sys.executable} -m napkin "$@"'
    line = ["flops", "--model", "linear:L=1,d=64", "--check", "--format", "json"]
    environment = os.environ | {"PYTHONPATH": str(Path(libraries.__file__).parents[1])}
    ran = subprocess.run(
        ["sh", "-c", script, "sh", *line], capture_output=True, text=True, env=environment
    )
    assert (ran.returncode, ran.stderr) == (0, "")
