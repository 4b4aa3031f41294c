"""What would make it fit: each change that is printed, pasted, gives the figure beside it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napkin import units
from tests.running import answer, napkin

ROW = re.compile(
    r"^(?:less:|try: |near:|     ) ((?:--\S+(?: (?!-)\S+)? ?)+?) +(\d[\d.]* [kMGT]?B)  (.+)$"
)
ASKED = (
    "memory --model llama-3-8b --gpus 8",
    "memory --model llama-3-8b --gpus 8 --hardware rtx-4090",
    "memory --model llama-3-8b --gpus 1",
    "memory --model llama-3-8b --gpus 8 --zero 0 --micro-batch 4",
    "memory --model mixtral-8x7b --gpus 8 --zero 1",
    "memory --model llama-3.1-405b --gpus 8",
    "memory --model gemma-2-9b --gpus 2 --attention eager --seq-len 8192",
    "memory --model linear:L=8,d=16384 --micro-batch 64",
    "memory --params 70B --gpus 8",
    "memory --params 7B --memory 80GB",
)


def changes(command: str) -> list[tuple[str, str, str]]:
    """Options, peak and price of each that is printed."""
    rows = (ROW.match(line) for line in napkin(command).out.splitlines())
    return [(row[1].strip(), row[2], row[3]) for row in rows if row]


@pytest.mark.parametrize("command", ASKED)
def test_a_change_pasted_gives_the_figure_that_was_printed(command: str) -> None:
    shown = changes(command)
    assert shown
    plain = answer(command)["result"]["per_gpu_bytes"]["peak"]
    for typed, peak, _ in shown:
        changed = answer(_with(command, typed))["result"]["per_gpu_bytes"]["peak"]
        assert units.humanize(changed, "B") == peak
        assert changed < plain


def _with(command: str, typed: str) -> str:
    """As one edits a line: an option that stands there gets the new value."""
    for option in re.findall(r"--\S+", typed):
        command = re.sub(rf" {option} [^-]\S*", "", command)
    return f"{command} {typed}"


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    model=st.sampled_from(("llama-3-8b", "gpt2-xl", "qwen3-0.6b", "mixtral-8x7b", "phi-3-mini")),
    gpus=st.sampled_from((1, 2, 8)),
    hardware=st.sampled_from(("h100-sxm", "a10", "rtx-4090", "mi300x")),
    zero=st.sampled_from(("", " --zero 0", " --zero 1", " --zero 2")),
    rows=st.integers(1, 9),
)
def test_what_is_said_to_fit_fits_and_what_is_near_does_not(
    model: str, gpus: int, hardware: str, zero: str, rows: int
) -> None:
    command = f"memory --model {model} --gpus {gpus} --hardware {hardware} --micro-batch {rows}"
    command += zero
    lines = napkin(command).out.splitlines()
    fits = answer(command)["result"]["fits"]
    heads = {line[:5] for line in lines} & {"less:", "try: ", "near:"}
    assert heads <= ({"less:"} if fits else {"try: ", "near:"})
    for typed, peak, price in changes(command):
        result = answer(_with(command, typed))["result"]
        assert units.humanize(result["per_gpu_bytes"]["peak"], "B") == peak
        assert result["fits"] == (not price.endswith("short"))


def test_where_it_does_not_fit_the_cheapest_that_does_comes_first() -> None:
    assert changes("memory --model llama-3-8b --gpus 8 --hardware rtx-4090") == [
        ("--recompute full --precision bf16", "16.51 GB", "+31 % FLOP"),
        ("--recompute full --optimizer adam8bit", "18.55 GB", "+31 % FLOP"),
        (
            "--recompute full --lora-rank 16 --quantize nf4",
            "10.55 GB",
            "+31 % FLOP",
        ),
    ]


def test_where_nothing_fits_the_nearest_are_named_and_how_to_ask_for_gpus() -> None:
    lines = napkin("memory --model llama-3.1-405b --gpus 2").out.splitlines()
    assert any(line.startswith("near: ") for line in lines)
    assert "how many GPUs it takes: --fit gpus instead of --gpus" in lines


def test_three_changes_together_are_tried_where_two_are_not_enough() -> None:
    shown = changes("memory --model llama-3-70b --gpus 8")
    assert shown[0][0] == "--recompute full --precision bf16 --optimizer adam8bit"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("memory llama-3-70b --fit gpus", "but 21 are with --recompute full: "),
        (
            "memory llama-3-8b --seq-len 128k --fit gpus",
            "but 10 are with --recompute full --chunked-loss: ",
        ),
    ],
)
def test_where_no_number_of_gpus_is_enough_what_else_it_takes_is_said(
    command: str, says: str
) -> None:
    assert f"no number of GPUs is enough, {says}" in napkin(command).out.splitlines()[0]
    typed = says.partition(" with ")[2].rstrip(": ")
    fewest = says.split()[1]
    assert napkin(f"{command} {typed}").out.startswith(f"{fewest} GPUs are the fewest")


def test_fit_and_a_sum_of_bytes_show_no_changes() -> None:
    for command in (
        "memory --model llama-3-8b --gpus 8 --fit micro-batch",
        "memory --params 70B --bytes-per-param 16",
    ):
        assert changes(command) == []
