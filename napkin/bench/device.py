"""Which device is measured, and why another one cannot be."""

import os
import platform
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from napkin.bench.ranks import Ranks
from napkin.errors import DeviceError, NapkinError, quoted

TORCH = str(torch.__version__)


class Device(NamedTuple):
    """A torch device and the name its driver prints."""

    torch: str  # `cuda:0`, `cpu`
    name: str

    @property
    def is_gpu(self) -> bool:
        return self.torch != "cpu"


def choose(wanted: str | None) -> Device:
    """The device asked for, else the first GPU, else the CPU.

    Raises NapkinError for a device that bench does not know, DeviceError for one that
    cannot be used here.
    """
    if wanted is None:
        return _gpu(0) if why_no_gpu() is None else _cpu()
    if wanted == "cpu":
        return _cpu()
    match = re.fullmatch(r"cuda(?::([0-9]{1,3}))?", wanted)
    if match is None:
        raise NapkinError(f"--device: {quoted(wanted)} is not measured; write cuda, cuda:1 or cpu")
    reason = why_no_gpu()
    if reason is not None:
        raise DeviceError(
            f"--device: {wanted} cannot be used: {reason}; --device cpu measures the CPU"
        )
    return _gpu(int(match[1] or 0))


def of_rank(wanted: str | None, ranks: Ranks) -> Device:
    """The rank's own GPU, by its number on the node, or the CPU. Raises as `choose` does."""
    found = choose(wanted)
    if ranks.size == 1 or not found.is_gpu:
        return found
    refuse_too_few(torch.cuda.device_count(), ranks.on_node)
    return _gpu(ranks.local_rank)


def refuse_too_few(gpus: int, ranks: int) -> None:
    """Raises NapkinError: two ranks on one GPU would measure each other, and NCCL hang."""
    if ranks > gpus:
        there = "there is 1 GPU" if gpus == 1 else f"there are {gpus} GPUs"
        raise NapkinError(
            f"torchrun started {ranks} ranks and {there}; write --nproc-per-node {gpus}"
        )


def threads() -> int:
    """That an operator takes on the CPU."""
    return torch.get_num_threads()


@contextmanager
def speaking_for_the_device(name: str) -> Iterator[None]:
    """What torch raises of a device (busy, lost, out of order) as one line."""
    try:
        yield
    except RuntimeError as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise DeviceError(f"{name}: {first}") from None


def free_bytes(device: Device) -> int | None:
    """Free memory in bytes, None where the system does not say."""
    if device.is_gpu:
        torch.cuda.empty_cache()  # what an earlier size took is free again
        return int(torch.cuda.mem_get_info(device.torch)[0])
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":") for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):  # not Linux
        return None


def _gpu(index: int) -> Device:
    there = torch.cuda.device_count()
    if index >= there:
        last = f"cuda:0 to cuda:{there - 1}" if there > 1 else "cuda:0"
        raise NapkinError(f"--device: there is no cuda:{index}; there is {last}")
    with speaking_for_the_device(f"cuda:{index}"):
        return Device(f"cuda:{index}", torch.cuda.get_device_name(index))


def _cpu() -> Device:
    name = platform.processor() or platform.machine() or "CPU"
    try:
        with open("/proc/cpuinfo") as file:
            names = [
                line.partition(":")[2].strip() for line in file if line.startswith("model name")
            ]
        name = names[0] if names else name
    except OSError:  # not Linux
        pass
    return Device("cpu", name)


def why_no_gpu() -> str | None:
    """What keeps torch from a GPU here, None where nothing does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            return None
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is built for the CPU only"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']!r} hides every GPU"
    if caught:
        return " ".join(str(caught[0].message).split())
    return f"torch {torch.__version__} finds no GPU or no driver"
