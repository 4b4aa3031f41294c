"""Rates of many timed calls."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median, quantiles
from typing import NamedTuple


class Rates(NamedTuple):
    """FLOP/s, or B/s, of the median, slowest and fastest call; `time` is the median's, in s.

    p5 and p95 hold nine calls of ten between them; `sustained` is the amount of all calls
    over the whole window, pauses included; `spread` is how far the middle half of the times is
    apart, over the median; `fell` the share of the rate that was lost from the first fifth
    of the calls to the last, 0 unless each fifth lost some.
    """

    time: float
    median: float
    min: float
    max: float
    samples: int
    p5: float
    p95: float
    sustained: float
    spread: float = 0.0
    fell: float = 0.0


PARTS, FEWEST_IN_A_PART = 5, 5


class Among(NamedTuple):
    """The slowest, the middle and the fastest of some rates."""

    min: float
    median: float
    max: float


def among(rates: Sequence[float]) -> Among:
    """Of several devices."""
    return Among(min(rates), median(rates), max(rates))


def slowest(rates: Sequence[float]) -> int:
    """Which one it is."""
    return rates.index(min(rates))


def behind(rates: Sequence[float]) -> float:
    """By what share of the median the slowest is under it."""
    return 1 - min(rates) / median(rates)


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
        spread=spread(times),
        fell=fell(times),
    )


def spread(times: Sequence[float]) -> float:
    """The interquartile range over the median: one stall does not move it."""
    if len(times) < 2:
        return 0.0
    low, middle, high = quantiles(times, n=4, method="inclusive")
    return (high - low) / middle


def fell(times: Sequence[float]) -> float:
    """By what share the last fifth's median rate is under the first's, 0 unless each fell."""
    each = len(times) // PARTS
    if each < FEWEST_IN_A_PART:
        return 0.0
    medians = [median(times[part * each : (part + 1) * each]) for part in range(PARTS)]
    if any(later <= earlier for earlier, later in pairwise(medians)):
        return 0.0
    return 1 - medians[0] / medians[-1]
