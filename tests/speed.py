"""`make speed`: start-up as ratios to importing the fixed libraries, answers as ratios to a loop.

Whole processes, byte code compiled, in turn, medians: a ratio holds on a noisy machine, a time
does not. What computes is set against a fixed loop of plain Python in the same minute; the times
that it would take, and that it took, are printed too. What misses its limit exits 1.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from statistics import median

import napkin
from napkin.accounting.notation import PLAIN, TRACED, Notation
from napkin.questions.memory import scenario
from napkin.questions.memory.scenario import Settings

ROUNDS = 25
COUNTED = 500  # layouts
SCENARIOS, PARTS = 100_000, 10
# What one turn of the loop takes where the limits in seconds are meant to hold: a core of a server
# that has it for itself.
TURN = 0.014  # seconds
# One after the other, and as one list, all of whose answers are kept.
SWEEPS = (("one by one", 10), ("as a list", 20))

QUESTION = "train-time --params 70e9 --tokens 15e12 --gpus 1024"
QUESTIONS = (
    QUESTION,
    "max-model --gpus 8 --hardware a100",
    "memory --model llama-3-8b --gpus 8",
    "mfu --model llama-7b --tokens-per-second 9600 --gpus 1 --convention palm",
    "flops --model llama-3-8b",
    "models llama-3-8b",
    "hardware h100-sxm",
    "tensor 49152x12288",
    "matmul 1024x51200 51200x51200",
    "data --tokens 1.4T --vocab 32000",
    "checkpoint --params 70B",
    "dtypes",
    "explain six",
)
TYPER = "import typer"
YAML = "import typer, yaml"
RICH = "import typer, yaml, rich.console, rich.table"
COMPLETE = {
    "_NAPKIN_COMPLETE": "complete_bash",
    "COMP_WORDS": "napkin train-time --hardware h",
    "COMP_CWORD": "3",
}

# What is timed, against which floor, and how many times that it may take.
CASES = (
    *((f"{question} --format json", YAML, 1.45) for question in QUESTIONS),
    *((question, RICH, 1.45) for question in QUESTIONS),
    ("--help", RICH, 1.6),
    ("train-time --help", RICH, 1.6),
    ("completion", TYPER, 1.4),
)


def seconds(command: list[str], env: dict[str, str]) -> float:
    """The wall time of one whole process."""
    started = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def ratio(case: str, floor: str, env: dict[str, str]) -> float:
    """The median of the ratios pair by pair."""
    napkin = [os.path.join(os.path.dirname(sys.executable), "napkin")]
    mine = env | COMPLETE if case == "completion" else env
    command = napkin if case == "completion" else napkin + case.split()
    imports = [sys.executable, "-c", floor]
    seconds(command, mine), seconds(imports, env)  # compiles what is not compiled yet
    pairs = [seconds(command, mine) / seconds(imports, env) for _ in range(ROUNDS)]
    return median(pairs)


class _Made:
    """What the loop makes."""

    __slots__ = ("args", "value")

    def __init__(self, value: float, args: tuple[float, ...]) -> None:
        self.value = value
        self.args = args


def turn() -> None:
    """A fixed piece of what answers are made of: calls, objects, dictionaries, texts. Its time is
    this machine's, whatever becomes of napkin."""
    found: dict[str, float] = {}
    for number in range(30_000):
        made = _Made(number * 1.5, (number, 2.0))
        found[f"{number % 100}"] = made.value + len(made.args)


def timed(work: Callable[[], object]) -> float:
    """Seconds of this process, whatever else the machine does."""
    started = time.process_time()
    work()
    return time.process_time() - started


def against_the_loop(works: Iterable[Callable[[], object]]) -> tuple[float, float]:
    """Seconds that one of these takes at its median: where the loop takes TURN, and here."""
    turns, times = [], []
    for work in works:
        before = timed(turn)
        times.append(timed(work))
        turns.append(min(before, timed(turn)))
    ratios = [took / each for took, each in zip(times, turns, strict=True)]
    return TURN * median(ratios), median(times)


def sweep_one_by_one(part: int) -> None:
    for number in range(part, SCENARIOS, PARTS):
        napkin.train_time(params=70e9 + number, tokens=15e12, gpus=1024, mfu=0.4)


def sweep_as_a_list(part: int) -> None:
    params = range(70_000_000_000 + part, 70_000_000_000 + SCENARIOS, PARTS)
    napkin.train_time(params=params, tokens=15e12, gpus=1024, mfu=0.4)


def layouts(notation: Notation, count: int) -> Callable[[], None]:
    """One GPU's step computed anew so often: a model, sharded, and its peak named."""
    asked = scenario.read(Settings(model="llama-3-8b", gpus=8))

    def work() -> None:
        for _ in range(count):
            asked.step(notation).peak  # noqa: B018

    return work


def main() -> int:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    slow = 0
    for case, floor, limit in CASES:
        found = ratio(case, floor, env)
        slow += found > limit
        verdict = "ok" if found <= limit else "TOO SLOW"
        print(f"{found:5.2f} of at most {limit:.2f} x `{floor}`  {verdict}  napkin {case}")
    for (how, most), sweep in zip(SWEEPS, (sweep_one_by_one, sweep_as_a_list), strict=True):
        usual, here = against_the_loop(partial(sweep, part) for part in range(PARTS))
        slow += PARTS * usual > most
        print(
            f"{PARTS * usual:5.1f} s ({PARTS * here:.1f} s here) of at most {most} "
            f"for {SCENARIOS:,} scenarios through Python, {how}"
        )
    for notation, name, least in ((TRACED, "traced", 1_000), (PLAIN, "on plain numbers", 10_000)):
        usual, here = against_the_loop([layouts(notation, COUNTED)] * 10)
        slow += COUNTED / usual < least
        print(
            f"{COUNTED / usual:,.0f} ({COUNTED / here:,.0f} here) layouts a second "
            f"of at least {least:,} {name}"
        )
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
