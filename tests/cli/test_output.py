"""Where an answer goes: whole files, documents that any encoding leaves whole, named variables."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.running import ROOT, napkin, process

OWN = "name: 显卡 é ₁ ×\npeak: {bf16: 100 TFLOP/s}\nmemory: 40 GB\n"


def test_two_runs_at_once_leave_one_whole_document(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    command = [sys.executable, "-m", "napkin", "hardware", "--format", "json", "-o", str(path)]
    for _ in range(3):
        runs = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
        assert [run.wait() for run in runs] == [0, 0]
        assert len(json.loads(path.read_text("utf-8"))["answers"]) == 52
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_a_link_stays_a_link_and_a_mode_stays_the_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    assert napkin(f"max-model --gpus 8 -o {link}").code == 0
    assert link.is_symlink()
    assert json.loads(real.read_text("utf-8"))["question"] == "max-model"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_dash_is_standard_output() -> None:
    assert napkin("max-model --gpus 8 -f json -o -").out.startswith("{")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_documents_are_whole_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "card.yaml"
    file.write_text(OWN, "utf-8")
    env = {"PYTHONIOENCODING": encoding}
    document = process(["hardware", str(file), "--format", "json"], env=env).stdout
    name = json.loads(document.decode("utf-8"))["answers"][0]["result"]["name"]
    assert name == ("显卡 é ₁ ×" if encoding == "utf-8" else "显卡 é 1 x")
    picture = process(["hardware", str(file), "--format", "svg"], env=env).stdout
    text = "".join(ElementTree.fromstring(picture.decode("utf-8")).itertext())
    assert "显卡\xa0é\xa0₁\xa0×" in text


def test_an_error_names_the_variable_that_the_user_set() -> None:
    ran = process("max-model --gpus 8", env={"NAPKIN_HARDWARE": "nope"})
    assert ran.stderr == (
        b"Error: NAPKIN_HARDWARE: no hardware is called 'nope'; `napkin hardware` lists all\n"
    )
    ran = process("mfu --achieved 1e14", env={"NAPKIN_PEAK": "fast"})
    assert ran.stderr.startswith(b"Error: NAPKIN_PEAK: 'fast' is not a peak; ")


@pytest.mark.parametrize("length", [300, 5000])
def test_a_name_of_any_length_is_refused_in_one_line(length: int) -> None:
    name = "x" * length
    ran = napkin(["hardware", name])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: no hardware is called 'xxx")
    far = process("hardware h100", env={"XDG_CONFIG_HOME": name})
    assert far.returncode == 0


@pytest.mark.parametrize("arguments", ["", "--help", "--version", "hardware"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_full_disk_is_one_line_for_every_command(arguments: str) -> None:
    command = f"{sys.executable} -m napkin {arguments} > /dev/full"
    ran = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True)
    assert (ran.returncode, ran.stderr) == (2, b"Error: stdout: No space left on device\n")


def test_a_file_that_the_system_refuses_is_named_and_not_taken_for_stdout() -> None:
    """Whatever a command did not foresee."""
    start = (
        "import napkin.cli.app as it\n"
        "def app(): raise PermissionError(13, 'Permission denied', '/root/\\x1bx')\n"
        "it.app = app\n"
        "it.run()\n"
    )
    ran = subprocess.run([sys.executable, "-c", start], cwd=ROOT, capture_output=True)
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr == b"Error: /root/\\x1bx: Permission denied\n"
