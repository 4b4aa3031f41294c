"""Real questions, each with its right answer from outside the project."""

from pathlib import Path
from typing import Any

import pytest

from napkin import peak
from tests.running import answer, data, napkin

CASES = data("cases.yaml")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_answer_is_the_right_one(case: dict[str, Any]) -> None:
    result = answer(case["run"])["result"]
    for key, expected in case["result"].items():
        assert result[key] == (expected if expected is None else pytest.approx(expected, rel=5e-3))


DEVICES = data("devices.yaml")


@pytest.mark.parametrize("name", DEVICES["known"])
def test_pk_06_a_driver_s_name_finds_its_own_card(name: str) -> None:
    dtype, tflops = DEVICES["known"][name]
    assert peak(name, dtype) == pytest.approx(tflops * 1e12, rel=1e-9)


@pytest.mark.parametrize("name", DEVICES["unknown"])
def test_pk_06_no_name_finds_a_neighbour(name: str) -> None:
    ran = napkin(["mfu", "--achieved", "1e14", "--hardware", name])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: --hardware: ")


def test_pk_03_a_card_of_one_s_own_gets_its_own_peak(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\npeak: {bf16: 2250e12}\nmemory: 270 GB\n")
    asked = f"mfu --params 4e9 --tokens-per-second 11483 --gpus 1 --hardware {tmp_path}/mine.yaml"
    assert answer(asked)["result"]["mfu"] == pytest.approx(0.1225, rel=5e-3)


def test_pk_05_a_peak_is_that_of_a_chip_whatever_its_cores(tmp_path: Path) -> None:
    (tmp_path / "tpu-v3.yaml").write_text(
        "name: TPU v3, per chip of two cores\npeak: {bf16: 123e12}\nmemory: 32 GB\n"
    )
    asked = f"mfu --params 1e9 --tokens-per-second 48987 --hardware {tmp_path}/tpu-v3.yaml"
    assert answer(f"{asked} --gpus 4")["result"]["mfu"] == pytest.approx(0.597, rel=5e-3)
    assert answer(f"{asked} --gpus 8")["result"]["mfu"] == pytest.approx(0.299, rel=5e-3)


def test_pk_06_a_name_that_fits_several_is_refused_with_them() -> None:
    assert napkin(["hardware", "NVIDIA H100"]).err == (
        "Error: 'NVIDIA H100' is no exact name; write one of: h100-nvl (NVIDIA H100 NVL), "
        "h100-pcie (NVIDIA H100 PCIe), h100-sxm (NVIDIA H100 80GB HBM3)\n"
    )


def test_pk_02_an_alias_says_which_variant_it_took() -> None:
    taken = answer("train-time --params 7e9 --tokens 1e12 --gpus 8 --hardware h100")
    assert "h100 is taken as h100-sxm (NVIDIA H100 SXM)" in taken["notes"]


def test_mf_03_over_100_percent_stands_with_the_usual_suspects() -> None:
    found = answer("mfu --params 46.7e9 --tokens-per-second 5000 --gpus 1")
    assert found["warnings"] == [
        "more than the peak can do: look at --tokens-per-second (of all GPUs together?), --gpus "
        "(all that took part?), --active-params (a mixture of experts?), --frozen-base (LoRA?), "
        "--dtype (an fp8 run?) and --hardware"
    ]


def test_mf_03_a_mixture_of_experts_takes_the_memory_of_all_its_parameters() -> None:
    found = answer("train-time --params 46.7e9 --active-params 12.9e9 --tokens 1e12 --gpus 64")
    state = next(step for step in found["derivation"] if step["symbol"] == "S")
    assert state["value"] == 747.2e9
    assert found["result"]["flops"] == 774 * 10**20


def test_mf_07_hfu_is_four_thirds_of_mfu() -> None:
    result = answer("mfu --achieved 105e12 --hardware a100 --recompute full")["result"]
    assert result["hfu"] == pytest.approx(result["mfu"] * 4 / 3, rel=1e-12)


def test_tt_01_the_sparse_peak_comes_with_a_warning() -> None:
    found = answer("train-time --params 70e9 --tokens 15e12 --gpus 1024 --sparse")
    assert found["warnings"] == [
        "dense training cannot reach the 2:4 sparse figure; the dense one is 989.4 TFLOP/s"
    ]


def test_a_cluster_too_small_for_the_state_is_told_so() -> None:
    found = answer("train-time --params 70e9 --tokens 15e12 --gpus 8")
    assert found["warnings"] == [
        "states need at least 14 GPUs: 16 B × 70B = 1.12 TB of training state"
    ]


def test_of_states_alone_nothing_is_said_to_fit() -> None:
    found = answer("train-time --params 8e9 --tokens 1e12 --gpus 8")
    said = "states need at least 2 GPUs: 16 B × 8B = 128 GB of training state"
    assert said in found["notes"]
    assert not any("fit" in each for each in found["notes"] + found["warnings"])


def test_max_model_says_what_bound_it_is() -> None:
    assert answer("max-model --gpus 8")["notes"] == [
        "the pooled bound: all state sharded over all GPUs, no activations, nothing else",
        "one GPU alone, unsharded, holds 5B; all 8 pool 640 GB (596 GiB)",
        "by the driver's own 85.52 GB (79.65 GiB) a GPU: 42.76B",
        "other recipes: bf16 adamw 80B · mixed adam8bit 63.8B · fp32 sgd 80B",
        "mixed precision keeps 16 bytes too (2+2+4+4+4): it saves activations and time",
        "with activations: napkin memory --gpus 8 --model ...",
    ]


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [
        *(("494.7e12", "good"), ("400e12", "fair"), ("200e12", "low")),
        *(("49.47e12", "poor"), ("1e12", "poor")),  # the lecture's 0.5 and 0.05
    ],
)
def test_mfu_gives_a_verdict_in_words(rate: str, verdict: str) -> None:
    assert answer(f"mfu --achieved {rate}")["notes"][0].startswith(verdict)


