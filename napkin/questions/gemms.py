"""The matmuls of a model's weights on one micro-batch, and how fast a device does them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from napkin import units
from napkin.accounting import compute
from napkin.errors import NapkinError
from napkin.quantity import Quantity, given, observed
from napkin.questions import measurement
from napkin.questions.answer import Answer, Inputs, Words, value_of
from napkin.questions.measurement import Run
from napkin.specs.model import Model, Stack

if TYPE_CHECKING:
    from napkin.bench.matmul import Measurement
    from napkin.bench.operators import Shape

KERNEL_WARM_UP = 0.1  # s
PASSES = ("forward", "input gradient", "weight gradient")


class Linear(NamedTuple):
    """inputs × outputs weights, how often in one forward pass, and on how many rows."""

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
    layers: tuple[Linear, ...]


def work(model: Model | Stack, seq_len: int, micro_batch: int) -> Work:
    """As transformers lays them out: query, key, value, gate and up are matmuls of their own."""
    rows = seq_len * micro_batch
    if isinstance(model, Stack):
        d = model.d_model
        square = Linear("sq", "square matrices", d, d, model.layers, rows)
        head = Linear("head", "output head", d, 1, 1, rows)
        return Work(model, seq_len, micro_batch, (square, head))
    layers = [*_attention(model, rows), *_feed_forward(model, rows)]
    layers.append(Linear("head", "output head", model.d_model, model.vocab, 1, rows))
    return Work(model, seq_len, micro_batch, tuple(layers))


def _attention(model: Model, rows: int) -> list[Linear]:
    a, d, L = model.attention, model.d_model, model.layers
    out = Linear("o", "attention output", a.heads * a.v, d, L, rows)
    if a.latent is None:
        return [
            Linear("q", "query", d, a.heads * a.qk, L, rows),
            Linear("kv", "key, value", d, a.kv_heads * a.qk, 2 * L, rows),
            out,
        ]
    q, kv, each = a.latent.query, a.latent.key_value, a.latent.nope + a.v
    found = [
        Linear("kv_a", "keys and values, down", d, kv + a.latent.rope, L, rows),
        Linear("kv_b", "keys and values, up", kv, a.heads * each, L, rows),
        out,
    ]
    if q is None:
        return [Linear("q", "query", d, a.heads * a.qk, L, rows), *found]
    down = Linear("q_a", "query, down", d, q, L, rows)
    return [down, Linear("q_b", "query, up", q, a.heads * a.qk, L, rows), *found]


def _feed_forward(model: Model, rows: int) -> list[Linear]:
    d, found = model.d_model, []
    if model.mlp is not None and model.dense_layers:
        F, L = model.mlp.width, model.dense_layers
        into = 2 if model.mlp.gated else 1
        name = "gate, up" if model.mlp.gated else "up"
        found += [Linear("up", name, d, F, into * L, rows), Linear("down", "down", F, d, L, rows)]
    experts = model.experts
    if experts is not None:
        L, F = model.moe_layers, experts.width
        # Balanced: every expert sees as many tokens, one at least.
        each = max(1, rows * experts.active // experts.count)
        used = min(experts.count, rows * experts.active)
        found += [
            Linear("router", "router", d, experts.count, L, rows),
            Linear("up_e", "gate, up of experts", d, F, 2 * L * used, each),
            Linear("down_e", "down of experts", F, d, L * used, each),
        ]
        if experts.shared_width:
            F = experts.shared_width
            found.append(Linear("up_s", "gate, up, shared", d, F, 2 * L, rows))
            found.append(Linear("down_s", "down, shared", F, d, L, rows))
    return found


def shapes(work: Work) -> "list[Shape]":
    """Each shape once, the largest last: what is timed first may be slower."""
    from napkin.bench.operators import Shape

    found = {Shape(*each) for layer in work.layers for each in layer.shapes}
    return sorted(found, key=lambda shape: shape.flop)


def answer(work: Work, measured: "Mapping[Shape, Measurement]", run: Run, dtype: str) -> Answer:
    """The rate of all of them together: the FLOP-weighted harmonic mean."""
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
    words = partial(_words, work, measured, run, dtype, R, share)
    return Answer("bench", inputs, result, words, (R if share is None else share,))


def _part(layer: Linear, measured: "Mapping[Shape, Measurement]") -> tuple[Quantity, Quantity]:
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
) -> Words:
    by_rate = sorted(measured.values(), key=lambda each: each.rates.median)
    slowest, fastest = by_rate[0], by_rate[-1]
    notes = [
        f"slowest {slowest.shape}: {units.humanize(slowest.rates.median, 'FLOP/s')} · "
        f"fastest {fastest.shape}: {units.humanize(fastest.rates.median, 'FLOP/s')}",
        "no MFU of this model is higher here: attention, norms, the optimizer and what the "
        "GPUs tell each other come on top",
    ]
    if isinstance(work.model, Model) and work.model.experts is not None:
        notes.append("experts are balanced, each a matmul of its own")
    of = "CPU" if not run.device.is_gpu else "share of the promised unknown"
    if share is not None:
        of = f"{share} of the promised {share.args[1]}: the ceiling of its MFU"
    warnings = [f"{each.shape}: {each.unsteady}" for each in measured.values() if each.unsteady]
    said = f"{work.micro_batch} × {work.seq_len:,} tokens"
    condition = f"{dtype} matmuls of {work.model.name}, {said} · {of} · {run.device.name}"
    return Words(str(R), condition, notes, warnings)


def measure(work: Work, run: Run, dtype: str, progress: Callable[[str], None]) -> Answer:
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
            raise type(error)(f"--model: {work.model.name}: {said}") from None
    return answer(work, found, run, dtype)
