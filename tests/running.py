"""Running napkin as a person does, in this process or as one of its own."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from typer.testing import CliRunner

from napkin.cli.app import app
from tests import working

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[1]


class Ran(NamedTuple):
    """What a call of napkin left."""

    code: int
    out: str
    err: str


def data(name: str) -> Any:
    """A file of tests/data."""
    return yaml.safe_load((DATA / name).read_text("utf-8"))


def words(command: str | list[str]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else command


def napkin(command: str | list[str]) -> Ran:
    """In this process: quick, and any exception but an exit fails the test."""
    result = CliRunner().invoke(app, words(command))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def answers(command: str | list[str]) -> list[dict[str, Any]]:
    """The answers of a command's JSON document, whose working comes to their figures."""
    ran = napkin([*words(command), "--format", "json"])
    assert ran.code == 0, ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)["answers"]
    for each in found:
        working.check(each)
    return found


def answer(command: str | list[str]) -> dict[str, Any]:
    """The one answer of a command's JSON document."""
    (one,) = answers(command)
    return one


def process(
    command: str | list[str], env: dict[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[bytes]:
    """A process of its own, for what depends on streams, signals and the environment."""
    return subprocess.run(
        [sys.executable, "-m", "napkin", *words(command)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        cwd=cwd,
        capture_output=True,
    )
