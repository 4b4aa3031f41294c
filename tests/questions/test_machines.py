"""GPUs and their kind in one word: `--gpus 8xH100`."""

import pytest

import napkin as api
from tests.running import answer, napkin


@pytest.mark.parametrize("text", ["8xH200", "8 x h200-sxm", "8×H200", "8*NVIDIA H200"])
def test_they_are_the_same_as_the_two_options(text: str) -> None:
    for question in (
        ["max-model"],
        ["memory", "--params", "70B"],
        ["memory", "--inference", "--params", "70B"],
        ["train-time", "--params", "70B", "--tokens", "15T"],
        ["mfu", "--params", "7B", "--tokens-per-second", "1e5"],
    ):
        together = answer([*question, "--gpus", text])
        apart = answer([*question, "--gpus", "8", "--hardware", "h200-sxm"])
        assert together["result"] == apart["result"]
        assert together["inputs"] == apart["inputs"]


def test_they_win_over_the_environment_and_agree_with_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NAPKIN_HARDWARE", "a100")
    assert answer("max-model --gpus 8xB200")["inputs"]["hardware"] == "b200"
    assert answer("max-model --gpus 8xH200 --hardware h200")["inputs"]["gpus"] == 8
    assert api.max_model(gpus="2xA100").result["params"] == 10_000_000_000


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (
            "max-model --gpus 8xL40S --hardware h100",
            "--hardware: '8xL40S' says l40s already; leave one out",
        ),
        ("max-model --gpus 1.5xH100", "--gpus: '1.5' is not a whole number; write 1 or 2"),
        ("memory llama-3-8b --model gpt2", "--model: 'llama-3-8b' says it already; leave one out"),
        (
            "memory llama-3-8b --fit batch",
            "--fit: batch goes with --inference; write micro-batch",
        ),
        ("memory --inference --model gpt2 --fit batch", "--fit: batch needs --context"),
        (
            "memory --inference --model gpt2 --fit batch --context 9 --batch 2",
            "--batch: --fit asks for it; leave one out",
        ),
    ],
)
def test_what_contradicts_is_refused_in_one_line(command: str, error: str) -> None:
    ran = napkin(command)
    assert (ran.code, ran.err) == (2, f"Error: {error}\n")


def test_a_model_is_named_by_its_place_too() -> None:
    for question in ("memory", "flops"):
        assert answer(f"{question} gpt2") == answer(f"{question} --model gpt2")


def test_the_most_sequences_that_fit_leave_no_room_for_one_more() -> None:
    asked = "memory --inference llama-3-8b --context 8192"
    fitted = answer(f"{asked} --fit batch")
    most = fitted["inputs"]["batch"]
    assert fitted["result"] == answer(f"{asked} --batch {most}")["result"]
    assert fitted["result"]["fits"]
    assert not answer(f"{asked} --batch {most + 1}")["result"]["fits"]
    assert f"{most} sequences fit" in answer(asked)["notes"][0]
