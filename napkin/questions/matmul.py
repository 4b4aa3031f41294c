"""What does a matmul cost, and what binds it: the peak or the memory?"""

from collections.abc import Sequence
from functools import partial

from napkin import parsing, units
from napkin.accounting import compute, tensors
from napkin.errors import Lacking, NapkinError
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Answer, Roofline, Words, value_of
from napkin.questions.examples import MATMUL
from napkin.questions.options import Text
from napkin.questions.peak import COLUMNS as PEAK
from napkin.questions.peak import PROMISED, Promise, promise
from napkin.questions.shapes import shape
from napkin.record import Record
from napkin.specs.accelerator import Accelerator
from napkin.specs.dtypes import FORMATS

COMPUTE, MEMORY = "compute", "memory"
COLUMNS = (
    *("shapes", "time", *PEAK),
    *("flops", "bytes", "intensity", "seconds", "bound", "mfu"),
)


class _Matmul(Record):
    """What follows from the sizes and the device."""

    m: Quantity
    k: Quantity
    n: Quantity
    C: Quantity
    Q: Quantity
    I: Quantity  # noqa: E741
    ridge: Quantity
    t: Quantity
    bound: str
    promised: Promise
    least: Quantity | None  # rows from which the peak binds
    t_here: Quantity | None = None
    MFU: Quantity | None = None
    MFU_here: Quantity | None = None


def matmul(
    *,
    shapes: Sequence[str] = (),
    time: Text | None = None,
    hardware: str | None = None,
    dtype: str | None = None,
    peak: Text = PROMISED,
    sparse: bool = False,
) -> Answer:
    """FLOP, bytes, intensity and roofline time of (m × k) · (k × n). Raises NapkinError."""
    m, k, n = _sizes(shapes)
    promised = promise(hardware, dtype, peak, sparse)
    took = None
    if time is not None:
        took = options.quantity("time", time, parsing.duration, "t_took", "time it took", "s")
    of = _of(m, k, n, promised, took)
    inputs = {
        "shapes": [f"{m.value}x{k.value}", f"{k.value}x{n.value}"],
        "time": value_of(took),
        **promised.inputs,
    }
    result = {
        "flops": of.C.value,
        "bytes": of.Q.value,
        "intensity": of.I.value,
        "seconds": of.t.value,
        "bound": of.bound,
        "mfu": value_of(of.MFU),
    }
    asides = (of.ridge, of.I, of.least, of.t_here, of.MFU_here)
    steps = tuple(q for q in (of.t, of.MFU) if q is not None)
    rows = tuple(q for q in (of.C, of.Q, of.I, of.ridge, of.t, of.MFU) if q is not None)
    return Answer(
        "matmul",
        inputs,
        result,
        partial(_words, of),
        steps,
        tuple(q for q in asides if q is not None),
        COLUMNS,
        rows,
    )


def _sizes(shapes: Sequence[str]) -> tuple[Quantity, Quantity, Quantity]:
    if isinstance(shapes, str) or len(shapes) != 2:
        raise NapkinError(f"matmul needs two shapes, m x k and k x n, as in: {MATMUL}")
    left, right = map(shape, shapes)
    for each in (left, right):
        if len(each.sides) != 2:
            raise NapkinError(f"{each.text} is no matrix; write two sides, as in: {MATMUL}")
    (m, k), (k_right, n) = left.sides, right.sides
    if k != k_right:
        raise NapkinError(
            f"{left.text} has {k:,} columns and {right.text} {k_right:,} rows: "
            "the inner sides must be the same"
        )
    sides = (("m", "rows", m), ("k", "inner side", k), ("n", "columns", n))
    m_, k_, n_ = (given(symbol, label, side, "1", "the shapes") for symbol, label, side in sides)
    return m_, k_, n_


def _of(m: Quantity, k: Quantity, n: Quantity, promised: Promise, took: Quantity | None) -> _Matmul:
    P, device = promised.P, promised.accelerator
    BW = _bandwidth(device)
    size = FORMATS[promised.dtype].bytes
    s = given("s", f"bytes of an element, {promised.dtype}", size, "B", "--dtype")
    C = compute.matmul(m, n, k)
    Q = tensors.moved(m, k, n, s)
    I_P = compute.promised_ridge(P, BW)
    t_C, t_Q = tensors.computing(C, P), tensors.moving(Q, BW)
    reaches = 2 * k.value * n.value > I_P.value * size * (k.value + n.value)
    here = promised.here
    return _Matmul(
        m,
        k,
        n,
        C,
        Q,
        tensors.intensity(C, Q),
        I_P,
        tensors.roofline(t_C, t_Q),
        COMPUTE if t_C.value >= t_Q.value else MEMORY,
        promised,
        tensors.least_rows(k, n, s, I_P) if reaches else None,
        None if here is None else tensors.on_measured(C, t_Q, here),
        None if took is None else tensors.utilization(C, took, P),
        None if took is None or here is None else tensors.of_measured(C, took, here),
    )


def _bandwidth(device: Accelerator) -> Quantity:
    figure = device.memory_bandwidth
    if figure is None:
        what = "memory bandwidth"
        raise Lacking(f"{device.key} has no {what} on file", what=what).within("--hardware")
    return given("BW", "memory bandwidth", figure.value, "B/s/GPU", figure.source)


def _words(of: _Matmul) -> Words:
    sides = f"({of.m.value:,} × {of.k.value:,}) · ({of.k.value:,} × {of.n.value:,})"
    device = f"{of.promised.accelerator.short_name} · {of.promised.kind}"
    verdict = {COMPUTE: "compute-bound", MEMORY: "memory-bound"}[of.bound]
    settings = f"{verdict}: {of.I}, the ridge point is {units.figures(of.ridge.value)}"
    notes = []
    if of.least is None:
        notes.append("memory-bound however many rows: its other sides are too short")
    else:
        rows = units.figures(int(-(-of.least.value // 1)))
        notes.append(f"compute-bound from {rows} rows on, with these other sides")
    if of.t_here is not None:
        notes.append(f"{of.t_here} at the {of.promised.here} measured here")
    if of.MFU_here is not None:
        notes.append(f"{of.MFU_here} of what was measured here")
    notes += of.promised.notes(None if of.MFU is None else of.MFU.value * of.promised.P.value)
    warnings = of.promised.warnings()
    headline = str(of.t)
    if of.MFU is not None:
        headline = f"{of.MFU} MFU"
        settings = f"at best {of.t} · {settings}"
        if of.MFU.value > 1:
            warnings.insert(0, "faster than the peak: look at --time, --dtype and --hardware")
    return Words(
        headline, f"{sides} on {device}", notes, warnings, settings=settings, picture=_roofline(of)
    )


def _roofline(of: _Matmul) -> Roofline:
    reached = [] if of.MFU is None else [("took", of.MFU.value * of.promised.P.value)]
    best = min(of.promised.P.value, of.I.value * of.promised.P.value / of.ridge.value)
    return Roofline(
        of.promised.P.value,
        of.ridge.value,
        of.I.value,
        [("at best", best), *reached],
    )
