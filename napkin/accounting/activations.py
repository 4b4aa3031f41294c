"""Bytes that a model keeps for the backward pass: the values that its operations need.

Of what transformers 5.24's modules save (tests/checking measures them), for a micro-batch of
B sequences of T tokens.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple, cast

from napkin.accounting import operations as of
from napkin.accounting.adapters import adapters, without_gradient
from napkin.accounting.errors import unmeasured
from napkin.accounting.layout import Layout
from napkin.accounting.notation import PLAIN, TRACED, Notation, amount, letter
from napkin.accounting.operations import Kernels, Linear, Size, Value, operations
from napkin.accounting.parameters import parameters
from napkin.accounting.sums import Product, product, total
from napkin.errors import quoted
from napkin.quantity import Quantity, coefficient, define
from napkin.record import NOTHING, Record
from napkin.specs.model import Experts, Model, Stack

BYTE = "B"
IN_BF16 = coefficient(2, "B/param", "2 = bf16")
GPT_BLOCK = coefficient(34, BYTE, "34 = Korthikanti's sum of a block")
OUTSIDE_MATMULS = coefficient(10, BYTE, "10 = 4 norms + 4 inputs of matmuls + 2 masks")
BETWEEN_MATMULS = coefficient(24, BYTE, "24 = 8 attention + 16 MLP")
SCORES_AND_DROPOUT = coefficient(5, BYTE, "5 = 2 softmax + 1 mask + 2 dropped")
LAST_NORM = coefficient(4, BYTE, "4 = 2 × 2 bytes")
TWO_FP32 = coefficient(8, BYTE, "8 = 2 in fp32")
THREE_FP32 = coefficient(12, BYTE, "12 = 3 in fp32")
FOUR_FP32 = coefficient(16, BYTE, "16 = 4 in fp32")
HEADS = ("H", "attention heads")
CAST, CAST_HEAD = "cast weights", "cast head"
OUTSIDE = (of.FINAL_NORM, of.PROJECTIONS, of.ROTARY, of.LOSS, of.CAP)
# Autocast computes what others consist of, a power or a softplus, in fp32.
FUSED_ACTIVATIONS = ("silu", "swish", "gelu", "relu")


class Shape(NamedTuple):
    """Kept values of one shape: bytes of one element of all of them together, and why."""

    bytes: Quantity
    per: str
    size: Product


# In the order in which answers list them: of a layer, and of what is outside.
PARTS = (
    *(of.NORMS, of.CASTS, of.ATTENTION, of.HEAD_NORMS, of.MLP, of.EXPERTS, of.SHARED),
    *OUTSIDE,
)


@lru_cache(maxsize=256)
def shapes(model: Model, s: int, kernels: Kernels, size: Size) -> dict[str, tuple[Shape, ...]]:
    """What each part keeps, of s bytes a value."""
    parts = _alike(model, kernels, size)
    return {
        part: tuple(_shape(_widths(values, s), values[0], size) for values in parts[part].values())
        for part in PARTS
        if part in parts
    }


@lru_cache(maxsize=256)
def between(
    model: Model, part: str, s: int, kernels: Kernels, others: Kernels, size: Size
) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """What a part keeps more under the other kernels, and what it keeps less."""
    before = _alike(model, kernels, size).get(part, {})
    after = _alike(model, others, size).get(part, {})
    more: list[Shape] = []
    less: list[Shape] = []
    for key in {**after, **before}:
        new, old = after.get(key, []), before.get(key, [])
        difference = sum(_widths(new, s)) - sum(_widths(old, s))
        if difference:
            shape = _shape([abs(difference)], (new or old)[0], size)
            (more if difference > 0 else less).append(shape)
    return tuple(more), tuple(less)


@lru_cache(maxsize=256)
def untrained(model: Model, s: int, kernels: Kernels, size: Size) -> tuple[Shape, ...]:
    """What the first layer does not keep where nothing below it is trained."""
    assert kernels.adapters is not None
    every = operations(model, size)
    idle = {
        o for o in without_gradient(every, kernels.adapters.beside) if not isinstance(o, Linear)
    }
    needed = {value for o in every if o not in idle for value in o.kept(kernels)}
    of_idle = dict.fromkeys(
        value for o in every if o in idle and o.layers is not None for value in o.kept(kernels)
    )
    less: Alike = {}
    for value in of_idle:
        if value not in needed:
            less.setdefault((value.per, *map(id, value.size)), []).append(value)
    return tuple(_shape(_widths(values, s), values[0], size) for values in less.values())


Alike = dict[tuple[object, ...], list[Value]]


def _alike(model: Model, kernels: Kernels, size: Size) -> dict[str, Alike]:
    """The values of each part by their shape: each value once, whoever needs it."""
    distinct: dict[Value, None] = {}
    for operation in operations(model, size):
        distinct.update(dict.fromkeys(operation.kept(kernels)))
    parts: dict[str, Alike] = {}
    for value in distinct:
        shape = (value.per, *map(id, value.size))
        parts.setdefault(value.part, {}).setdefault(shape, []).append(value)
    return parts


def _widths(values: list[Value], s: int) -> list[int]:
    return [s if value.bytes is None else value.bytes for value in values]


def _shape(widths: list[int], value: Value, size: Size) -> Shape:
    times = sum(widths)
    if size is not letter:  # sizes are numbers: all that the model alone decides is one
        return Shape(product((cast(Quantity, times), *value.size)), value.per, ())
    counts = {width: widths.count(width) for width in sorted(set(widths), reverse=True)}
    each = " + ".join(
        f"{width}" if count == 1 else f"{count} × {width}" for width, count in counts.items()
    )
    reason = f"{times} = {each} bytes" if len(widths) > 1 else ""
    return Shape(coefficient(times, BYTE, reason), value.per, value.size)


def kept(
    shapes: tuple[Shape, ...], B: Quantity, T: Quantity, n_tp: Quantity | None = None
) -> Quantity:
    """In B, of one part; where tensor ranks share out tokens, of one of n_tp."""
    n = B * T
    rows: dict[str, Product] = {
        "token": (n,),
        of.SHARED_OUT: (n,) if n_tp is None else (n / n_tp,),
        "pair": (n, T),
        "sequence": (B,),
        "position": (T,),
        "model": (),
    }
    return total([product((bytes, *rows[per], *size)) for bytes, per, size in shapes])


@cache
def symbol(part: str) -> str:
    return "a_" + re.sub(r"\W", "_", part)


def cast_weights(weights: Quantity, label: str, part: str) -> Quantity:
    """In B: bf16 copies that autocast keeps of weights in param."""
    return define(symbol(part), label, IN_BF16 * weights, "B")


def block_input(
    model: Model, B: Quantity, T: Quantity, layout: Layout, notation: Notation
) -> Quantity:
    """All that a checkpointed block keeps, in B."""
    width = layout.weight_bytes  # under autocast the stream stays in fp32
    formula = _bytes(width, notation) * stream(model, B * T, notation)
    return define("a_block", "input, one layer", formula, "B")


def stream(model: Model, n: Quantity, notation: Notation) -> Quantity:
    """Values of a tensor as wide as d that a rank holds, of n tokens."""
    d, n_tp = notation.letter("d", "d_model", model.d_model), _sharing_tokens(model, notation)
    return n * d if n_tp is None else n / n_tp * d


def _sharing_tokens(model: Model, notation: Notation) -> Quantity | None:
    """The ranks of sequence parallelism, where there is one."""
    return of.tensor_ranks(model, notation.letter) if model.share.sequence else None


def _each(layout: Layout, notation: Notation, times: int = 1, what: str = "") -> Quantity:
    """Bytes of some values."""
    size = times * layout.value_bytes
    reason = f"{size} = {what} × {layout.value_bytes} bytes" if what else ""
    return _bytes(size, notation, reason)


def _bytes(size: int, notation: Notation, reason: str = "") -> Quantity:
    return coefficient(size, BYTE, reason) if notation is not PLAIN else cast(Quantity, size)


def korthikanti(
    B: Quantity,
    T: Quantity,
    d: Quantity,
    H: Quantity,
    scores: bool,
    n_tp: Quantity | None = None,
    sequence: bool = False,
) -> Quantity:
    """A GPT block in 16 bits with dropout: 34·s·b·h, and 5·a·s²·b where the scores are kept
    (2205.05198, equation 2); of one tensor rank of t, 10 + 24/t (3), 34/t in sequence parallel
    (4)."""
    nd = B * T * d
    if n_tp is None:
        formula = GPT_BLOCK * nd
    elif sequence:
        formula = GPT_BLOCK * nd / n_tp
    else:
        formula = OUTSIDE_MATMULS * nd + BETWEEN_MATMULS * nd / n_tp
    if scores:
        of_heads = SCORES_AND_DROPOUT * (B * H * T * T)
        formula = formula + (of_heads if n_tp is None else of_heads / n_tp)
    return define("a_GPT_block", "GPT block, one layer", formula, "B")


def loss_backward(
    model: Model, B: Quantity, T: Quantity, notation: Notation = TRACED
) -> Quantity | None:
    """Gradients of the loss and of the log-softmax, in B; None where there is no loss."""
    loss = _loss(model, notation.letter)
    if loss is None:
        return None
    rows = B if loss.per == "sequence" else B * T
    formula = TWO_FP32 * (rows * loss.outputs)
    return define("a_loss", "gradient of logits", formula, "B")


@lru_cache(maxsize=256)
def _loss(model: Model, size: Size) -> of.LogSoftmax | None:
    return next((o for o in operations(model, size) if isinstance(o, of.LogSoftmax)), None)


def inside_layer(
    model: Model, B: Quantity, T: Quantity, layout: Layout, notation: Notation
) -> dict[str, Quantity]:
    """Gradients on the way through a layer, in B, by where they are; measured on whole steps,
    within some percent."""
    n = B * T
    if model.experts is not None:
        return _inside_experts(model, model.experts, n, layout, notation)
    assert model.mlp is not None
    F = of.divided(model, notation.letter, "F", "d_ff", model.mlp.width)
    nd = stream(model, n, notation)
    again = layout.recompute == "full"
    # What a layer begins with, and a checkpoint keeps, is also what its first norm or matmul
    # keeps, unless that norm keeps a copy in fp32.
    copied = model.norm.kind in ("rms", "rms+1") and layout.value_bytes == 2
    residual = not again or (copied and not layout.autocast)
    after = _each(layout, notation) * nd if residual else None
    mlp = _gradients(model, layout, notation) * (n * F)
    if after is not None:
        mlp = mlp + after
    if model.norm.place not in ("after", "both"):
        return {of.MLP: define("a_inside", f"inside the {of.MLP}", mlp, "B")}
    # A norm after the MLP is done by then.
    inside = {of.MLP: define("a_inside", f"inside the {of.MLP}", mlp - TWO_FP32 * nd, "B")}
    if again:
        norm = FOUR_FP32 * nd
        norm = norm if after is None else norm + after
        inside["norm after"] = define("a_inside", "inside the norm after", norm, "B")
    return inside


def _gradients(model: Model, layout: Layout, notation: Notation) -> Quantity:
    """Bytes of two inside an MLP; in fp32 where an adapter that is cast stands beside it."""
    found = adapters(model, layout, notation)
    if found is not None and found.bytes > layout.value_bytes:
        beside = {name for part, name in found.beside if part == of.MLP}
        if beside - {"down"}:
            return _bytes(2 * found.bytes, notation, "8 = 2 gradients in fp32")
        if beside:
            size = layout.value_bytes + found.bytes
            return _bytes(size, notation, f"{size} = a gradient + one in fp32")
    return _each(layout, notation, 2, "2 gradients")


def _inside_experts(
    model: Model, experts: Experts, n: Quantity, layout: Layout, notation: Notation
) -> dict[str, Quantity]:
    """Inside them, their outputs' places free again; and where their outputs are weighted."""
    d = notation.letter("d", "d_model", model.d_model)
    k = notation.letter("k", "experts a token takes", experts.active)
    F = of.divided(model, notation.letter, "F_e", "width of an expert", experts.width)
    two, one = _each(layout, notation, 2, "2 gradients"), _each(layout, notation)
    if experts.clamped:  # each half of gate and up is cut out of both: measured
        two = _each(layout, notation, 11, "11 gradients, of gate and up as wide as both")
    # Where shared experts come last, theirs are gone by then: measured.
    narrow = experts.cast or (experts.shared_width and not experts.shared_gate)
    weighted = _each(layout, notation, 3, "3 values") if narrow else THREE_FP32
    each = {
        of.EXPERTS: two * (n * k * F) - one * (n * k * d),
        "weighting": weighted * (n * k * d) + one * (n * d),
    }
    return {name: define("a_inside", f"inside the {name}", q, "B") for name, q in each.items()}


