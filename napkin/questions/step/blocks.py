"""What a model's layers and its head keep for the backward pass, by its architecture."""

from dataclasses import dataclass, replace

from napkin.accounting import activations as kept
from napkin.accounting.activations import Part, Sizes
from napkin.errors import quoted
from napkin.questions import options
from napkin.specs import activations
from napkin.specs.architectures import gpt
from napkin.specs.model import LANGUAGE, Model, Stack

ATTENTION = ("flash", "sdpa", "eager")
NORMS = ("upcast", "fused")
FORMULAS = ("measured", "korthikanti")
# Autocast computes what others consist of, a power or a softplus, in fp32.
UNDER_AUTOCAST, ACTIVATIONS_UNDER_AUTOCAST = ("llama", "mistral"), ("silu", "swish", "gelu", "relu")

Parts = dict[str, Part]


@dataclass(frozen=True, slots=True)
class How:
    """How the layers are written, as the expert switches say."""

    attention: str = "flash"
    norm: str = "upcast"
    recompute: str = "none"
    chunked_loss: bool = False
    formula: str = "measured"
    autocast: bool = False  # bf16 matmuls on fp32 weights
    rng: int = kept.RNG  # 0 on a CPU


@dataclass(frozen=True, slots=True)
class Scores:
    """Of one layer's eager attention: what is there of them beside what is kept."""

    forward: Part
    backward: Part
    again: Part  # kept, once they are made again


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes by part, of one layer and of the head with the loss."""

    layer: Parts
    head: Parts
    block: Part  # what a checkpointed layer keeps
    inside: Parts  # what comes and goes in a layer's backward pass, at each of its full moments
    notes: tuple[str, ...] = ()
    windowed: Part | None = None  # what one of the layers with a short window keeps more
    windowed_layers: int = 0
    scores: Scores | None = None
    mask: Part | None = None  # held until the last layer that is computed again


LLAMA = ("llama", "mistral", "qwen2", "qwen3", "phi3", "mixtral", "qwen3_moe")
GEMMA = ("gemma", "gemma2", "gemma3_text")
OF_EXPERTS = "with experts the backward pass is within 3 % of whole steps that were measured"
APART = {
    "mixtral": (OF_EXPERTS,),
    "qwen3_moe": (
        OF_EXPERTS,
        "experts are counted as Mixtral's; qwen3_moe's router keeps a little less",
    ),
}


def sizes(model: Model, B: int, T: int, s: int) -> Sizes:
    a = model.attention
    F = model.experts.width if model.experts is not None else model.mlp.width if model.mlp else 0
    z = Sizes(B, T, model.d_model, a.heads, a.kv_heads, a.qk, F, model.outputs, s)
    if model.head is None or model.head.outputs is None:
        return z
    return z._replace(of_loss="B·labels" if model.head.pooled else "n·labels")


def of_model(model: Model, B: int, T: int, s: int, how: How) -> Kept:
    """Raises NapkinError for a block that was never measured."""
    kind = model.architecture
    if how.formula == "korthikanti":
        return _by_korthikanti(model, sizes(model, B, T, s), how)
    if how.autocast:
        return _autocast(model, sizes(model, B, T, 2), how)
    if kind not in (*LLAMA, *GEMMA, *gpt.NAMES, "olmo2") or (model.experts and model.dense_layers):
        raise options.error(
            "model",
            f"layers of {kind} were never measured; --activations korthikanti approximates them, "
            "--params shows the states alone",
        )
    if how.attention == "sdpa" and model.score_cap:
        problem = f"sdpa knows no cap on the scores, which {kind} has; write flash or eager"
        raise options.error("attention", problem)
    if how.norm == "fused" and kind not in LLAMA:
        raise options.error("norm", f"fused norms of {kind} were never measured")
    z = sizes(model, B, T, s)
    found = (_gpt if kind in gpt.NAMES else _rotary)(model, z, how)
    notes = APART.get(kind, ())
    if how.attention == "sdpa":
        return replace(_under_windows(model, found, z), notes=notes)
    if how.attention == "eager":
        return replace(_with_scores(model, found, z, how), notes=notes)
    return replace(found, notes=notes)


def _under_windows(model: Model, found: Kept, z: Sizes) -> Kept:
    """With what sdpa keeps more where it is given a mask."""
    short = short_windows(model, z.T)
    if not short:
        return found
    more = kept.windowed(z, of_buffer=model.architecture == "phi3")
    return replace(found, windowed=more, windowed_layers=short)


def _with_scores(model: Model, found: Kept, z: Sizes, how: How) -> Kept:
    """With the scores that eager attention has at work."""
    upcast = model.architecture != "gpt2"
    scores = Scores(
        kept.scores_forward(z, upcast),
        kept.scores_backward(z, upcast),
        kept.scores_kept(z, upcast, model.score_cap),
    )
    masks = 2 if 0 < sum(layers for _, layers in model.windows) < model.layers else 1
    return replace(
        found, scores=scores, mask=kept.mask(z, masks) if how.recompute == "full" else None
    )


def usual_attention(model: Model | Stack, T: int) -> str:
    """What transformers runs under a short window, where flash attention is not asked for; for
    all else sdpa is flash attention."""
    masked = isinstance(model, Model) and not model.score_cap and short_windows(model, T)
    return "sdpa" if masked else "flash"


def short_windows(model: Model, T: int) -> int:
    """Layers whose window sequences of T tokens reach: transformers masks them from there on."""
    return sum(layers for tokens, layers in model.windows if tokens <= T)


def _activation(model: Model) -> str:
    return model.experts.activation if model.experts else model.mlp.activation if model.mlp else ""


def _inside(activation: str) -> int:
    """Tensors that the MLP's activation function keeps. Raises NapkinError for another one."""
    if activation not in activations.KEPT:
        known = " ".join(activations.KEPT)
        problem = f"an MLP's {quoted(activation)} was never measured; known are {known}"
        raise options.error("model", problem)
    return activations.KEPT[activation]


