"""What does this device really do?"""

from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from napkin import bench as measuring
from napkin import parsing
from napkin.bench import ranks as together
from napkin.bench import statistics
from napkin.bench.ranks import Ranks
from napkin.errors import DeviceError, NapkinError, quoted
from napkin.questions import options, workload
from napkin.questions.answer import Answer, Report
from napkin.questions.bench import gemms, keeping, measurement, members
from napkin.questions.options import Text
from napkin.questions.peak import DEFAULT_DTYPE
from napkin.specs import dtypes, models

if TYPE_CHECKING:
    from napkin.bench.device import Device
    from napkin.bench.matmul import Measurement
    from napkin.bench.operators import Shape

    # Of each precision and shape, what each rank measured.
    Measurements = dict[tuple[str, Shape], Sequence[Measurement]]

# On a CPU, on a GPU.
SECONDS, SECONDS_OF_MANY = (1.0, 3.0), (0.1, 0.5)
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
    model: str | None = None,
    seq_len: Text | None = None,
    micro_batch: Text | None = None,
    no_save: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> Report:
    """Matmuls, timed: an answer for each precision and shape that fits.

    Raises NapkinError where nothing can be measured as asked, DeviceError where the
    device cannot be used.
    """
    names = options.read("dtype", dtype, partial(_several, parse=_precision))
    sizes = [] if size is None else options.read("size", size, partial(_several, parse=_size))
    shapes = [] if shape is None else options.read("shape", shape, partial(_several, parse=_shape))
    ways = {"size": sizes, "shape": shapes, "scan": scan, "model": model}
    twice = [option for option, asked in ways.items() if asked][1:]
    if twice:
        raise options.error(twice[0], "other shapes are asked for already; leave one out")
    of_model = _of_model(model, seq_len, micro_batch, bandwidth)
    window = None if seconds is None else options.read("seconds", seconds, parsing.seconds)
    before = None if warmup is None else options.read("warmup", warmup, parsing.seconds)
    members.refuse_numbered(device)
    progress("loading torch ...")
    measuring.require_torch()
    from napkin.bench import device as devices
    from napkin.bench import matmul, operators

    asked = {
        "dtype": dtype,
        "size": size,
        "shape": shape,
        "scan": scan,
        "seconds": seconds,
        "warmup": warmup,
        "bandwidth": bandwidth,
    }
    with together.joined() as ranks:
        members.refuse_different(ranks, asked)
        who = members.everyone(ranks, device)
        chosen = who[ranks.rank].device
        skipped: list[str] = []
        names = _had(names, chosen, ranks, skipped)
        usual = SECONDS if of_model is None else SECONDS_OF_MANY
        run = measurement.Run(
            chosen,
            window or usual[chosen.is_gpu],
            before,
            devices.why_no_gpu() if device is None else None,
            not no_save,
            bandwidth,
            sized=bool(sizes),
            shaped=bool(shapes),
            ranks=ranks,
            members=who,
            threads=devices.threads(),
        )
        if of_model is not None:
            return _of_each(of_model, run, names, skipped, progress)
        given = [(n, n, n) for n in sizes] + shapes
        scanned = matmul.SCAN_GPU if chosen.is_gpu else matmul.SCAN_CPU

        def of(name: str) -> "Sequence[Shape]":
            if scan or given:
                return scanned if scan else [operators.Shape(*each) for each in given]
            n = ranks.together(lambda: matmul.default_size(chosen, name))[0]
            return [operators.Shape(n, n, n)]

        work = [(name, each) for name in names for each in of(name)]
        return _measured(run, work, scan, skipped, progress)


def _of_model(
    model: str | None, seq_len: Text | None, micro_batch: Text | None, bandwidth: bool
) -> gemms.Work | None:
    """The matmuls of --model."""
    if model is None:
        for option, text in (("seq_len", seq_len), ("micro_batch", micro_batch)):
            if text is not None:
                raise options.error(option, "goes with --model")
        return None
    if together.here().size > 1:
        raise options.error("model", "is measured on one device; run it without torchrun")
    if bandwidth:
        raise options.error("bandwidth", "stands alone; leave --model out")
    shape = options.read("model", str(model), models.find)
    tokens, _, _ = workload.sequence(shape, seq_len)
    rows = 1 if micro_batch is None else options.read("micro_batch", micro_batch, parsing.whole)
    return gemms.work(shape, tokens, rows)


def _of_each(
    work: gemms.Work,
    run: measurement.Run,
    dtypes: Sequence[str],
    skipped: list[str],
    progress: Callable[[str], None],
) -> Report:
    answers: list[Answer] = []
    stops: list[BaseException] = []
    lacking = len(skipped)
    with _stopping(answers, stops, progress):
        for dtype in dtypes:
            with _skipping(skipped):
                answers.append(gemms.measure(work, run, dtype, skipped, progress))
    if not answers:
        raise NapkinError(skipped[lacking])
    return _stopped(Report("bench", answers), stops)


@contextmanager
def _skipping(skipped: list[str]) -> Iterator[None]:
    """What does not fit costs no other its figure."""
    try:
        yield
    except DeviceError:
        raise
    except NapkinError as error:
        skipped.append(str(error))


