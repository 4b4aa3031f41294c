"""Which measured figure is kept for the other questions, and what is written beside it."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napkin import __version__
from napkin.bench import statistics
from napkin.errors import NapkinError
from napkin.questions.bench import doubts
from napkin.questions.bench.measurement import Run
from napkin.specs import measured as measurements

if TYPE_CHECKING:
    from napkin.bench.matmul import Measurement
    from napkin.bench.nvml import State


def saved(several: "Sequence[Measurement]", run: Run, dtype: str) -> tuple[Path | None, str]:
    """Where the slowest rank's figure lies now, or nowhere, and why where that may surprise.

    A figure that was doubtful on any rank is not kept. Raises NapkinError.
    """
    if any(each.unsteady for each in several):
        return None, ""
    rank = statistics.slowest([each.rates.median for each in several])
    slowest, device = several[rank], run.on(rank).device
    path = measurements.path_of(device.name, dtype)
    rates = slowest.rates
    if rates.median < _on_file(path):
        if run.sized or run.shaped:
            better = "of other shapes is higher; a run without --size and --shape replaces it"
            return None, f"not saved: the figure in {path} {better}"
        if doubts.scattered(rates, device.is_gpu):
            return None, f"not saved: the figure in {path} is higher, and this one is scattered"
    record = {
        "type": measurements.GPU if device.is_gpu else "cpu",
        "rate": rates.median,
        "least": rates.min,
        "most": rates.max,
        "shape": slowest.shape,
        "samples": rates.samples,
        "error": slowest.error,
        "torch": _torch(),
        "napkin": __version__,
    }
    if slowest.state is not None:
        record |= _of_state(slowest.state)
    if len(several) > 1:
        record |= {"ranks": len(several), "slowest_rank": rank}
    return measurements.write(device.name, dtype, record), ""


def _on_file(path: Path) -> float:
    """FLOP/s, 0 where there is nothing, or nothing that can be read, to lose."""
    with suppress(NapkinError):
        return measurements.read(path).rate
    return 0.0


def _torch() -> str:
    from napkin.bench.device import TORCH

    return TORCH


def _of_state(state: "State") -> dict[str, Any]:
    return {
        "power_limit": f"{state.power_limit:g} W",
        "clock": f"{state.clock:g} MHz",
        "power": f"{state.power:.4g} W",
        "temperature": f"{state.temperature:g} °C",
        "slowed_by": state.slowed_by or "nothing",
    }
