"""Llama and its dense kin."""

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
from napkin.specs.model import Model, Norm, Rotary
from napkin.specs.reader import reader

GELU = "gelu_pytorch_tanh"
# Attention that sees what follows has other pairs, and in gemma3_text another window.
CAUSAL = {"use_bidirectional_attention": (False,)}


@reader(FIELDS + "head_dim hidden_act attention_bias mlp_bias", ignores="pretraining_tp")
def llama(config: Config) -> Model:
    return decoder(
        config,
        Sizes(32000, 4096, 11008, 32, 32, longest=2048),
        attention=biased(config, "attention_bias", False),
        mlp={"bias": config.flag("mlp_bias", False)},
    )


@reader(FIELDS + "head_dim hidden_act sliding_window")
def mistral(config: Config) -> Model:
    default = Sizes(32000, 4096, 14336, 32, 32, longest=131072, kv_heads=8)
    window = config.size_or_none("sliding_window", 4096)
    return decoder(config, default, window=window, slides=everywhere, listed=False)


@reader(
    FIELDS + "head_dim hidden_act sliding_window",
    ignores="full_attn_mod interpolate_factor",  # of Phi-3.5's own code, which does not use them
)
def phi3(config: Config) -> Model:
    default = Sizes(32064, 3072, 8192, 32, 32, longest=4096)
    window, fused = config.size_or_none("sliding_window"), {"fused": True}
    layers: dict[str, Any] = {"window": window, "slides": everywhere, "listed": False}
    return decoder(config, default, attention=fused, mlp=fused, **layers)


QWEN = FIELDS + "head_dim hidden_act max_window_layers" + SWITCHED_WINDOW + "layer_types "


@reader(QWEN, ignores="use_mrope")
def qwen2(config: Config) -> Model:
    default = Sizes(151936, 4096, 22016, 32, 32, longest=32768, kv_heads=32)
    return decoder(config, default, attention={"qkv_bias": True}, **_upper_windows(config))


@reader(QWEN + "attention_bias")
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


# hidden_activation was read by gemma's first releases; transformers reads hidden_act.
@reader(FIELDS + "head_dim hidden_act attention_bias", ignores="hidden_activation", only=CAUSAL)
def gemma(config: Config) -> Model:
    return decoder(
        config,
        Sizes(256000, 3072, 24576, 28, 16, longest=8192, kv_heads=16, head_dim=256),
        attention=biased(config, "attention_bias", False),
        norm=Norm("rms+1"),
        tied=True,
        activation=("hidden_act", GELU),
    )


GEMMA = FIELDS + "head_dim hidden_activation attention_bias" + WINDOW
# What is multiplied does not change by a cap, but what memory holds.
CAP, SCORE_CAP = " final_logit_softcapping ", " attn_logit_softcapping "
SCALARS = "hidden_act query_pre_attn_scalar "


@reader(GEMMA + CAP + SCORE_CAP, ignores=SCALARS, only=CAUSAL, alternates=True)
def gemma2(config: Config) -> Model:
    default = Sizes(256000, 2304, 9216, 26, 8, longest=8192, kv_heads=4, head_dim=256)
    window = config.size_or_none("sliding_window", 4096)
    return decoder(
        config,
        default,
        attention={
            **biased(config, "attention_bias", False),
            "cap": config.has_number("attn_logit_softcapping", True),
        },
        window=window,
        slides=every(2),
        norm=Norm("rms+1", "both"),
        logit_cap=config.has_number("final_logit_softcapping", True),
        tied=True,
        activation=("hidden_activation", GELU),
    )


# transformers writes _sliding_window_pattern beside the layer_types that follow from it.
@reader(
    GEMMA + CAP + "sliding_window_pattern",
    ignores=SCALARS + SCORE_CAP + "_sliding_window_pattern",  # which its attention never applies
    only=CAUSAL,
    alternates=True,
)
def gemma3_text(config: Config) -> Model:
    default = Sizes(262208, 2304, 9216, 26, 8, longest=131072, kv_heads=4, head_dim=256)
    pattern = config.size("sliding_window_pattern", default=6)
    window = config.size_or_none("sliding_window", 4096)
    return decoder(
        config,
        default,
        attention={
            **biased(config, "attention_bias", False),
            "qk_norm": "head",
            "rotary": Rotary(by_window=True),
        },
        window=window,
        slides=every(pattern),
        norm=Norm("rms+1", "both"),
        logit_cap=config.has_number("final_logit_softcapping", False),
        tied=True,
        activation=("hidden_activation", GELU),
    )


@reader(FIELDS + "head_dim hidden_act attention_bias")
def olmo2(config: Config) -> Model:
    return decoder(
        config,
        Sizes(50304, 4096, 11008, 32, 32, longest=2048),
        attention={
            **biased(config, "attention_bias", False),
            "qk_norm": "all",
            "rotary": Rotary(in_fp32=True),
        },
        norm=Norm("rms-fp32", "after"),
    )
