"""Which device is measured, and why another one cannot be."""

import os
import platform
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from napkin.errors import DeviceError, NapkinError, first_line, quoted

TORCH = str(torch.__version__)


class Device(NamedTuple):
    """A torch device and the name its driver prints."""

    torch: str  # `cuda:0`, `cpu`
    name: str

    @property
    def is_gpu(self) -> bool:
        return self.torch != "cpu"


def choose(wanted: str | None, own: int = 0) -> Device:
    """The device asked for, else the GPU of one's own, else the CPU.

    Raises NapkinError for a device that bench does not know, DeviceError for one that
    cannot be used here.
    """
    if wanted is None:
        return _gpu(own) if why_no_gpu() is None else _cpu()
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
    return _gpu(own if match[1] is None else int(match[1]))


def of_rank(wanted: str | None, number: int, on_node: int) -> Device:
    """The GPU of a rank by its number among those on its node, or the CPU.

    Raises as `choose` does.
    """
    if wanted != "cpu" and why_no_gpu() is None:
        refuse_too_few(torch.cuda.device_count(), on_node)
        with speaking_for_the_device(f"cuda:{number}"):
            torch.cuda.set_device(number)
    return choose(wanted, number)


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
        said = first_line(error)
        if "busy or unavailable" in said:
            said += "; another process may hold it alone: nvidia-smi shows which"
        raise DeviceError(f"{name}: {said}") from None


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
        name = torch.cuda.get_device_name(index)
        if torch.version.hip is None:
            capability = torch.cuda.get_device_capability(index)
            refuse_not_built_for(name, capability, torch.cuda.get_arch_list())
        return Device(f"cuda:{index}", name)


def refuse_not_built_for(name: str, capability: tuple[int, int], built_for: list[str]) -> None:
    """Raises DeviceError for a GPU that no kernel of this torch runs on.

    A binary (`sm_80`) runs on its own generation, from its number on; `compute_90` is compiled
    for any later one.
    """
    own = capability[0] * 10 + capability[1]
    kinds = re.findall(r"\b(sm|compute)_(\d+)", " ".join(built_for))
    if kinds and not any(
        int(number) <= own and (kind == "compute" or int(number) // 10 == capability[0])
        for kind, number in kinds
    ):
        raise DeviceError(
            f"{name} is sm_{own}, and torch {TORCH} is built for {' '.join(built_for)}: "
            "install a torch that lists it"
        )


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


def in_short(warning: str, cuda: str | None) -> str:
    """torch's warning of a driver without its lines and places in C++."""
    found = re.search(r"driver .*too old \(found version (\d+)\)", warning, re.DOTALL)
    if found is None:
        return " ".join(warning.partition("(Triggered internally")[0].split())
    version = int(found[1])
    driver = f"{version // 1000}.{version % 1000 // 10}"
    return (
        f"the NVIDIA driver is too old: it knows CUDA {driver}, this torch is built for {cuda}; "
        "update the driver or install a torch for its CUDA"
    )


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
        return in_short(str(caught[0].message), torch.version.cuda)
    return f"torch {torch.__version__} finds no GPU or no driver"
