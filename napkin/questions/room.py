"""The memory of one GPU: as its box says, as its driver reports, or as it is given."""

from dataclasses import dataclass

from napkin import parsing, units
from napkin.accounting import memory
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.options import Text
from napkin.questions.promised import DEFAULT_HARDWARE, device, how_found, printed_memory
from napkin.specs import accelerators


@dataclass(slots=True)
class Room:
    """The memory of one GPU in B/GPU, and whose it is."""

    capacity: Quantity
    visible: Quantity | None  # what the driver reports instead
    reserve: Quantity | None
    said: str  # `H100 SXM`, or `80 GB (74.51 GiB)`
    hardware: str | None
    notes: list[str]
    devices: int = 1  # of torch, in one package
    devices_meant: int = 1  # the same, where the name given is that of one of them
    wanted: str = ""  # that name

    def usable(self, capacity: Quantity) -> Quantity:
        return capacity if self.reserve is None else memory.usable(capacity, self.reserve)

    @property
    def of_one_device(self) -> float:
        """In B: what a rank of torch has."""
        return self.capacity.value / self.devices

    def holds(self, peak: float) -> bool:
        """Whether as many bytes fit on one device, as the figure on the box says."""
        return peak <= self.of_one_device


def room(hardware: str | None, size: Text | None, reserve: Text | None) -> Room:
    held = None
    if reserve is not None:
        held = options.quantity("reserve", reserve, parsing.share, "reserve", "held back", "%")
    less = "" if held is None else f" less {held}"
    if size is not None:
        label = "memory of one GPU"
        capacity = options.quantity("memory", size, parsing.memory, "M₁", label, "B/GPU")
        notes = [] if hardware is None else [f"--memory stands in for that of {hardware}"]
        return Room(capacity, None, held, units.gb_and_gib(capacity.value) + less, None, notes)
    wanted = DEFAULT_HARDWARE if hardware is None else hardware
    accelerator = device(wanted)
    notes = how_found(accelerator, wanted)
    seen = accelerator.memory_visible
    visible = seen and given("M₁", "memory the driver reports", seen.value, "B/GPU", seen.source)
    said = accelerator.short_name + less
    devices = accelerator.devices_per_package
    meant = accelerators.devices_meant(accelerator, wanted)
    printed = printed_memory(accelerator)
    key = accelerator.key
    return Room(printed, visible, held, said, key, notes, devices, meant, wanted)
