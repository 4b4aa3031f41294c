"""The wheel, built by way of the sdist, in a clean environment and from another folder."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from napkin import __version__
from napkin.specs.folders import models_folder

ROOT = Path(__file__).parents[1]
QUESTION = ["train-time", "--params", "70e9", "--tokens", "15e12", "--gpus", "1024"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    # With neither --sdist nor --wheel, `build` makes the wheel from the sdist.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = out.glob("napkin_math-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    return python


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [str(python), "-m", "napkin", *arguments],
        cwd=python.parent,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_pa_01_every_hardware_file_is_in_the_wheel(wheel: Path) -> None:
    every = zipfile.ZipFile(wheel).namelist()
    names = {name for name in every if name.startswith("napkin/_data/hardware/")}
    shipped = {f"napkin/_data/hardware/{path.name}" for path in (ROOT / "hardware").glob("*.yaml")}
    assert names == shipped != set()
    assert "napkin/data/explain.yaml" in every


def test_every_model_is_in_the_wheel(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".json")}
    shipped = {f"napkin/data/models/{path.name}" for path in models_folder().glob("*.json")}
    assert names == shipped != set()


def test_pa_01_the_installed_command_answers_from_another_folder(python: Path) -> None:
    ran = run(python, *QUESTION)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("143.9 days")
    script = python.with_name("napkin")
    version = subprocess.run([str(script), "--version"], capture_output=True, text=True)
    assert version.stdout == f"napkin {__version__}\n"
    ran = run(python, "models", "llama-3-8b")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("8.03B parameters")


def test_the_calculators_need_no_torch_and_bench_says_how_to_install_it(python: Path) -> None:
    ran = run(python, "bench", "--dtype", "bf16")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "Error: bench measures with PyTorch, which is not installed: "
        f"{python} -m pip install torch (everything else works without)\n"
    )
