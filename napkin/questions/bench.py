"""What does this device really do?"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from napkin import __version__, parsing
from napkin import bench as measuring
from napkin.errors import DeviceError, NapkinError
from napkin.questions import measurement, options
from napkin.questions.answer import Report
from napkin.questions.options import Text
from napkin.questions.promised import DEFAULT_DTYPE
from napkin.specs import dtypes
from napkin.specs import measured as measurements

if TYPE_CHECKING:
    from napkin.bench.device import Device
    from napkin.bench.matmul import Measurement
    from napkin.bench.operators import Shape

SECONDS_GPU, SECONDS_CPU = 3.0, 1.0
INTERRUPTED = 130

T = TypeVar("T")


def bench(
    *,
    dtype: str = DEFAULT_DTYPE,
    device: str | None = None,
    size: Text | None = None,
    shape: str | None = None,
    scan: bool = False,
    seconds: Text | None = None,
    warmup: Text | None = None,
    bandwidth: bool = False,
    no_save: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> Report:
    """Matmuls, timed: an answer for each precision and shape that fits.

    Raises NapkinError where nothing can be measured as asked, DeviceError where the
    device cannot be used.
    """
    names = options.read("dtype", dtype, partial(_several, parse=dtypes.precision))
    sizes = [] if size is None else options.read("size", size, partial(_several, parse=_size))
    shapes = [] if shape is None else options.read("shape", shape, partial(_several, parse=_shape))
    for option, given_too in (("shape", bool(shapes)), ("scan", scan)):
        if given_too and (sizes or (shapes and option != "shape")):
            raise options.error(option, "other shapes are asked for already; leave one out")
    window = None if seconds is None else options.read("seconds", seconds, parsing.seconds)
    before = None if warmup is None else options.read("warmup", warmup, parsing.seconds)
    measuring.refuse_torchrun()
    measuring.require_torch()
    from napkin.bench import device as devices
    from napkin.bench import matmul, operators

    chosen = devices.choose(device)
    for name in names:
        operators.operator(chosen, name)
    window = window or (SECONDS_GPU if chosen.is_gpu else SECONDS_CPU)
    why_cpu = devices.why_no_gpu() if device is None else None
    run = measurement.Run(chosen, window, before, why_cpu, not no_save, bandwidth)
    asked = [(n, n, n) for n in sizes] + shapes
    scanned = matmul.SCAN_GPU if chosen.is_gpu else matmul.SCAN_CPU

    def of(name: str) -> "Sequence[Shape]":
        if scan or asked:
            return scanned if scan else [operators.Shape(*each) for each in asked]
        n = matmul.default_size(chosen, name)
        return [operators.Shape(n, n, n)]

    work = [(name, each) for name in names for each in of(name)]
    return _measured(run, work, scan, progress)


def _several(text: Text, parse: Callable[[str], T]) -> list[T]:
    """A comma separates scenarios."""
    parts = text.split(",") if isinstance(text, str) else [text]
    return [parse(part) for part in parts]  # type: ignore[arg-type]


def _size(text: Text) -> int:
    return parsing.whole(text, "8192, or several: 4096,8192")


def _shape(text: str) -> tuple[int, int, int]:
    parts = str(text).casefold().split("x")
    if len(parts) != 3:
        raise NapkinError(f"{text!r} is not MxNxK; write 8192x28672x8192")
    m, n, k = (parsing.whole(part, "8192x28672x8192") for part in parts)
    return m, n, k


def _measured(
    run: measurement.Run,
    work: "list[tuple[str, Shape]]",
    scan: bool,
    progress: Callable[[str], None],
) -> Report:
    from napkin.bench import bandwidth, matmul

    found: dict[tuple[str, Shape], Measurement] = {}
    skipped: list[str] = []

    def measure(dtype: str, shape: "Shape") -> None:
        progress(f"measuring {dtype} {shape} on {run.device.name} ...")
        found[dtype, shape] = matmul.measure(run.device, dtype, shape, run.seconds, run.warm_up)

    interrupted = False
    best: dict[str, Shape] = {}
    try:
        for dtype, shape in work:
            try:
                measure(dtype, shape)
            except DeviceError:
                raise
            except NapkinError as error:  # one that does not fit costs no other its figure
                skipped.append(str(error))
        best = _best(found)
        if scan:  # the best of many is best by luck too: the second figure counts
            for dtype, shape in best.items():
                measure(dtype, shape)
        if run.bandwidth and found:
            progress(f"measuring the memory of {run.device.name} ...")
            run.memory = bandwidth.measure(run.device, run.seconds, run.warm_up)
    except KeyboardInterrupt:
        if not found:
            raise
        interrupted = True
    finally:
        progress("")
    if not found:
        raise NapkinError(skipped[0])
    return _report(run, found, best, skipped, interrupted)


def _best(found: "Mapping[tuple[str, Shape], Measurement]") -> "dict[str, Shape]":
    """The fastest shape of each precision."""
    best: dict[str, Shape] = {}
    for (dtype, shape), each in found.items():
        if dtype not in best or each.rates.median > found[dtype, best[dtype]].rates.median:
            best[dtype] = shape
    return best


def _report(
    run: measurement.Run,
    found: "Mapping[tuple[str, Shape], Measurement]",
    best: "dict[str, Shape]",
    skipped: list[str],
    interrupted: bool,
) -> Report:
    saved: dict[tuple[str, Shape], Path | None] = {}
    unsaved: list[str] = []
    for each in best.items() if run.save and not interrupted else ():
        try:
            saved[each] = _saved(found[each], run.device, each[0])
        except NapkinError as error:  # the figure is still worth seeing
            unsaved.append(f"nothing was saved: {error}")
    report = Report(
        "bench",
        [
            measurement.answer(m, run, each[0], skipped, saved.get(each))
            for each, m in found.items()
        ],
    )
    report.warnings += unsaved
    if interrupted:
        report.warnings.append("interrupted: nothing was saved")
        report.exit_code = INTERRUPTED
    return report


def _saved(measured: "Measurement", device: "Device", dtype: str) -> Path | None:
    """Where the figure lies for the other questions; a doubtful one is not kept."""
    if measured.unsteady:
        return None
    from napkin.bench.device import TORCH

    rates, state = measured.rates, measured.state
    record = {
        "type": measurements.GPU if device.is_gpu else "cpu",
        "rate": rates.median,
        "least": rates.min,
        "most": rates.max,
        "shape": measured.shape,
        "samples": rates.samples,
        "error": measured.error,
        "torch": TORCH,
        "napkin": __version__,
    }
    if state is not None:
        record |= {
            "power_limit": f"{state.power_limit:g} W",
            "clock": f"{state.clock:g} MHz",
            "power": f"{state.power:.4g} W",
            "temperature": f"{state.temperature:g} °C",
            "slowed_by": state.slowed_by or "nothing",
        }
    return measurements.write(device.name, dtype, record)
