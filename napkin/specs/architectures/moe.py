"""Mixtures of experts."""

from collections.abc import Callable
from typing import Any

from napkin.specs.architectures.decoder import (
    FIELDS,
    SWITCHED_WINDOW,
    WINDOW,
    Sizes,
    biased,
    decoder,
    every,
    everywhere,
    switched_window,
)
from napkin.specs.config import Config
from napkin.specs.model import Experts, Latent, Model, Norm, Rotary
from napkin.specs.reader import reader

ROUTING = "router_aux_loss_coef output_router_logits "


def _or_none(count: int, active: int, width: int, **more: Any) -> Experts | None:
    """Qwen's layers are all dense where there are no experts."""
    return Experts(count, active, width, **more) if count else None


def _sparse(config: Config) -> Callable[[int], bool]:
    """Qwen's: each `decoder_sparse_step`-th layer, but for the ones that are named."""
    step = config.size("decoder_sparse_step", default=1)
    dense = config.items("mlp_only_layers")
    return lambda layer: layer not in dense and (layer + 1) % step == 0


QWEN = """num_experts num_experts_per_tok moe_intermediate_size decoder_sparse_step
    mlp_only_layers head_dim hidden_act norm_topk_prob"""


@reader(
    FIELDS
    + QWEN
    + SWITCHED_WINDOW
    + "layer_types max_window_layers qkv_bias shared_expert_intermediate_size",
    ignores=ROUTING,
    letters=None,
)
def qwen2_moe(config: Config) -> Model:
    default = Sizes(151936, 2048, 5632, 24, 16, longest=32768, kv_heads=16)
    most = config.size("max_window_layers", default=28, least=0)
    return decoder(
        config,
        default,
        attention={"qkv_bias": config.flag("qkv_bias", True)},
        experts=_or_none(
            config.size("num_experts", default=60, least=0),
            config.size("num_experts_per_tok", default=4),
            config.size("moe_intermediate_size", default=1408),
            shared_width=config.size("shared_expert_intermediate_size", default=5632, least=0),
            shared_gate=True,
            normalised=config.flag("norm_topk_prob", False),
            cast=True,
        ),
        sparse=_sparse(config),
        window=switched_window(config),
        slides=lambda layer: layer % 2 == 0 and layer < most,
    )


# Its config.json on the hub has a max_window_layers, which transformers does not look at.
@reader(
    FIELDS + QWEN + SWITCHED_WINDOW + " num_local_experts attention_bias",
    ignores=ROUTING + "max_window_layers",
    letters={"ff": "moe_intermediate_size"},
)
def qwen3_moe(config: Config) -> Model:
    default = Sizes(151936, 2048, 6144, 24, 32, longest=32768, kv_heads=4, head_dim=None)
    return decoder(
        config,
        default,
        attention={**biased(config, "attention_bias", False), "qk_norm": "head"},
        experts=_or_none(
            config.size("num_experts", "num_local_experts", default=128, least=0),
            config.size("num_experts_per_tok", default=8),
            config.size("moe_intermediate_size", default=768),
            normalised=config.flag("norm_topk_prob", False),
            cast=True,
        ),
        sparse=_sparse(config),
        window=switched_window(config),
        slides=everywhere,
        listed=False,
    )


@reader(
    FIELDS + "head_dim hidden_act sliding_window num_local_experts num_experts num_experts_per_tok",
    ignores=ROUTING + "router_jitter_noise",
    letters={"E": "num_local_experts"},
)
def mixtral(config: Config) -> Model:
    default = Sizes(32000, 4096, 14336, 32, 32, longest=131072, kv_heads=8)
    window = config.size_or_none("sliding_window")
    return decoder(
        config,
        default,
        experts=Experts(
            config.size("num_local_experts", "num_experts", default=8),
            config.size("num_experts_per_tok", default=2),
            config.main_size("intermediate_size", default=default.d_ff),
        ),
        window=window,
        slides=everywhere,
        listed=False,
    )


