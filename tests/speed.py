"""`make speed`: start-up as ratios to importing the fixed libraries, taken in one run.

Whole processes, byte code compiled, in turn, medians: a ratio holds on a noisy machine,
a time does not. The limits are those of the design; a ratio over its limit exits 1.
"""

import os
import subprocess
import sys
import time
from statistics import median

ROUNDS = 25
SCENARIOS = 100_000

QUESTION = "train-time --params 70e9 --tokens 15e12 --gpus 1024"
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
    (f"{QUESTION} --format json", YAML, 1.45),
    (QUESTION, RICH, 1.45),
    ("max-model --gpus 8 --hardware a100", RICH, 1.45),
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
    started = time.perf_counter()
    for number in range(SCENARIOS):
        napkin.train_time(params=70e9 + number, tokens=15e12, gpus=1024, mfu=0.4)
    return time.perf_counter() - started


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
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
