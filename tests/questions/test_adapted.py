"""Adapters in the other questions: the largest frozen model, the FLOP and the MFU of a LoRA run."""

import pytest

from tests.running import answer, napkin


def test_a_65b_model_and_its_adapters_fit_on_48_gb_as_qlora_says() -> None:
    asked = "max-model --gpus 1 --memory 48GB --quantize nf4 --adapters 1.2% --optimizer adam8bit"
    found = answer(f"{asked} --precision bf16")
    assert found["result"]["params"] > 65e9
    assert found["result"]["bytes_per_param"] == pytest.approx(4.126953125 / 8 + 0.012 * 6.03125)


def test_a_frozen_model_in_16_bits_is_its_weights_and_a_share_of_the_recipe() -> None:
    found = answer("max-model --gpus 8 --adapters 2%")["result"]
    assert found["bytes_per_param"] == 2 + 0.02 * 16
    assert found["params"] == int(640e9 / 2.32)


def test_paged_moments_take_no_memory_of_the_gpu() -> None:
    asked = "max-model --gpus 1 --adapters 1% --precision bf16 --optimizer"
    assert answer(f"{asked} paged-adam8bit")["result"]["bytes_per_param"] == 2 + 0.01 * 4


def test_an_mfu_of_a_lora_run_counts_what_flops_counts() -> None:
    asked = "--model llama-3-8b --seq-len 2048 --lora-rank 16 --lora-targets qv"
    counted = answer(f"flops {asked}")["result"]["computed_per_token"]
    found = answer(f"mfu {asked} --tokens-per-second 9000 --gpus 1")
    assert found["result"]["flops_per_token"] == counted
    assert found["result"]["mfu"] == pytest.approx(counted * 9000 / 989.4e12)
    assert set(found["result"]["conventions"].values()) == {None}
    assert (found["inputs"]["lora_rank"], found["inputs"]["lora_targets"]) == (16, "q v")


ERRORS = {
    "mfu --params 8e9 --tokens-per-second 9000 --gpus 1 --lora-rank 16": (
        "--lora-rank: needs the model's shape: give --model"
    ),
    "mfu --model llama-3-8b --tokens-per-second 9000 --gpus 1 --lora-rank 16 --frozen-base": (
        "--frozen-base: --lora-rank counts it, adapters too; leave one out"
    ),
    "mfu --model llama-3-8b --tokens-per-second 9000 --gpus 1 --lora-rank 16 --recompute full": (
        "--recompute: is not counted with --lora-rank yet; leave it out"
    ),
    "mfu --model llama-3-8b --tokens-per-second 9000 --gpus 1 --lora-targets qv": (
        "--lora-targets: goes with --lora-rank"
    ),
    "mfu --model llama-3-8b --achieved 400TFLOP/s --lora-rank 8": (
        "--lora-rank: does nothing here: the FLOP are counted already"
    ),
    "max-model --gpus 8 --quantize fp8": ("--quantize: 'fp8' is not known here; write nf4 or int8"),
    "max-model --gpus 8 --adapters 1% --bytes-per-param 3": (
        "--bytes-per-param: says the sum of all; leave it out"
    ),
    "max-model --gpus 8 --adapters 1% --precision amp": (
        "--precision: amp is no recipe of adapters; write one of mixed, fp32, bf16, "
        "bf16-fp32-moments"
    ),
}


@pytest.mark.parametrize("asked", ERRORS)
def test_a_mistake_about_adapters_gets_one_line(asked: str) -> None:
    ran = napkin(asked)
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {ERRORS[asked]}\n")
