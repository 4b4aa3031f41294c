"""What a model's layers and its head keep for the backward pass, by its architecture."""

from dataclasses import dataclass

from napkin.accounting import activations as kept
from napkin.accounting.activations import Part, Sizes
from napkin.questions import options
from napkin.specs.architectures import gpt
from napkin.specs.model import Model

ATTENTION = ("flash", "eager")
NORMS = ("upcast", "fused")
FORMULAS = ("measured", "korthikanti")

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
class Kept:
    """Bytes by part, of one layer and of the head with the loss."""

    layer: Parts
    head: Parts
    block: Part  # what a checkpointed layer keeps
    notes: tuple[str, ...] = ()


LLAMA = ("llama", "mistral", "qwen2", "qwen3", "phi3", "mixtral", "qwen3_moe")
GEMMA = ("gemma", "gemma2", "gemma3_text")
EAGER_UNKNOWN = ("phi3", "gpt_neox", "opt", "gemma2")
# Tensors that an activation function keeps beside its output; else its input alone.
INSIDE = {"gelu_new": 4, "gelu_fast": 7, "quick_gelu": 2, "relu": 0, "tanh": 0}
APART = {
    "gemma2": "gemma2's attention is counted as gemma3's: with its caps it was not measured",
    "qwen3_moe": "experts are counted as Mixtral's; qwen3_moe's router keeps a little less",
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
    if how.attention == "eager" and kind in EAGER_UNKNOWN:
        raise options.error("attention", f"eager attention of {kind} was never measured")
    if how.norm == "fused" and kind not in LLAMA:
        raise options.error("norm", f"fused norms of {kind} were never measured")
    z = sizes(model, B, T, s)
    found = (_gpt if kind in gpt.NAMES else _rotary)(model, z, how)
    notes = (APART[kind],) if kind in APART else ()
    return Kept(found.layer, found.head, found.block, notes)


def _rotary(model: Model, z: Sizes, how: How) -> Kept:
    """Llama and its kin: RMSNorm, rotary positions, a gated MLP."""
    kind = model.architecture
    norms, heads, last, each = _norms(kind, z, how)
    layer = {"norms": norms, "attention": _attention(kind, z, how)}
    if heads is not None:
        layer["head norms"] = heads
    if model.experts is not None:
        layer["experts"] = kept.routed_experts(z, model.experts.count, model.experts.active)
    else:
        no_gate = model.mlp is not None and INSIDE.get(model.mlp.activation) == 0
        layer["MLP"] = kept.gated_mlp(z, 3 if no_gate else 4)
    head = {"final norm": last}
    if how.recompute != "full":
        # Windows and full attention have each their own.
        both = kind == "gemma3_text" and 0 < sum(n for _, n in model.windows) < model.layers
        head["rotary"] = kept.rotary(z, z.h, each, 2 if both else 1)
    return Kept(layer, head | _loss(z, how), kept.block_input(z))


def _by_korthikanti(model: Model, z: Sizes, how: How) -> Kept:
    """The published formula of a GPT block in 16 bits, dropout and all, for any model."""
    if z.s != 2:
        raise options.error("activations", "korthikanti's formula is one of 16-bit values")
    stored = how.attention == "eager" and how.recompute == "none"
    layer = {"GPT block": kept.korthikanti(z, stored)}
    head = {"final norm": Part(2 * z.s * z.n * z.d, "2·s·n·d")} | _loss(z, how)
    scores = "scores kept" if stored else "scores not kept"
    note = f"layers by Korthikanti et al.'s formula of a GPT block with dropout, {scores}"
    return Kept(layer, head, kept.block_input(z), (note,))


def _autocast(model: Model, z: Sizes, how: How) -> Kept:
    """Llama's under autocast: norms in fp32, a bf16 cast for each matmul, weights cast too."""
    kind = model.architecture
    if kind not in ("llama", "mistral") or how != How(autocast=True, rng=how.rng):
        problem = "amp was measured for llama layers alone, with the other switches left alone"
        raise options.error("precision", problem)
    assert model.mlp is not None
    weights = z.d * z.h * 2 * (z.H + z.K) + 3 * z.d * z.F
    layer = {
        "norms": Part(16 * z.n * z.d + 8 * z.n, "16·n·d + 8n"),
        "casts": Part(10 * z.n * z.d, "10·n·d"),
        "attention": kept.flash_attention(z, how.rng),
        "MLP": kept.gated_mlp(z),
        "cast weights": Part(2 * weights, "2·(2·d·h·(H + K) + 3·d·F)"),
    }
    head = {
        "final norm": Part(10 * z.n * z.d + 4 * z.n, "10·n·d + 4n"),
        "cast head": Part(2 * z.d * z.V, "2·d·V"),
        "rotary": kept.rotary(z, z.h, 4),
    }
    return Kept(layer, head | _loss(z, how), kept.block_input(z))


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


def _attention(kind: str, z: Sizes, how: How) -> Part:
    if kind == "phi3":
        return kept.fused_flash_attention(z, how.rng)
    if how.attention == "flash":
        return kept.flash_attention(z, how.rng)
    if how.recompute == "selective":
        return kept.recomputed_attention(z)
    return kept.eager_attention(z)


def _gpt(model: Model, z: Sizes, how: How) -> Kept:
    """GPT-2 and its kin: LayerNorm, an MLP of two matrices."""
    assert model.mlp is not None
    kind = model.architecture
    if how.attention == "eager" and model.fields.get("reorder_and_upcast_attn") is True:
        raise options.error("attention", "eager attention that is upcast was never measured")
    inside = INSIDE.get(model.mlp.activation, 1)
    layer = {
        "norms": kept.layer_norms(z, inputs=1 if model.parallel else 2),
        "attention": _gpt_attention(kind, z, how),
        "MLP": kept.plain_mlp(z, inside),
    }
    last = Part(2 * z.s * z.n * z.d + 8 * z.n, "2·s·n·d + 8n")
    head = {"final norm": last} if model.final_norm else {"head input": kept.block_input(z)}
    if kind == "gpt_neox" and how.recompute != "full":
        head["rotary"] = kept.rotary(z, int(z.h * model.rotary_share), z.s)
    return Kept(layer, head | _loss(z, how), kept.block_input(z))


def _gpt_attention(kind: str, z: Sizes, how: How) -> Part:
    if how.attention == "flash":
        return kept.fused_projections(z, how.rng, rotated=kind == "gpt_neox")
    scores = 0 if how.recompute == "selective" else z.s * z.B * z.H * z.T**2
    formula = "4·s·n·d + s·B·H·T²" if scores else "4·s·n·d"
    return Part(4 * z.s * z.n * z.d + scores, formula)


def _loss(z: Sizes, how: How) -> Parts:
    return {} if how.chunked_loss or not z.V else {"log-softmax": kept.log_softmax(z)}
