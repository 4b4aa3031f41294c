"""Times all-reduces of all ranks, and checks each sum exactly.

Every call sums the same whole numbers anew: a sum that is summed again grows without end.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from napkin.bench.device import Device, free_bytes, speaking_for_the_device
from napkin.bench.ranks import Ranks
from napkin.errors import DeviceError

SIZES = tuple(2**20 * 4**step for step in range(6))  # bytes of one rank's buffer, to 1 GiB
LARGEST_CPU = 2**26
SHARE_OF_FREE = 8  # the buffer, what fills it and the check stay well below it
WARM_UP, REPEATS = 5, 20  # as nccl-tests does
BLOCK = 4093  # a prime: a part of the sum in another's place does not go unnoticed
NCCL_WAITS = timedelta(minutes=2)


class Reduced(NamedTuple):
    """A buffer's bytes, and the slowest rank's median time in s."""

    bytes: int
    time: float


def measure(device: Device, ranks: Ranks) -> list[Reduced]:
    """From 1 MiB in steps of 4. Raises DeviceError where a sum is wrong."""
    free = [each for each in ranks.together(partial(free_bytes, device)) if each is not None]
    most = SIZES[-1] if device.is_gpu else LARGEST_CPU
    most = min([most, *(each // SHARE_OF_FREE for each in free)])
    sizes = [size for size in SIZES if size <= most] or SIZES[:1]
    with _group(device, ranks) as group:
        return [
            Reduced(size, max(ranks.together(partial(_median, size, device, ranks, group))))
            for size in sizes
        ]


@contextmanager
def _group(device: Device, ranks: Ranks) -> Iterator[Any]:
    """The ranks over NCCL on GPUs, over the gloo they talk by on a CPU."""
    if not device.is_gpu:
        yield None
        return

    made: list[Any] = []

    def nccl() -> None:
        with speaking_for_the_device(device.name):
            made.append(dist.new_group(backend="nccl", timeout=NCCL_WAITS))

    ranks.together(nccl)
    yield made[0]
    dist.destroy_process_group(made[0])


def _median(size: int, device: Device, ranks: Ranks, group: Any) -> float:
    with speaking_for_the_device(device.name), torch.inference_mode():
        own = repeated(whole_numbers(ranks.rank), size, device)
        buffer = torch.empty_like(own)
        ranks.wait()  # one without the memory says so here, and none waits for its part of a sum
        calls = _times(
            lambda: buffer.copy_(own), lambda: dist.all_reduce(buffer, group=group), device
        )
        total = sum(whole_numbers(rank) for rank in range(ranks.size))
        refuse_wrong(buffer, repeated(torch.as_tensor(total), size, device), device)
    return median(calls)


def whole_numbers(rank: int) -> torch.Tensor:
    """A rank's own, from -2 to 2: bf16 sums those of some hundred ranks exactly."""
    return torch.randint(-2, 3, (BLOCK,), generator=torch.Generator().manual_seed(rank))


def repeated(block: torch.Tensor, size: int, device: Device) -> torch.Tensor:
    """`size` bytes of bf16 that hold the block over and over."""
    count = size // torch.bfloat16.itemsize
    block = block.to(device.torch, torch.bfloat16)
    return block.repeat(-(-count // len(block)))[:count]


def refuse_wrong(found: torch.Tensor, right: torch.Tensor, device: Device) -> None:
    """Raises DeviceError where a sum is not exact."""
    if not torch.equal(found, right):
        raise DeviceError(
            f"{device.name}: the sum of an all-reduce of {found.nbytes >> 20} MiB is wrong; "
            "no figure is given"
        )


def _times(fill: Callable[[], object], call: Callable[[], object], device: Device) -> list[float]:
    """Of each call after the warm-up; filling the buffer is not in it."""
    if not device.is_gpu:
        return [_by_clock(fill, call) for _ in range(WARM_UP + REPEATS)][WARM_UP:]
    event: Any = torch.cuda.Event
    with torch.cuda.device(device.torch):
        marks = [[event(enable_timing=True) for _ in range(2)] for _ in range(WARM_UP + REPEATS)]
        for started, ended in marks:
            fill()
            started.record()
            call()
            ended.record()
        torch.cuda.synchronize()
        return [started.elapsed_time(ended) / 1e3 for started, ended in marks[WARM_UP:]]


def _by_clock(fill: Callable[[], object], call: Callable[[], object]) -> float:
    fill()
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
