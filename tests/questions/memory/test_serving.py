"""Weights as they are served: which are quantised, by --precision and by a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.running import answer

GB = 1e9
# Of --inference, in GB. Where napkin cannot know better they are arithmetic: the blocks' linear
# layers (6,979,321,856 of llama-3-8b's 8,030,261,248 parameters) at their bits, the rest at 16.
ASKED = [
    ("llama-3-8b", "", 16.061),
    # What bitsandbytes holds of it: 4.5 bits, 4.127 with double quantisation (QLoRA 2305.14314).
    ("llama-3-8b", "--precision nf4", 6.028),
    ("llama-3-8b", "--precision nf4 --double-quant", 5.702),
    ("llama-3-8b", "--precision int8", 9.081),
    ("llama-3-8b", "--precision fp8", 9.081),
    # Published sizes of the checkpoints: 60.8 and 12.8 GiB (gpt-oss model card, table 1).
    ("gpt-oss-120b", "", 60.8 * 2**30 / GB),
    ("gpt-oss-20b", "", 12.8 * 2**30 / GB),
    ("gpt-oss-120b", "--precision mxfp4", 60.8 * 2**30 / GB),
    ("gpt-oss-120b", "--precision bf16", 233.66),
    # Experts in one tensor stay at 16 bits: bitsandbytes converts linear layers alone.
    ("mixtral-8x7b", "--precision nf4", 91.48),
    ("mixtral-8x7b", "--precision int4", 23.747),
    ("deepseek-v3", "", 673.2),
]


@pytest.mark.parametrize(("model", "options", "size"), ASKED, ids=[f"{m} {o}" for m, o, _ in ASKED])
def test_only_the_blocks_are_quantised(model: str, options: str, size: float) -> None:
    found = answer(f"memory --inference --model {model} {options}")
    assert found["result"]["per_gpu_bytes"]["weights"] / GB == pytest.approx(size, rel=2e-3)


def test_the_answer_says_which_weights_are_quantised() -> None:
    notes = answer("memory --inference --model llama-3-8b --precision nf4")["notes"]
    assert notes[2:4] == [
        "nf4: 4.5 bits, scales in them, for 6.979B parameters of linear layers of the blocks; "
        "the other 1.051B stay bf16",
        "--double-quant quantises the scales too: 4.127 bits",
    ]
    notes = answer("memory --inference --params 8B --precision nf4")["notes"]
    assert "every weight in nf4: --model knows those that stay 16 bits" in notes
    notes = answer("memory --inference --model gpt-oss-120b --precision bf16")["notes"]
    assert "quantization_config (mxfp4) is not used: --precision says bf16" in notes
    notes = answer("memory --model gpt-oss-20b --activations korthikanti")["notes"]
    said = "quantization_config (mxfp4) is not used: --precision says how they train"
    assert said in notes


# 2 layers of 4·64² + 3·64·128 = 40,960 weights; 2·40,960 + 2·1000·64 + 5·64 = 210,240 in all.
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 1000,
}
ALL, REST = 81_920, 128_320
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
TENSORS = {"quant_method": "compressed-tensors", "ignore": ["lm_head"]}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}
FP8 = {"num_bits": 8, "type": "float", "strategy": "channel"}
CONFIGS: list[tuple[dict[str, Any], str, float, int]] = [
    # quantization_config, what it is called, bits of a weight, weights that are quantised
    ({"load_in_8bit": True}, "int8", 8, ALL),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8", 8, ALL),
    (NF4, "nf4", 4.5, ALL),
    (NF4 | {"bnb_4bit_use_double_quant": True}, "nf4", 4.126953125, ALL),
    (NF4 | {"bnb_4bit_quant_type": "fp4"}, "fp4", 4.5, ALL),
    (NF4 | {"llm_int8_skip_modules": ["lm_head", "mlp"]}, "nf4", 4.5, ALL),
    (NF4 | {"llm_int8_skip_modules": ["o_proj", "model.layers.1.mlp"]}, "nf4", 4.5, 49_152),
    ({"quant_method": "fp8"}, "fp8", 8, ALL),
    ({"quant_method": "fp8", "weight_block_size": [128, 64]}, "fp8", 8 + 32 / 8192, ALL),
    ({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0"]}, "fp8", 8, 40_960),
    # As a bare model, or the text part of a larger one, names the same layer.
    ({"quant_method": "fp8", "modules_to_not_convert": ["layers.0"]}, "fp8", 8, 40_960),
    (
        {"quant_method": "fp8", "modules_to_not_convert": ["model.language_model.layers.0"]},
        "fp8",
        8,
        40_960,
    ),
    (
        {"quant_method": "fp8", "modules_to_not_convert": ["language_model.model.layers.0"]},
        "fp8",
        8,
        40_960,
    ),
    ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": None}, "fp8", 8, ALL),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4", 4.15625, ALL),
    ({"quant_method": "awq", "bits": 4, "group_size": 64}, "int4", 4.3125, ALL),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", 8, ALL),
    (TENSORS | {"config_groups": {"g": {"targets": ["Linear"], "weights": FP8}}}, "fp8", 8, ALL),
    (
        {**TENSORS, "config_groups": {"g": {"targets": ["Linear"], "weights": INT4}}},
        "int4",
        4.125,
        ALL,
    ),
    (
        {
            **TENSORS,
            "ignore": [r"re:.*self_attn\..*"],
            "config_groups": {"g": {"targets": ["Linear"], "weights": FP8}},
        },
        "fp8",
        8,
        49_152,
    ),
]


@pytest.mark.parametrize(
    ("config", "name", "bits", "weights"), CONFIGS, ids=map(str, range(len(CONFIGS)))
)
def test_a_file_s_quantization_config_is_honoured(
    config: dict[str, Any], name: str, bits: float, weights: int, tmp_path: Path
) -> None:
    found = answer(f"memory --inference --model {written(tmp_path, config)}")
    assert found["inputs"]["precision"] == name
    held = found["result"]["per_gpu_bytes"]["weights"]
    assert held == pytest.approx(weights * bits / 8 + (ALL - weights + REST) * 2, rel=1e-9)


def test_a_file_of_the_first_compressed_tensors_is_honoured_too(tmp_path: Path) -> None:
    groups = {"g": {"targets": ["Linear"], "weights": FP8}}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA | {"compression_config": TENSORS | {"config_groups": groups}}))
    found = answer(f"memory --inference --model {file}")
    assert found["inputs"]["precision"] == "fp8"
    assert found["result"]["per_gpu_bytes"]["weights"] == ALL + REST * 2


UNUSED: list[tuple[dict[str, Any], str]] = [
    ({"quant_method": "hqq"}, "(hqq) is not used: napkin does not know this method"),
    ({}, "(no quant_method) is not used: napkin does not know this method"),
    (
        {"quant_method": "mxfp4"},
        "(mxfp4) is not used: it is of experts, and there are none",
    ),
    ({"quant_method": "gptq", "bits": 3}, "(gptq) is not used: 3 bits are not counted"),
    ({"quant_method": "gptq", "bits": "4"}, "(gptq) is not used: its bits is no whole number"),
    (
        {"quant_method": "gptq", "bits": 4, "lm_head": True},
        "(gptq) is not used: it quantises the head too",
    ),
    (
        {"quant_method": "gptq", "bits": 4, "modules_in_block_to_quantize": [["mlp.up_proj"]]},
        "(gptq) is not used: its modules_in_block_to_quantize sets some modules apart",
    ),
    (
        {"quant_method": "gptq", "bits": 4, "dynamic": {r"-:.*down_proj": {}}},
        "(gptq) is not used: its dynamic sets some modules apart",
    ),
    (
        {"quant_method": "mxfp4", "dequantize": True},
        "(mxfp4) is not used: its dequantize makes 16 bits of them",
    ),
    (
        {"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24-bitmask"}},
        "(compressed-tensors) is not used: its sparsity_config leaves out zeros",
    ),
    (
        {"quant_method": "fp8", "weight_block_size": [1, 1]},
        "(fp8) is not used: its scales make a weight no smaller",
    ),
    (
        {"quant_method": "fp8", "modules_to_not_convert": ["(.*)*x$"]},
        "(fp8) is not used: it leaves out a module by a pattern that may take for ever",
    ),
    (
        {"quant_method": "fp8", "modules_to_not_convert": [".*" * 30 + "x"]},
        "(fp8) is not used: it leaves out a module by a pattern that may take for ever",
    ),
    (
        {"quant_method": "fp8", "modules_to_not_convert": ["("]},
        "(fp8) is not used: it leaves out a module by no valid pattern",
    ),
    (
        {"quant_method": "fp8", "modules_to_not_convert": [5]},
        "(fp8) is not used: a module that it leaves out is no name",
    ),
    (
        {"quant_method": "compressed-tensors", "config_groups": {}},
        "(compressed-tensors) is not used: it has not one group of settings",
    ),
    (
        {"quant_method": "bitsandbytes"},
        "(bitsandbytes) is not used: it loads neither 8 nor 4 bits",
    ),
]


@pytest.mark.parametrize(("config", "says"), UNUSED, ids=[says for _, says in UNUSED])
def test_a_config_that_is_not_read_is_said_to_be_unused(
    config: dict[str, Any], says: str, tmp_path: Path
) -> None:
    found = answer(f"memory --inference --model {written(tmp_path, config)}")
    assert found["inputs"]["precision"] == "bf16"
    assert f"quantization_config {says}" in found["notes"]
    assert found["result"]["per_gpu_bytes"]["weights"] == 2 * (ALL + REST)


def written(folder: Path, config: dict[str, Any]) -> str:
    file = folder / "config.json"
    file.write_text(json.dumps(LLAMA | {"quantization_config": config}))
    return str(file)
