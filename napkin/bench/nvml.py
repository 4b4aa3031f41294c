"""What NVIDIA's management library says of a GPU at work: read only.

Without the library, on another vendor's GPU and on a CPU nothing is said and every figure stands.
"""

from contextlib import suppress
from functools import reduce
from operator import or_
from statistics import median
from typing import Any, NamedTuple

import torch

from napkin.bench.device import Device

# Bits of the clock event reasons, as nvml.h numbers them; 0x1, idle, slows nothing.
POWER_LIMIT = 0x4  # what a large matmul does to a part at full power
SLOWED_BY = {
    POWER_LIMIT: "its power limit",
    0x8: "a hardware slowdown",
    0x20: "its temperature",
    0x40: "its temperature (hardware)",
    0x80: "the power brake",
}


class State(NamedTuple):
    """One look at a GPU, or many in one: median clock (MHz) and power (W), highest °C, the bits
    of all that slowed it, its enforced power limit (W), other processes that compute on it."""

    clock: float
    power: float
    temperature: float
    reasons: int
    power_limit: float
    others: int

    @property
    def slowed_by(self) -> str:
        """`its power limit and its temperature`, empty where nothing did."""
        return " and ".join(said for bit, said in SLOWED_BY.items() if self.reasons & bit)

    @property
    def is_unwell(self) -> bool:
        """Slowed by something else than the power limit that it always has."""
        return any(self.reasons & bit for bit in SLOWED_BY if bit != POWER_LIMIT)


class Watch:
    """Looks at one device while it works."""

    def __init__(self, device: Device) -> None:
        self._looks: list[State] = []
        self._nvml: Any = None
        if device.is_gpu:
            with suppress(Exception):  # whatever it is, it must not cost the figure
                import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]

                pynvml.nvmlInit()
                # By its UUID: NVML counts devices in an order of its own.
                uuid = torch.cuda.get_device_properties(device.torch).uuid
                self._handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
                self._nvml = pynvml

    def look(self) -> None:
        """To be called while the device is at work."""
        if self._nvml is not None:
            with suppress(Exception):
                self._looks.append(_state(self._nvml, self._handle))

    def state(self) -> State | None:
        """What all looks saw, None where there was none."""
        if not self._looks:
            return None
        clocks, powers, temperatures, reasons, limits, others = zip(*self._looks, strict=True)
        return State(
            median(clocks),
            median(powers),
            max(temperatures),
            reduce(or_, reasons),
            min(limits),
            max(others),
        )


def _state(nvml: Any, handle: Any) -> State:
    reasons = "nvmlDeviceGetCurrentClocksEventReasons"
    if not hasattr(nvml, reasons):  # its name before 2023
        reasons = "nvmlDeviceGetCurrentClocksThrottleReasons"
    processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return State(
        clock=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        power=nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        temperature=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        reasons=getattr(nvml, reasons)(handle),
        power_limit=nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
        others=max(0, len(processes) - 1),  # one of them is this one, where any is shown
    )