def inside_norm(model: Model, n: Quantity, notation: Notation) -> Quantity:
    """Gradients on the way through the last norm, of n tokens, in B."""
    formula = FOUR_FP32 * stream(model, n, notation)
    return define("a_norm", "inside the last norm", formula, "B")


class Scores:
    """Of one layer's eager attention, in B: what is there of its scores."""

    def __init__(
        self, model: Model, B: Quantity, T: Quantity, layout: Layout, notation: Notation
    ) -> None:
        H = of.divided(model, notation.letter, *HEADS, model.attention.heads)
        self.count, self.notation = B * H * T * T, notation
        s, in_fp32 = layout.value_bytes, model.attention.softmax_in_fp32
        cap = s if model.attention.cap else 0
        cast = s if in_fp32 and s != 4 else 0
        self.kept = (4 if in_fp32 else s) + cast + cap
        self.forward = 8 if in_fp32 else 2 * s  # scores, their softmax, its cast
        self.backward = (4 if in_fp32 else s) + s  # gradients of the softmax and of its cast

    def of(self, symbol: str, label: str, bytes: int) -> Quantity:
        return define(symbol, label, _bytes(bytes, self.notation) * self.count, "B")


def stack(model: Stack, B: Quantity, layout: Layout, notation: Notation) -> Quantity:
    """A in B: inputs of each matrix and of the head, and the loss's two operands; the lecture's
    B·D·L leaves out the first and the last (CS336 2025, lecture 2)."""
    d, L = (
        notation.letter("d", "d_model", model.d_model),
        notation.letter("L", "layers", model.layers),
    )
    width = layout.precision.weights
    each = _bytes(width, notation)
    formula = each * (B * d * (L + 1) + 2 * B)
    return define("A", "activations", formula, "B")