@contextmanager
def _stopping(
    found: Sized, stops: list[BaseException], progress: Callable[[str], None]
) -> Iterator[None]:
    """Ctrl-C, or a device that fails, ends the measuring; what was found before is not lost."""
    try:
        yield
    except (KeyboardInterrupt, DeviceError, OSError) as error:
        if not found:
            raise
        stops.append(error)
    finally:
        progress("")


def _stopped(report: Report, stops: Sequence[BaseException], saved: bool = False) -> Report:
    for error in stops:
        interrupted = isinstance(error, KeyboardInterrupt)
        what = "not every figure" if saved else "nothing"
        why = f"{'interrupted' if interrupted else error}: {what} was saved"
        report.warnings = [*report.warnings, why]
        report.exit_code = INTERRUPTED if interrupted else DeviceError.exit_code
    return report


def is_another_rank() -> bool:
    """One of several for which the first speaks."""
    return together.here().rank > 0


def _had(dtypes: Sequence[str], device: "Device", ranks: Ranks, skipped: list[str]) -> list[str]:
    """The precisions that every rank's device has; why the others are `skipped`.

    Raises NapkinError where there is none.
    """
    from napkin.bench import operators

    def lacking() -> dict[str, str]:
        reasons: dict[str, str] = {}
        for dtype in dtypes:
            try:
                operators.operator(device, dtype)
            except DeviceError:
                raise
            except NapkinError as error:
                reasons[dtype] = str(error)
        return reasons

    reasons = {dtype: why for each in ranks.together(lacking) for dtype, why in each.items()}
    had = [dtype for dtype in dtypes if dtype not in reasons]
    if not had:  # said on every rank, with the one that lacks it
        ranks.together(lambda: operators.operator(device, dtypes[0]))
    skipped += reasons.values()
    return had


def _several(text: Text, parse: Callable[[str], T]) -> list[T]:
    """A comma separates scenarios."""
    parts = text.split(",") if isinstance(text, str) else [text]
    return [parse(part) for part in parts]  # type: ignore[arg-type]


def _precision(text: str) -> str:
    with suppress(NapkinError):
        name = dtypes.precision(text)
        if name in measuring.PRECISIONS:
            return name
    known = " ".join(measuring.PRECISIONS)
    raise NapkinError(f"bench does not measure {quoted(text)}; write one of {known}")


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
    skipped: list[str],
    progress: Callable[[str], None],
) -> Report:
    from napkin.bench import bandwidth, matmul

    found: Measurements = {}
    stops: list[BaseException] = []
    lacking = len(skipped)
    ranks = run.ranks

    def measure(dtype: str, shape: "Shape") -> None:
        progress(f"measuring {dtype} {shape} on {run.device.name} ...")
        asked = run.device, dtype, shape, run.seconds, run.warm_up, ranks.wait
        found[dtype, shape] = ranks.together(lambda: matmul.measure(*asked))

    best: dict[str, Shape] = {}
    with _stopping(found, stops, progress):
        for dtype, shape in work:
            with _skipping(skipped):
                measure(dtype, shape)
        best = _best(found)
        if scan:  # the best of many is best by luck too: the second figure counts
            for dtype, shape in best.items():
                measure(dtype, shape)
        if run.bandwidth and found:
            progress(f"measuring the memory of {run.device.name} ...")
            again = run.device, run.seconds, run.warm_up, ranks.wait
            several = ranks.together(lambda: bandwidth.measure(*again))
            run.memory = min(several, key=lambda each: each.best[2].median)
        if ranks.size > 1 and found:
            from napkin.bench import all_reduce

            progress(f"measuring the all-reduce of {ranks.size} ranks ...")
            run.all_reduce = all_reduce.measure(run.device, ranks)
    if not found:
        raise NapkinError(skipped[lacking])
    return _report(run, found, best, skipped, stops)


def _slowest(measured: "Sequence[Measurement]") -> int:
    return statistics.slowest([each.rates.median for each in measured])


def _best(found: "Measurements") -> "dict[str, Shape]":
    """The shape of each precision that is fastest on its slowest rank."""
    best: dict[str, tuple[float, Shape]] = {}
    for (dtype, shape), each in found.items():
        rate = each[_slowest(each)].rates.median
        if dtype not in best or rate > best[dtype][0]:
            best[dtype] = rate, shape
    return {dtype: shape for dtype, (_, shape) in best.items()}


def _report(
    run: measurement.Run,
    found: "Measurements",
    best: "dict[str, Shape]",
    skipped: list[str],
    stops: list[BaseException],
) -> Report:
    saved: dict[tuple[str, Shape], tuple[Path | None, str]] = {}
    unsaved: list[str] = []
    # The first rank's folder is the one that is kept.
    save = run.save and not stops and run.ranks.rank == 0
    try:
        for each in best.items() if save else ():
            try:
                saved[each] = keeping.saved(found[each], run, each[0])
            except NapkinError as error:  # the figure is still worth seeing
                unsaved.append(f"nothing was saved: {error}")
    except KeyboardInterrupt as error:
        stops.append(error)
    report = Report(
        "bench",
        [
            measurement.answer(several, run, each[0], skipped, *saved.get(each, (None, "")))
            for each, several in found.items()
        ],
    )
    report.warnings = [*report.warnings, *unsaved]
    return _stopped(report, stops, saved=bool(saved))
