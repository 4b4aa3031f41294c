"""What does somebody's table of device -> FLOP/s get wrong, and whose figure is it instead?"""

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from napkin import parsing
from napkin.errors import NapkinError
from napkin.questions import options
from napkin.questions.answer import Answer, Report, Table, Words
from napkin.questions.promised import DEFAULT_DTYPE
from napkin.specs import accelerators, dtypes, yaml_file
from napkin.specs.accelerator import Accelerator, Figure

# Two prints of one figure: 989 and 989.4, 1979/2 and 989.4.
SAME = 0.005
# What is no more than a rounding: 1300 for 1307.4.
ROUNDED = 0.015

FP16_VECTOR = (1, 2, 4)  # times the fp32 rate, by architecture


class Row(NamedTuple):
    """One entry of their table; `place` is its file and line."""

    name: str
    dtype: str
    rate: float
    place: str


class Verdict(NamedTuple):
    """What a row turns out to be."""

    kind: str
    said: str
    device: Accelerator | None = None
    ours: float | None = None


def lint(*, table: str, dtype: str = DEFAULT_DTYPE) -> Report:
    """An answer for each row of a YAML, JSON or CSV file.

    A row is `device: rate` or `device: {precision: rate}`; a bare number below 1e6 is read
    as TFLOP/s. Raises NapkinError for a file that cannot be read.
    """
    default = options.read("dtype", dtype, dtypes.precision)
    rows = list(options.read("lint", table, lambda path: list(_rows(path, default))))
    judged = [(row, judge(row.name, row.dtype, row.rate)) for row in rows]
    cells = [
        (row.name, row.dtype, _tera(row.rate), _tera(verdict.ours), verdict.said)
        for row, verdict in judged
    ]
    columns = ("device", "precision", "theirs", "ours", "verdict")
    shown = Table(columns, cells, frozenset(("theirs", "ours")), "TFLOP/s, dense")
    return Report("hardware", [_answer(row, verdict) for row, verdict in judged], shown)


def _answer(row: Row, verdict: Verdict) -> Answer:
    result = {
        "verdict": verdict.kind,
        "said": verdict.said,
        "hardware": None if verdict.device is None else verdict.device.key,
        "promised": verdict.ours,
        "ratio": None if verdict.ours is None else row.rate / verdict.ours,
    }
    inputs = {"name": row.name, "dtype": row.dtype, "flops_per_second": row.rate, "at": row.place}
    return Answer("hardware", inputs, result, partial(Words, row.name, verdict.said))


def _tera(rate: float | None) -> str:
    return "-" if rate is None else f"{rate / 1e12:.6g}"


def judge(name: str, dtype: str, rate: float) -> Verdict:
    """Their figure against ours, and against every figure that it may have been taken for."""
    try:
        device = accelerators.find(name)
    except NapkinError as error:
        return Verdict("unknown", str(error))
    if dtype not in device.peak:
        whose = _whose(device, dtype, rate)
        said = f"{device.key} has no {dtype}" + (f"; this is {whose.said}" if whose else "")
        return Verdict("no-precision", said, device)
    ours = device.peak[dtype].dense.value
    verdict = _within(device, dtype, rate) or _whose(device, dtype, rate)
    if verdict is None and _near(rate, ours, ROUNDED):
        verdict = Verdict("rounded", f"agrees but for {rate / ours - 1:+.1%}")
    if verdict is None:
        verdict = Verdict("wrong", f"{rate / ours:.3g} times ours, and no figure that we know")
    return verdict._replace(device=device, ours=ours)


def _near(a: float, b: float | None, within: float = SAME) -> bool:
    return b is not None and abs(a / b - 1) <= within


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


