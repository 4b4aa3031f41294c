"""Bytes of training state, and the largest model that they leave room for."""

from collections.abc import Sequence
from functools import reduce
from operator import add

from napkin.quantity import Quantity, ceil, coefficient, define

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


def activations(L: Quantity, layer: Sequence[Quantity], rest: Sequence[Quantity]) -> Quantity:
    """A in B: what L layers keep, and the head."""
    formula = L * reduce(add, layer)
    return define("A", "activations", reduce(add, rest, formula), "B")


def recomputed_activations(L: Quantity, block: Quantity, rest: Sequence[Quantity]) -> Quantity:
    """A in B where every layer keeps its input alone."""
    return define("A", "activations", reduce(add, rest, L * block), "B")


def recomputed_layer(L: Quantity, block: Quantity, layer: Sequence[Quantity]) -> Quantity:
    """In B: the layers' inputs, and one layer that is computed again."""
    formula = reduce(add, layer, L * block)
    return define("A_again", "inputs of all layers, one layer again", formula, "B")


def copy_of(symbol: str, label: str, what: Quantity) -> Quantity:
    """In B: as much again."""
    return define(symbol, label, what, "B")


def gathered(block: Quantity, w: Quantity) -> Quantity:
    """In B: weights of two blocks, the one at work and the next (FSDP gathers ahead)."""
    return define("Z", "gathered weights of two blocks", 2 * w * block, "B")


def step_buffers(times: int, each: Quantity, N: Quantity, ranks: Quantity | None) -> Quantity:
    """In B: what an optimizer step on lists of tensors holds beside the state."""
    copies_of = coefficient(times, "1", f"{times} = copies of what is stepped")
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
