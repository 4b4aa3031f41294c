"""What transformers calls the linear layers of a block, by the letters that napkin has for them.

Checked against the modules that it builds (tests/checking/test_quantised.py).
"""

from collections.abc import Mapping

LAYERS = {"gpt2": "transformer.h", "gpt_neox": "gpt_neox.layers", "opt": "model.decoder.layers"}
USUAL_LAYERS = "model.layers"
OUTSIDE = {"in": "model.decoder.project_in", "out": "model.decoder.project_out"}

# Where peft 0.21's all-linear means routers and experts too, which are tensors and no modules
# (its transformers_weight_conversion).
ALL_HAS_EXPERTS = ("mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3")

_LLAMA: Mapping[str, tuple[str, ...]] = {
    "q": ("self_attn.q_proj",),
    "kv": ("self_attn.k_proj", "self_attn.v_proj"),
    "qkv": ("self_attn.qkv_proj",),
    "q_a": ("self_attn.q_a_proj",),
    "q_b": ("self_attn.q_b_proj",),
    "kv_a": ("self_attn.kv_a_proj_with_mqa",),
    "kv_b": ("self_attn.kv_b_proj",),
    "o": ("self_attn.o_proj",),
    "up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
    "up_e": ("mlp.experts",),
    "down_e": ("mlp.experts",),
    "up_s": ("mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"),
    "down_s": ("mlp.shared_experts.down_proj",),
}
_OTHERWISE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "phi3": {"up": ("mlp.gate_up_proj",)},
    "gpt2": {
        "qkv": ("attn.c_attn",),
        "o": ("attn.c_proj",),
        "up": ("mlp.c_fc",),
        "down": ("mlp.c_proj",),
    },
    "gpt_neox": {
        "qkv": ("attention.query_key_value",),
        "o": ("attention.dense",),
        "up": ("mlp.dense_h_to_4h",),
        "down": ("mlp.dense_4h_to_h",),
    },
    "opt": {"o": ("self_attn.out_proj",), "up": ("fc1",), "down": ("fc2",)},
    "qwen2_moe": {
        "up_s": ("mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"),
        "down_s": ("mlp.shared_expert.down_proj",),
        "gate_s": ("mlp.shared_expert_gate",),
    },
}


def of_layer(kind: str, symbol: str, layer: int) -> tuple[str, ...]:
    """The full names of the modules that this letter stands for in one layer."""
    names = _OTHERWISE.get(kind, {}).get(symbol) or _LLAMA[symbol]
    return tuple(f"{LAYERS.get(kind, USUAL_LAYERS)}.{layer}.{name}" for name in names)
