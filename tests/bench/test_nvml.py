"""What is read of a GPU at work, from a library that stands in for NVIDIA's."""

import sys
from types import SimpleNamespace

import pytest
import torch

from napkin.bench import device
from napkin.bench.nvml import Watch

GPU = device.Device("cuda:0", "NVIDIA H100 80GB HBM3")


def library(reasons: list[int], processes: int = 1, **other: object) -> SimpleNamespace:
    """NVML with one GPU that gives these clock event reasons in turn."""
    given = iter(reasons)
    functions = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: {"GPU-f00": "handle"}[uuid],
        "nvmlDeviceGetClockInfo": lambda handle, clock: {"sm": 1755}[clock],
        "nvmlDeviceGetPowerUsage": lambda handle: 690_500,
        "nvmlDeviceGetTemperature": lambda handle, sensor: {"gpu": 64}[sensor],
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: next(given),
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [object()] * processes,
    }
    constants = {"NVML_CLOCK_SM": "sm", "NVML_TEMPERATURE_GPU": "gpu"}
    return SimpleNamespace(**functions | constants | other)


@pytest.fixture(autouse=True)
def _one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(uuid="f00")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)


def watched(monkeypatch: pytest.MonkeyPatch, nvml: object, looks: int) -> Watch:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    watch = Watch(GPU)
    for _ in range(looks):
        watch.look()
    return watch


def test_a_window_s_state_has_all_that_slowed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    state = watched(monkeypatch, library([0x1, 0x4, 0x20]), 3).state()
    assert state is not None
    assert (state.clock, state.power, state.temperature, state.power_limit) == (
        1755,
        690.5,
        64,
        700,
    )
    assert state.slowed_by == "its power limit and its temperature"
    assert state.is_unwell
    assert state.others == 0


@pytest.mark.parametrize(("reasons", "said"), [(0x1, ""), (0x4, "its power limit")])
def test_idling_and_the_power_limit_are_no_fault(
    reasons: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = watched(monkeypatch, library([reasons]), 1).state()
    assert state is not None
    assert (state.slowed_by, state.is_unwell) == (said, False)


@pytest.mark.parametrize(("processes", "others"), [(0, 0), (1, 0), (3, 2)])
def test_other_processes_are_counted(
    processes: int, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = watched(monkeypatch, library([0], processes), 1).state()
    assert state is not None
    assert state.others == others


def test_the_old_name_of_the_reasons_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = library([])
    del nvml.nvmlDeviceGetCurrentClocksEventReasons
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x80
    state = watched(monkeypatch, nvml, 1).state()
    assert state is not None
    assert state.slowed_by == "the power brake"


@pytest.mark.parametrize(
    "nvml",
    [
        None,  # not installed
        SimpleNamespace(),  # an old one
        library([]),  # a look that fails
    ],
)
def test_a_library_that_does_not_answer_costs_nothing(
    nvml: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watched(monkeypatch, nvml, 2).state() is None


def test_a_cpu_is_not_looked_at() -> None:
    watch = Watch(device.Device("cpu", "this CPU"))
    watch.look()
    assert watch.state() is None
