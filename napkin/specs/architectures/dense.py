"""Llama and its dense kin."""

from typing import Any

from napkin.specs.architectures.decoder import (
    Sizes,
    biased,
    decoder,
    every,
    everywhere,
    switched_window,
)
from napkin.specs.config import Config
from napkin.specs.model import Model


def llama(config: Config) -> Model:
    return decoder(
        config,
        Sizes(32000, 4096, 11008, 32, 32, longest=2048),
        attention=biased(config, "attention_bias", False),
        mlp_bias=config.flag("mlp_bias", False),
    )


def mistral(config: Config) -> Model:
    default = Sizes(32000, 4096, 14336, 32, 32, longest=131072, kv_heads=8)
    window = config.size_or_none("sliding_window", 4096)
    return decoder(config, default, window=window, slides=everywhere)


def phi3(config: Config) -> Model:
    default = Sizes(32064, 3072, 8192, 32, 32, longest=4096)
    window = config.size_or_none("sliding_window")
    return decoder(config, default, window=window, slides=everywhere)


def qwen2(config: Config) -> Model:
    default = Sizes(151936, 4096, 22016, 32, 32, longest=32768, kv_heads=32)
    return decoder(config, default, attention={"qkv_bias": True}, **_upper_windows(config))


def qwen3(config: Config) -> Model:
    default = Sizes(151936, 4096, 22016, 32, 32, longest=32768, kv_heads=32, head_dim=128)
    return decoder(
        config,
        default,
        attention={**biased(config, "attention_bias", False), "qk_norm": "head"},
        **_upper_windows(config),
    )


def _upper_windows(config: Config) -> dict[str, Any]:
    first = config.size("max_window_layers", default=28, least=0)
    return {"window": switched_window(config), "slides": lambda layer: layer >= first}


def gemma(config: Config) -> Model:
    return decoder(
        config,
        Sizes(256000, 3072, 24576, 28, 16, longest=8192, kv_heads=16, head_dim=256),
        attention=biased(config, "attention_bias", False),
        tied=True,
    )


def gemma2(config: Config) -> Model:
    default = Sizes(256000, 2304, 9216, 26, 8, longest=8192, kv_heads=4, head_dim=256)
    window = config.size_or_none("sliding_window", 4096)
    return decoder(
        config,
        default,
        attention=biased(config, "attention_bias", False),
        window=window,
        slides=every(2),
        norms=4,
        score_cap=config.has_number("attn_logit_softcapping", True),
        logit_cap=config.has_number("final_logit_softcapping", True),
        tied=True,
    )


def gemma3(config: Config) -> Model:
    default = Sizes(262208, 2304, 9216, 26, 8, longest=131072, kv_heads=4, head_dim=256)
    pattern = config.size("sliding_window_pattern", "_sliding_window_pattern", default=6)
    window = config.size_or_none("sliding_window", 4096)
    return decoder(
        config,
        default,
        attention={**biased(config, "attention_bias", False), "qk_norm": "head"},
        window=window,
        slides=every(pattern),
        norms=4,
        logit_cap=config.has_number("final_logit_softcapping", False),
        tied=True,
    )


def olmo2(config: Config) -> Model:
    return decoder(
        config,
        Sizes(50304, 4096, 11008, 32, 32, longest=2048),
        attention={**biased(config, "attention_bias", False), "qk_norm": "all"},
    )
