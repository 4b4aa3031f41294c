"""What Llama and its kin have in common, as config.json says it."""

from collections.abc import Callable
from typing import Any

from napkin.errors import quoted
from napkin.record import Record
from napkin.specs.activations import KEPT
from napkin.specs.config import MOST_LAYERS, Config
from napkin.specs.model import Attention, Experts, Latent, Mlp, Model, Rotary

SLIDING, FULL = "sliding_attention", "full_attention"
# The fields that all of them read.
FIELDS = """vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads
    num_key_value_heads max_position_embeddings tie_word_embeddings """
WINDOW = " sliding_window layer_types "
SWITCHED_WINDOW = " use_sliding_window sliding_window "


class Sizes(Record):
    """transformers' defaults; kv_heads None: as many as heads, head_dim None: d_model / heads."""

    vocab: int
    d_model: int
    d_ff: int
    layers: int
    heads: int
    longest: int
    kv_heads: int | None = None
    head_dim: int | None = None


def everywhere(layer: int) -> bool:
    return True


def decoder(
    config: Config,
    default: Sizes,
    *,
    attention: dict[str, Any] | None = None,
    latent: Latent | None = None,
    mlp: dict[str, Any] | None = None,
    experts: Experts | None = None,
    sparse: Callable[[int], bool] = everywhere,
    window: int | None = None,
    slides: Callable[[int], bool] | None = None,
    listed: bool = True,
    tied: bool = False,
    activation: tuple[str, str] = ("hidden_act", "silu"),
    **more: Any,
) -> Model:
    """Llama and its kin: RMSNorm, no learned positions, a gated MLP.

    `sparse` says which layers have the experts, `slides` which see no further than `window`
    where no list of layer_types does, nor may (`listed`); `activation` is a field and its default.
    """
    layers = config.main_size("num_hidden_layers", default=default.layers, most=MOST_LAYERS)
    moe_layers = 0 if experts is None else sum(map(sparse, range(layers)))
    d_model = config.main_size("hidden_size", default=default.d_model)
    kind = known_activation(config, *activation)
    return Model(
        name="",
        architecture="",
        vocab=config.main_size("vocab_size", default=default.vocab),
        d_model=d_model,
        layers=layers,
        attention=_attention(config, default, d_model, latent, attention or {}),
        mlp=_mlp(config, default, kind, mlp or {}) if moe_layers < layers else None,
        experts=experts.replace(activation=kind) if experts and moe_layers else None,
        moe_layers=moe_layers,
        windows=() if slides is None else _windows(config, layers, window, slides, listed),
        tied=config.flag("tie_word_embeddings", tied),
        longest=config.size_or_none("max_position_embeddings", default.longest),
        **more,
    )


def _mlp(config: Config, default: Sizes, activation: str, more: dict[str, Any]) -> Mlp:
    width = config.main_size("intermediate_size", default=default.d_ff)
    return Mlp(width, gated=True, activation=activation, **more)


def known_activation(config: Config, name: str, default: str) -> str:
    kind = config.word(name, default)
    if kind not in KEPT:
        raise config.error(name, f"{quoted(kind)} is not counted; known are {' '.join(KEPT)}")
    return kind


def _attention(
    config: Config, default: Sizes, d_model: int, latent: Latent | None, more: dict[str, Any]
) -> Attention:
    heads = config.main_size("num_attention_heads", default=default.heads)
    more = {"rotary": Rotary(), **more}
    if latent is not None:
        v = config.size("v_head_dim", default=128)
        return Attention(heads, heads, latent.nope + latent.rope, v, latent=latent, **more)
    kv_heads = config.size_or_none("num_key_value_heads", default.kv_heads) or heads
    width = config.size("head_dim", default=default.head_dim or share(config, d_model, heads))
    return Attention(heads, kv_heads, width, width, **more)


def share(config: Config, d_model: int, heads: int, name: str = "hidden_size") -> int:
    if d_model % heads and not config.has("head_dim"):
        problem = f"{d_model} is no multiple of the {heads} attention heads"
        raise config.error(name, problem)
    return d_model // heads


def _windows(
    config: Config, layers: int, window: int | None, slides: Callable[[int], bool], listed: bool
) -> tuple[tuple[int, int], ...]:
    """(tokens, layers) of the layers that see no further."""
    kinds = config.items("layer_types") if listed else []
    if kinds and len(kinds) != layers:
        raise config.error("layer_types", f"names {len(kinds)} layers of {layers}")
    for kind in kinds:
        if kind not in (SLIDING, FULL):
            raise config.error("layer_types", f"{quoted(kind)} is not counted yet")
    if SLIDING in kinds and window is None:
        raise config.error("layer_types", f"{SLIDING} needs a window; sliding_window gives none")
    sliding = kinds.count(SLIDING) if kinds else sum(map(slides, range(layers)))
    return ((window, sliding),) if window is not None and sliding else ()


def switched_window(config: Config) -> int | None:
    """Qwen's, which a flag switches on."""
    on = config.flag("use_sliding_window", False)
    return config.size_or_none("sliding_window", 4096) if on else None


def every(pattern: int) -> Callable[[int], bool]:
    """All layers slide but each `pattern`-th."""
    return lambda layer: (layer + 1) % pattern != 0


def biased(config: Config, name: str, default: bool) -> dict[str, bool]:
    bias = config.flag(name, default)
    return {"qkv_bias": bias, "out_bias": bias}
