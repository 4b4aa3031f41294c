"""Bytes of a training set and of a checkpoint; how often to save one, and what failures cost."""

from napkin.accounting.compute import SECONDS_PER_HOUR
from napkin.quantity import Quantity, coefficient, define, sqrt

TWO = coefficient(2, "1", "2: half of an interval is done again")


def of_tokens(D: Quantity, w: Quantity) -> Quantity:
    """In B, of D tokens of w bytes each."""
    return define("bytes", "bytes of the tokens", D * w, "B")


def weights(w: Quantity, N: Quantity) -> Quantity:
    """W in B."""
    return define("W", "weights", w * N, "B")


def state(s: Quantity, N: Quantity) -> Quantity:
    """S in B: all but the gradients, which the next step makes anew."""
    return define("S", "the whole state", s * N, "B")


def writing(S: Quantity, bandwidth: Quantity) -> Quantity:
    """δ in s, in which nothing else goes on."""
    return define("t_save", "time to write", S / bandwidth, "s")


def between_interruptions(mtbf: Quantity, n: Quantity) -> Quantity:
    """M in s, of GPU-hours an interruption."""
    return define("M", "time between interruptions", mtbf * SECONDS_PER_HOUR / n, "s")


def interval(t_save: Quantity, M: Quantity) -> Quantity:
    """τ in s: the sum of saves and of work done again is least (Young 1974; Daly 2006)."""
    return define("t_int", "interval between saves", sqrt(coefficient(2) * t_save * M), "s")


def lost_to_saves(t_save: Quantity, t_int: Quantity) -> Quantity:
    """A share of the run."""
    return define("l_save", "lost to saves", t_save / t_int, "%")


def lost_to_work_done_again(t_int: Quantity, M: Quantity) -> Quantity:
    """A share of the run: on average half an interval an interruption."""
    return define("l_again", "lost to work done again", t_int / (TWO * M), "%")


def lost_to_restarts(R: Quantity, M: Quantity) -> Quantity:
    """A share of the run."""
    return define("l_restart", "lost to restarts", R / M, "%")


def lost(l_save: Quantity, l_again: Quantity, l_restart: Quantity) -> Quantity:
    """The sum of the three."""
    return define("lost", "time lost", l_save + l_again + l_restart, "%")
