"""The peak that an answer divides by: which device, precision and kind, from which file."""

from collections.abc import Collection
from datetime import UTC, datetime

from napkin import parsing, units
from napkin.errors import Lacking, NapkinError
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.options import Text
from napkin.record import Record
from napkin.specs import accelerators, dtypes, measured, this_machine
from napkin.specs.accelerator import Accelerator, Figure
from napkin.specs.measured import Measured

DEFAULT_HARDWARE = "h100-sxm"
DEFAULT_DTYPE = "bf16"
ABOVE = 1.05  # a card may run a little over the clock that its datasheet assumes
# The inputs of every question that reads a peak.
COLUMNS = ("hardware", "dtype", "peak", "sparse")
PROMISED, MEASURED = "promised", "measured"


class Promise(Record):
    """P in FLOP/s/GPU, and what must be said beside it."""

    accelerator: Accelerator
    wanted: str  # the name that found it
    dtype: str
    P: Quantity
    kind: str  # `bf16 dense`
    inputs: Inputs
    here: Quantity | None = None  # what bench measured on this machine, in FLOP/s/GPU
    figure: Measured | None = None  # and its file
    broken: str = ""  # why that file cannot be read

    def readings(self, of_packages: Quantity, power: float = 1) -> list[str]:
        """Both, of an answer that doubles where the peak halves; that halves, of power -1."""
        devices = accelerators.devices_meant(self.accelerator, self.wanted)
        of_devices = of_packages.value if devices == 1 else of_packages.value * devices**power
        return both_readings(self.wanted, devices, of_packages, of_devices)

    @property
    def stated(self) -> bool:
        """Whether another rate answers, so that the promised figures are not at issue."""
        return bool(self.inputs["peak"] != PROMISED)

    def notes(self, achieved: float | None = None) -> list[str]:
        """How the device was found, and the figures that people know beside this one; what was
        achieved, in FLOP/s/GPU, as a share of what others measured."""
        found = how_found(self.accelerator, self.wanted)
        if self.figure is not None:
            found += [f"measured here: {measured_text(self.figure, self.accelerator)}"]
        return found if self.stated else found + self._beside(achieved)

    def warnings(self) -> list[str]:
        broken = [f"a measured figure cannot be read: {self.broken}"] if self.broken else []
        broken += [accelerators.unseen()] if accelerators.unseen() else []
        if not self.inputs["sparse"]:
            return broken
        dense = _tera(self.accelerator.peak[self.dtype].dense.value)
        return [
            f"dense training cannot reach the 2:4 sparse figure; the dense one is {dense} TFLOP/s",
            *broken,
        ]

    def _beside(self, achieved: float | None) -> list[str]:
        row = self.accelerator.peak[self.dtype]
        notes = []
        if not self.inputs["sparse"]:
            dense = _tera(row.dense.value)
            if row.sparse:
                other = _tera(row.sparse.value)
                notes.append(f"{dense} TFLOP/s is dense; the datasheet's {other} is 2:4 sparse")
            reported = self.accelerator.reported.get(self.dtype)
            if reported:
                rate = f"{_tera(reported.value)} TFLOP/s"
                if achieved is None:
                    share = units.humanize(reported.value / row.dense.value, "%")
                    notes.append(f"others measured up to {rate} in large matmuls ({share})")
                else:
                    share = units.humanize(achieved / reported.value, "%")
                    notes.append(f"{share} of the {rate} that others measured in large matmuls")
        if self.dtype.startswith("fp8"):
            notes.append("fp8 doubles the peak, not the speed: expect a lower MFU than in bf16")
        return notes


def _tera(rate: float) -> str:
    return units.figures(rate / 1e12)


def device(hardware: object) -> Accelerator:
    """The accelerator asked for."""
    return options.read("hardware", str(hardware), accelerators.find)


def how_found(accelerator: Accelerator, wanted: str, variants: Collection[str] = ()) -> list[str]:
    """What to say of a name that stood for one of the variants, or of a file of the user's."""
    notes = []
    if accelerators.alike(wanted) == this_machine.NAME:
        found = this_machine.device()
        notes.append(f"here is {found.name} ({found.file}), taken as {accelerator.key}")
    if accelerator.own:
        notes.append(f"{accelerator.name} is your own file: {accelerator.file}")
    elif accelerators.alike(wanted) in map(accelerators.alike, accelerator.aliases):
        others = [key for key in variants if key != accelerator.key]
        what = f"; others: {' '.join(others)}" if others else f" ({accelerator.name})"
        notes.append(f"{wanted.strip()} is taken as {accelerator.key}{what}")
    if accelerator.devices_per_package > 1:
        each = accelerator.devices_per_package
        notes.append(f"figures and --gpus count packages: one is {each} devices of torch or JAX")
    return notes