def _rotary(model: Model, z: Sizes, how: How) -> Kept:
    """Llama and its kin: RMSNorm, rotary positions, a gated MLP."""
    kind = model.architecture
    norms, heads, last, each = _norms(kind, z, how)
    layer = {"norms": norms, "attention": _attention(model, z, how)}
    if heads is not None:
        layer["head norms"] = heads
    inside = _inside(_activation(model))
    if model.experts is not None:
        E, k = model.experts.count, model.experts.active
        layer["experts"] = kept.routed_experts(z, E, k, inside)
    else:
        layer["MLP"] = kept.gated_mlp(z, inside)
    head = {"final norm": last}
    if how.recompute != "full":
        # Windows and full attention have each their own.
        both = kind == "gemma3_text" and 0 < sum(n for _, n in model.windows) < model.layers
        head["rotary"] = kept.rotary(z, z.h, each, 2 if both else 1)
    return Kept(
        layer, head | _loss(model, z, how), kept.block_input(z), _inside_layer(model, z, how)
    )


def _inside_layer(model: Model, z: Sizes, how: How) -> Parts:
    """Gradients on the way through a layer, by where they are."""
    if model.experts is not None:
        k = model.experts.active
        return {
            "experts": kept.inside_experts(z, k),
            "weighting": kept.inside_weighting(z, k),
        }
    again, normed = how.recompute == "full", model.norms == 4 or model.architecture == "olmo2"
    # What a layer begins with, and a checkpoint keeps, is also what its first norm or matmul
    # keeps, unless that norm keeps a copy in fp32.
    copied = model.norm_weights == 1 and model.architecture != "olmo2"
    residual = not again or (copied and z.s == 2 and not how.autocast)
    parts = {"MLP": kept.inside_mlp(z, residual, normed)}
    return (
        parts | {"norm after": kept.inside_norm_after(z, residual)} if again and normed else parts
    )


def _by_korthikanti(model: Model, z: Sizes, how: How) -> Kept:
    """The published formula of a GPT block in 16 bits, dropout and all, for any model."""
    if z.s != 2:
        raise options.error("activations", "korthikanti's formula is one of 16-bit values")
    stored = how.attention == "eager" and how.recompute == "none"
    layer = {"GPT block": kept.korthikanti(z, stored)}
    head = {"final norm": Part(2 * z.s * z.n * z.d, "2·s·n·d")} | _loss(model, z, how)
    scores = "scores kept" if stored else "scores not kept"
    note = f"layers by Korthikanti et al.'s formula of a GPT block with dropout, {scores}"
    inside = _inside_layer(model, z, how)
    whole = Kept(layer, head, kept.block_input(z), inside, (note,))
    return _with_scores(model, whole, z, how) if how.attention == "eager" else whole


def _autocast(model: Model, z: Sizes, how: How) -> Kept:
    """Llama's under autocast: norms in fp32, a bf16 cast for each matmul, weights cast too."""
    _refuse_under_autocast(model, z, how)
    weights = z.d * z.h * 2 * (z.H + z.K) + 3 * z.d * z.F
    layer = {
        "norms": Part(16 * z.n * z.d + 8 * z.n, "16·n·d + 8n"),
        "casts": Part(10 * z.n * z.d, "10·n·d"),
        "attention": kept.flash_attention(z, how.rng),
        "MLP": kept.gated_mlp(z, _inside(_activation(model))),
        "cast weights": Part(2 * weights, "2·(2·d·h·(H + K) + 3·d·F)"),
    }
    head = {
        "final norm": Part(10 * z.n * z.d + 4 * z.n, "10·n·d + 4n"),
        "cast head": Part(2 * z.d * z.V, "2·d·V"),
    }
    if how.recompute != "full":
        head["rotary"] = kept.rotary(z, z.h, 4)
    block, inside = kept.block_input(z._replace(s=4)), _inside_layer(model, z, how)
    whole = Kept(layer, head | _loss(model, z, how), block, inside)
    return _under_windows(model, whole, z) if how.attention == "sdpa" else whole


