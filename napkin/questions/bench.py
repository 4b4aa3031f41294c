"""What does this device really do?"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from napkin import __version__, parsing, units
from napkin import bench as measuring
from napkin.accounting import compute
from napkin.errors import DeviceError, NapkinError
from napkin.quantity import Quantity, coefficient, define, given, observed
from napkin.questions import options
from napkin.questions.answer import Answer, Inputs, Report, Words
from napkin.questions.examples import TRAIN_TIME
from napkin.questions.options import Text
from napkin.questions.promised import DEFAULT_DTYPE
from napkin.questions.train_time import train_time
from napkin.specs import accelerators, dtypes
from napkin.specs import measured as measurements
from napkin.specs.accelerator import Accelerator

if TYPE_CHECKING:
    from napkin.bench.device import Device
    from napkin.bench.matmul import Measurement

SECONDS_GPU, SECONDS_CPU = 3.0, 1.0


def bench(
    *,
    dtype: str = DEFAULT_DTYPE,
    device: str | None = None,
    size: Text | None = None,
    seconds: Text | None = None,
    no_save: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> Report:
    """One square matmul per size, timed: an answer for each that fits.

    Raises NapkinError where nothing can be measured as asked, DeviceError where the
    device cannot be used.
    """
    name = options.read("dtype", dtype, dtypes.precision)
    sizes = options.read("size", size, _sizes)
    window = None if seconds is None else options.read("seconds", seconds, parsing.seconds)
    measuring.require_torch()
    from napkin.bench import device as devices
    from napkin.bench import matmul

    chosen = devices.choose(device)
    matmul.supported(chosen, name)
    window = window or (SECONDS_GPU if chosen.is_gpu else SECONDS_CPU)
    found: list[Measurement] = []
    skipped: list[str] = []
    try:
        for each in sizes or [matmul.default_size(chosen, name)]:
            progress(f"measuring {name} {each} x {each} x {each} on {chosen.name} ...")
            try:
                found.append(matmul.measure(chosen, name, each, window))
            except DeviceError:
                raise
            except NapkinError as error:  # one size that does not fit costs no other its figure
                skipped.append(str(error))
    finally:
        progress("")
    if not found:
        raise NapkinError(skipped[0])
    asked: Inputs = {"dtype": name, "device": chosen.torch, "seconds": window}
    unasked = device is None and not chosen.is_gpu
    best = max(found, key=lambda m: m.rates.median)
    saved = None if no_save else _saved(best, chosen, name)
    return Report(
        "bench",
        [
            _answer(m, chosen, name, asked, skipped, unasked, saved if m is best else None)
            for m in found
        ],
    )


def _saved(measured: "Measurement", device: "Device", dtype: str) -> Path | None:
    """Where the figure lies for the other questions; a doubtful one is not kept."""
    if measured.unsteady:
        return None
    from napkin.bench.device import conditions

    size, rates = measured.size, measured.rates
    record = {
        "type": measurements.GPU if device.is_gpu else "cpu",
        "rate": rates.median,
        "least": rates.min,
        "most": rates.max,
        "shape": f"{size}x{size}x{size}",
        "samples": rates.samples,
        "error": measured.error,
        **conditions(device),
        "napkin": __version__,
    }
    return measurements.write(device.name, dtype, record)


def _sizes(text: Text | None) -> list[int]:
    if text is None:
        return []
    parts = text.split(",") if isinstance(text, str) else [text]
    return [parsing.whole(part, "8192, or several: 4096,8192") for part in parts]


def _known(device: "Device") -> Accelerator | None:
    """The accelerator of that very name."""
    if not device.is_gpu:
        return None
    try:
        return accelerators.find(device.name)
    except NapkinError:
        return None


def _promised(accelerator: Accelerator | None, dtype: str) -> Quantity | None:
    """The dense peak of one torch device, None where the name or precision is not known."""
    if accelerator is None or dtype not in accelerator.peak:
        return None
    figure = accelerator.peak_of(dtype)
    label = f"dense {dtype} peak"
    several = accelerator.devices_per_package
    if several == 1:
        return given("P", label, figure.value, "FLOP/s", figure.source)
    package = given("P_pkg", f"{label} of a package", figure.value, "FLOP/s", figure.source)
    return define("P", f"{label} of one device", package / coefficient(several), "FLOP/s")


def _answer(
    measured: "Measurement",
    device: "Device",
    dtype: str,
    asked: Inputs,
    skipped: list[str],
    unasked: bool,
    saved: Path | None = None,
) -> Answer:
    rates, size = measured.rates, measured.size
    accelerator = _known(device)
    P = _promised(accelerator, dtype)
    m, n, k = (given(s, f"{s} of the matmul", size, "1", "--size") for s in ("m", "n", "k"))
    t = observed("t", f"median of {rates.samples:,} calls", rates.time, "s", "measured here")
    R = compute.rate(compute.matmul(m, n, k), t)
    share = None if P is None else compute.ratio(R, P)
    result = {
        "device": device.torch,
        "device_name": device.name,
        "dtype": dtype,
        "shape": [size, size, size],
        "flops_per_second": {"median": R.value, "min": rates.min, "max": rates.max},
        "samples": rates.samples,
        "promised": None if P is None else P.value,
        "ratio": None if share is None else share.value,
        "saved_to": None if saved is None else str(saved),
    }
    words = partial(_words, measured, device, accelerator, dtype, R, share, skipped, unasked, saved)
    return Answer("bench", asked | {"size": size}, result, words, (R if share is None else share,))


def _anew(hardware: str, dtype: str) -> list[str]:
    """The first question's answer, promised and measured side by side."""
    answer = train_time(params=70e9, tokens=15e12, gpus=1024, hardware=hardware, dtype=dtype)
    return answer.notes[:1]


def _words(
    measured: "Measurement",
    device: "Device",
    accelerator: Accelerator | None,
    dtype: str,
    R: Quantity,
    share: Quantity | None,
    skipped: list[str],
    unasked: bool,
    saved: Path | None,
) -> Words:
    size, rates = measured.size, measured.rates
    of = "share of the promised unknown"
    if share is not None:
        of = f"{share} of the promised {share.args[1]}"
    slow, fast = (units.humanize(each, "FLOP/s") for each in (rates.min, rates.max))
    notes = [
        f"slowest to fastest call: {slow} to {fast}; random data",
        f"checked: off by {measured.error:.1e} from fp64, relative",
    ]
    warnings = [f"skipped: {each}" for each in skipped]
    if not device.is_gpu:
        of = "CPU, no GPU found" if unasked else "CPU"
        notes.append("a CPU's figure is for trying things out: no datasheet promises one")
    elif accelerator is None or share is None:
        notes.append(f"no hardware file has a {dtype} figure of {device.name}")
    else:
        package = units.engineering(R.value * accelerator.devices_per_package, 4)
        line = f"{TRAIN_TIME} --hardware {accelerator.key} --dtype {dtype}"
        if saved is None:
            notes.append(f"use it: {line} --peak {package}")
        else:
            notes += [f"the first question anew: {line}", *_anew(accelerator.key, dtype)]
        if share.value > 1.05:
            warnings.append("above the promised peak: is it the right row of the right device?")
    if saved is not None:
        notes.append(f"saved to {saved}")
    if measured.unsteady:
        warnings.append(measured.unsteady)
    return Words(str(R), f"{dtype} {size:,}³ · {of} · {device.name}", notes, warnings)
