"""The working of every answer comes to its figures, whatever was asked."""

import json
from pathlib import Path

import pytest

from napkin.specs import architectures, models
from napkin.specs.folders import model_names
from napkin.specs.model import Model
from tests import working
from tests.running import answers, napkin

# One shipped model of each architecture, and the lecture's stack; one that is not shipped.
SHIPPED = {
    found.architecture: name
    for name in model_names()
    if isinstance(found := models.find(name), Model)
}
STACK = "linear:L=4,d=4096"
UNSHIPPED = {
    "model_type": "qwen2_moe",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "moe_intermediate_size": 40,
    "shared_expert_intermediate_size": 72,
    "num_experts": 6,
    "decoder_sparse_step": 2,
    "vocab_size": 200,
}

OF_A_MODEL = [
    "models",
    "flops --model",
    "flops --recompute full --model",
    "flops --recompute selective --model",
    "flops --lora-rank 16 --tokens 1.3T --model",
    "flops --seq-len 777 --global-batch 7 --model",
    "train-time --tokens 2T --gpus 1023 --convention exact-causal --price 2.3 --model",
    "mfu --step-time 2.1s --seq-len 512 --global-batch 1536 --gpus 24 --recompute full --model",
    "mfu --tokens 1e12 --gpu-hours 31234 --recompute selective --convention palm --model",
    "memory --model",
    "memory --gpus 7 --zero 0 --model",
    "memory --gpus 7 --zero 1 --optimizer muon --model",
    "memory --gpus 3 --zero 2 --precision amp --bucket-view --model",
    "memory --gpus 3 --zero 3 --precision mixed-fp32-grads --optimizer adam8bit --model",
    "memory --recompute full --micro-batch 3 --model",
    "memory --recompute full --attention eager --grad-accum 3 --model",
    "memory --recompute selective --attention eager --model",
    "memory --attention eager --precision fp32 --step loop --chunked-loss --model",
    "memory --attention sdpa --precision bf16 --optimizer adafactor --model",
    "memory --attention flash --precision bf16-fp32-moments --step fused --model",
    "memory --norm fused --precision bf16 --model",
    "memory --activations korthikanti --model",
    "memory --inference --context 999 --batch 3 --model",
    "memory --inference --precision nf4 --double-quant --model",
]
OF_NONE = [
    "train-time --params 70e9 --tokens 15e12 --gpus 1024",
    "train-time --params 70.1e9 --active-params 13.3e9 --tokens 15e12 --epochs 1.3 --gpus 1023 --price 2.3",
    "train-time --params 7B --tokens 1T --gpus 7 --hardware mi250x --mfu 37.5%",
    "max-model --gpus 8",
    "max-model --gpus 7 --reserve 13% --precision bf16 --optimizer adam8bit",
    "max-model --gpus 3 --memory 80GiB --bytes-per-param 7.5",
    "mfu --params 7.3e9 --step-time 2.1s --seq-len 4096 --micro-batch 3 --grad-accum 7 --gpus 24 --recompute full",
    "mfu --params 7.3e9 --tokens 1e12 --gpu-hours 31234 --frozen-base",
    "mfu --flops 5368709120000 --time 0.03s --gpus 3",
    "mfu --achieved 400TFLOP/s --hardware h200",
    "memory --params 6.7e9 --gpus 3 --bytes-per-param 7.5",
    "memory --model llama-3-8b --fit micro-batch",
    "memory --model llama-3-8b --fit gpus",
    "memory --model llama-3-8b --gpus 8 --fit seq-len",
    "memory --gpus 8 --fit params",
    "hardware",
    "hardware h100-sxm mi250x",
    "models",
]


def test_every_architecture_is_asked_about() -> None:
    assert {*SHIPPED, UNSHIPPED["model_type"]} == set(architectures.READERS)


@pytest.mark.parametrize("question", OF_A_MODEL)
def test_the_working_about_a_model_comes_to_its_figures(question: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(UNSHIPPED))
    answered = []
    for model in (*SHIPPED.values(), STACK, str(tmp_path)):
        ran = napkin(f"{question} {model} --format json")
        assert ran.code in (0, 2)  # what was never measured, and adapters of experts, are refused
        if ran.code == 0:
            answered.append(model)
            for each in json.loads(ran.out)["answers"]:
                working.check(each)
    assert SHIPPED["llama"] in answered


@pytest.mark.parametrize("question", OF_NONE)
def test_the_working_comes_to_its_figures(question: str) -> None:
    for each in answers(question):
        working.check(each)


@pytest.mark.parametrize(
    ("formula", "numbers", "value", "source"),
    [
        ("2 × a", "2 × 3", 7, ""),
        ("2 × a", "2 × 70e9", 140_000_000_001, ""),
        ("a / 3", "1 / 3", 0.3333, ""),
        ("", "", 7, ""),
        ("", "2 × 3", 6, "--params"),
    ],
)
def test_a_row_that_does_not_come_to_its_value_is_noticed(
    formula: str, numbers: str, value: float, source: str
) -> None:
    row = {"formula": formula, "numbers": numbers, "value": value, "source": source}
    with pytest.raises(AssertionError):
        working.check({"derivation": [row]})
