"""One measurement as an answer: its derivation, its share of what was promised, its use."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from napkin import units
from napkin.accounting import compute
from napkin.bench import statistics
from napkin.bench.ranks import Member, Ranks
from napkin.errors import NapkinError
from napkin.quantity import Quantity, coefficient, define, given, observed
from napkin.questions.answer import Answer, Bar, Inputs, Picture, Words, value_of
from napkin.questions.bench import doubts, ranks
from napkin.questions.examples import TRAIN_TIME
from napkin.questions.train_time import train_time
from napkin.specs import accelerators
from napkin.specs.accelerator import Accelerator, Figure

if TYPE_CHECKING:
    from napkin.bench.all_reduce import Reduced
    from napkin.bench.bandwidth import Bandwidth
    from napkin.bench.device import Device
    from napkin.bench.matmul import Measurement
    from napkin.bench.nvml import State


# Of csv, of --model and of several ranks too: inputs, then the result.
COLUMNS = (
    *("dtype", "device", "model", "seq_len", "micro_batch", "size", "seconds", "warmup"),
    *("device_name", "shape", *(f"flops_per_second.{which}" for which in ("median", "min", "max"))),
    *("samples", "promised", "ratio", "saved_to"),
    *(f"bandwidth.{which}" for which in ("copy", "triad", "promised", "ridge", "ridge_promised")),
    "gemms",
    *(f"ranks.{which}" for which in ("size", "min", "median", "max", "flops_per_second")),
    *(f"ranks.slowest.{which}" for which in ("rank", "host", "device")),
    "all_reduce",
)


@dataclass(slots=True)
class Run:
    """What is measured on what, and how."""

    device: "Device"
    seconds: float
    warm_up: float | None
    why_cpu: str | None  # where no device was named and no GPU was found
    save: bool
    bandwidth: bool = False  # the memory too
    memory: "Bandwidth | None" = None  # what was found of it
    sized: bool = False  # by --size
    shaped: bool = False  # by --shape
    ranks: Ranks = field(default_factory=Ranks)
    members: Sequence[Member] = ()
    threads: int = 0  # of a CPU's operator
    all_reduce: "Sequence[Reduced]" = ()

    def on(self, rank: int) -> "Run":
        """The same on that rank's device."""
        return replace(self, device=self.members[rank].device) if self.members else self


def known(device: "Device") -> Accelerator | None:
    """The accelerator of that very name."""
    if not device.is_gpu:
        return None
    with suppress(NapkinError):  # a broken file of the user's
        return accelerators.lookup(device.name)
    return None


def promised(accelerator: Accelerator | None, dtype: str) -> Quantity | None:
    """The dense peak of one torch device, None where the name or precision is not known."""
    if accelerator is None or dtype not in accelerator.peak:
        return None
    figure = accelerator.peak_of(dtype)
    return _of_one_device(accelerator, "P", f"dense {dtype} peak", figure, "FLOP/s")


def _tdp(device: "Device") -> float | None:
    """In W, of one torch device."""
    accelerator = known(device)
    if accelerator is None or accelerator.tdp is None:
        return None
    return accelerator.tdp.value / accelerator.devices_per_package


def _of_one_device(
    accelerator: Accelerator, symbol: str, label: str, figure: Figure, unit: str
) -> Quantity:
    several = accelerator.devices_per_package
    if several == 1:
        return given(symbol, label, figure.value, unit, figure.source)
    package = given(f"{symbol}_pkg", f"{label} of a package", figure.value, unit, figure.source)
    return define(symbol, f"{label} of one device", package / coefficient(several), unit)


class _Memory(NamedTuple):
    """Bandwidth and ridge points, measured and, where the device is known, promised."""

    W: Quantity
    I: Quantity  # noqa: E741
    W_P: Quantity | None
    I_P: Quantity | None