def _refuse_under_autocast(model: Model, z: Sizes, how: How) -> None:
    """What was never measured there, by the option that asks for it."""
    kind, activation = model.architecture, _activation(model)
    if kind not in UNDER_AUTOCAST:
        known = " and ".join(UNDER_AUTOCAST)
        raise options.error("precision", f"amp was measured for {known} layers alone, not {kind}")
    if activation not in ACTIVATIONS_UNDER_AUTOCAST:
        problem = f"an MLP's {quoted(activation)} was never measured under amp"
        raise options.error("precision", problem)
    if how.attention == "eager":
        raise options.error("attention", "eager was never measured under --precision amp")
    if how.norm == "fused":
        raise options.error("norm", "fused was never measured under --precision amp")
    if how.chunked_loss:
        raise options.error("chunked_loss", "was never measured under --precision amp")


def _norms(kind: str, z: Sizes, how: How) -> tuple[Part, Part | None, Part, int]:
    """Those of a layer, of its heads, the last one, and the bytes of a cosine."""
    if kind in GEMMA:
        after = 0 if kind == "gemma" else 2
        heads = kept.gemma_head_norms(z) if kind == "gemma3_text" else None
        return kept.gemma_norms(z, 2, after), heads, kept.gemma_norms(z, 1), z.s
    if kind == "olmo2":
        # The last norm's output is the head's input.
        last = Part(8 * z.n * z.d + 4 * z.n + z.s * z.n * z.d, "(8 + s)·n·d + 4n")
        return kept.olmo_norms(z), kept.olmo_head_norms(z), last, 4
    norm = kept.fused_norms if how.norm == "fused" else kept.rms_norms
    heads = kept.head_norms(z) if kind in ("qwen3", "qwen3_moe") else None
    return norm(z, 2), heads, norm(z, 1), z.s


def _attention(model: Model, z: Sizes, how: How) -> Part:
    if how.attention == "eager":
        if how.recompute == "selective":
            return kept.recomputed_attention(z)
        return kept.eager_attention(z, model.score_cap)
    if model.architecture == "phi3":
        return kept.fused_flash_attention(z, how.rng)
    return kept.flash_attention(z, how.rng)


def _gpt(model: Model, z: Sizes, how: How) -> Kept:
    """GPT-2 and its kin: LayerNorm, an MLP of two matrices."""
    kind = model.architecture
    if how.attention == "eager" and model.fields.get("reorder_and_upcast_attn") is True:
        raise options.error("attention", "eager attention that is upcast was never measured")
    layer = {
        "norms": kept.layer_norms(z, inputs=1 if model.parallel else 2),
        "attention": _gpt_attention(kind, z, how),
        "MLP": kept.plain_mlp(z, _inside(_activation(model))),
    }
    last = Part(2 * z.s * z.n * z.d + 8 * z.n, "2·s·n·d + 8n")
    head = {"final norm": last} if model.final_norm else {"head input": kept.block_input(z)}
    if model.table_width not in (0, model.d_model):
        head["projections"] = kept.projected(z, model.table_width)
    if kind == "gpt_neox" and how.recompute != "full":
        head["rotary"] = kept.rotary(z, int(z.h * model.rotary_share), z.s)
    return Kept(
        layer, head | _loss(model, z, how), kept.block_input(z), _inside_layer(model, z, how)
    )


def _gpt_attention(kind: str, z: Sizes, how: How) -> Part:
    if how.attention != "eager":
        return kept.fused_projections(z, how.rng, rotated=kind == "gpt_neox")
    if how.recompute == "selective":
        return Part(4 * z.s * z.n * z.d, "4·s·n·d")
    return kept.plain_eager_attention(z, upcast=kind != "gpt2")


def _loss(model: Model, z: Sizes, how: How) -> Parts:
    if how.chunked_loss or not z.V:
        return {}
    parts = {"log-softmax": kept.log_softmax(z)}
    capped = model.logit_cap and model.head is LANGUAGE  # transformers' classifiers have no cap
    return parts | {"logit cap": kept.logit_cap(z)} if capped else parts
