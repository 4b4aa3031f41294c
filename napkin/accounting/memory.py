"""Bytes of training state, and the largest model that they leave room for."""

from collections.abc import Sequence
from functools import reduce
from operator import add

from napkin.quantity import Quantity, ceil, coefficient, define

TWO_BLOCKS = coefficient(2, "1", "2 = at work + next")
TWO_PARTS = coefficient(2, "1", "2 = head + look-up")
USES = {2: "2 = 1 read + 1 written", 3: "3 = 2 read + 1 written"}


def bytes_per_param(terms: Sequence[Quantity]) -> Quantity:
    """s in B/param: the sum of weights, gradients, master copy and moments
    (ZeRO 1910.02054, section 3.1)."""
    return define("s", "training state per parameter", reduce(add, terms), "B/param")


def usable(M1: Quantity, reserve: Quantity) -> Quantity:
    """M_use in B/GPU: what is left when a share is held back for all that is not state."""
    return define("M_use", "memory for training state", M1 * (1 - reserve), "B/GPU")


def pooled(n: Quantity, M1: Quantity) -> Quantity:
    """M in B over all GPUs."""
    return define("M", "pooled memory", n * M1, "B")


def largest_model(M: Quantity, s: Quantity) -> Quantity:
    """N in param, everything sharded over all GPUs."""
    return define("N", "parameters", M / s, "param")


def largest_replicated(M1: Quantity, s: Quantity) -> Quantity:
    """N₁ in param: what one GPU holds alone, nothing sharded."""
    return define("N₁", "parameters of one GPU", coefficient(1, "GPU") * (M1 / s), "param")


def states(N: Quantity, s: Quantity) -> Quantity:
    """S in B."""
    return define("S", "training state", s * N, "B")


def min_gpus(S: Quantity, M1: Quantity) -> Quantity:
    """n_min in GPU: the fewest whose memory holds S, everything sharded."""
    return define("n_min", "GPUs that hold the state", ceil(S / M1), "GPU")


def moved(array: Quantity, arrays: int) -> Quantity:
    """Q in B: every array of a call once, read or written (STREAM's count)."""
    return define(
        "Q", "bytes moved by one call", coefficient(arrays, "1", USES[arrays]) * array, "B"
    )


def bandwidth(Q: Quantity, t: Quantity) -> Quantity:
    """W in B/s."""
    return define("W", "measured memory bandwidth", Q / t, "B/s")


def share_of_bandwidth(W: Quantity, W_P: Quantity) -> Quantity:
    """The share of the promised bandwidth that was measured."""
    return define("W/W_P", "share of the promised bandwidth", W / W_P, "%")


def copies(
    symbol: str, label: str, each: Sequence[Quantity], N: Quantity, ranks: Quantity | None
) -> Quantity:
    """B of one GPU: some B/param of N parameters, over the data-parallel ranks that share them
    (ZeRO 1910.02054, section 5), or whole where `ranks` is None."""
    whole = reduce(add, each) * N
    return define(symbol, label, whole if ranks is None else whole / ranks, "B")


def activations(layers: Quantity, rest: Sequence[Quantity]) -> Quantity:
    """A in B: what all layers keep, and the head."""
    return define("A", "activations", reduce(add, rest, layers), "B")


def of_layers(L: Quantity, layer: Sequence[Quantity], more: Quantity | None) -> Quantity:
    """In B, not yet a step: what L layers keep, and what some of them keep `more`."""
    formula = L * reduce(add, layer)
    return formula if more is None else formula + more


def of_each(symbol: str, label: str, L: Quantity, part: Quantity) -> Quantity:
    """In B: a part of a layer, of L layers."""
    return define(symbol, label, L * part, "B")


def layers_and_one(
    symbol: str, label: str, L: Quantity | None, block: Quantity, layer: Sequence[Quantity]
) -> Quantity:
    """In B: the inputs of L layers, of one where L is None, and one layer computed again."""
    return define(symbol, label, reduce(add, layer, block if L is None else L * block), "B")


def less(symbol: str, label: str, whole: Quantity, gone: Sequence[Quantity]) -> Quantity:
    """In B: what is left of it."""
    return define(symbol, label, whole - reduce(add, gone), "B")


def as_much(symbol: str, label: str, what: Quantity) -> Quantity:
    """In B: another of that size."""
    return define(symbol, label, what, "B")


def gathered(block: Quantity, root: Quantity, w: Quantity) -> Quantity:
    """Z in B: whole weights of the block at work and of the next, which FSDP gathers ahead, and
    of what is in no block, which it keeps."""
    return define("Z", "gathered weights", w * (TWO_BLOCKS * block + root), "B")


def block_gradients(block: Quantity, g: Quantity) -> Quantity:
    """In B: of one block, before they are shared out."""
    return define("G_block", "gradients of a block, not shared yet", g * block, "B")


def gradients_of(
    symbol: str, label: str, weights: Quantity, g: Quantity, ranks: Quantity | None
) -> Quantity:
    """In B: of some weights."""
    whole = g * weights
    return define(symbol, label, whole if ranks is None else whole / ranks, "B")


def tied_gradients(table: Quantity, g: Quantity) -> Quantity:
    """In B, beside the table's gradient: its two parts, from the head and from the look-up,
    while they are added."""
    return define("G_tied", "both parts of the tied gradient", TWO_PARTS * g * table, "B")


def step_buffers(times: int, each: Quantity, N: Quantity, ranks: Quantity | None) -> Quantity:
    """In B: what an optimizer step on lists of tensors holds beside the state."""
    copies_of = coefficient(times, "1", f"{times} = copies of what is stepped" if times > 1 else "")
    whole = copies_of * each * N
    formula = whole if ranks is None else whole / ranks
    return define("step", "buffers of the step", formula, "B")


def loop_buffers(times: int, each: Quantity, largest: Quantity) -> Quantity:
    """In B: the same, tensor by tensor."""
    copies_of = coefficient(times, "1", f"{times} = copies of the largest tensor")
    return define("step", "buffers of the step", copies_of * each * largest, "B")


def alive(label: str, parts: Sequence[Quantity]) -> Quantity:
    """The peak in B: all that is alive in that phase."""
    return define("peak", label, reduce(add, parts), "B")