def _memory(run: Run, R: Quantity, P: Quantity | None) -> _Memory | None:
    if run.memory is None:
        return None
    name, arrays, rates = run.memory.best
    S = given("S", "bytes of an array", run.memory.array, "B", "chosen by bench")
    label = f"median of {rates.samples:,} calls of {name}"
    t = observed("t_mem", label, rates.time, "s", "measured here")
    W = compute.bandwidth(compute.moved(S, arrays), t)
    accelerator = known(run.device)
    if accelerator is None or accelerator.memory_bandwidth is None or P is None:
        return _Memory(W, compute.ridge(R, W), None, None)
    figure = accelerator.memory_bandwidth
    W_P = _of_one_device(accelerator, "BW_P", "promised memory bandwidth", figure, "B/s")
    return _Memory(W, compute.ridge(R, W), W_P, compute.promised_ridge(P, W_P))


def answer(
    several: "Sequence[Measurement]",
    run: Run,
    dtype: str,
    skipped: list[str],
    saved: Path | None,
    unsaved: str = "",
) -> Answer:
    """The slowest rank's rate with its derivation, or the only one's.

    `skipped` is what could not be measured beside it, `unsaved` why the figure is not kept.
    """
    medians = [each.rates.median for each in several]
    slowest = statistics.slowest(medians)
    measured, run = several[slowest], run.on(slowest)
    rates, shape = measured.rates, measured.shape
    m, n, k = (
        given(s, f"{s} of the matmul", size, "1", "--shape")
        for s, size in zip("mnk", shape, strict=True)
    )
    t = observed("t", f"median of {rates.samples:,} calls", rates.time, "s", "measured here")
    R = compute.rate(compute.matmul(m, n, k), t)
    P = promised(known(run.device), dtype)
    share = None if P is None else compute.ratio(R, P)
    beside = _memory(run, R, P)
    inputs: Inputs = {
        "dtype": dtype,
        "device": run.device.torch,
        "shape": str(shape),
        "seconds": run.seconds,
    }
    if run.sized:
        inputs["size"] = shape.m
    if run.warm_up is not None:
        inputs["warmup"] = run.warm_up
    result = {
        "device": run.device.torch,
        "device_name": run.device.name,
        "dtype": dtype,
        "shape": list(shape),
        "flops_per_second": {"median": R.value, "min": rates.min, "max": rates.max},
        "samples": rates.samples,
        "promised": value_of(P),
        "ratio": value_of(share),
        "saved_to": None if saved is None else str(saved),
    }
    if run.memory is not None and beside is not None:
        result["bandwidth"] = _bandwidth_result(run.memory, beside)
    kept = saved, unsaved
    words = partial(_words, several, measured, run, dtype, R, share, beside, skipped, kept)
    steps = [R if share is None else share]
    if beside is not None:
        steps += [each for each in (beside.I, beside.I_P) if each is not None]
    if len(several) > 1:
        result |= ranks.result(medians, run.members, run.all_reduce)
        steps += [ranks.bus_bandwidth(each, len(several)) for each in run.all_reduce[-1:]]
    return Answer("bench", inputs, result, words, tuple(steps), columns=COLUMNS)


def _bandwidth_result(found: "Bandwidth", beside: _Memory) -> dict[str, float | None]:
    return {
        "copy": found.copy.median,
        "triad": found.triad.median,
        "promised": value_of(beside.W_P),
        "ridge": beside.I.value,
        "ridge_promised": value_of(beside.I_P),
    }


