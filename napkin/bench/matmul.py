"""Times one matmul: random data, warmed up by time, synchronised, checked against fp64.

Clocks, power limits and modes are never changed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import torch

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from napkin.bench.device import Device, free_bytes, speaking_for_the_device
from napkin.bench.statistics import Rates, rates
from napkin.errors import DeviceError, NapkinError

TORCH = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}

# Relative error (Frobenius) over which the product was not made in that precision:
# about six times what is seen, and TF32 (3e-4) is well above what fp32 may do.
ERROR_LIMIT = {"fp64": 1e-12, "fp32": 1e-5, "tf32": 2e-3, "fp16": 1e-2, "bf16": 1e-2}
TF32_LEAST_ERROR = 1e-5  # below, it was fp32 that ran: a setting or a card without TF32

GPU_SIZE = 8192  # over every cache, and few tiles are left over in the last wave
LARGER_THAN_ANY_CACHE = 2**31  # bytes of operands, from where one set of them is enough
CHECKED_ROWS = 64
CHECKED_COLUMNS = 256  # at a time, so that the fp64 copies stay small
LEAST_CALLS = 10
MOST_OF = 0.9  # of the free memory
EVENTS_MAY_DIFFER = 0.02
SHORTEST_CALL = 50e-6
SWITCHES_OF_A_RIVAL = 100  # a second; a rival for the processor takes it 250 times
PROBE_SECONDS = 0.02
LARGEST_PROBE = 4096


class Measurement(NamedTuple):
    """What one size did on one device."""

    size: int
    rates: Rates
    error: float  # against fp64, relative
    unsteady: str  # what makes the figure doubtful, empty if nothing does


def supported(device: Device, dtype: str) -> None:
    """Raises NapkinError for a precision that this bench cannot measure there."""
    has = [name for name in TORCH if device.is_gpu or name != "tf32"]
    if dtype not in has:
        raise NapkinError(f"--dtype: bench measures {' '.join(has)} here, not {dtype}")
    if device.is_gpu and dtype in ("bf16", "tf32") and not _has_units(device, dtype):
        raise NapkinError(f"--dtype: {device.name} has no {dtype} units; write fp16")


def _has_units(device: Device, dtype: str) -> bool:
    # torch's own question answers yes for cards that emulate bf16.
    with speaking_for_the_device(device.name):
        if torch.version.hip is None:
            return torch.cuda.get_device_capability(device.torch)[0] >= 8
        chip = torch.cuda.get_device_properties(device.torch).gcnArchName
        return dtype == "bf16" or chip.startswith(("gfx94", "gfx95"))


def default_size(device: Device, dtype: str) -> int:
    """8192 on a GPU; on a CPU the first power of two whose product takes 20 ms."""
    if device.is_gpu:
        return GPU_SIZE
    size = 64
    while size < LARGEST_PROBE:
        a, b = (torch.randn(size, size).to(TORCH[dtype]) for _ in range(2))
        torch.mm(a, b)
        start = time.perf_counter()
        torch.mm(a, b)
        if time.perf_counter() - start > PROBE_SECONDS:
            break
        size *= 2
    return size


def sets_of_operands(size: int, dtype: str) -> int:
    """Two, so that no call finds its inputs in the cache, or one that no cache can hold."""
    return 1 if 2 * _matrix(size, dtype) > LARGER_THAN_ANY_CACHE else 2


def bytes_needed(size: int, dtype: str) -> int:
    """All operands and the output."""
    return (2 * sets_of_operands(size, dtype) + 1) * _matrix(size, dtype)


def _matrix(size: int, dtype: str) -> int:
    return size * size * TORCH[dtype].itemsize


def measure(device: Device, dtype: str, size: int, seconds: float) -> Measurement:
    """FLOP/s of size³ over at least `seconds`.

    Raises NapkinError where it does not fit, DeviceError where the product is wrong.
    """
    with speaking_for_the_device(device.name):
        _refuse_too_large(device, dtype, size)
        try:
            with _precision(dtype), torch.inference_mode():
                return _measured(device, dtype, size, seconds)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
            raise NapkinError(_too_large(dtype, size, None)) from None


def _is_out_of_memory(error: RuntimeError) -> bool:
    # On a CPU it is a plain RuntimeError.
    return isinstance(error, torch.cuda.OutOfMemoryError) or "allocate memory" in str(error)


def _measured(device: Device, dtype: str, size: int, seconds: float) -> Measurement:
    random = torch.Generator(device.torch).manual_seed(0)

    def operand() -> torch.Tensor:
        return torch.randn(size, size, dtype=TORCH[dtype], device=device.torch, generator=random)

    sets = [(operand(), operand()) for _ in range(sets_of_operands(size, dtype))]
    out = torch.empty(size, size, dtype=TORCH[dtype], device=device.torch)

    def call(number: int) -> None:
        a, b = sets[number % len(sets)]
        torch.mm(a, b, out=out)

    error = max(_error(call, number, sets, out) for number in range(len(sets)))
    if not error <= ERROR_LIMIT[dtype]:
        raise DeviceError(
            f"{device.name}: the {dtype} product is wrong by {error:.1e} "
            f"(limit {ERROR_LIMIT[dtype]:.0e}); no figure is given"
        )
    if dtype == "tf32" and error < TF32_LEAST_ERROR:
        raise DeviceError(f"{device.name}: TF32 was not at work, the product is as exact as fp32's")
    if device.is_gpu:
        times, unsteady = _event_times(call, seconds, device)
    else:
        times, unsteady = _clock_times(call, seconds)
    return Measurement(size, rates(2 * size**3, times), error, unsteady)


def _error(
    call: Callable[[int], None],
    number: int,
    sets: Sequence[tuple[torch.Tensor, torch.Tensor]],
    out: torch.Tensor,
) -> float:
    """The product's relative error on some rows; NaN where an element was not written."""
    out.fill_(float("nan"))
    call(number)
    a, b = sets[number]
    size = a.shape[0]
    step = max(1, size // CHECKED_ROWS)
    rows = a[::step].double()
    wrong, total = rows.new_zeros(()), rows.new_zeros(())
    for first in range(0, size, CHECKED_COLUMNS):
        columns = slice(first, first + CHECKED_COLUMNS)
        exact = rows @ b[:, columns].double()
        wrong += (out[::step, columns].double() - exact).square().sum()
        total += exact.square().sum()
    return float((wrong / total).sqrt())


def _clock_times(call: Callable[[int], None], seconds: float) -> tuple[list[float], str]:
    _warm_up(call, 0.3, lambda: None)
    times: list[float] = []
    started, switches = time.perf_counter(), _switches()
    while time.perf_counter() - started < seconds or len(times) < LEAST_CALLS:
        before = time.perf_counter()
        call(len(times))
        times.append(time.perf_counter() - before)
    per_second = (_switches() - switches) / (time.perf_counter() - started)
    if per_second > SWITCHES_OF_A_RIVAL or sorted(times)[len(times) // 2] > 1.5 * min(times):
        return times, "other processes kept this one waiting: the figure is too low"
    return times, ""


def _switches() -> int:
    """How often this process had to give up its processor, 0 where the system does not say."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource else 0


def _event_times(
    call: Callable[[int], None], seconds: float, device: Device
) -> tuple[list[float], str]:
    """Device events between calls; the host clock is only asked whether they can be true."""
    event: Any = torch.cuda.Event
    with torch.cuda.device(device.torch):
        each = _warm_up(call, 3.0, torch.cuda.synchronize)
        chunk = max(LEAST_CALLS, int(0.25 / each))
        times: list[float] = []
        wall = 0.0
        while wall < seconds:
            marks = [event(enable_timing=True) for _ in range(chunk + 1)]
            torch.cuda.synchronize()
            started = time.perf_counter()
            marks[0].record()
            for number in range(chunk):
                call(number)
                marks[number + 1].record()
            torch.cuda.synchronize()
            wall += time.perf_counter() - started
            times += [a.elapsed_time(b) / 1e3 for a, b in pairwise(marks)]
    return times, _doubt(times, wall, device.name)


def _doubt(times: list[float], wall: float, name: str) -> str:
    """What makes device times doubtful. Raises DeviceError where they cannot be true."""
    middle = sorted(times)[len(times) // 2]
    if middle <= 0:
        raise DeviceError(f"{name}: its events measure no time; no figure is given")
    if abs(sum(times) / wall - 1) > EVENTS_MAY_DIFFER:
        return f"the device's events add up to {sum(times) / wall:.0%} of the host's clock"
    if middle < SHORTEST_CALL:
        return (
            "a call takes under 50 µs, so launching it is part of the figure; try a larger --size"
        )
    return ""


def _warm_up(call: Callable[[int], None], seconds: float, wait: Callable[[], None]) -> float:
    """Calls for some seconds; how long one took at the end."""
    call(0)
    wait()
    started = time.perf_counter()
    while True:
        before = time.perf_counter()
        call(0)
        call(1)
        wait()
        now = time.perf_counter()
        if now - started >= seconds:
            return (now - before) / 2


@contextmanager
def _precision(dtype: str) -> Iterator[None]:
    """fp32 means fp32: TF32 only where it is asked for. What was set before comes back."""
    matmul: Any = torch.backends.cuda.matmul
    name = "fp32_precision" if hasattr(matmul, "fp32_precision") else "allow_tf32"
    values: tuple[object, object] = ("tf32", "ieee") if name == "fp32_precision" else (True, False)
    before = getattr(matmul, name)
    setattr(matmul, name, values[0] if dtype == "tf32" else values[1])
    try:
        yield
    finally:
        setattr(matmul, name, before)


def _refuse_too_large(device: Device, dtype: str, size: int) -> None:
    free = free_bytes(device)
    if free is not None and bytes_needed(size, dtype) > MOST_OF * free:
        raise NapkinError(_too_large(dtype, size, free))


def _too_large(dtype: str, size: int, free: int | None) -> str:
    there = "more than there is" if free is None else f"{free / 1e9:.1f} GB are free"
    needs = bytes_needed(size, dtype) / 1e9
    smaller = size // 2
    while free is not None and smaller > 1 and bytes_needed(smaller, dtype) > MOST_OF * free:
        smaller //= 2
    return f"--size: {size} in {dtype} needs {needs:.1f} GB, {there}; try --size {smaller}"
