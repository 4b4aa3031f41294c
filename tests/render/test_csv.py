"""CSV has the same columns whatever was asked of a command."""

import csv
from io import StringIO

import pytest

from tests.running import answer, napkin

ASKED = {
    "train-time": (
        "train-time --params 70e9 --tokens 15e12 --gpus 1024",
        "train-time --model llama-3-8b --tokens 15T --gpus 8 --price 2 --epochs 2",
    ),
    "max-model": ("max-model --gpus 8", "max-model --gpus 8 --bytes-per-param 18 --reserve 10%"),
    "mfu": (
        "mfu --params 7B --tokens-per-second 9600 --gpus 1",
        "mfu --model gpt2 --step-time 1s --seq-len 1024 --micro-batch 8 --gpus 8 --recompute full",
        "mfu --achieved 400TFLOP/s",
    ),
    "memory": (
        "memory --model gpt2",
        "memory --params 1B --gpus 8",
        "memory --params 1B --bytes-per-param 18",
        "memory --model gpt2 --fit micro-batch",
        "memory --inference --model gpt2 --context 100 --batch 3",
        "memory --model linear:L=2,d=8",
    ),
    "flops": (
        "flops --model gpt2",
        "flops --model gpt2 --recompute full --global-batch 8 --tokens 1B",
        "flops --model gpt2 --lora-rank 8",
    ),
    "models": ("models", "models gpt2", "models mixtral-8x7b", "models gpt2 --layer"),
    "tensor": ("tensor 4x8", "tensor B=2,d=8 d=8 --dtype nf4 --double-quant"),
    "dtypes": ("dtypes", "dtypes fp16 --value 1e-8"),
    "matmul": ("matmul 4x8 8x4", "matmul 4x8 8x4 --time 1s --hardware a100"),
    "data": ("data --tokens 1T --vocab 8", "data --tokens 1T --model gpt2"),
    "checkpoint": (
        "checkpoint gpt2",
        "checkpoint --params 8B --gpus 8 --bandwidth 1GB/s --mtbf 1e4 --restart 1h",
    ),
    "explain": ("explain", "explain six"),
    "hardware": ("hardware", "hardware h100", "hardware mi250x t4"),
}


def rows(command: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(napkin(f"{command} -f csv").out)))


def flat(value: object, name: str = "") -> dict[str, object]:
    """Every figure of an answer by its dotted name, phases by theirs."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "phase" in value[0]:
        value = {phase["phase"]: {"bytes": phase["bytes"]} for phase in value}
    if not isinstance(value, dict):
        return {name: value}
    inner = (flat(each, f"{name}.{key}" if name else key) for key, each in value.items())
    return {key: each for part in inner for key, each in part.items()}


@pytest.mark.parametrize("question", ASKED)
def test_the_columns_of_a_command_are_the_same_whatever_was_asked(question: str) -> None:
    headers = {tuple(rows(command)[0]) for command in ASKED[question]}
    assert len(headers) == 1


@pytest.mark.parametrize("command", [one for each in ASKED.values() for one in each[1:2]])
def test_every_figure_of_the_answer_stands_in_its_column(command: str) -> None:
    found = answer(command)
    (row,) = rows(command)
    for name, value in flat(found["inputs"] | found["result"]).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            assert float(row[name]) == pytest.approx(value), name
        elif isinstance(value, str):
            assert row[name] == value
