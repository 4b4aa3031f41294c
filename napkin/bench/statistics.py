"""Rates of many timed calls."""

from collections.abc import Sequence
from statistics import median, quantiles
from typing import NamedTuple


class Rates(NamedTuple):
    """FLOP/s, or B/s, of the median, slowest and fastest call; `time` is the median's, in s.

    p5 and p95 hold nine calls of ten between them; `sustained` is the amount of all calls
    over the whole window, pauses included.
    """

    time: float
    median: float
    min: float
    max: float
    samples: int
    p5: float
    p95: float
    sustained: float


def rates(amount: int, times: Sequence[float], window: float) -> Rates:
    """Of calls that do `amount` each.

    The headline is the median: one stall does not move it, one lucky call neither.
    """
    middle = median(times)
    # A rate's 5th percentile is the time's 95th.
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else [middle]
    return Rates(
        time=middle,
        median=amount / middle,
        min=amount / max(times),
        max=amount / min(times),
        samples=len(times),
        p5=amount / cuts[-1],
        p95=amount / cuts[0],
        sustained=amount * len(times) / window,
    )
