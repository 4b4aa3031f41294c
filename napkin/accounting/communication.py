"""Bandwidths of a collective, by the convention of nccl-tests (its doc/PERFORMANCE.md)."""

from napkin.quantity import Quantity, coefficient, define

THERE_AND_BACK = coefficient(2, "1", "2 = reduce-scatter + all-gather")


def algorithm_bandwidth(S: Quantity, t: Quantity) -> Quantity:
    """W_alg in B/s: S bytes of one rank's buffer in t, what a program sees."""
    return define("W_alg", "algorithm bandwidth", S / t, "B/s")


def all_reduce_bus_bandwidth(W_alg: Quantity, p: Quantity) -> Quantity:
    """W_bus in B/s: what a link carries, whatever the number of ranks p. An all-reduce sends
    2·(p − 1)/p of the buffer over each rank's."""
    formula = W_alg * (THERE_AND_BACK * (p - 1) / p)
    return define("W_bus", "bus bandwidth of the all-reduce", formula, "B/s")