class Kept(Record):
    """By part in B: of a layer, and of what is outside the layers."""

    layer: dict[str, Quantity]
    rest: dict[str, Quantity]
    block: Quantity  # what a layer keeps that is computed again
    window: Quantity | None = None  # what a layer keeps more whose window is short
    first: Quantity | None = None  # what the first layer does not keep, nothing below it trained
    mask: Quantity | None = None  # eager attention's, which checkpoints hold
    notes: tuple[str, ...] = ()
    # Of a frozen part: as large as what training it keeps, and frees as gradients take its place.
    frozen: Mapping[str, Quantity] = NOTHING

    @property
    def kinds(self) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...], tuple[Quantity, ...]]:
        """Of every layer; beside that of the dense ones; and of those with experts, where a model
        has both."""
        sparse = tuple(self.layer[part] for part in (of.EXPERTS, of.SHARED) if part in self.layer)
        if of.MLP not in self.layer or not sparse:
            return tuple(self.layer.values()), (), ()
        apart = (of.MLP, of.EXPERTS, of.SHARED)
        common = tuple(q for part, q in self.layer.items() if part not in apart)
        return common, (self.layer[of.MLP],), sparse

    @property
    def largest_layer(self) -> tuple[Quantity, ...]:
        more = () if self.window is None else (self.window,)
        common, *others = self.kinds
        return *common, *max(others, key=amount), *more

    @property
    def outside(self) -> tuple[Quantity, ...]:
        more = () if self.mask is None else (self.mask,)
        return *self.rest.values(), *more


