"""`napkin mfu`: impossible figures name their suspects, names that mean half a package both
readings."""

import pytest

from napkin import max_model, mfu, train_time
from napkin.specs.dtypes import precision
from tests.running import answer, napkin

SHAPE = "mfu --params 7e9 --seq-len 4096 --gpus 8"
LINEAR = "mfu --model linear:L=4,d=4096 --tokens-per-second 1e6 --gpus 1"

MI250X = "AMD Instinct MI250X"
BOTH = f"{MI250X} is what its driver calls each of a package's 2 devices: "


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("--seq-len 4096 --global-batch 8M --step-time 2s", "--global-batch (sequences, not tok"),
        ("--seq-len 4096 --micro-batch 8k --step-time 2s", "--micro-batch (sequences of one GPU?)"),
        ("--tokens-per-step 9e9 --step-time 2s", "--tokens-per-step (of all GPUs together?)"),
        ("--tokens-per-second 1e9", "--tokens-per-second (of all GPUs together?)"),
        ("--tokens-per-second-per-gpu 1e6", "--tokens-per-second-per-gpu (of one GPU?)"),
        ("--tokens 15T --time 1h", "--tokens (of the whole run?), --time (of the whole run?)"),
    ],
)
def test_over_100_percent_the_options_that_were_given_are_the_first_suspects(
    given: str, first: str
) -> None:
    found = answer(f"mfu --params 7e9 --gpus 8 {given}")
    assert found["result"]["mfu"] > 1
    assert found["warnings"][0].startswith(f"more than the peak can do: look at {first}")


def test_a_log_s_flop_and_a_peak_of_one_s_own_are_suspects_where_they_were_given() -> None:
    found = answer("mfu --achieved 400TFLOP/s --peak 300TFLOP/s")
    assert found["warnings"] == [
        "more than the peak can do: look at --achieved (of one GPU?) and --peak"
    ]


def test_a_batch_in_tokens_is_divided_by_the_sequence_length() -> None:
    in_tokens = answer(f"{SHAPE} --step-time 20s --global-batch '4_194_304 tokens'")
    in_sequences = answer(f"{SHAPE} --step-time 20s --global-batch 1024")
    assert in_tokens["result"] == in_sequences["result"]
    assert in_tokens["inputs"]["global_batch"] == 1024
    found = answer("flops --model gpt2 --seq-len 1000 --global-batch '0.5M tokens'")
    assert found["inputs"]["global_batch"] == 500


@pytest.mark.parametrize("convention", ["six-n", "palm", "exact-full", "exact-causal"])
def test_a_linear_stack_recomputed_adds_a_second_forward_pass(convention: str) -> None:
    found = answer(f"{LINEAR} --recompute full --convention {convention}")["result"]
    again = 2 * 4 * 4096**2  # FLOP of a second forward pass, per token
    flops = found["flops_per_token"]
    assert found["hfu"] == pytest.approx(found["mfu"] * (flops + again) / flops, rel=1e-12)


def test_a_driver_s_name_for_half_a_package_shows_both_readings() -> None:
    asked = f"mfu --params 7e9 --tokens-per-second-per-gpu 3024 --hardware '{MI250X}'"
    says = f"{BOTH}33.2 % if GPUs are packages, 66.3 % if they are those devices"
    assert answer(asked)["warnings"] == [says]
    ran = napkin(f"{asked} --format csv")
    assert (ran.code, ran.err) == (0, f"warning: {says}\n")
    assert answer(asked.replace(MI250X, "mi250x"))["warnings"] == []


def test_the_other_questions_show_both_readings_too() -> None:
    days = train_time(params="7B", tokens="1T", gpus=8, hardware=MI250X)
    assert days.warnings == [
        f"{BOTH}317.3 days if GPUs are packages, 634.6 days if they are those devices"
    ]
    size = max_model(gpus=8, hardware=MI250X)
    assert size.warnings == [
        f"{BOTH}64B parameters if GPUs are packages, 32B parameters if they are those devices"
    ]
    assert max_model(gpus=8, hardware="mi250x").warnings == []


def test_the_default_precision_is_bf16_in_python_too() -> None:
    assert mfu(achieved="400TFLOP/s").inputs["dtype"] == "bf16"


def test_torch_s_names_of_fp8_are_one_precision() -> None:
    names = ("fp8", "fp8_e4m3", "fp8_e4m3fn", "float8_e4m3fn", "torch.float8_e4m3fn")
    assert {precision(name) for name in names} == {"fp8"}


@pytest.mark.parametrize(
    ("command", "hours", "seconds"),
    [
        ("mfu --params 70B --tokens 15T --time 30d --gpus 1024", 1024 * 30 * 24, 30 * 86400),
        ("mfu --params 70B --tokens 15T --gpu-hours 6.4M", 6.4e6, None),
        ("mfu --flops 4.79e21 --time 7d --gpus 8", 8 * 7 * 24, 7 * 86400),
        ("mfu --params 7B --tokens-per-second 9600 --gpus 1", None, None),
    ],
)
def test_a_whole_run_has_its_gpu_hours_and_time(
    command: str, hours: float | None, seconds: float | None
) -> None:
    result = answer(command)["result"]
    assert (result["gpu_hours"], result["seconds"]) == (hours, seconds)
