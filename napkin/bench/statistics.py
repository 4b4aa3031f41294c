"""Rates of many timed calls."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Rates(NamedTuple):
    """FLOP/s of the median, the slowest and the fastest call; `time` is the median's, in s."""

    time: float
    median: float
    min: float
    max: float
    samples: int


def rates(flop: int, times: Sequence[float]) -> Rates:
    """The headline is the median: one stall does not move it, one lucky call neither."""
    middle = median(times)
    return Rates(middle, flop / middle, flop / max(times), flop / min(times), len(times))
