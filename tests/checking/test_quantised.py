"""Which weights a quantisation converts: the modules of the very classes, one by one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from transformers.quantizers.quantizers_utils import should_convert_module

from napkin.accounting.quantised import quantised
from napkin.checking.count import built_on_meta
from napkin.specs import models, quantization
from napkin.specs.model import Model
from tests.checking.test_count import SMALL

# What transformers keeps experts of a layer in, and what bitsandbytes converts.
LINEARS = ("Linear", "Conv1D")
LEFT_OUT: list[tuple[str, list[str]]] = [
    ("nothing", []),
    ("attention", ["self_attn", "attn", "attention"]),
    ("the second layer", ["model.layers.1", "transformer.h.1", r".*layers\.1\."]),
    ("by the end", ["down_proj", "o_proj", "fc1", "dense"]),
    ("by a pattern", [r"model\.layers\.[02]\.mlp", "model.layers.*.self_attn.q_proj"]),
]


@pytest.mark.parametrize(
    ("kind", "fields"), SMALL, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(SMALL)]
)
def test_what_is_quantised_are_the_modules_that_transformers_would_convert(
    kind: str, fields: Mapping[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**fields, "model_type": kind}))
    model = models.find(str(file))
    assert isinstance(model, Model)
    for named, patterns in LEFT_OUT:
        if model.experts is not None and model.dense_layers and named != "nothing":
            continue  # which layers are dense is no fact of a Model
        for experts in (False, True):
            of = (quantization.LINEARS, quantization.EXPERTS) if experts else ("linears",)
            how = quantization.Quantization("", "int8", 8, of, tuple(patterns))
            assert (named, experts, quantised(model, how)) == (
                named,
                experts,
                converted(model, patterns, experts),
            )


def converted(model: Model, patterns: list[str], experts: bool) -> int:
    """Weights of the linear layers, but the head, and of the experts, that are no biases."""
    built = built_on_meta(model.architecture, model.fields)
    return sum(
        parameter.numel()
        for name, module in built.named_modules()
        if type(module).__name__ in LINEARS
        or (experts and type(module).__name__.endswith("Experts"))
        if name != "lm_head" and should_convert_module(name, patterns)
        for weight, parameter in module.named_parameters(recurse=False)
        if "bias" not in weight
    )
