"""Why a measured figure may not be the device's best: said beside it, never a reason to hide it."""

from typing import TYPE_CHECKING

from napkin.questions.peak import ABOVE

if TYPE_CHECKING:
    from napkin.bench.nvml import State
    from napkin.bench.operators import Shape
    from napkin.bench.statistics import Rates

FELL = 0.02  # over the window, part by part
SPREAD_GPU, SPREAD_CPU = 0.05, 0.1  # of the middle half of the calls, over the median
BELOW = 0.3  # of the promised
SMALL_SIDE = 2048  # half of the last wave of tiles may stay empty
LOWERED = 0.98  # of the TDP


def of_calls(rates: "Rates", is_gpu: bool) -> list[str]:
    """What the calls beside each other say."""
    said = []
    if rates.fell > FELL:
        fell = f"the rate fell by {100 * rates.fell:.1f} % over the window, part by part"
        said.append(f"{fell}: power or temperature; a longer --warmup shows where it settles")
    if scattered(rates, is_gpu):
        apart = f"spreads over {100 * rates.spread:.0f} % of the median"
        said.append(f"the middle half of the calls {apart}: something disturbs it or its clock")
    return said


def scattered(rates: "Rates", is_gpu: bool) -> bool:
    """The calls are further apart than those of a device that does nothing else."""
    return rates.spread > (SPREAD_GPU if is_gpu else SPREAD_CPU)


def of_share(share: float, shape: "Shape", state: "State | None", tdp: float | None) -> list[str]:
    """What may explain a share of the promised peak that cannot be, or that is poor."""
    if share > ABOVE:
        return ["above the promised peak: is it the right row of the right device?"]
    if share >= BELOW:
        return []
    found = []
    if state is not None:
        if state.slowed_by:
            found.append(f"slowed by {state.slowed_by}")
        if state.others:
            found.append("other processes on this GPU")
        if tdp is not None and state.power_limit < LOWERED * tdp:
            found.append(f"a power limit of {state.power_limit:,.0f} W, its TDP is {tdp:,.0f} W")
    if min(shape) < SMALL_SIDE:
        found.append(f"a side of {min(shape)} in {shape}, which is small")
    causes = "; ".join(found) or "nothing that bench looks at explains it"
    return [f"below {BELOW:.0%} of the promised: {causes}"]
