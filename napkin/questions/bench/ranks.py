"""What is said of several ranks: the slowest, the straggler, their all-reduce."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from napkin import units
from napkin.accounting import communication
from napkin.bench import statistics
from napkin.quantity import Quantity, given, observed

if TYPE_CHECKING:
    from napkin.bench.all_reduce import Reduced
    from napkin.bench.ranks import Member

STRAGGLES, STRAGGLES_BADLY = 0.05, 0.1  # under the median


def bus_bandwidth(reduced: "Reduced", ranks: int) -> Quantity:
    """W_bus in B/s, of one size."""
    S = given("S_r", "bytes of a rank's buffer", reduced.bytes, "B", "chosen by bench")
    t = observed("t_r", "all-reduce, slowest rank's median", reduced.time, "s", "measured here")
    p = given("p", "ranks", ranks, "1", "torchrun")
    return communication.all_reduce_bus_bandwidth(communication.algorithm_bandwidth(S, t), p)


def result(
    rates: Sequence[float], members: "Sequence[Member]", reduced: "Sequence[Reduced]"
) -> dict[str, Any]:
    """The keys that several ranks add; `rates` are their medians in FLOP/s."""
    slowest = members[statistics.slowest(rates)]
    found = statistics.among(rates)
    return {
        "ranks": {
            "size": len(members),
            "min": found.min,
            "median": found.median,
            "max": found.max,
            "slowest": {
                "rank": slowest.rank,
                "host": slowest.host,
                "device": slowest.device.torch,
            },
            "flops_per_second": list(rates),
        },
        "all_reduce": [_reduced(each, len(members)) for each in reduced],
    }


def _reduced(reduced: "Reduced", ranks: int) -> dict[str, float]:
    bus = bus_bandwidth(reduced, ranks)
    return {
        "bytes": reduced.bytes,
        "seconds": reduced.time,
        "algorithm_bandwidth": bus.args[0].value,
        "bus_bandwidth": bus.value,
    }


def notes(
    rates: Sequence[float],
    members: "Sequence[Member]",
    reduced: "Sequence[Reduced]",
    threads: int,
) -> list[str]:
    """The ranks beside each other, and their all-reduces from the largest down."""
    found = statistics.among(rates)
    low, middle, high = (units.humanize(rate, "FLOP/s") for rate in found)
    slowest = members[statistics.slowest(rates)]
    said = [
        f"{len(members)} ranks at once: min {low}, median {middle}, max {high}",
        f"the figure is the slowest's, {slowest}: synchronous training waits for it",
    ]
    if not slowest.device.is_gpu:
        each = "1 thread" if threads == 1 else f"{threads} threads"
        said.append(f"a rank computes with {each} (OMP_NUM_THREADS; torchrun sets it to 1)")
    if reduced:
        sizes = (
            f"{units.figures(each.bytes / 2**20)} MiB {bus_bandwidth(each, len(members))}"
            for each in reversed(reduced)
        )
        said.append(f"all-reduce of bf16, bus bandwidth: {', '.join(sizes)}")
    return said


def straggler(rates: Sequence[float], members: "Sequence[Member]") -> list[str]:
    """Names the slowest where it holds the others up."""
    share = statistics.behind(rates)
    if share <= STRAGGLES:
        return []
    who = f"{members[statistics.slowest(rates)]} is {100 * share:.1f} % under the ranks' median"
    if share <= STRAGGLES_BADLY:
        return [f"straggler: {who}"]
    return [f"straggler: {who}, more than 10 %: take it out, or every step waits for it"]
