"""Other tools' names of options are answered with napkin's."""

import pytest

from napkin.cli.commands import COMMANDS, WRITTEN
from napkin.cli.others import NAMES, meant
from tests.running import napkin

WORDS = [(option, word) for option, words in NAMES.items() for word in words.split()]


def lacking(option: str, word: str) -> list[str]:
    """Commands that have the option and not the other tool's word."""
    own = word.replace("-", "_")
    all_of = {command: (*entry.options, *WRITTEN) for command, entry in COMMANDS.items()}
    return [command for command, has in all_of.items() if option in has and own not in has]


@pytest.mark.parametrize(("option", "word"), WORDS)
def test_each_word_is_answered_by_a_command_that_has_the_option(option: str, word: str) -> None:
    command = lacking(option, word)[0]
    ran = napkin([command, f"--{word}", "8"])
    assert ran.code == 2
    said = ran.err.strip()
    known = (*COMMANDS[command].options, *WRITTEN)
    flag = meant(word, known)
    assert flag is not None
    assert said == f"Error: --{word}: napkin's is {flag}"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("memory --batch-size 4", "--batch-size: napkin's is --micro-batch"),
        (
            "memory --gradient_checkpointing",
            "--gradient_checkpointing: napkin's is --recompute full",
        ),
        ("memory --fsdp", "--fsdp: napkin's is --zero 3"),
        ("memory --dtype bf16", "--dtype: napkin's is --precision"),
        ("memory --bf16", "--bf16: napkin's is --precision amp"),
        (
            "memory --tensor-model-parallel-size 8",
            "--tensor-model-parallel-size: napkin's is --tp",
        ),
        ("train-time --num-gpus 8", "--num-gpus: napkin's is --gpus"),
        ("train-time --precision fp8", "--precision: napkin's is --dtype"),
        ("train-time --gpu-type h100", "--gpu-type: napkin's is --hardware"),
        ("mfu --throughput 9600", "--throughput: napkin's is --tokens-per-second"),
    ],
)
def test_people_are_told_what_they_mean_here(command: str, answer: str) -> None:
    ran = napkin(command)
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {answer}\n")
