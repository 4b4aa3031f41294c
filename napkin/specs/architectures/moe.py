"""Mixtures of experts."""

from collections.abc import Callable

from napkin.specs.architectures.decoder import (
    Sizes,
    biased,
    decoder,
    every,
    everywhere,
    switched_window,
)
from napkin.specs.config import Config
from napkin.specs.model import Experts, Latent, Model


def _sparse(config: Config) -> Callable[[int], bool]:
    """Qwen's: each `decoder_sparse_step`-th layer, but for the ones that are named."""
    step = config.size("decoder_sparse_step", default=1)
    dense = config.items("mlp_only_layers")
    return lambda layer: layer not in dense and (layer + 1) % step == 0


def qwen2_moe(config: Config) -> Model:
    default = Sizes(151936, 2048, 5632, 24, 16, longest=32768, kv_heads=16)
    most = config.size("max_window_layers", default=28, least=0)
    return decoder(
        config,
        default,
        attention={"qkv_bias": config.flag("qkv_bias", True)},
        experts=Experts(
            config.size("num_experts", "num_local_experts", default=60),
            config.size("num_experts_per_tok", default=4),
            config.size("moe_intermediate_size", default=1408),
            shared_width=config.size("shared_expert_intermediate_size", default=5632),
            shared_gate=True,
        ),
        sparse=_sparse(config),
        window=switched_window(config),
        slides=lambda layer: layer % 2 == 0 and layer < most,
    )


def qwen3_moe(config: Config) -> Model:
    default = Sizes(151936, 2048, 6144, 24, 32, longest=32768, kv_heads=4, head_dim=None)
    return decoder(
        config,
        default,
        attention={**biased(config, "attention_bias", False), "qk_norm": "head"},
        experts=Experts(
            config.size("num_experts", "num_local_experts", default=128),
            config.size("num_experts_per_tok", default=8),
            config.size("moe_intermediate_size", default=768),
        ),
        sparse=_sparse(config),
        window=switched_window(config),
        slides=everywhere,
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
    )


def gpt_oss(config: Config) -> Model:
    default = Sizes(201088, 2880, 2880, 36, 64, longest=131072, kv_heads=8, head_dim=64)
    window = config.size_or_none("sliding_window", 128)
    return decoder(
        config,
        default,
        attention={**biased(config, "attention_bias", True), "sinks": True},
        experts=Experts(
            config.size("num_local_experts", "num_experts", default=128),
            config.size("num_experts_per_tok", "experts_per_token", default=4),
            config.main_size("intermediate_size", default=default.d_ff),
            router_bias=True,
            bias=True,
        ),
        window=window,
        slides=every(2),
    )


def _deepseek(config: Config, default: Sizes, experts: Experts, dense: int) -> Model:
    latent = Latent(
        config.size_or_none("q_lora_rank", 1536),
        config.size("kv_lora_rank", default=512),
        config.size("qk_nope_head_dim", default=128),
        config.size("qk_rope_head_dim", default=64),
        config.flag("attention_bias", False),
    )
    first = config.size("first_k_dense_replace", default=dense, least=0)
    return decoder(
        config,
        default,
        latent=latent,
        experts=experts,
        sparse=lambda layer: layer >= first,
        notes=("parts for predicting several tokens are not counted",)
        if config.size("num_nextn_predict_layers", default=0, least=0)
        else (),
    )


def deepseek_v2(config: Config) -> Model:
    width = config.size("moe_intermediate_size", default=1407)
    experts = Experts(
        config.size("n_routed_experts", default=64),
        config.size("num_experts_per_tok"),
        width,
        shared_width=width * (config.size_or_none("n_shared_experts", 2) or 0),
    )
    return _deepseek(config, Sizes(102400, 4096, 11008, 32, 32, longest=2048), experts, dense=0)


def deepseek_v3(config: Config) -> Model:
    width = config.size("moe_intermediate_size", default=2048)
    experts = Experts(
        config.size("n_routed_experts", default=256),
        config.size("num_experts_per_tok", default=8),
        width,
        shared_width=width * (config.size_or_none("n_shared_experts", 1) or 0),
    )
    return _deepseek(config, Sizes(129280, 7168, 18432, 61, 128, longest=4096), experts, dense=3)
