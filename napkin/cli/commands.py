"""The table of commands: what each answers, and where it lives; none is loaded to list them."""

from typing import NamedTuple

from napkin.questions import examples

ASK, CLOSER, KNOWN, MEASURE = "Ask", "Look closer", "What is known", "Measure"


class Entry(NamedTuple):
    """One command; its function has the command's name, in the module of that name."""

    panel: str
    line: str
    example: str


COMMANDS = {
    "train-time": Entry(
        ASK,
        "How long does a training run take, and what does it cost?",
        examples.TRAIN_TIME,
    ),
    "max-model": Entry(
        ASK,
        "How large a model fits into this many GPUs?",
        examples.MAX_MODEL,
    ),
    "mfu": Entry(
        ASK,
        "What model FLOP utilization does a run reach?",
        examples.MFU,
    ),
    "memory": Entry(
        ASK,
        "What does a training step keep on one GPU, and does it fit?",
        examples.MEMORY,
    ),
    "flops": Entry(
        CLOSER,
        "What does a token of this very model cost, by every convention?",
        examples.FLOPS,
    ),
    "models": Entry(
        KNOWN,
        "How many parameters does a model have, and where?",
        examples.MODELS,
    ),
    "hardware": Entry(
        KNOWN,
        "What can this accelerator do, and who says so?",
        examples.HARDWARE,
    ),
    "bench": Entry(
        MEASURE,
        "What does my GPU really do?",
        examples.BENCH,
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