def _words(
    several: "Sequence[Measurement]",
    measured: "Measurement",
    run: Run,
    dtype: str,
    R: Quantity,
    share: Quantity | None,
    beside: _Memory | None,
    skipped: list[str],
    kept: tuple[Path | None, str],
) -> Words:
    rates, shape, device = measured.rates, measured.shape, run.device
    saved, unsaved = kept
    said = f"{shape.m:,}³" if len(set(shape)) == 1 else str(shape)
    low, high, whole = (
        units.humanize(rate, "FLOP/s") for rate in (rates.p5, rates.p95, rates.sustained)
    )
    off = f"off by {measured.error:.1e} from fp64, relative" if measured.error else "exact"
    notes = [
        f"nine calls of ten: {low} to {high}; sustained, pauses included: {whole}",
        f"random data, checked: {off}",
    ]
    warnings = [f"skipped: {each}" for each in skipped]
    if measured.state is not None:
        notes.append(_of_state(measured.state))
        if measured.state.is_unwell:
            warnings.append(f"slowed by {measured.state.slowed_by}")
    if run.memory is not None and beside is not None:
        notes += _of_memory(run.memory, beside, len(several) > 1)
        if run.memory.unsteady:
            warnings.append(f"memory: {run.memory.unsteady}")
    if device.is_gpu:
        of = "share of the promised unknown"
        if share is not None:
            of = f"{share} of the promised {share.args[1]}"
        notes += _uses(run, dtype, R, share, saved)
        if share is not None:
            warnings += doubts.of_share(share.value, shape, measured.state, _tdp(run.device))
    else:
        of = "CPU, no GPU found" if run.why_cpu else "CPU"
        if run.why_cpu:
            notes.append(f"no GPU was found: {run.why_cpu}")
        notes.append("a CPU's figure is for trying things out: no datasheet promises one")
    if len(several) > 1:
        said += f" · slowest of {len(several)} ranks"
        medians = [each.rates.median for each in several]
        notes += ranks.notes(medians, run.members, run.all_reduce, run.threads)
        warnings += ranks.straggler(medians, run.members)
    for rank, each in enumerate(several):
        if each.unsteady:
            who = f"{run.members[rank]}: " if len(several) > 1 else ""
            warnings.append(f"{who}{each.unsteady}")
    if not any(each.unsteady for each in several):
        warnings += doubts.of_calls(rates, device.is_gpu)
    if run.ranks.by_torchrun and run.ranks.size == 1:
        notes.append("torchrun started one rank: an all-reduce needs two or more")
    if saved is not None:
        notes.append(f"saved to {saved}")
    if unsaved:
        notes.append(unsaved)
    P = None if share is None else share.args[1]
    condition = f"{dtype} {said} · {of} · {device.name}"
    return Words(str(R), condition, notes, warnings, picture=_picture(known(device), dtype, R, P))


def _picture(
    accelerator: Accelerator | None, dtype: str, R: Quantity, P: Quantity | None
) -> Picture | None:
    """What was measured here, what others measured and what is promised."""
    rates = {"measured here": R.value}
    if accelerator is not None and dtype in accelerator.reported:
        others = accelerator.reported[dtype].value
        rates["others measured"] = others / accelerator.devices_per_package
    if P is not None:
        rates["promised"] = P.value
    if len(rates) == 1:
        return None
    return Picture(
        [Bar(name, f"{units.tera(rate)} TFLOP/s", ((name, rate),)) for name, rate in rates.items()]
    )


def _of_state(state: "State") -> str:
    said = f"at {state.clock:,.0f} MHz, {state.power:,.0f} of {state.power_limit:,.0f} W"
    slowed = f"; slowed by {state.slowed_by}" if state.slowed_by else ""
    return f"{said} and {state.temperature:.0f} °C{slowed}"


def _of_memory(bandwidth: "Bandwidth", beside: _Memory, several: bool) -> list[str]:
    copy, triad = (units.humanize(each.median, "B/s") for each in bandwidth[:2])
    whose = " of the slowest rank" if several else ""
    said = f"memory{whose}: copy {copy}, triad {triad}"
    ridge = (
        f"work of fewer than {units.figures(beside.I.value, 3)} FLOP a byte waits for the memory"
    )
    if beside.W_P is not None and beside.I_P is not None:
        said += f"; {compute.share_of_bandwidth(beside.W, beside.W_P)} of the promised {beside.W_P}"
        ridge += f" (promised: {units.figures(beside.I_P.value, 3)})"
    return [said, ridge]


def _uses(
    run: Run, dtype: str, R: Quantity, share: Quantity | None, saved: Path | None
) -> list[str]:
    """The first question with this figure, and the line that asks it."""
    accelerator = known(run.device)
    if accelerator is None or share is None:
        if " MIG " in run.device.name:
            return [f"{run.device.name} is a MIG slice: no datasheet promises a slice's figure"]
        return [f"no hardware file has a {dtype} figure of {run.device.name}"]
    line = f"{TRAIN_TIME} --hardware {accelerator.key} --dtype {dtype}"
    if saved is None:
        package = units.engineering(R.value * accelerator.devices_per_package, 4)
        return [f"use it: {line} --peak {package}"]
    anew = train_time(params=70e9, tokens=15e12, gpus=1024, hardware=accelerator.key, dtype=dtype)
    return [f"the first question anew: {line}", anew.notes[0]]
