"""The table of options: help, the question's own signature, and what the shell completes."""

import os
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from inspect import Parameter, signature

import pytest

from napkin import bench
from napkin.cli import options
from napkin.cli.commands import COMMANDS, SUBJECT, WRITTEN
from napkin.render import FORMATS
from napkin.specs.conventions import CONVENTIONS, dashed
from napkin.specs.dtypes import PRECISIONS
from napkin.specs.optimizers import OPTIMIZERS
from tests.running import ROOT, napkin

EVERY = [(command, name) for command in COMMANDS for name in (*COMMANDS[command].options, *WRITTEN)]


def parameters(command: str) -> list[Parameter]:
    """Of the question that a command asks, as Python calls it."""
    question = command.replace("-", "_")
    asked = getattr(import_module(f"napkin.questions.{question}"), question)
    return list(signature(asked).parameters.values())


@pytest.mark.parametrize(("command", "name"), EVERY)
def test_an_option_has_help(command: str, name: str) -> None:
    assert options.of(command, name).help.strip().endswith(".")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_the_options_that_its_question_takes_in_python(command: str) -> None:
    # Progress is what the command line listens to; the list is another question, figures.
    alone = {"bench": ({"progress"}, {"list"})}
    python, line = alone.get(command, (set(), set()))
    taken = parameters(command)
    named = set(COMMANDS[command].options) - {SUBJECT}
    assert {each.name for each in taken} - python == named - line
    # By its place there as here: the model.
    by_place = [each.name for each in taken if each.kind is not Parameter.KEYWORD_ONLY]
    assert by_place == (["model"] if SUBJECT in COMMANDS[command].options else [])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_switch_is_one_in_python_too(command: str) -> None:
    switches = {each.name for each in parameters(command) if each.default is False}
    without_value = {n for n in COMMANDS[command].options if not options.of(command, n).metavar}
    assert without_value - {"list"} == switches


def test_every_row_of_the_table_is_some_command_s() -> None:
    assert {id(options.of(*each)) for each in EVERY} == set(map(id, options.OPTIONS.values()))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_long_help_names_every_option(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = " ".join(napkin([command, "--help"]).out.replace("│", "").split())
    for name in (*COMMANDS[command].options, *WRITTEN):
        option = options.of(command, name)
        assert option.help in shown
        assert option.positional or f"--{name.replace('_', '-')}" in shown


FORMAT = ("--format", FORMATS)
RECOMPUTE = ("--recompute", ("none", "selective", "full"))
PEAK = (("--dtype", PRECISIONS), ("--peak", ("promised", "measured")))
WORDS: dict[str, list[tuple[str, Iterable[str]]]] = {
    "train-time": [*PEAK, ("--convention", [dashed(name) for name in CONVENTIONS]), FORMAT],
    "max-model": [("--optimizer", OPTIMIZERS), FORMAT],
    "mfu": [*PEAK, RECOMPUTE, ("--convention", [dashed(name) for name in CONVENTIONS]), FORMAT],
    "memory": [
        ("--fit", ("micro-batch", "seq-len", "params", "gpus")),
        ("--zero", ("0", "1", "2", "3")),
        RECOMPUTE,
        ("--attention", ("flash", "sdpa", "eager")),
        ("--norm", ("upcast", "fused")),
        ("--step", ("foreach", "fused", "loop")),
        ("--activations", ("measured", "korthikanti")),
        ("--precision", ("fp32", "mixed", "mixed-fp32-grads", "amp", "bf16", "bf16-fp32-moments")),
        ("--optimizer", OPTIMIZERS),
        FORMAT,
    ],
    "flops": [RECOMPUTE, FORMAT],
    "models": [FORMAT],
    "hardware": [("--dtype", PRECISIONS), FORMAT],
    "bench": [("--dtype", bench.PRECISIONS), FORMAT],
}
CHOICES = [(command, *choice) for command in WORDS for choice in WORDS[command]]


@pytest.mark.parametrize(("command", "option", "words"), CHOICES)
def test_completion_offers_an_option_s_words(
    command: str, option: str, words: Iterable[str]
) -> None:
    offered = completed("napkin", command, option, "")
    assert set(words) <= set(offered)
    assert len(offered) == len(set(offered))


@pytest.mark.parametrize(
    "typed",
    [
        ("napkin", "memory", "--fit", "se"),
        ("napkin", "memory", "--fit=se"),
        ("napkin", "memory", "--fit", "=", "se"),  # as bash parts the words
    ],
)
def test_completion_goes_on_from_what_is_typed(typed: tuple[str, ...]) -> None:
    assert completed(*typed) == ["seq-len"]


@pytest.mark.parametrize("typed", [("--zero=",), ("--zero", "="), ("--zero", "=", "")])
def test_completion_offers_all_words_after_an_equals_sign(typed: tuple[str, ...]) -> None:
    assert completed("napkin", "memory", *typed) == ["0", "1", "2", "3"]


def completed(*words: str) -> list[str]:
    """What a process of its own offers bash for the last word."""
    asked = {
        "_NAPKIN_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    code = "import sys; sys.argv = ['napkin']; from napkin.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **asked},
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return ran.stdout.split()
