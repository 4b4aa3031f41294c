"""Bytes of training state, and how large a model the memory of some GPUs has room for."""

from collections.abc import Sequence
from functools import reduce
from operator import add

from napkin.quantity import Quantity, ceil, coefficient, define


def bytes_per_param(terms: Sequence[Quantity]) -> Quantity:
    """s in B/param: the sum of weights, gradients, master copy and moments
    (ZeRO 1910.02054, section 3.1)."""
    return define("s", "state a parameter", reduce(add, terms), "B/param")


def adapted(w_0: Quantity, share: Quantity, s_lora: Quantity) -> Quantity:
    """s in B/param of a frozen model and of adapters, a share of it, that are trained
    (QLoRA 2305.14314)."""
    return define("s", "state a parameter", w_0 + share * s_lora, "B/param")


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


def training_state(N: Quantity, s: Quantity) -> Quantity:
    """S in B."""
    return define("S", "training state", s * N, "B")


def min_gpus(S: Quantity, M1: Quantity) -> Quantity:
    """n_min in GPU: the fewest whose memory holds S, everything sharded."""
    return define("n_min", "GPUs that hold the state", ceil(S / M1), "GPU")


def split(symbol: str, label: str, whole: Quantity, ranks: Quantity | None) -> Quantity:
    """B of one GPU: over the data-parallel ranks that share it, or all of it where none do."""
    return define(symbol, label, whole if ranks is None else whole / ranks, "B")


def peak(label: str, alive: Sequence[Quantity]) -> Quantity:
    """In B: all that is alive in that phase."""
    return define("peak", label, reduce(add, alive), "B")