def of_model(
    model: Model, B: Quantity, T: Quantity, layout: Layout, notation: Notation = TRACED
) -> Kept:
    """Raises Unmeasured for layers that were never measured as they are to be computed."""
    if layout.formula == "korthikanti":
        kept = _by_korthikanti(model, B, T, layout, notation)
    else:
        _refuse_unmeasured(model, layout)
        kept = _measured(model, B, T, layout, notation)
    if layout.chunked_loss:
        kept.rest.pop(of.LOSS, None)
        kept.rest.pop(of.CAP, None)
    return kept


def usual_attention(model: Model | Stack, seq_len: int) -> str:
    """What transformers runs under a short window, where flash attention is not asked for; for
    all else sdpa is flash attention, but for sinks, which it has eager attention alone for."""
    if isinstance(model, Model) and model.attention.sinks:
        return "eager"
    if isinstance(model, Stack) or model.attention.cap or not short_windows(model, seq_len):
        return "flash"
    return "sdpa"


def short_windows(model: Model, seq_len: int) -> int:
    """Layers whose window sequences reach: transformers masks them from there on."""
    return sum(layers for tokens, layers in model.windows if tokens <= seq_len)


def _measured(model: Model, B: Quantity, T: Quantity, layout: Layout, notation: Notation) -> Kept:
    layer: dict[str, Quantity] = {}
    rest: dict[str, Quantity] = {}
    s = layout.value_bytes
    kernels = layout.kernels._replace(adapters=adapters(model, layout, notation))
    parts, n_tp = shapes(model, s, kernels, notation.letter), _sharing_tokens(model, notation)
    for part, like in parts.items():
        inside = part not in OUTSIDE
        label = f"{part}, one layer" if inside else part
        (layer if inside else rest)[part] = define(symbol(part), label, kept(like, B, T, n_tp), "B")
    if layout.autocast:
        layer[CAST], *head = _cast_weights(model, notation)
        rest = dict(zip([CAST_HEAD], head, strict=False)) | rest
    if layout.recompute == "full":
        rest.pop(of.ROTARY, None)
    first = None
    if kernels.adapters is not None and model.table and layout.recompute != "full":
        less = untrained(model, s, kernels, notation.letter)
        label = "not kept by the first layer, frozen"
        first = define("a_first", label, kept(less, B, T, n_tp), "B") if less else None
    window = None
    if layout.attention == "sdpa" and short_windows(model, layout.seq_len):
        masked = kernels._replace(masked=True)
        more, less = between(model, of.ATTENTION, s, kernels, masked, notation.letter)
        formula = kept(more, B, T)
        if less:
            formula = formula - kept(less, B, T)
        window = define("a_window", "under a window, one layer", formula, "B")
    block = block_input(model, B, T, layout, notation)
    mask = masks(model, B, T, layout, notation)
    again = {}
    if kernels.adapters is not None:
        for part in (of.MLP, of.EXPERTS, of.FINAL_NORM):
            trained = kernels._replace(adapters=None)
            more, _ = between(model, part, s, kernels, trained, notation.letter)
            if more:
                formula, label = kept(more, B, T, n_tp), f"{part}, what training would have kept"
                again[part] = define(symbol(part) + "_back", label, formula, "B")
    return Kept(layer, rest, block, window, first, mask, tuple(_notes(model)), again)


