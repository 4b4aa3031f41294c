"""What does somebody's table of device -> FLOP/s get wrong, and whose figure is it instead?"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from napkin import parsing, units
from napkin.errors import NapkinError, printable, quoted
from napkin.questions import options
from napkin.questions.answer import Answer, Report, Table, Words, value_of
from napkin.specs import accelerators, dtypes, yaml_file
from napkin.specs.accelerator import Accelerator
from napkin.specs.text_file import expanded, text_of

# Two prints of one figure: 989 and 989.4, 1979/2 and 989.4.
SAME = 0.005
# What is no more than a rounding: 1300 for 1307.4.
ROUNDED = 0.015

# Of csv: a row of theirs, then what it is judged to be.
COLUMNS = (
    *("name", "dtype", "flops_per_second", "at"),
    *("verdict", "said", "hardware", "promised", "ratio"),
)
SEPARATORS = ",;\t"
SUGGESTIONS = 20  # in one table: each is sought among all names
FP16_VECTOR = (2, 4)  # times the fp32 rate, by architecture


T = TypeVar("T")


class Row(NamedTuple):
    """One entry of their table; `place` is its file and line."""

    name: str
    dtype: str
    rate: float
    place: str


class Verdict(NamedTuple):
    """What a row turns out to be."""

    kind: str
    reason: str
    device: Accelerator | None = None
    ours: float | None = None


def judged(table: str, dtype: str) -> Report:
    """An answer for each row of a YAML, JSON or CSV file.

    A row is `device: rate` or `device: {precision: rate}`; a bare number below 1e6 is read
    as TFLOP/s. Raises NapkinError for a file that cannot be read.
    """
    default = options.read("dtype", dtype, dtypes.precision)
    rows = options.read("lint", table, lambda path: _rows(path, default))
    known = accelerators.everything()
    named = accelerators.by_name(known)
    verdicts: list[Verdict] = []
    unknown = 0
    for row in rows:
        suggest = unknown < SUGGESTIONS
        verdict = judge(row.name, row.dtype, row.rate, known, named, suggest)
        unknown += verdict.kind == "unknown"
        verdicts.append(verdict)
    cells = [
        (row.name, row.dtype, _tera(row.rate), _tera(verdict.ours), verdict.reason)
        for row, verdict in zip(rows, verdicts, strict=True)
    ]
    columns = ("device", "precision", "theirs", "ours", "verdict")
    shown = Table(columns, cells, frozenset(("theirs", "ours")), "TFLOP/s, dense")
    answers = [_answer(row, verdict) for row, verdict in zip(rows, verdicts, strict=True)]
    return Report("hardware", answers, shown)


def _answer(row: Row, verdict: Verdict) -> Answer:
    result = {
        "verdict": verdict.kind,
        "said": verdict.reason,
        "hardware": None if verdict.device is None else verdict.device.key,
        "promised": verdict.ours,
        "ratio": None if verdict.ours is None else row.rate / verdict.ours,
    }
    inputs = {"name": row.name, "dtype": row.dtype, "flops_per_second": row.rate, "at": row.place}
    words = partial(Words, row.name, verdict.reason)
    return Answer("hardware", inputs, result, words, columns=COLUMNS)


def _tera(rate: float | None) -> str:
    return "-" if rate is None else units.tera(rate)


def judge(
    name: str,
    dtype: str,
    rate: float,
    known: list[Accelerator],
    named: Mapping[str, Accelerator] | None = None,
    suggest: bool = True,
) -> Verdict:
    """Their figure against ours, and against every figure that it may have been taken for.

    `named` is `accelerators.by_name(known)`, for who judges many.
    """
    named = accelerators.by_name(known) if named is None else named
    device = named.get(accelerators.alike(name))
    if device is None:
        return Verdict("unknown", accelerators.not_found(name, known if suggest else []))
    if dtype not in device.peak:
        return Verdict("no-precision", f"{device.key} has no {dtype}", device)
    parts = accelerators.devices_meant(device, name)
    ours = device.peak[dtype].dense.value / parts
    verdict = _of_package(device, dtype, rate, parts) or _within(device, dtype, rate * parts)
    verdict = verdict or _whose(device, dtype, rate, known)
    if verdict is None and _near(rate, ours, ROUNDED):
        verdict = Verdict("rounded", f"agrees but for {rate / ours - 1:+.1%}")
    if verdict is None:
        verdict = Verdict("wrong", f"{rate / ours:.3g} times ours, and no figure that we know")
    reason = f"{verdict.reason} (ours is your own file's)" if device.own else verdict.reason
    return verdict._replace(device=device, ours=ours, reason=reason)


def _of_package(device: Accelerator, dtype: str, rate: float, parts: int) -> Verdict | None:
    """The whole of a package for one of its devices, or the other way round."""
    whole, several = device.peak[dtype].dense.value, device.devices_per_package
    if parts > 1 and _near(rate, whole):
        return Verdict("package", f"the whole package's; the device is one of {parts}")
    if parts == 1 and several > 1 and _near(rate, whole / several):
        return Verdict("device-of-package", f"one of the {several} devices of a package")
    return None


def _near(a: float, b: float | None, within: float = SAME) -> bool:
    return b is not None and abs(a / b - 1) <= within


def _within(device: Accelerator, dtype: str, rate: float) -> Verdict | None:
    """One of the device's own figures."""
    peak = device.peak[dtype]
    if _near(rate, peak.dense.value):
        return Verdict("agrees", "agrees")
    if _near(rate, value_of(peak.sparse)):
        return Verdict("sparse", "2:4 sparse taken for dense")
    if _near(rate, value_of(peak.dense_fp16_accumulate)):
        return Verdict("fp16-accumulate", "fp16 accumulate, which training does not use")
    vector = device.peak.get("fp32_vector", device.peak.get("fp32"))
    sixteen = vector.dense.value if vector and dtype in ("fp16", "bf16") else None
    if _near(rate, sixteen, ROUNDED):
        return Verdict("vector", "a vector rate, fp32's, not the matrix units'")
    for other, row in device.peak.items():
        if other != dtype and _near(rate, row.dense.value):
            return Verdict("other-precision", f"the {other} figure")
    if peak.sparse is None and _near(rate, 2 * peak.dense.value):
        return Verdict("doubled", "twice the dense figure, as a sparse one would be")
    if _near(rate, peak.dense.value / 2):
        return Verdict("halved", "half of the dense figure: halved once too often")
    for times in FP16_VECTOR:
        if sixteen and _near(rate, times * sixteen):
            return Verdict("vector", f"a vector rate, {times} times fp32's")
    return None