def both_readings(wanted: str, devices: int, of_packages: Quantity, of_devices: float) -> list[str]:
    """The answer where GPUs are packages, and where they are what the driver calls so: for a
    driver's name that each of a package's `devices` has."""
    if devices == 1:
        return []
    other = units.humanize(of_devices, of_packages.unit)
    return [
        f"{wanted.strip()} is what its driver calls each of a package's {devices} devices: "
        f"{of_packages} if GPUs are packages, {other} if they are those devices"
    ]


def printed_memory(accelerator: Accelerator) -> Quantity:
    """M₁ in B/GPU: the figure on the box, GB = 1e9."""
    figure = accelerator.memory
    return given("M₁", "memory of one GPU", figure.value, "B/GPU", figure.source)


def measured_text(figure: Measured, accelerator: Accelerator) -> str:
    """Which figure it is, from when, and why it may not hold."""
    doubts = figure.doubts(datetime.now(UTC))
    peak = accelerator.peak.get(figure.dtype)
    if peak and figure.rate * accelerator.devices_per_package > ABOVE * peak.dense.value:
        doubts.append("it is above the promised peak, so one of the two is wrong")
    rate = _tera(figure.rate)
    parts = [f"{rate} TFLOP/s in {figure.shape} on {figure.date[:10]}", str(figure.path), *doubts]
    return "; ".join(parts)


def promise(hardware: object, wanted: object, peak: Text, sparse: bool) -> Promise:
    """The figure that --hardware, --dtype (`wanted`, or None), --sparse and --peak choose."""
    options.switch("sparse", sparse)
    hardware = DEFAULT_HARDWARE if hardware is None else hardware
    accelerator = device(hardware)
    dtype = options.read("dtype", DEFAULT_DTYPE if wanted is None else wanted, dtypes.precision)
    if peak not in (PROMISED, MEASURED):
        return _stated(accelerator, str(hardware), dtype, peak, sparse)
    figure, broken = _on_file(accelerator, dtype)
    here = None if figure is None else _measured(figure, accelerator)
    inputs = {"hardware": accelerator.key, "dtype": dtype, "peak": peak, "sparse": sparse}
    if peak == MEASURED:
        if sparse:
            raise options.error("sparse", "no sparse figure is ever measured; leave it out")
        if figure is None or here is None:
            problem = broken or _nothing_measured(accelerator, dtype)
            raise Lacking(problem, what=f"measured {dtype} figure").within("--peak")
        P = given("P", here.label, here.value, here.unit, here.source)
        kind = f"{dtype} measured here"
        return Promise(accelerator, str(hardware), dtype, P, kind, inputs, None, figure)
    promised = _promised(accelerator, dtype, sparse, is_default=wanted is None)
    kind = "2:4 sparse" if sparse else "dense"
    P = given("P", f"{kind} {dtype} peak", promised.value, "FLOP/s/GPU", promised.source)
    if sparse:  # what was measured is dense
        here, figure = None, None
    words = f"{dtype} {kind}"
    return Promise(accelerator, str(hardware), dtype, P, words, inputs, here, figure, broken)


def _promised(accelerator: Accelerator, dtype: str, sparse: bool, is_default: bool) -> Figure:
    try:
        return accelerator.peak_of(dtype, sparse)
    except NapkinError as error:
        because = f"{dtype} is the default, and " if is_default else ""
        raise error.with_lines(f"{because}{error}").within("--dtype") from None


def _stated(accelerator: Accelerator, wanted: str, dtype: str, peak: Text, sparse: bool) -> Promise:
    if sparse:
        raise options.error(
            "sparse", "--peak (or NAPKIN_PEAK) says the rate; leave one of them out"
        )
    P = options.quantity("peak", peak, _rate_or_word, "P", "peak as given", "FLOP/s/GPU")
    inputs = {"hardware": accelerator.key, "dtype": dtype, "peak": P.value, "sparse": False}
    return Promise(accelerator, wanted, dtype, P, f"{dtype} at {P}", inputs)


def _on_file(accelerator: Accelerator, dtype: str) -> tuple[Measured | None, str]:
    try:
        return measured.find(accelerator, dtype), ""
    except NapkinError as error:
        return None, str(error)


def _measured(figure: Measured, accelerator: Accelerator) -> Quantity:
    """P_here in FLOP/s/GPU: of a package, as the promised figure is."""
    rate = figure.rate * accelerator.devices_per_package
    return given("P_here", f"measured {figure.dtype} peak", rate, "FLOP/s/GPU", figure.source)


def _nothing_measured(accelerator: Accelerator, dtype: str) -> str:
    return (
        f"no measured {dtype} figure of {accelerator.key} is on file; on that device, "
        f"napkin bench --dtype {dtype} measures one"
    )


def _rate_or_word(peak: Text) -> float:
    word = str(peak).strip()
    if word.isalpha() and word.casefold() not in ("nan", "inf", "infinity"):
        raise NapkinError(f"{word!r} is not a peak; write promised, measured or '989.4 TFLOP/s'")
    return parsing.rate(peak)