# Its experts have an activation of their own. The hub's files say initial_context_length too.
@reader(
    FIELDS
    + "head_dim attention_bias num_local_experts num_experts num_experts_per_tok"
    + WINDOW
    + "experts_per_token hidden_act",
    ignores=ROUTING + "swiglu_alpha swiglu_limit initial_context_length",
    letters=None,
)
def gpt_oss(config: Config) -> Model:
    active = config.size("num_experts_per_tok", default=4)
    config.same("experts_per_token", active, "num_experts_per_tok")
    default = Sizes(201088, 2880, 2880, 36, 64, longest=131072, kv_heads=8, head_dim=64)
    window = config.size_or_none("sliding_window", 128)
    return decoder(
        config,
        default,
        attention={
            **biased(config, "attention_bias", True),
            "sinks": True,
            "softmax_in_fp32": False,
            "rotary": Rotary(in_pairs=True),
        },
        experts=Experts(
            config.size("num_local_experts", "num_experts", default=128),
            active,
            config.main_size("intermediate_size", default=default.d_ff),
            router_bias=True,
            bias=True,
            normalised=False,
            cast=True,
            softmax_of_chosen=True,
            clamped=True,
        ),
        norm=Norm("rms-fp32"),
        window=window,
        slides=every(2),
    )


# DeepSeek's own code can space out the layers with experts; transformers' cannot.
EVERY_LAYER = {"moe_layer_freq": (1,)}
DEEPSEEK = """hidden_act n_routed_experts n_shared_experts num_experts_per_tok
    moe_intermediate_size first_k_dense_replace q_lora_rank kv_lora_rank qk_nope_head_dim
    qk_rope_head_dim v_head_dim attention_bias num_nextn_predict_layers """
DEEPSEEK_ROUTING = (
    ROUTING
    + """routed_scaling_factor n_group topk_group topk_method scoring_func
    aux_loss_alpha seq_aux ep_size pretraining_tp head_dim qk_head_dim"""
)


def _deepseek(
    config: Config,
    default: Sizes,
    usual: Experts,
    dense: int,
    counted_as: tuple[str, ...],
    ahead: tuple[str, ...] = ("num_nextn_predict_layers",),
    *,
    normalised: bool,
    rotary: Rotary,
) -> Model:
    """`usual` has transformers' defaults, its shared_width as a number of experts and `active` 0
    where there is none; `counted_as` and `ahead` are what the experts and the layers that
    predict more than the next token are called."""
    heads = config.main_size("num_attention_heads", default=default.heads)
    config.same("num_key_value_heads", heads, "num_attention_heads: latent attention groups none")
    latent = Latent(
        config.size_or_none("q_lora_rank", 1536),
        config.size("kv_lora_rank", default=512),
        config.size("qk_nope_head_dim", default=128),
        config.size("qk_rope_head_dim", default=64),
        config.flag("attention_bias", False),
    )
    first = config.size("first_k_dense_replace", default=dense, least=0)
    width = config.size("moe_intermediate_size", default=usual.width)
    shared = config.size_or_none("n_shared_experts", usual.shared_width, least=0)
    # In DeepSeek's own code null is a dense model; transformers does not build it.
    dense_alone = counted_as[0] in config.fields and not any(map(config.has, counted_as))
    experts = Experts(
        config.size(*counted_as, default=usual.count),
        config.size("num_experts_per_tok", default=usual.active or None),
        width,
        shared_width=width * (shared or 0),
        normalised=normalised,
        router_in_fp32=True,
    )
    return decoder(
        config,
        default,
        attention={"rotary": rotary},
        latent=latent,
        experts=None if dense_alone else experts,
        sparse=lambda layer: layer >= first,
        notes=("parts for predicting several tokens are not counted",)
        if config.size(*ahead, default=0, least=0)
        else (),
    )


@reader(
    FIELDS + DEEPSEEK + "num_experts",
    ignores=DEEPSEEK_ROUTING + " norm_topk_prob",
    only=EVERY_LAYER | {"mlp_bias": (False,)},
    letters=None,
)
def deepseek_v2(config: Config) -> Model:
    default = Sizes(102400, 4096, 11008, 32, 32, longest=2048)
    usual = Experts(64, 0, 1407, shared_width=2)
    counted_as, rotary = ("n_routed_experts", "num_experts"), Rotary(is_complex=True)
    return _deepseek(config, default, usual, 0, counted_as, normalised=False, rotary=rotary)


@reader(
    FIELDS + DEEPSEEK + "num_local_experts num_mtp_layers norm_topk_prob",
    ignores=DEEPSEEK_ROUTING,
    only=EVERY_LAYER,
    letters=None,
)
def deepseek_v3(config: Config) -> Model:
    default = Sizes(129280, 7168, 18432, 61, 128, longest=4096)
    usual = Experts(256, 8, 2048, shared_width=1)
    counted_as, ahead = (
        ("n_routed_experts", "num_local_experts"),
        ("num_nextn_predict_layers", "num_mtp_layers"),
    )
    normalised = config.flag("norm_topk_prob", True)
    return _deepseek(
        config, default, usual, 3, counted_as, ahead, normalised=normalised, rotary=Rotary()
    )
