"""The matmuls of a model's weights on one micro-batch, and how fast a device does them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from napkin import units
from napkin.accounting import compute
from napkin.accounting.matmuls import matmuls
from napkin.errors import NapkinError
from napkin.quantity import Quantity, given, observed
from napkin.questions.answer import Answer, Inputs, Words, value_of
from napkin.questions.bench import measurement
from napkin.questions.bench.measurement import Run
from napkin.questions.workload import too_long
from napkin.specs.model import Model, Stack

if TYPE_CHECKING:
    from napkin.bench.matmul import Measurement
    from napkin.bench.operators import Shape

KERNEL_WARM_UP = 0.1  # s
PASSES = ("forward", "input gradient", "weight gradient")


class Matmul(NamedTuple):
    """A linear layer on some rows: how often in one forward pass."""

    symbol: str
    name: str
    inputs: int
    outputs: int
    often: int
    rows: int

    @property
    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """m, n, k of each of PASSES: Y = X·W, dX = dY·Wᵀ, dW = Xᵀ·dY."""
        r, i, o = self.rows, self.inputs, self.outputs
        return (r, o, i), (r, i, o), (i, o, r)


@dataclass(frozen=True, slots=True)
class Work:
    """The linear layers of a model on the tokens of one micro-batch."""

    model: Model | Stack
    seq_len: int
    micro_batch: int
    layers: tuple[Matmul, ...]


def work(model: Model | Stack, seq_len: int, micro_batch: int) -> Work:
    """Every linear layer on all tokens, an expert's on its share: balanced, some see one more."""
    rows = seq_len * micro_batch
    experts = None if isinstance(model, Stack) else model.experts
    found = []
    for each in matmuls(model):
        of = (each.symbol, each.name, each.inputs, each.outputs)
        if not each.of_experts or experts is None:
            found.append(Matmul(*of, each.often, rows))
            continue
        fewest, more = divmod(rows * experts.active, experts.count)
        shares = ((fewest + 1, more, "1"), (fewest, experts.count - more, ""))
        found += [
            Matmul(each.symbol + mark, each.name, each.inputs, each.outputs, each.often * n, share)
            for share, n, mark in shares
            if share and n
        ]
    return Work(model, seq_len, micro_batch, tuple(found))


def shapes(work: Work) -> "list[Shape]":
    """Each shape once, the largest last: what is timed first may be slower."""
    from napkin.bench.operators import Shape

    found = {Shape(*each) for layer in work.layers for each in layer.shapes}
    return sorted(found, key=lambda shape: shape.flop)


def answer(
    work: Work,
    measured: "Mapping[Shape, Measurement]",
    run: Run,
    dtype: str,
    skipped: list[str],
) -> Answer:
    """The rate of all of them together: the FLOP-weighted harmonic mean.

    `skipped` is what could not be measured beside it.
    """
    parts = [_part(layer, measured) for layer in work.layers]
    R = compute.rate_of_all([F for F, _ in parts], [t for _, t in parts])
    P = measurement.promised(measurement.known(run.device), dtype)
    share = None if P is None else compute.ratio(R, P)
    medians = [each.rates.median for each in measured.values()]
    inputs: Inputs = {
        "dtype": dtype,
        "device": run.device.torch,
        "model": work.model.name,
        "seq_len": work.seq_len,
        "micro_batch": work.micro_batch,
        "seconds": run.seconds,
    }
    result = {
        "device": run.device.torch,
        "device_name": run.device.name,
        "dtype": dtype,
        "shape": None,
        "flops_per_second": {"median": R.value, "min": min(medians), "max": max(medians)},
        "samples": sum(each.rates.samples for each in measured.values()),
        "promised": value_of(P),
        "ratio": value_of(share),
        "saved_to": None,
        "gemms": _gemms(work, measured),
    }
    words = partial(_words, work, measured, run, dtype, R, share, skipped)
    steps = (R if share is None else share,)
    return Answer("bench", inputs, result, words, steps, columns=measurement.COLUMNS)