def _whose(
    device: Accelerator, dtype: str, rate: float, known: list[Accelerator]
) -> Verdict | None:
    """The figure of another form factor, dense or sparse, or of another device."""
    family = _family(device)
    others = [each for each in known if each.key != device.key]
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
    return None if peak is None else value_of(peak.sparse) if sparse else peak.dense.value


def _rows(path: str, dtype: str) -> list[Row]:
    is_csv = path.casefold().endswith(".csv")
    rows = list(_csv_rows(path, dtype) if is_csv else _yaml_rows(path, dtype))
    if not rows:
        example = "h100-sxm,989.4" if is_csv else "h100-sxm: 989.4"
        problem = f"has no row of device and FLOP/s; write one as `{example}`"
        raise NapkinError(f"{printable(path)}: {problem}")
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if (row.name, row.dtype) in seen:
            raise NapkinError(f"{row.place}: {quoted(row.name)} is given twice for {row.dtype}")
        seen.add((row.name, row.dtype))
    return rows


def _yaml_rows(path: str, dtype: str) -> Iterator[Row]:
    file = yaml_file.load(expanded(path), path, "table")
    for name in file:
        if file.is_section(name):
            inside = file.section(name)
            for precision in inside:
                rate, place = inside.value(precision, _rate)
                try:
                    known = dtypes.precision(precision)
                except NapkinError as error:
                    inside.complain(str(error), precision)
                    raise file.problems[0] from None
                yield Row(printable(name), known, rate, place)
        else:
            yield Row(printable(name), dtype, *file.value(name, _rate))
    if file.problems:
        raise file.problems[0]


def _csv_rows(path: str, dtype: str) -> Iterator[Row]:
    """`device,rate`; under a header `device,bf16,fp8` or `device,precision,rate`."""
    lines = text_of(expanded(path), path, "table").splitlines()
    shown = printable(path)
    # Of a spreadsheet's three separators the one that its first line has most of.
    between = max(SEPARATORS, key=lines[0].count) if lines else ","
    reader = csv.reader(lines, delimiter=between)
    try:
        table = [(n, cells) for n, cells in enumerate(reader, start=1) if any(cells)]
    except csv.Error as error:
        raise NapkinError(f"{shown}: not valid CSV: {error}") from None
    header: list[str] = []
    if table and not _is_rate(table[0][1][-1]):
        header = [" ".join(cell.split()).casefold() for cell in table.pop(0)[1]]
    columns = _columns(header, dtype, f"{shown}:1")
    for number, cells in table:
        place = f"{shown}:{number}"
        if len(cells) != (len(header) or 2):
            raise NapkinError(f"{place}: has {len(cells)} cells, not {len(header) or 2}")
        for precision, column in columns:
            if cells[column].strip():
                known = precision or _placed(cells[1], place, dtypes.precision)
                name = printable(cells[0].strip())
                read = partial(_rate, unit=_unit(header, column))
                yield Row(name, known, _placed(cells[column], place, read), place)


def _unit(header: list[str], column: int) -> str:
    """What a column's bare numbers are in, as its header says: `bf16_pflops`."""
    for word in re.findall(r"[a-z0-9/]+", header[column]) if header else ():
        match = re.fullmatch(r"([kmgtpe]?)flops?(/s)?", word)
        if match:
            return f"{match[1].upper().replace('K', 'k')}FLOP/s"
    return "TFLOP/s"


def _columns(header: list[str], dtype: str, place: str) -> list[tuple[str, int]]:
    """Which column holds the rate of which precision; "" where the second column says it."""
    if len(header) == 3 and header[1] in ("precision", "dtype"):
        return [("", 2)]
    if len(header) == 1:
        raise NapkinError(f"{place}: has one column; write device,FLOP/s")
    if len(header) <= 2 and not _precisions(header[-1] if header else ""):
        return [(dtype, 1)]  # the one column may be called as it likes
    found = []
    for column, name in enumerate(header[1:], start=1):
        precisions = _precisions(name)
        if len(precisions) != 1:
            raise NapkinError(f"{place}: column {quoted(name)} names no precision; leave it out")
        found.append((precisions[0], column))
    return found


def _precisions(name: str) -> list[str]:
    words = [name, *name.replace("_", " ").split()]
    names = dict.fromkeys(map(dtypes.canonical, words))
    return [name for name in names if name in dtypes.PRECISIONS]


def _is_rate(cell: str) -> bool:
    return not cell.strip() or cell.strip()[0] in "+-.0123456789"


def _placed(cell: str, place: str, read: Callable[[str], T]) -> T:
    try:
        return read(cell)
    except NapkinError as error:
        raise error.within(place) from None


def _rate(text: str, unit: str = "TFLOP/s") -> float:
    try:
        return parsing.rate(text)
    except NapkinError as error:
        try:
            return parsing.rate(f"{text} {unit}")
        except NapkinError:
            raise error from None
