"""`make gpu-check`: bench against others' timers on a real GPU, in under a minute of its time.

A table of what was found and what it must be; exit code 1 where one is not. It has its own
plain loop to compare with: the timers share nothing but torch.
"""

import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import torch

from napkin.bench import bandwidth, device, matmul, operators
from napkin.bench.operators import OPERATORS, Shape
from napkin.errors import NapkinError
from napkin.questions.bench.measurement import known, promised

SECONDS, WARM_UP = 0.5, 0.5
CUBE = Shape(8192, 8192, 8192)
AGREEMENT, REPEATABILITY = 0.05, 0.03


class Row(NamedTuple):
    """What was looked at, what was found, and what it must be."""

    what: str
    found: str
    must: str
    ok: bool


def within(what: str, ratio: float, by: float) -> Row:
    return Row(what, f"{ratio:.3f}", f"1 ± {by:g}", abs(ratio - 1) <= by)


def checks(gpu: device.Device) -> Iterator[Row]:
    """All rows, each measured as it is asked for."""
    rates: dict[str, float] = {}
    errors: dict[str, float] = {}
    # The first warm-up is bench's own, for the clocks to settle.
    matmul.measure(gpu, "fp16", CUBE, SECONDS)
    for dtype, op in OPERATORS.items():
        try:
            found = matmul.measure(gpu, dtype, CUBE, SECONDS, WARM_UP)
        except NapkinError as error:
            yield Row(f"{dtype}: refused", str(error), f"no {dtype} units", "has no" in str(error))
            continue
        rates[dtype], errors[dtype] = found.rates.median, found.error
        peak = promised(known(gpu), dtype)
        share = "" if peak is None else f", {found.rates.median / peak.value:.1%} of the promised"
        said = f"{found.rates.median / 1e12:.1f} TFLOP/s{share}"
        yield Row(
            f"{dtype}: rate", said, "at most 105%", peak is None or rates[dtype] < 1.05 * peak.value
        )
        yield Row(
            f"{dtype}: error", f"{found.error:.1e}", f"{op.limit:.0e}", found.error <= op.limit
        )
    dtype = "bf16" if "bf16" in rates else "fp16"
    yield from _against_others(gpu, dtype)
    if "tf32" in errors:
        told = errors["tf32"] / errors["fp32"]
        yield Row("tf32's error over fp32's", f"{told:.0f}", "over 10", told > 10)
    if "fp8" in rates:
        faster = rates["fp8"] / rates[dtype]
        yield Row(f"fp8 over {dtype}", f"{faster:.2f}", "over 1.2", faster > 1.2)
    yield from _memory(gpu)
    yield from _refusals(gpu, dtype)


def _against_others(gpu: device.Device, dtype: str) -> Iterator[Row]:
    op = OPERATORS[dtype]
    random = torch.Generator(gpu.torch).manual_seed(0)  # bench's own operands
    a, b = operators.operands(op, CUBE, gpu, random)
    out = torch.empty(CUBE.m, CUBE.n, dtype=op.out, device=gpu.torch)

    def ours() -> float:
        return matmul.measure(gpu, dtype, CUBE, SECONDS, WARM_UP).rates.time

    def theirs() -> None:
        torch.matmul(a, b, out=out)

    first, loop, second = ours(), plain(theirs), ours()
    yield within(f"{dtype}: a plain event-timed loop over bench", loop / second, AGREEMENT)
    yield within(f"{dtype}: the same again", second / first, REPEATABILITY)
    try:
        from triton.testing import do_bench
    except ImportError:
        yield Row(f"{dtype}: triton's do_bench", "triton is not installed", "skipped", True)
    else:
        time = do_bench(theirs, warmup=500, rep=500, return_mode="median") / 1e3
        yield within(f"{dtype}: triton's do_bench over bench", time / ours(), AGREEMENT)
    a.zero_()
    b.zero_()
    zeros = plain(theirs)
    yield Row(
        f"{dtype}: zeros over random, speed",
        f"{loop / zeros:.3f}",
        "over 0.97",
        loop / zeros > 0.97,
    )


def plain(call: Callable[[], None], calls: int = 300) -> float:
    """Median seconds of a call between two events of its own."""
    event: Any = torch.cuda.Event
    times = []
    for _ in range(calls):
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        call()
        end.record()
        times.append((start, end))
    torch.cuda.synchronize()
    # The first third warms up.
    return float(median(a.elapsed_time(b) for a, b in times[calls // 3 :])) / 1e3


def _memory(gpu: device.Device) -> Iterator[Row]:
    found = bandwidth.measure(gpu, SECONDS, WARM_UP)
    card = known(gpu)
    for name, rate in (("copy", found.copy.median), ("triad", found.triad.median)):
        said = f"{rate / 1e12:.3g} TB/s"
        if card is None or card.memory_bandwidth is None:
            yield Row(f"memory: {name}", said, "no promised figure", ok=True)
        else:
            share = rate * card.devices_per_package / card.memory_bandwidth.value
            must = "60% to 105% of the promised"
            yield Row(f"memory: {name}", f"{said}, {share:.1%}", must, 0.6 < share < 1.05)


def _refusals(gpu: device.Device, dtype: str) -> Iterator[Row]:
    def refused(what: str, call: Callable[[], object], must: str) -> Row:
        try:
            call()
        except NapkinError as error:
            return Row(what, str(error), must, must in str(error))
        return Row(what, "was measured", must, ok=False)

    huge = Shape(10**6, 10**6, 10**6)
    yield refused(
        "a size of 1,000,000", lambda: matmul.measure(gpu, dtype, huge, 0.1), "try --size"
    )
    yield refused("cuda:99", lambda: device.choose("cuda:99"), "there is no cuda:99")


def main() -> int:
    """Prints the table; 1 where a check fails."""
    if not torch.cuda.is_available():
        print("gpu-check: skipped, there is no GPU here")
        return 0
    gpu = device.choose("cuda")
    print(f"{gpu.name}, torch {torch.__version__}\n")
    print("| check | found | must be | |\n| --- | --- | --- | --- |")
    failed = 0
    for row in checks(gpu):
        failed += not row.ok
        print(
            f"| {row.what} | {row.found} | {row.must} | {'ok' if row.ok else 'FAILED'} |",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
