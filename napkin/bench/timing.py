"""Times of many calls, after a warm-up by time: by the device's events, or the CPU's clock."""

import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median_high
from typing import Any, NamedTuple

import torch

from napkin.bench.device import Device
from napkin.errors import DeviceError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

WARM_UP_GPU, WARM_UP_CPU = 3.0, 0.3  # NVIDIA saw clocks swing for the first 3 s
LEAST_CALLS = 10
CHUNK_SECONDS = 0.25  # of calls between two waits for the device
EVENTS_MAY_DIFFER = 0.02
SHORTEST_CALL_GPU, SHORTEST_CALL_CPU = 50e-6, 10e-6
SWITCHES_OF_A_RIVAL = 100  # a second; a rival for the processor takes it 250 times

Call = Callable[[int], object]


class Times(NamedTuple):
    """Seconds of each call, of the whole window, and what makes them doubtful, if anything."""

    calls: list[float]
    window: float
    unsteady: str


def timed(
    call: Call,
    seconds: float,
    warm_up: float | None,
    device: Device,
    look: Callable[[], None] = lambda: None,
    ready: Callable[[], None] = lambda: None,
) -> Times:
    """At least `seconds` of calls, numbered from 0; `look` is called while a GPU is at work.

    `ready` is called before the warm-up and before the window, for ranks to start together.

    Raises DeviceError for impossible times.
    """
    if device.is_gpu:
        warm_up = WARM_UP_GPU if warm_up is None else warm_up
        return _by_events(call, seconds, warm_up, device, look, ready)
    return _by_clock(call, seconds, WARM_UP_CPU if warm_up is None else warm_up, ready)


def _by_clock(call: Call, seconds: float, warm_up: float, ready: Callable[[], None]) -> Times:
    _warm_up(call, warm_up, lambda: None, ready)
    calls: list[float] = []
    switches, started = _switches(), time.perf_counter()
    while time.perf_counter() - started < seconds or len(calls) < LEAST_CALLS:
        before = time.perf_counter()
        call(len(calls))
        calls.append(time.perf_counter() - before)
    window = time.perf_counter() - started
    rival = (_switches() - switches) / window > SWITCHES_OF_A_RIVAL
    middle = median_high(calls)
    if rival or middle > 1.5 * min(calls):
        unsteady = "other processes kept this one waiting: the figure is too low"
        return Times(calls, window, unsteady)
    return Times(calls, window, _too_short(middle, SHORTEST_CALL_CPU))


def _switches() -> int:
    """How often this process had to give up its processor, 0 where the system does not say."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource else 0


def _by_events(
    call: Call,
    seconds: float,
    warm_up: float,
    device: Device,
    look: Callable[[], None],
    ready: Callable[[], None],
) -> Times:
    """Device events between calls; the host clock is only asked whether they can be true."""
    event: Any = torch.cuda.Event
    with torch.cuda.device(device.torch):
        each = _warm_up(call, warm_up, torch.cuda.synchronize, ready)
        chunk = max(LEAST_CALLS, int(CHUNK_SECONDS / each))
        calls: list[float] = []
        window = 0.0
        while window < seconds:
            marks = [event(enable_timing=True) for _ in range(chunk + 1)]
            torch.cuda.synchronize()
            started = time.perf_counter()
            marks[0].record()
            for number in range(chunk):
                call(number)
                marks[number + 1].record()
            look()
            torch.cuda.synchronize()
            window += time.perf_counter() - started
            calls += [a.elapsed_time(b) / 1e3 for a, b in pairwise(marks)]
    return Times(calls, window, doubt(calls, window, device.name))


def doubt(calls: list[float], window: float, name: str) -> str:
    """What makes device times doubtful. Raises DeviceError where they cannot be true."""
    middle = median_high(calls)
    if middle <= 0:
        raise DeviceError(f"{name}: its events measure no time; no figure is given")
    if abs(sum(calls) / window - 1) > EVENTS_MAY_DIFFER:
        return f"the device's events add up to {sum(calls) / window:.0%} of the host's clock"
    return _too_short(middle, SHORTEST_CALL_GPU)


def _too_short(call: float, shortest: float) -> str:
    if call >= shortest:
        return ""
    said = f"a call takes under {shortest * 1e6:.0f} µs"
    return f"{said}, and launching it is part of that: try a larger --size"


def _warm_up(
    call: Call, seconds: float, wait: Callable[[], None], ready: Callable[[], None]
) -> float:
    """Calls for some seconds; how long one took at the end."""
    call(0)
    wait()
    ready()
    started = time.perf_counter()
    while True:
        before = time.perf_counter()
        call(0)
        call(1)
        wait()
        now = time.perf_counter()
        if now - started >= seconds:
            ready()
            return (now - before) / 2
