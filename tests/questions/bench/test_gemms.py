"""A model's own matmuls, and the rate of all of them together."""

import json
from pathlib import Path
from statistics import harmonic_mean

import pytest

from napkin.accounting.parameters import parameters
from napkin.questions.bench import gemms
from napkin.specs import models
from napkin.specs.folders import model_names
from napkin.specs.model import Model
from tests.running import answer, answers, napkin

SMALL = "llama:L=3,d=128,H=4,kv=2,ff=256,V=512"
ASKED = f"bench --device cpu --model {SMALL} --seq-len 64 --micro-batch 2 --seconds 0.01"


@pytest.mark.parametrize("name", model_names())
def test_the_linear_layers_hold_every_weight_that_a_token_multiplies(name: str) -> None:
    model = models.find(name)
    assert isinstance(model, Model)
    for tokens in (1, 100, 4096):
        layers = gemms.work(model, tokens, 1).layers
        multiplied = sum(each.inputs * each.outputs * each.often * each.rows for each in layers)
        assert multiplied == parameters(model).N_mm.value * tokens


def test_a_narrow_table_and_a_gated_shared_expert_are_multiplied_too(tmp_path: Path) -> None:
    opt = {
        "model_type": "opt",
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "ffn_dim": 96,
        "num_attention_heads": 4,
        "vocab_size": 200,
        "word_embed_proj_dim": 32,
    }
    qwen = {
        "model_type": "qwen2_moe",
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "num_experts": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 200,
        "moe_intermediate_size": 40,
        "intermediate_size": 96,
    }
    for fields in (opt, qwen):
        file = tmp_path / "config.json"
        file.write_text(json.dumps(fields))
        model = models.find(str(file))
        layers = gemms.work(model, 100, 1).layers
        multiplied = sum(each.inputs * each.outputs * each.often * each.rows for each in layers)
        assert multiplied == parameters(model).N_mm.value * 100


def test_each_linear_layer_has_its_three_passes() -> None:
    work = gemms.work(models.find(SMALL), 64, 2)
    found = {layer.name: layer.shapes for layer in work.layers}
    assert found["query"] == ((128, 128, 128), (128, 128, 128), (128, 128, 128))
    assert found["key, value"] == ((128, 64, 128), (128, 128, 64), (128, 64, 128))
    assert found["down"] == ((128, 128, 256), (128, 256, 128), (256, 128, 128))
    assert found["output head"] == ((128, 512, 128), (128, 128, 512), (128, 512, 128))
    assert [layer.often for layer in work.layers] == [3, 6, 3, 6, 3, 1]


def test_the_rate_is_the_flop_weighted_harmonic_mean() -> None:
    result = answer(ASKED)["result"]
    rates = [each["flops_per_second"] for each in result["gemms"]]
    weights = [
        each["count"] * 2 * m * n * k for each in result["gemms"] for m, n, k in [each["shape"]]
    ]
    median = result["flops_per_second"]["median"]
    assert median == pytest.approx(harmonic_mean(rates, weights), rel=1e-9)
    assert min(rates) <= median <= max(rates)
    assert (result["shape"], result["saved_to"]) == (None, None)
    assert [each["pass"] for each in result["gemms"]] == [*gemms.PASSES] * 6


def test_all_flop_are_three_times_those_of_the_forward_pass() -> None:
    steps = {step["symbol"]: step["value"] for step in answer(ASKED)["derivation"]}
    assert steps["C"] == 6 * parameters(models.find(SMALL)).N_mm.value * 128


def test_every_precision_has_its_answer_and_experts_a_matmul_each() -> None:
    shape = "mixtral:L=2,d=64,H=4,ff=96,V=128,E=4,k=2"
    asked = f"bench --device cpu --model {shape} --seq-len 32 --dtype fp32,bf16 --seconds 0.01"
    found = answers(asked)
    assert [each["result"]["dtype"] for each in found] == ["fp32", "bf16"]
    (up,) = [g for g in found[0]["result"]["gemms"] if g["name"] == "gate, up of an expert"][:1]
    assert (up["shape"], up["count"]) == ([16, 96, 64], 2 * 2 * 4)
    assert "experts are balanced, each a matmul of its own" in found[0]["notes"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"--model {SMALL} --size 64", "--model: other shapes are asked for already; leave one out"),
        (f"--model {SMALL} --scan", "--model: other shapes are asked for already; leave one out"),
        (f"--model {SMALL} --bandwidth", "--bandwidth: stands alone; leave --model out"),
        ("--seq-len 64", "--seq-len: goes with --model"),
        ("--micro-batch 2", "--micro-batch: goes with --model"),
        (f"--model {SMALL} --micro-batch 0.5", "--micro-batch: '0.5' is not a whole number; write 1 or 2"),
        (
            "--model linear:L=2,d=50 --dtype int8",
            "--model: linear:L=2,d=50: 50x1x4096 does not fit: int8 wants multiples of 8",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_one_line(line: str, says: str) -> None:
    ran = napkin(f"bench --device cpu {line}")
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {says}\n")
