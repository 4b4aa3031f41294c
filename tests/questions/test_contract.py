"""The keys that scripts rely on, and that command line and Python are one path."""

import json
from typing import Any

import pytest

import napkin
from napkin.specs.conventions import CONVENTIONS
from tests.running import answer, answers

KEYS = {
    "train-time --params 70e9 --tokens 15e12 --gpus 1024": (
        "flops seconds days gpu_hours pf_days params active_params tokens gpus mfu tokens_per_second "
        "tokens_per_second_per_gpu min_gpus_for_states cost energy_kwh measured published"
    ),
    "max-model --gpus 8": "params bytes_per_param memory_bytes params_replicated",
    "mfu --params 7e9 --tokens-per-second 9600 --gpus 1": (
        "mfu conventions hfu mfu_measured flops_per_token flops_per_second_per_gpu "
        "tokens_per_second_per_gpu gpu_hours seconds"
    ),
    "bench --device cpu --size 64 --seconds 0.01": (
        "device device_name dtype shape flops_per_second samples promised ratio saved_to"
    ),
    "flops --model llama-3-8b --seq-len 8192": (
        "params active_params matmul_params forward_per_token backward_per_token training_per_token"
    ),
    "memory --model llama-3-8b --gpus 8": (
        "per_gpu_bytes peak_phase phases capacity_bytes verdict fits adapter_params host_bytes"
    ),
    "models llama-3-8b": "params active_params matmul_params parts",
    "tensor 4x8": "elements bytes",
    "matmul 4x8 8x4": "flops bytes intensity seconds bound mfu",
    "dtypes bf16": ("bits sign exponent mantissa bytes max smallest_normal smallest_subnormal eps"),
    "data --tokens 1T --vocab 32000": "bytes",
    "checkpoint gpt2": "bytes weights_bytes seconds interval_seconds lost",
    "explain six": "title text command headline reference",
    "hardware h100-sxm": (
        "name vendor peak memory_bytes memory_visible_bytes memory_bandwidth tdp_watts "
        "device_names measured"
    ),
}


@pytest.mark.parametrize("command", KEYS)
def test_a_result_has_the_contract_s_keys(command: str) -> None:
    found = answer(command)
    assert list(found) == ["inputs", "result", "derivation", "notes", "warnings"]
    assert list(found["result"]) == KEYS[command].split()
    for step in found["derivation"]:
        assert list(step) == ["symbol", "label", "formula", "numbers", "value", "unit", "source"]


def test_mfu_names_all_seven_conventions() -> None:
    conventions = answer("mfu --params 7e9 --tokens-per-second 9600 --gpus 1")["result"][
        "conventions"
    ]
    assert conventions.pop("six_n") == pytest.approx(0.4075, rel=1e-3)
    assert conventions == dict.fromkeys(
        ["six_n_non_embedding", "palm", "torchtitan", "megatron", "exact_full", "exact_causal"]
    )


def test_train_time_counts_cost_energy_and_rates() -> None:
    result = answer("train-time --params 70e9 --tokens 15e12 --gpus 1024 --price 2.5")["result"]
    assert result["gpu_hours"] == pytest.approx(1024 * result["days"] * 24)
    assert result["cost"] == pytest.approx(2.5 * result["gpu_hours"])
    assert result["energy_kwh"] == pytest.approx(0.7 * result["gpu_hours"])
    assert result["tokens_per_second"] == pytest.approx(15e12 / result["seconds"])
    assert result["tokens_per_second_per_gpu"] == pytest.approx(result["tokens_per_second"] / 1024)


def test_hardware_gives_every_peak_dense_and_sparse() -> None:
    result = answer("hardware h100-sxm")["result"]
    assert result["peak"]["bf16"] == {"dense": 989.4e12, "sparse": 1978.9e12}
    assert result["peak"]["fp64"] == {"dense": 66.9e12, "sparse": None}
    assert (result["memory_bytes"], result["memory_visible_bytes"]) == (80e9, 85520809984)
    assert (result["tdp_watts"], result["memory_bandwidth"]) == (700, 3.35e12)
    assert result["device_names"] == ["NVIDIA H100 80GB HBM3"]
    assert len(answers("hardware")) == 52
    assert [a["inputs"]["hardware"] for a in answers("hardware h100 a100")] == [
        "h100-sxm",
        "a100-sxm-80gb",
    ]


PYTHON: list[tuple[str, Any, dict[str, Any]]] = [
    (
        "train-time --params 70B --tokens 15T --gpus 1e3 --mfu 40% --price $2 --epochs 2",
        napkin.train_time,
        {"params": "70B", "tokens": 15e12, "gpus": 1000, "mfu": 0.4, "price": 2, "epochs": 2},
    ),
    (
        "max-model --gpus 8 --memory 80GiB --precision bf16 --optimizer sgd --reserve 5%",
        napkin.max_model,
        {
            "gpus": 8,
            "memory": 80 * 2**30,
            "precision": "bf16",
            "optimizer": "sgd",
            "reserve": 0.05,
        },
    ),
    (
        "mfu --params 7e9 --step-time 2s --seq-len 4096 --global-batch 256 --gpus 8 --recompute full",
        napkin.mfu,
        {
            "params": 7e9,
            "step_time": "2s",
            "seq_len": 4096,
            "global_batch": 256,
            "gpus": 8,
            "recompute": "full",
        },
    ),
    (
        "flops --model qwen3-0.6b --seq-len 4096 --recompute selective --tokens 1T",
        napkin.flops,
        {"model": "qwen3-0.6b", "seq_len": 4096, "recompute": "selective", "tokens": 1e12},
    ),
    (
        "memory --model qwen3-0.6b --gpus 2 --zero 1 --micro-batch 3 --chunked-loss",
        napkin.memory,
        {"model": "qwen3-0.6b", "gpus": 2, "zero": 1, "micro_batch": 3, "chunked_loss": True},
    ),
]


@pytest.mark.parametrize(
    ("command", "ask", "options"), PYTHON, ids=[command.split()[0] for command, *_ in PYTHON]
)
def test_python_and_the_command_line_give_one_document(
    command: str, ask: Any, options: dict[str, Any]
) -> None:
    found = ask(**options)
    (document,) = json.loads(found.to_json())["answers"]
    assert document == answer(command)
    assert (document["result"], document["notes"]) == (found.result, found.notes)
    assert (document["derivation"], document["warnings"]) == (found.derivation, found.warnings)


def test_memory_names_every_kind() -> None:
    for asked in ("--model llama-3-8b", "--params 8e9", "--params 8e9 --bytes-per-param 16"):
        kinds = answer(f"memory {asked}")["result"]["per_gpu_bytes"]
        assert list(kinds) == [
            *("weights", "master_weights", "gradients", "optimizer"),
            *("activations", "loss", "temporaries", "peak"),
        ]


def test_train_time_and_mfu_name_all_conventions_of_a_model() -> None:
    asked = "train-time --model llama-3-8b --tokens 15T --gpus 1024"
    assert list(answer(asked)["result"]["conventions"]) == list(CONVENTIONS)
    found = answer("mfu --model llama-3-8b --tokens-per-second 9600 --gpus 1")["result"]
    assert list(found["conventions"]) == list(CONVENTIONS)
    assert None not in found["conventions"].values()


def test_python_gets_the_same_errors() -> None:
    with pytest.raises(napkin.NapkinError) as caught:
        napkin.train_time(params="70B", tokens="15T", gpus=1.5)
    assert str(caught.value) == "gpus: '1.5' is not a whole number; write 1 or 2"
