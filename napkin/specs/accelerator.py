"""What is known of one accelerator, each figure with the file and line that says it."""

from collections.abc import Mapping
from pathlib import Path

from napkin.errors import Lacking
from napkin.record import NOTHING, Record


class Figure(Record):
    """A value in base units and the `file:line` that says so."""

    value: float
    source: str


class Peak(Record):
    """One precision's FLOP/s (int8, int4: OP/s) per package; `dense` is the one to plan with."""

    dense: Figure
    sparse: Figure | None = None  # 2:4 structured sparsity
    dense_fp16_accumulate: Figure | None = None  # GeForce: twice the fp32-accumulate rate
    sparse_fp16_accumulate: Figure | None = None


class Interconnect(Record):
    """The link between packages, per package; `domain` is how many reach each other by it."""

    name: str
    bidirectional: Figure | None = None
    unidirectional: Figure | None = None
    unidirectional_per_peer: Figure | None = None  # where one peer gets only some of the links
    direction_not_stated: Figure | None = None  # a vendor's figure that does not say which
    per_node: Figure | None = None
    domain: Figure | None = None


class Accelerator(Record):
    """What its file says of one package (a MI250X is one package of two devices)."""

    key: str  # the file's name, which is what people type
    file: str  # as it is named to the user
    path: Path
    own: bool  # a user's file, not one that napkin ships
    name: str
    peak: dict[str, Peak]
    memory: Figure  # as printed, GB = 1e9
    vendor: str = ""
    architecture: str = ""
    form_factor: str = ""
    released: str = ""
    aliases: tuple[str, ...] = ()
    device_names: tuple[str, ...] = ()  # as the driver prints them
    devices_per_package: int = 1
    reported: Mapping[str, Figure] = NOTHING  # others' matmuls, FLOP/s
    accumulate: str = ""  # what the matrix units of `peak` add up in
    memory_visible: Figure | None = None  # as the driver reports it
    memory_torch: tuple[Figure, ...] = ()  # the range of totals that torch was seen to report
    memory_type: str = ""
    memory_bandwidth: Figure | None = None
    interconnect: Interconnect | None = None
    tdp: Figure | None = None
    sources: Mapping[str, tuple[str, ...]] = NOTHING  # per block of the file
    notes: tuple[str, ...] = ()

    @property
    def short_name(self) -> str:
        """`H100 SXM` for NVIDIA H100 SXM."""
        return self.name.removeprefix(f"{self.vendor} ").removeprefix("GeForce ")

    def peak_of(self, dtype: str, sparse: bool = False) -> Figure:
        """The promised FLOP/s. Raises Lacking, which names what the device has."""
        if dtype not in self.peak:
            has = [name for name in self.peak if not name.endswith("_vector")]
            what = f"{dtype} figure"
            raise Lacking(f"{self.key} has no {what}; it has {' '.join(has)}", what=what)
        peak = self.peak[dtype]
        if not sparse:
            return peak.dense
        if peak.sparse is None:
            has = [name for name, p in self.peak.items() if p.sparse]
            says = f"it has {' '.join(has)}" if has else "it has none at all"
            what = f"sparse {dtype} figure"
            raise Lacking(f"{self.key} has no {what}; {says}", what=what)
        return peak.sparse

    @property
    def names(self) -> tuple[str, ...]:
        """Everything it answers to."""
        return (self.key, *self.aliases, *self.device_names)
