"""The table of commands: what each answers, and where it lives; none is loaded to list them."""

from typing import NamedTuple

ASK, KNOWN, MEASURE = "Ask", "What is known", "Measure"


class Entry(NamedTuple):
    """One command; its function has the command's name, in the module of that name."""

    panel: str
    line: str
    example: str


COMMANDS = {
    "train-time": Entry(
        ASK,
        "How long does a training run take, and what does it cost?",
        "napkin train-time --params 70e9 --tokens 15e12 --gpus 1024",
    ),
    "max-model": Entry(
        ASK,
        "How large a model fits into this many GPUs?",
        "napkin max-model --gpus 8",
    ),
    "mfu": Entry(
        ASK,
        "What model FLOP utilization does a run reach?",
        "napkin mfu --params 6.738e9 --tokens-per-second 9600 --gpus 1",
    ),
    "hardware": Entry(
        KNOWN,
        "What can this accelerator do, and who says so?",
        "napkin hardware h100-sxm",
    ),
    "bench": Entry(
        MEASURE,
        "What does my GPU really do?",
        "napkin bench --dtype bf16",
    ),
}

# What a bare `napkin` shows first.
FIRST = ("train-time", "max-model", "bench")


def screen(version: str) -> str:
    """What a bare `napkin` prints."""
    lines = [f"napkin {version}: what training an LLM costs, with the working shown", ""]
    for names in (FIRST, [name for name in COMMANDS if name not in FIRST]):
        for name in names:
            lines += [COMMANDS[name].line, f"  {COMMANDS[name].example}", ""]
    return "\n".join([*lines, "napkin COMMAND --help lists a command's options."])
