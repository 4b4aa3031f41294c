"""Times copy and triad over arrays that no cache holds, by STREAM's rules.

McCalpin, "Memory Bandwidth and Machine Balance", 1995: every array four times the last cache,
each counted once per use, no write-allocate.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

from napkin.bench.device import Device, free_bytes, speaking_for_the_device
from napkin.bench.statistics import Rates, rates
from napkin.bench.timing import timed
from napkin.errors import DeviceError

SCALE = 3.0
ARRAY_GPU, ARRAY_CPU = 2**30, 2**28  # bytes; a GPU's last cache is 256 MiB at most
TIMES_THE_CACHE = 4
SHARE_OF_FREE = 8  # three arrays and the check stay well below it
BLOCK = 2**20  # random numbers, over and over: what they are does not matter to a memory
CACHES = "/sys/devices/system/cpu/cpu0/cache"


class Bandwidth(NamedTuple):
    """B/s of copy (c = a) and triad (c = a + s·b) over arrays of `array` bytes."""

    copy: Rates
    triad: Rates
    array: int
    unsteady: str  # what makes the figure doubtful, empty if nothing does

    @property
    def best(self) -> tuple[str, int, Rates]:
        """The faster of the two by its median: its name, the arrays it moves, its rates."""
        if self.copy.median >= self.triad.median:
            return "copy", 2, self.copy
        return "triad", 3, self.triad


def measure(
    device: Device,
    seconds: float,
    warm_up: float | None = None,
    ready: Callable[[], None] = lambda: None,
) -> Bandwidth:
    """Both, each over at least `seconds`. Raises DeviceError where a result is wrong."""
    with speaking_for_the_device(device.name), torch.inference_mode():
        array = array_bytes(device)
        block = torch.randn(BLOCK, generator=torch.Generator().manual_seed(0)).to(device.torch)
        a = block.repeat(array // block.nbytes)
        b, c = a.flip(0), torch.empty_like(a)

        def copy(_: int) -> None:
            c.copy_(a)

        def triad(_: int) -> None:
            torch.add(a, b, alpha=SCALE, out=c)

        found = []
        for call, right, moved in ((copy, a, 2), (triad, a + SCALE * b, 3)):
            c.fill_(float("nan"))
            call(0)
            if not torch.allclose(c, right, rtol=1e-5, atol=1e-5):
                raise DeviceError(f"{device.name}: {call.__name__} is wrong; no figure is given")
            times = timed(call, seconds, warm_up, device, ready=ready)
            found.append((rates(moved * array, times.calls, times.window), times.unsteady))
    (copied, doubt), (added, other_doubt) = found
    return Bandwidth(copied, added, array, doubt or other_doubt or _in_a_cache(device, array))


def array_bytes(device: Device) -> int:
    """Whole blocks, fewer where the free memory has no room."""
    wanted = ARRAY_GPU if device.is_gpu else ARRAY_CPU
    free = free_bytes(device)
    if free is not None:
        wanted = min(wanted, free // SHARE_OF_FREE)
    block = BLOCK * torch.float32.itemsize
    return max(wanted // block, 1) * block


def _in_a_cache(device: Device, array: int) -> str:
    # A virtual machine may show its host's whole cache: arrays four times that take minutes.
    cache = _last_cache(device)
    if TIMES_THE_CACHE * cache <= array:
        return ""
    sizes = f"the arrays are {array / 1e6:,.0f} MB and the last cache is {cache / 1e6:,.0f} MB"
    return f"{sizes}: part of the bandwidth may be the cache's"


def _last_cache(device: Device) -> int:
    """In bytes, 0 where the system does not say."""
    if device.is_gpu:
        return int(torch.cuda.get_device_properties(device.torch).L2_cache_size)
    sizes = []
    with suppress(OSError):
        sizes = [path.read_text().strip() for path in Path(CACHES).glob("index*/size")]
    return max((int(size[:-1]) * 1024 for size in sizes if size.endswith("K")), default=0)
