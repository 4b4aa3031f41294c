"""The peak that an answer divides by: which device, precision and kind, from which file."""

from dataclasses import dataclass

from napkin import parsing, units
from napkin.errors import NapkinError
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.options import Text
from napkin.specs import accelerators, dtypes, here
from napkin.specs.accelerator import Accelerator

DEFAULT_HARDWARE = "h100-sxm"
DEFAULT_DTYPE = "bf16"
PROMISED, MEASURED = "promised", "measured"


@dataclass(slots=True)
class Promise:
    """P in FLOP/s/GPU, and what must be said beside it."""

    accelerator: Accelerator
    wanted: str  # the name that found it
    dtype: str
    P: Quantity
    kind: str  # `bf16 dense`
    inputs: Inputs

    @property
    def stated(self) -> bool:
        """Whether the user gave the rate, so that the file's figures are not at issue."""
        return bool(self.inputs["peak"] != PROMISED)

    def notes(self) -> list[str]:
        """How the device was found, and the figures that people know beside this one."""
        found = how_found(self.accelerator, self.wanted)
        return found if self.stated else found + self._beside()

    def warnings(self) -> list[str]:
        if not self.inputs["sparse"]:
            return []
        dense = _tera(self.accelerator.peak[self.dtype].dense.value)
        return [
            f"dense training cannot reach the 2:4 sparse figure; the dense one is {dense} TFLOP/s"
        ]

    def _beside(self) -> list[str]:
        row = self.accelerator.peak[self.dtype]
        notes = []
        if not self.inputs["sparse"]:
            dense = _tera(row.dense.value)
            if row.sparse:
                other = _tera(row.sparse.value)
                notes.append(f"{dense} TFLOP/s is dense; the datasheet's {other} is 2:4 sparse")
            reported = self.accelerator.reported.get(self.dtype)
            if reported:
                rate, share = _tera(reported.value), reported.value / row.dense.value
                notes.append(f"others measured up to {rate} TFLOP/s in large matmuls ({share:.0%})")
        if self.dtype.startswith("fp8"):
            notes.append("fp8 doubles the peak, not the speed: expect a lower MFU than in bf16")
        return notes


def _tera(rate: float) -> str:
    return units.figures(rate / 1e12)


def device(hardware: object) -> Accelerator:
    """The accelerator asked for."""
    return options.read("hardware", str(hardware), accelerators.find)


def how_found(accelerator: Accelerator, wanted: str) -> list[str]:
    """What to say of a name that stood for a variant, or of a file of the user's."""
    if wanted == here.NAME:
        found = here.device()
        return [f"here is {found.name} ({found.file}), taken as {accelerator.key}"]
    if accelerator.own:
        return [f"{accelerator.name} is your own file: {accelerator.file}"]
    if accelerators.alike(wanted) in map(accelerators.alike, accelerator.aliases):
        return [f"{wanted.strip()} is taken as {accelerator.key} ({accelerator.name})"]
    return []


def printed_memory(accelerator: Accelerator) -> Quantity:
    """M₁ in B/GPU: the figure on the box, GB = 1e9."""
    figure = accelerator.memory
    return given("M₁", "memory of one GPU", figure.value, "B/GPU", figure.source)


def promise(hardware: object, dtype: object, peak: Text, sparse: bool) -> Promise:
    """The figure that --hardware, --dtype, --sparse and --peak choose."""
    options.switch("sparse", sparse)
    accelerator = device(hardware)
    dtype = options.read("dtype", dtype, dtypes.precision)
    if peak == MEASURED:
        raise NapkinError(
            f"--peak: no measured {dtype} figure of {accelerator.key} is on file; "
            "write promised, or the rate that bench printed"
        )
    kind = "2:4 sparse" if sparse else "dense"
    if peak == PROMISED:
        figure = options.read("dtype", dtype, lambda d: accelerator.peak_of(d, sparse))
        P = given("P", f"{kind} {dtype} peak", figure.value, "FLOP/s/GPU", figure.source)
        said = f"{dtype} {kind}"
    else:
        if sparse:
            raise options.error(
                "sparse", "--peak (or NAPKIN_PEAK) says the rate; leave one of them out"
            )
        P = options.quantity("peak", peak, _rate_or_word, "P", "peak as given", "FLOP/s/GPU")
        said = f"{dtype} at {P}"
    asked = PROMISED if peak == PROMISED else P.value
    inputs = {"hardware": accelerator.key, "dtype": dtype, "peak": asked, "sparse": sparse}
    return Promise(accelerator, str(hardware), dtype, P, said, inputs)


def _rate_or_word(peak: Text) -> float:
    word = str(peak).strip()
    if word.isalpha() and word.casefold() not in ("nan", "inf", "infinity"):
        raise NapkinError(f"{word!r} is not a peak; write promised, measured or '989.4 TFLOP/s'")
    return parsing.rate(peak)
