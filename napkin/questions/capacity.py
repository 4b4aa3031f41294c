"""The memory of one GPU: as its box says, as its driver or torch sees it, or as it is given."""

from napkin import parsing, units
from napkin.accounting import memory
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.options import Text
from napkin.questions.peak import DEFAULT_HARDWARE, device, how_found, printed_memory
from napkin.record import Record
from napkin.specs import accelerators
from napkin.specs.accelerator import Accelerator

FITS, TIGHT, DOES_NOT_FIT = "fits", "tight", "does not fit"
CONTEXT = 1.5e9  # B that CUDA's context takes before the first tensor
ROOMY = 0.94  # of what is left: closer to it, an allocator's fragmentation may end the run


class Limit(Record):
    """What a process on one device can fill, in B."""

    bytes: float
    roomy: float  # up to which nothing is tight
    source: str  # where that comes from


class Capacity(Record):
    """The memory of one GPU in B/GPU, and whose it is."""

    printed: Quantity
    visible: Quantity | None  # what the driver reports instead
    reserve: Quantity | None
    name: str  # `H100 SXM`, or `80 GB (74.51 GiB)`
    hardware: str | None
    notes: list[str]
    limit: Limit
    devices: int = 1  # of torch, in one package
    devices_meant: int = 1  # the same, where the name given is that of one of them
    wanted: str = ""  # that name

    def usable(self, capacity: Quantity) -> Quantity:
        return capacity if self.reserve is None else memory.usable(capacity, self.reserve)

    def verdict(self, peak: float) -> str:
        """Whether as many bytes fit on one device, in a word."""
        if peak <= self.limit.roomy:
            return FITS
        return TIGHT if peak <= self.limit.bytes else DOES_NOT_FIT

    def holds(self, peak: float) -> bool:
        return self.verdict(peak) != DOES_NOT_FIT


def capacity_of(hardware: str | None, size: Text | None, reserve: Text | None) -> Capacity:
    held = None
    if reserve is not None:
        held = options.quantity("reserve", reserve, parsing.share, "reserve", "held back", "%")
    less = "" if held is None else f" less {held}"
    if size is not None:
        label = "memory of one GPU"
        capacity = options.quantity("memory", size, parsing.memory, "M₁", label, "B/GPU")
        notes = [] if hardware is None else [f"--memory stands in for that of {hardware}"]
        limit = Limit(capacity.value, ROOMY * capacity.value, "--memory")
        name = units.gb_and_gib(capacity.value) + less
        return Capacity(capacity, None, held, name, None, notes, limit)
    wanted = DEFAULT_HARDWARE if hardware is None else hardware
    accelerator = device(wanted)
    notes = how_found(accelerator, wanted)
    seen = accelerator.memory_visible
    visible = None
    if seen is not None:
        label = "memory the driver reports"
        visible = given("M₁", label, seen.value, "B/GPU", seen.source)
    name = accelerator.short_name + less
    devices = accelerator.devices_per_package
    printed, limit = printed_memory(accelerator), _limit(accelerator)
    meant, key = accelerators.devices_meant(accelerator, wanted), accelerator.key
    return Capacity(printed, visible, held, name, key, notes, limit, devices, meant, wanted)


def _limit(accelerator: Accelerator) -> Limit:
    """Of one device: the least that torch was seen to report, else the driver, else the box."""
    printed, driver = accelerator.memory, accelerator.memory_visible
    if accelerator.memory_torch:
        whose, figure = "torch's", min(accelerator.memory_torch, key=lambda seen: seen.value)
    elif driver is not None:
        whose, figure = "the driver's", driver
    else:
        whose, figure = "the printed", printed
    devices = accelerator.devices_per_package
    seen = figure.value / devices
    left = seen - CONTEXT
    roomy = min(printed.value / devices, ROOMY * left)
    size, context = units.humanize(seen, "B"), units.humanize(CONTEXT, "B")
    return Limit(left, roomy, f"{whose} {size} less {context} of context")
