"""Reasons in plain words: short, with a number that napkin computes and its source."""

import pytest

from napkin.cli.commands import COMMANDS
from napkin.specs import topics
from tests.running import answer, napkin

NAMES = [
    "six",
    "sixteen",
    "dense-and-sparse",
    "mfu",
    "activations",
    "checkpointing",
    "mixed-precision",
    "optimizers",
    "views",
    "words",
    "tensor-cores",
    "roofline",
    "init",
    "seeds",
    "data",
    "inference",
    "conventions",
    "zero",
    "chinchilla",
]


def test_the_topics_are_those_of_the_file() -> None:
    assert topics.names() == list(topics.topics()) == NAMES
    assert [line.split()[0] for line in napkin("explain").out.splitlines()[2:-1]] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_topic_is_short_and_its_number_is_what_the_command_answers(name: str) -> None:
    shown = napkin(f"explain {name}").out.splitlines()
    assert len(shown) <= 15
    assert max(map(len, shown)) <= 80
    (at,) = [number for number, line in enumerate(shown) if line.startswith("$ napkin ")]
    assert napkin(shown[at].removeprefix("$ napkin ")).out.splitlines()[0] == shown[at + 1]
    assert any(c.isdigit() for c in shown[at + 1])
    assert shown[-1] == topics.topics()[name].reference


def test_an_unknown_topic_names_the_near_one() -> None:
    assert napkin("explain roofine").err == (
        "Error: 'roofine' is no topic; did you mean 'roofline'?\n"
    )
    assert answer("explain Dense_and_sparse")["inputs"] == {"topic": "dense-and-sparse"}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("bench", "explain")])
def test_the_whole_working_ends_with_its_topics(command: str) -> None:
    example = COMMANDS[command].examples[0].removeprefix("napkin ")
    last = napkin(f"{example} --explain").out.splitlines()[-1]
    named = last.removeprefix("why: napkin explain ").split(" | ")
    assert named == list(topics.OF[command.replace("-", "_")])
    assert set(named) <= set(NAMES)
