"""The peak that an answer divides by: which device, precision and kind, from which file."""

from dataclasses import dataclass, field

from napkin import parsing, units
from napkin.errors import NapkinError, printable
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.options import Text
from napkin.specs import accelerators, dtypes
from napkin.specs.accelerator import Accelerator

DEFAULT_HARDWARE = "h100-sxm"
DEFAULT_DTYPE = "bf16"
PROMISED, MEASURED = "promised", "measured"


@dataclass(slots=True)
class Promise:
    """P in FLOP/s/GPU, and what must be said beside it."""

    accelerator: Accelerator
    dtype: str
    P: Quantity
    kind: str  # `bf16 dense`
    inputs: Inputs
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def memory(self) -> Quantity:
        """M₁ in B/GPU, as printed."""
        return printed_memory(self.accelerator)


def printed_memory(accelerator: Accelerator) -> Quantity:
    """M₁ in B/GPU: the figure on the box, GB = 1e9."""
    figure = accelerator.memory
    return given("M₁", "memory of one GPU", figure.value, "B/GPU", figure.source)


def device(hardware: object) -> tuple[Accelerator, list[str]]:
    """The accelerator asked for, and what to say of how it was found."""
    wanted = str(hardware)
    found = options.read("hardware", wanted, accelerators.find)
    notes = []
    if found.own:
        notes.append(f"{printable(found.name)} is your own file: {found.file}")
    elif accelerators.alike(wanted) in map(accelerators.alike, found.aliases):
        notes.append(f"{wanted.strip()} is taken as {found.key} ({found.name})")
    return found, notes


def promise(hardware: object, dtype: object, peak: Text, sparse: bool) -> Promise:
    """The figure that --hardware, --dtype, --sparse and --peak choose."""
    options.switch("sparse", sparse)
    accelerator, notes = device(hardware)
    dtype = options.read("dtype", dtype, dtypes.precision)
    if peak == MEASURED:
        raise NapkinError(
            f"--peak: no measured {dtype} figure of {accelerator.key} is on file; "
            "write promised, or the rate that bench printed"
        )
    if peak != PROMISED:
        return _stated(accelerator, dtype, peak, sparse, notes)
    figure = options.read("dtype", dtype, lambda d: accelerator.peak_of(d, sparse))
    kind = "2:4 sparse" if sparse else "dense"
    result = Promise(
        accelerator,
        dtype,
        given("P", f"{kind} {dtype} peak", figure.value, "FLOP/s/GPU", figure.source),
        f"{dtype} {kind}",
        {"hardware": accelerator.key, "dtype": dtype, "peak": PROMISED, "sparse": sparse},
        notes,
    )
    _beside(result, sparse)
    return result


def _stated(
    accelerator: Accelerator, dtype: str, peak: Text, sparse: bool, notes: list[str]
) -> Promise:
    if sparse:
        raise NapkinError(
            "--sparse: --peak (or NAPKIN_PEAK) already says the rate; leave one of the two out"
        )
    P = options.quantity("peak", peak, _rate_or_word, "P", "peak as given", "FLOP/s/GPU")
    inputs = {"hardware": accelerator.key, "dtype": dtype, "peak": P.value, "sparse": False}
    return Promise(accelerator, dtype, P, f"{dtype} at {P}", inputs, notes)


def _rate_or_word(peak: Text) -> float:
    word = str(peak).strip()
    if word.isalpha() and word.casefold() not in ("nan", "inf", "infinity"):
        raise NapkinError(f"{word!r} is not a peak; write promised, measured or '989.4 TFLOP/s'")
    return parsing.rate(peak)


def _beside(promise: Promise, sparse: bool) -> None:
    """What the datasheet's other figure is, since it is the one people know."""
    row = promise.accelerator.peak[promise.dtype]
    dense = units.figures(row.dense.value / 1e12)
    if sparse:
        promise.warnings.append(
            f"dense training cannot reach the 2:4 sparse figure; the dense one is {dense} TFLOP/s"
        )
    elif row.sparse:
        other = units.figures(row.sparse.value / 1e12)
        promise.notes.append(f"{dense} TFLOP/s is dense; the datasheet's {other} is 2:4 sparse")
    reported = promise.accelerator.reported.get(promise.dtype)
    if reported is not None and not sparse:
        share = f"{reported.value / row.dense.value:.0%}"
        rate = units.figures(reported.value / 1e12)
        promise.notes.append(f"others measured up to {rate} TFLOP/s with large matmuls ({share})")
    if promise.dtype.startswith("fp8"):
        promise.notes.append("fp8 doubles the peak, not the speed: expect a lower MFU than in bf16")
