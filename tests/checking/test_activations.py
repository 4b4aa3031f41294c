"""What layers keep for the backward pass, measured on transformers' own modules."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as typed_in_part

from napkin.specs import models
from napkin.specs.activations import KEPT
from napkin.specs.model import Model
from tests import layouts
from tests.checking.saving import bytes_saved

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
QWEN_MOE = ROTARY | {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
MLA = GATED | {
    "num_key_value_heads": 4,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 48,
}
UNCAPPED = {"attn_logit_softcapping": None, "final_logit_softcapping": None}
UPPER = {"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 1}

CASES: list[tuple[str, Mapping[str, Any], str]] = [
    *((kind, ROTARY, "flash eager full") for kind in ("llama", "mistral", "qwen2", "qwen3")),
    *((kind, ROTARY, "flash eager full") for kind in ("gemma", "gemma3_text", "olmo2", "llama")),
    ("phi3", GATED, "flash eager full"),
    ("gpt2", GPT2, "flash eager"),
    ("gpt2", GPT2 | {"activation_function": "gelu"}, "flash"),
    ("gpt2", GPT2 | {"activation_function": "relu"}, "flash"),
    ("gpt_neox", NEOX, "flash eager"),
    ("opt", OPT, "flash eager"),
    ("mixtral", MIXTRAL, "flash eager"),
    *(("qwen3_moe", QWEN_MOE | {"norm_topk_prob": n}, "flash eager full") for n in (True, False)),
    ("qwen2_moe", QWEN_MOE | {"shared_expert_intermediate_size": 96}, "flash eager full"),
    ("qwen2_moe", QWEN_MOE | {"norm_topk_prob": True, "decoder_sparse_step": 2}, "flash"),
    *(("deepseek_v3", MLA | {"first_k_dense_replace": n}, "flash eager full") for n in (0, 1)),
    ("deepseek_v3", MLA | {"q_lora_rank": None, "n_shared_experts": 2}, "flash"),
    *(("deepseek_v2", MLA | {"first_k_dense_replace": n}, "flash eager full") for n in (0, 1)),
    ("gpt_oss", MIXTRAL | {"num_experts_per_tok": 2, "sliding_window": 16}, "eager"),
    # Caps: of the scores, of the logits, of both.
    ("gemma2", ROTARY | UNCAPPED, "flash eager full"),
    ("gemma2", ROTARY | UNCAPPED | {"final_logit_softcapping": 30.0}, "flash full"),
    ("gemma2", ROTARY, "eager"),
    ("gemma2", ROTARY | {"final_logit_softcapping": None}, "eager"),
    ("gemma3_text", ROTARY | {"final_logit_softcapping": 30.0}, "flash eager full"),
    # Windows: one token shorter than the sequence, as long, one longer; of some layers.
    *(("mistral", ROTARY | {"sliding_window": w}, "sdpa eager") for w in (63, 64, 65)),
    ("mistral", ROTARY | {"num_key_value_heads": 1, "head_dim": 24, "sliding_window": 8}, "sdpa"),
    ("gemma3_text", ROTARY | {"num_hidden_layers": 7, "sliding_window": 16}, "sdpa"),
    ("gemma2", ROTARY | UNCAPPED | {"sliding_window": 16}, "sdpa"),
    ("mistral", ROTARY | {"num_key_value_heads": 4, "sliding_window": 16}, "sdpa"),
    ("llama", ROTARY | {"num_key_value_heads": 1}, "eager"),
    ("qwen2", ROTARY | UPPER, "sdpa"),
    *(
        ("phi3", GATED | {"num_key_value_heads": k, "sliding_window": 16}, "sdpa")
        for k in (1, 2, 4)
    ),
    ("mixtral", MIXTRAL | {"sliding_window": 16}, "sdpa"),
    *(("opt", OPT | {"word_embed_proj_dim": width}, "flash") for width in (24, 96)),
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
    attention = way if way in ("eager", "sdpa") else "flash"
    full = way == "full"
    settings: dict[str, Any] = {
        "attention": attention,
        "recompute": "full" if full else "none",
        "random_state": 0,  # a CPU's attention keeps none
    }
    found = layouts.kept(model, BATCH, TOKENS, dtype.itemsize, **settings)
    kept = layouts.total(model, TOKENS, found, full)
    assert kept + statistics_on_a_cpu(model, dtype) == saved(kind, fields, way, dtype)


def statistics_on_a_cpu(model: Model, dtype: torch.dtype) -> int:
    """LayerNorm keeps mean and 1/std in fp32 on a GPU; a CPU keeps them in the value's own."""
    if model.norm.weights != 2 or dtype == torch.float32:
        return 0
    return (2 * model.layers + 1) * -2 * 2 * BATCH * TOKENS


def saved(kind: str, fields: Mapping[str, Any], way: str, dtype: torch.dtype) -> int:
    """Bytes of distinct tensors, weights and whole numbers apart, that a forward pass saves."""
    described = transformers.AutoConfig.for_model(kind, **fields)
    described.pad_token_id = None
    if kind == "gemma2" and way != "eager":
        # Without its cap on the scores, sdpa computes what FlashAttention 2 does for it.
        transformers.models.gemma2.modeling_gemma2.Gemma2PreTrainedModel._supports_sdpa = True
    built = transformers.AutoModelForCausalLM.from_config(
        described, attn_implementation="eager" if way == "eager" else "sdpa"
    ).to(dtype)
    built.train()
    if way == "full":
        built.gradient_checkpointing_enable()
    ids = torch.zeros(BATCH, TOKENS, dtype=torch.long)
    return bytes_saved(built, lambda: built(input_ids=ids, labels=ids, use_cache=False))


def plain(act: Any, x: torch.Tensor, up: torch.Tensor) -> Any:
    return act(x)


def gated(act: Any, x: torch.Tensor, up: torch.Tensor) -> Any:
    return act(x) * up


@pytest.mark.parametrize("between", [plain, gated])
@pytest.mark.parametrize("activation", KEPT)
def test_an_mlp_keeps_what_its_activation_function_does(activation: str, between: Any) -> None:
    rows, d, F = BATCH * TOKENS, 64, 160
    function = transformers.activations.ACT2FN[activation]
    into, up = (torch.nn.Linear(d, F, bias=False) for _ in range(2))
    out = torch.nn.Linear(F, d, bias=False)
    x = torch.randn(rows, d)
    own = {each.data_ptr() for each in (x, into.weight, up.weight, out.weight)}
    kept: dict[int, torch.Tensor] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.data_ptr() not in own:
            kept[tensor.data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        out(between(function, into(x), up(x)))
    # The second matmul keeps its input; a gate's product, both factors.
    tensors = KEPT[activation] + (1 if between is plain else 3)
    assert sum(each.untyped_storage().nbytes() for each in kept.values()) == tensors * rows * F * 4


def test_every_activation_function_without_weights_is_known() -> None:
    def weights(function: Any) -> bool:
        return isinstance(function, torch.nn.Module) and any(True for _ in function.parameters())

    every = transformers.activations.ACT2FN
    assert {name for name in every if not weights(every[name])} == set(KEPT)


def test_experts_keep_what_their_activation_function_does(tmp_path: Path) -> None:
    fields = MIXTRAL | {"hidden_act": "gelu_new"}
    test_a_model_keeps_what_its_formula_says("mixtral", fields, "flash", torch.float32, tmp_path)
