"""What layers keep for the backward pass, measured on transformers' own modules."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as typed_in_part

from napkin.questions.step.blocks import How, of_model
from napkin.specs import models
from napkin.specs.model import Model

transformers: Any = typed_in_part

BATCH, TOKENS = 2, 64
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 300,
    "max_position_embeddings": 128,
}
GATED = SIZES | {"intermediate_size": 160, "num_key_value_heads": 2}
ROTARY = GATED | {"head_dim": 16}
GPT2 = {
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_inner": 160,
    "vocab_size": 300,
    "n_positions": 128,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
NEOX = SIZES | {"intermediate_size": 160, "hidden_dropout": 0.0, "attention_dropout": 0.0}
OPT = SIZES | {"ffn_dim": 160, "word_embed_proj_dim": 64, "dropout": 0.0}
MIXTRAL = ROTARY | {"num_local_experts": 8}

CASES: list[tuple[str, Mapping[str, Any], str]] = [
    *((kind, ROTARY, "flash eager full") for kind in ("llama", "mistral", "qwen2", "qwen3")),
    *((kind, ROTARY, "flash eager full") for kind in ("gemma", "gemma3_text", "olmo2", "llama")),
    ("phi3", GATED, "flash full"),
    ("gpt2", GPT2, "flash eager"),
    ("gpt2", GPT2 | {"activation_function": "gelu"}, "flash"),
    ("gpt2", GPT2 | {"activation_function": "relu"}, "flash"),
    ("gpt_neox", NEOX, "flash"),
    ("opt", OPT, "flash"),
    ("mixtral", MIXTRAL, "flash eager"),
    # Other shapes, so that no formula is right by chance.
    (
        "llama",
        ROTARY | {"intermediate_size": 72, "head_dim": 24, "attention_bias": True},
        "flash eager",
    ),
    ("llama", ROTARY | {"hidden_act": "relu", "tie_word_embeddings": True}, "flash"),
    ("qwen3", ROTARY | {"intermediate_size": 72, "head_dim": 24}, "flash eager"),
    ("gemma", ROTARY | {"intermediate_size": 72, "head_dim": 24}, "flash"),
    ("gemma3_text", ROTARY | {"num_hidden_layers": 7, "intermediate_size": 72}, "flash"),
    ("olmo2", ROTARY | {"intermediate_size": 72, "num_key_value_heads": 1}, "flash"),
    ("phi3", GATED | {"num_key_value_heads": 4}, "flash"),
    ("phi3", GATED | {"intermediate_size": 400}, "flash"),
    ("gpt2", GPT2 | {"activation_function": "gelu_fast", "n_inner": 72}, "flash"),
    ("gpt2", GPT2 | {"activation_function": "quick_gelu"}, "flash"),
    ("gpt2", GPT2 | {"activation_function": "tanh"}, "flash"),
    ("gpt_neox", NEOX | {"use_parallel_residual": False, "rotary_pct": 0.5}, "flash"),
    ("opt", OPT | {"activation_function": "gelu"}, "flash"),
]
RUNS = [
    pytest.param(
        kind, fields, way, dtype, id=f"{kind}-{way}-{str(dtype).removeprefix('torch.')}-{i}"
    )
    for i, (kind, fields, ways) in enumerate(CASES)
    for way in ways.split()
    for dtype in (torch.float32, torch.bfloat16)
]


@pytest.mark.parametrize(("kind", "fields", "way", "dtype"), RUNS)
def test_a_model_keeps_what_its_formula_says(
    kind: str, fields: Mapping[str, Any], way: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**fields, "model_type": kind}))
    model = models.find(str(tmp_path))
    assert isinstance(model, Model)
    how = How(
        attention="eager" if way == "eager" else "flash",
        recompute="full" if way == "full" else "none",
        rng=0,  # a CPU's attention keeps none
    )
    found = of_model(model, BATCH, TOKENS, dtype.itemsize, how)
    each = found.block.bytes if way == "full" else sum(part.bytes for part in found.layer.values())
    kept = model.layers * each + sum(part.bytes for part in found.head.values())
    assert kept + statistics_on_a_cpu(model, dtype) == saved(kind, fields, way, dtype)


def statistics_on_a_cpu(model: Model, dtype: torch.dtype) -> int:
    """LayerNorm keeps mean and 1/std in fp32 on a GPU; a CPU keeps them in the value's own."""
    if model.norm_weights != 2 or dtype == torch.float32:
        return 0
    return (2 * model.layers + 1) * -2 * 2 * BATCH * TOKENS


def saved(kind: str, fields: Mapping[str, Any], way: str, dtype: torch.dtype) -> int:
    """Bytes of distinct tensors, weights and whole numbers apart, that a forward pass saves."""
    described = transformers.AutoConfig.for_model(kind, **fields)
    described.pad_token_id = None
    built = transformers.AutoModelForCausalLM.from_config(
        described, attn_implementation="eager" if way == "eager" else "sdpa"
    ).to(dtype)
    built.train()
    if way == "full":
        built.gradient_checkpointing_enable()
    own = {each.untyped_storage().data_ptr() for each in [*built.parameters(), *built.buffers()]}
    kept: dict[int, int] = {}
    alive = []  # a freed tensor's place could be another's

    def note(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage().data_ptr()
        if tensor.is_floating_point() and place not in own:
            kept[place] = tensor.untyped_storage().nbytes()
            alive.append(tensor)
        return tensor

    ids = torch.zeros(BATCH, TOKENS, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        built(input_ids=ids, labels=ids, use_cache=False)
    return sum(kept.values())