def _cast_weights(model: Model, notation: Notation) -> Iterator[Quantity]:
    """bf16 copies that autocast keeps of the matmuls' weights: of a layer, of the head."""
    parts = parameters(model)
    yield cast_weights(total(map(notation.known, parts.layer)), f"{CAST}, one layer", CAST)
    if parts.output is not None:
        yield cast_weights(notation.known(parts.output), CAST_HEAD, CAST_HEAD)


def masks(
    model: Model, B: Quantity, T: Quantity, layout: Layout, notation: Notation
) -> Quantity | None:
    """In B: eager attention's, one of each kind of layer, held until the last layer that is
    computed again."""
    if layout.attention != "eager" or layout.recompute != "full":
        return None
    windowed = model.windowed_layers
    count = 2 if 0 < windowed < model.layers else 1
    each = _each(layout, notation, count, f"{count} masks" if count > 1 else "")
    return define("a_mask", "mask", each * (B * T * T), "B")


def _by_korthikanti(
    model: Model, B: Quantity, T: Quantity, layout: Layout, notation: Notation
) -> Kept:
    """The published formula of a GPT block in 16 bits, dropout and all, for any model."""
    if layout.value_bytes != 2:
        raise unmeasured("activations", "korthikanti's formula is one of 16-bit values")
    if layout.tuning is not None:
        problem = "korthikanti's formula trains every weight; leave it out"
        raise unmeasured("activations", problem)
    stored = layout.attention == "eager" and layout.recompute == "none"
    d = notation.letter("d", "d_model", model.d_model)
    H, share = notation.letter(*HEADS, model.attention.heads), model.share
    n_tp = None if share.tensor == 1 else of.tensor_ranks(model, notation.letter)
    rest = {}
    if model.final_norm or model.head is not None:
        formula = LAST_NORM * stream(model, B * T, notation)
        rest[of.FINAL_NORM] = define("a_final_norm", of.FINAL_NORM, formula, "B")
    ends = shapes(model, 2, layout.kernels, notation.letter)
    for part in (of.LOSS, of.CAP):
        if part in ends:
            rest[part] = define(symbol(part), part, kept(ends[part], B, T), "B")
    scores = "scores kept" if stored else "scores not kept"
    note = f"layers by Korthikanti et al.'s formula of a GPT block with dropout, {scores}"
    layer = {"GPT block": korthikanti(B, T, d, H, stored, n_tp, share.sequence)}
    block = block_input(model, B, T, layout, notation)
    return Kept(layer, rest, block, None, None, masks(model, B, T, layout, notation), (note,))