def _part(layer: Matmul, measured: "Mapping[Shape, Measurement]") -> tuple[Quantity, Quantity]:
    """FLOP and time of one linear layer's three passes, wherever it stands."""
    s = layer.symbol
    sizes = [
        given(f"{letter}_{s}", label, value, "1", "--model")
        for letter, label, value in (
            ("m", "rows", layer.rows),
            ("n", "outputs", layer.outputs),
            ("k", "inputs", layer.inputs),
        )
    ]
    count = given(f"c_{s}", "in one forward pass", layer.often, "1", "--model")
    found = [_of(measured, shape) for shape in layer.shapes]
    # Without names: three rows for every layer would bury the answer; JSON has each rate.
    times = [observed("", "", each.rates.time, "s", "measured here") for each in found]
    return (
        compute.linear_flop(f"F_{s}", layer.name, count, *sizes),
        compute.linear_time(f"t_{s}", layer.name, count, times),
    )


def _of(measured: "Mapping[Shape, Measurement]", shape: tuple[int, int, int]) -> "Measurement":
    from napkin.bench.operators import Shape

    return measured[Shape(*shape)]


def _gemms(work: Work, measured: "Mapping[Shape, Measurement]") -> list[dict[str, Any]]:
    return [
        {
            "name": layer.name,
            "pass": what,
            "shape": list(shape),
            "count": layer.often,
            "flops_per_second": _of(measured, shape).rates.median,
        }
        for layer in work.layers
        for what, shape in zip(PASSES, layer.shapes, strict=True)
    ]


def _words(
    work: Work,
    measured: "Mapping[Shape, Measurement]",
    run: Run,
    dtype: str,
    R: Quantity,
    share: Quantity | None,
    skipped: list[str],
) -> Words:
    by_rate = sorted(measured.values(), key=lambda each: each.rates.median)
    slowest, fastest = by_rate[0], by_rate[-1]
    notes = [
        f"slowest {slowest.shape}: {units.humanize(slowest.rates.median, 'FLOP/s')} · "
        f"fastest {fastest.shape}: {units.humanize(fastest.rates.median, 'FLOP/s')}",
        "the matmuls of its weights alone: attention, norms, the optimizer and what the GPUs "
        "tell each other take their time on top",
    ]
    if isinstance(work.model, Model) and work.model.experts is not None:
        notes.append("experts are balanced, each a matmul of its own")
    of = "CPU" if not run.device.is_gpu else "share of the promised unknown"
    if share is not None:
        of = f"{share} of the promised {share.args[1]}: the most that its matmuls reach"
    warnings = [f"skipped: {each}" for each in skipped]
    warnings += [f"{each.shape}: {each.unsteady}" for each in measured.values() if each.unsteady]
    warnings += too_long(work.model, work.seq_len)
    said = f"{work.micro_batch} × {work.seq_len:,} tokens"
    condition = f"{dtype} matmuls of {work.model.name}, {said} · {of} · {run.device.name}"
    return Words(str(R), condition, notes, warnings)


def measure(
    work: Work, run: Run, dtype: str, skipped: list[str], progress: Callable[[str], None]
) -> Answer:
    """Every shape once. Raises NapkinError for one that does not fit."""
    from napkin.bench import matmul

    found: dict[Shape, Measurement] = {}
    for shape in shapes(work):
        progress(f"measuring {dtype} {shape} of {work.model.name} on {run.device.name} ...")
        # The first warms the device up, the others only their own kernels.
        warm_up = run.warm_up if not found or run.warm_up is not None else KERNEL_WARM_UP
        try:
            found[shape] = matmul.measure(run.device, dtype, shape, run.seconds, warm_up)
        except NapkinError as error:
            said = str(error).removeprefix("--shape: ").removeprefix("--size: ")
            said, too_large, _ = said.partition("; try --size")
            less = "; write a smaller --seq-len or --micro-batch" if too_large else ""
            raise error.with_lines(f"--model: {work.model.name}: {said}{less}") from None
    return answer(work, found, run, dtype, skipped)