def _within(device: Accelerator, dtype: str, rate: float) -> Verdict | None:
    """One of the device's own figures."""
    peak = device.peak[dtype]
    if _near(rate, peak.dense.value):
        return Verdict("agrees", "agrees")
    if _near(rate, _value(peak.sparse)):
        return Verdict("sparse", "2:4 sparse taken for dense")
    if _near(rate, _value(peak.dense_fp16_accumulate)):
        return Verdict("fp16-accumulate", "fp16 accumulate, which training does not use")
    parts = device.devices_per_package
    if parts > 1 and _near(rate, peak.dense.value / parts):
        return Verdict("device-of-package", f"one of the {parts} devices of a package")
    if dtype in ("fp16", "bf16"):
        vector = device.peak.get("fp32_vector", device.peak.get("fp32"))
        for times in FP16_VECTOR if vector else ():
            if vector and _near(rate, times * vector.dense.value, ROUNDED if times == 1 else SAME):
                said = "fp32's" if times == 1 else f"{times} times fp32's"
                return Verdict("vector", f"a vector rate, {said}, not the matrix units'")
    for other, row in device.peak.items():
        if other != dtype and _near(rate, row.dense.value):
            return Verdict("other-precision", f"the {other} figure")
    if peak.sparse is None and _near(rate, 2 * peak.dense.value):
        return Verdict("doubled", "twice the dense figure, as a sparse one would be")
    if _near(rate, peak.dense.value / 2):
        return Verdict("halved", "half of the dense figure: halved once too often")
    return None


def _whose(device: Accelerator, dtype: str, rate: float) -> Verdict | None:
    """The figure of another form factor, dense or sparse, or of another device."""
    family = _family(device)
    others = [each for each in accelerators.everything() if each.key != device.key]
    others.sort(key=lambda each: not each.aliases)  # of equals, the one that people mean
    for sparse in (False, True):
        for other in others:
            if _family(other) == family and _near(rate, _peak(other, dtype, sparse)):
                figure = "2:4 sparse figure" if sparse else "figure"
                return Verdict("form-factor", f"another form factor: the {figure} of {other.key}")
    for other in others:
        if _near(rate, _peak(other, dtype, sparse=False)):
            return Verdict("other-device", f"another device: the figure of {other.key}")
    return None


def _family(device: Accelerator) -> str:
    return device.key.split("-")[0]


def _peak(device: Accelerator, dtype: str, sparse: bool) -> float | None:
    peak = device.peak.get(dtype)
    return None if peak is None else _value(peak.sparse) if sparse else peak.dense.value


def _rows(path: str, dtype: str) -> Iterator[Row]:
    if path.casefold().endswith(".csv"):
        yield from _csv_rows(path, dtype)
        return
    file = yaml_file.load(Path(path).expanduser(), path)
    for name in file:
        if file.is_section(name):
            inside = file.section(name)
            for precision in inside:
                rate, place = inside.value(precision, _rate)
                try:
                    known = dtypes.precision(precision)
                except NapkinError as error:
                    inside.complain(str(error), precision)
                else:
                    yield Row(name, known, rate, place)
        else:
            yield Row(name, dtype, *file.value(name, _rate))
    if file.problems:
        raise file.problems[0]


def _csv_rows(path: str, dtype: str) -> Iterator[Row]:
    """`device,rate`, or a header that names precisions: `device,bf16,fp8`."""
    lines = yaml_file.text_of(Path(path).expanduser(), path).splitlines()
    precisions = [dtype]
    for number, cells in enumerate(csv.reader(lines), start=1):
        if number == 1 and not any(character.isdigit() for character in cells[-1][:1]):
            precisions = [_precision(cell, dtype) for cell in cells[1:]]
            continue
        for precision, cell in zip(precisions, cells[1:], strict=False):
            if cell.strip():
                place = f"{path}:{number}"
                yield Row(cells[0].strip(), precision, _placed(cell, place), place)


def _precision(cell: str, default: str) -> str:
    try:
        return dtypes.precision(cell)
    except NapkinError:
        return default  # a header that says `FLOP/s` or the like


def _placed(cell: str, place: str) -> float:
    try:
        return _rate(cell)
    except NapkinError as error:
        raise error.within(place) from None


def _rate(text: str) -> float:
    try:
        return parsing.rate(text)
    except NapkinError as error:
        try:
            return parsing.rate(f"{text} TFLOP/s")
        except NapkinError:
            raise error from None