def _notes(model: Model) -> Iterator[str]:
    """What is approximated."""
    if model.experts is None:
        return
    yield "with experts the backward pass is within 3 % of whole steps that were measured"


def _refuse_unmeasured(model: Model, layout: Layout) -> None:
    """By the option that asks for it."""
    a, kind = model.attention, model.architecture
    if layout.autocast:
        _refuse_under_autocast(model, layout)
    if a.sinks and layout.attention != "eager":
        problem = f"{layout.attention} attention with sinks was never measured; write eager"
        raise unmeasured("attention", problem)
    if layout.attention == "sdpa" and a.cap:
        problem = f"sdpa knows no cap on the scores, which {kind} has; write flash or eager"
        raise unmeasured("attention", problem)
    if layout.attention == "eager" and a.upcast:
        raise unmeasured("attention", "eager attention that is upcast was never measured")
    if layout.norm == "fused" and model.norm.kind != "rms":
        raise unmeasured("norm", f"fused norms of {kind} were never measured")


def _refuse_under_autocast(model: Model, layout: Layout) -> None:
    """A plain layer of Llama's was measured, with the fused activations."""
    a, mlp, kind = model.attention, model.mlp, model.architecture
    plain = model.norm.kind == "rms" and not (a.qk_norm or a.fused or model.experts or a.latent)
    if not plain or a.qkv_bias != a.out_bias:
        known = "llama and mistral"
        problem = f"amp was measured for {known} layers alone, not {kind}"
        raise unmeasured("precision", problem)
    if mlp is not None and mlp.activation not in FUSED_ACTIVATIONS:
        problem = f"an MLP's {quoted(mlp.activation)} was never measured under amp"
        raise unmeasured("precision", problem)
    if layout.attention == "eager":
        raise unmeasured("attention", "eager was never measured under --precision amp")
    if layout.norm == "fused":
        raise unmeasured("norm", "fused was never measured under --precision amp")
    if layout.chunked_loss:
        raise unmeasured("chunked_loss", "was never measured under --precision amp")