def test_a_share_that_no_matmul_reached_is_out_of_reach() -> None:
    command = "train-time --params 70e9 --tokens 15e12 --gpus 1024 --mfu"
    assert answer(f"{command} 0.9")["warnings"][-1] == (
        "90 % is out of reach: large matmuls alone reached 80.3 % of this peak"
    )
    assert answer(f"{command} 0.8")["warnings"] == []


def test_a_sequence_whose_attention_6n_leaves_out_is_warned_of() -> None:
    """By hand: 6 x 7.505e9 + 3 x 262,144 x 131,072 over 6 x 8.03e9."""
    says = (
        "6N leaves out attention: the matmuls and causal attention are 3.07 times as much "
        "(--convention exact-causal)"
    )
    long = "--model llama-3.1-8b --seq-len 131072"
    assert says in answer(f"train-time {long} --tokens 1T --gpus 8")["warnings"]
    assert says in answer(f"mfu {long} --tokens-per-second 20000 --gpus 8")["warnings"]
    assert not answer("train-time --model llama-3.1-8b --tokens 1T --gpus 8")["warnings"]


def test_a_rate_that_may_be_one_gpu_s_is_asked_about() -> None:
    command = "mfu --params 7B --tokens-per-second 9600 --gpus 8"
    says = "if that is the rate of one GPU: --tokens-per-second-per-gpu, 40.8 %"
    assert says in answer(command)["notes"]
    alone = answer("mfu --params 7B --tokens-per-second-per-gpu 9600")["result"]["mfu"]
    assert alone == pytest.approx(0.408, abs=0.001)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (
            "memory llama-3-8b --precision fp16",
            "--precision: 'fp16' is no recipe of training precision: its training keeps fp32 "
            "weights too; write amp (torch's autocast) or mixed",
        ),
        (
            "memory llama-8b",
            "--model: 'llama-8b' is no exact name; write one of: llama-3-8b, llama-3.1-8b",
        ),
        (
            "train-time --recompute full",
            "--recompute: train-time has no such option; it is one of: mfu, memory, flops",
        ),
    ],
)
def test_what_is_typed_by_mistake_is_answered_with_what_is_right(command: str, error: str) -> None:
    assert napkin(command).err == f"Error: {error}\n"
