"""`make speed`: start-up as ratios to importing the fixed libraries, and answers a second.

Whole processes, byte code compiled, in turn, medians: a ratio holds on a noisy machine,
a time does not; of a rate the best of several rounds counts. What misses its limit exits 1.
"""

import os
import subprocess
import sys
import time
from statistics import median

from napkin.accounting.notation import PLAIN, TRACED, Notation
from napkin.questions.memory import scenario
from napkin.questions.memory.scenario import Settings

ROUNDS = 25
SCENARIOS, PARTS = 100_000, 10

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


def sweep() -> float:
    """Seconds for SCENARIOS through the Python API."""
    import napkin

    napkin.train_time(params="70B", tokens="15T", gpus=1024)
    times = []
    for part in range(PARTS):
        started = time.perf_counter()
        for number in range(part, SCENARIOS, PARTS):
            napkin.train_time(params=70e9 + number, tokens=15e12, gpus=1024, mfu=0.4)
        times.append(time.perf_counter() - started)
    return PARTS * median(times)


def layouts_a_second(notation: Notation) -> float:
    """How often one GPU's step is computed anew: a model, sharded, and its peak named."""
    asked = scenario.read(Settings(model="llama-3-8b", gpus=8))
    counted = 1_000
    rates = []
    for _ in range(10):
        started = time.perf_counter()
        for _ in range(counted):
            asked.step(notation).peak  # noqa: B018
        rates.append(counted / (time.perf_counter() - started))
    return max(rates)


def main() -> int:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    slow = 0
    for case, floor, limit in CASES:
        found = ratio(case, floor, env)
        slow += found > limit
        verdict = "ok" if found <= limit else "TOO SLOW"
        print(f"{found:5.2f} of at most {limit:.2f} x `{floor}`  {verdict}  napkin {case}")
    took = sweep()
    slow += took > 10
    print(f"{took:5.1f} s of at most 10 for {SCENARIOS:,} scenarios through Python")
    for notation, name, least in ((TRACED, "traced", 1_000), (PLAIN, "on plain numbers", 10_000)):
        rate = layouts_a_second(notation)
        slow += rate < least
        print(f"{rate:,.0f} layouts a second of at least {least:,} {name}")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
