"""What is known about accelerators: the list, one with every figure, several side by side."""

from collections.abc import Callable, Sequence
from functools import partial

from napkin import units
from napkin.quantity import Quantity, given
from napkin.questions.answer import Answer, Report, Table, Words
from napkin.specs import accelerators
from napkin.specs.accelerator import Accelerator, Figure, Peak

LISTED = ("bf16", "fp8")


def hardware(names: Sequence[str] = ()) -> Report:
    """Every accelerator, or those asked for, as figures with their file and line.

    Raises NapkinError for a name that is not known.
    """
    found = [accelerators.find(name) for name in names] or accelerators.everything()
    if not names:
        table = _list(found)
    elif len(found) == 1:
        table = _one(found[0])
    else:
        table = _side_by_side(found)
    return Report("hardware", [_answer(each) for each in found], table)


def _answer(device: Accelerator) -> Answer:
    result = {
        "name": device.name,
        "vendor": device.vendor or None,
        "peak": {
            dtype: {"dense": peak.dense.value, "sparse": _value(peak.sparse)}
            for dtype, peak in device.peak.items()
        },
        "memory_bytes": device.memory.value,
        "memory_visible_bytes": _value(device.memory_visible),
        "memory_bandwidth": _value(device.memory_bandwidth),
        "tdp_watts": _value(device.tdp),
        "device_names": list(device.device_names),
        "measured": {},
        "sources": {block: list(texts) for block, texts in device.sources.items()},
    }
    inputs = {"hardware": device.key, "file": device.file}
    return Answer("hardware", inputs, result, partial(_words, device), _quantities(device))


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


def _words(device: Accelerator) -> Words:
    names = ", ".join((device.key, *device.aliases))
    about = (names, device.architecture, device.form_factor, device.released)
    notes = [*device.notes]
    if device.accumulate:
        notes.append(f"accumulate: {device.accumulate}")
    if device.own:
        notes.append(f"your own file: {device.file}")
    return Words(device.name, " · ".join(filter(None, about)), notes)


def _quantities(device: Accelerator) -> tuple[Quantity, ...]:
    peaks = [
        given(
            f"P_{dtype}{suffix}", f"{kind} {dtype} peak", figure.value, "FLOP/s/GPU", figure.source
        )
        for dtype, peak in device.peak.items()
        for suffix, kind, figure in (
            ("", "dense", peak.dense),
            ("_sparse", "2:4 sparse", peak.sparse),
        )
        if figure is not None
    ]
    others = [
        given(symbol, label, figure.value, unit, figure.source)
        for symbol, label, figure, unit in (
            ("M₁", "memory, as printed", device.memory, "B/GPU"),
            ("M_visible", "memory, as the driver reports", device.memory_visible, "B/GPU"),
            ("BW", "memory bandwidth", device.memory_bandwidth, "B/s/GPU"),
            ("W", "TDP", device.tdp, "W/GPU"),
        )
        if figure is not None
    ]
    return (*peaks, *others)


# --- what a person sees ---

Cells = tuple[str, str, str]  # value, its 2:4 sparse twin, source


def _list(found: list[Accelerator]) -> Table:
    """A line each; the peaks are dense, in TFLOP/s."""

    def row(device: Accelerator) -> tuple[str, ...]:
        peaks = [_tera(device.peak[d].dense.value) if d in device.peak else "-" for d in LISTED]
        return (
            device.key,
            *peaks,
            units.humanize(device.memory.value, "B"),
            _said(device.memory_bandwidth, "B/s"),
            _said(device.tdp, "W"),
        )

    columns = ("name", *(f"{d} dense" for d in LISTED), "memory", "bandwidth", "TDP")
    return Table(columns, [row(each) for each in found], frozenset(columns[1:]), "TFLOP/s a GPU")


def _one(device: Accelerator) -> Table:
    rows: list[tuple[str, ...]] = [(label, *cells) for label, cells in _figures(device).items()]
    columns = ("", "dense", "2:4 sparse", "source")
    return Table(columns, rows, frozenset(columns[1:3]), "peaks in TFLOP/s")


def _side_by_side(found: list[Accelerator]) -> Table:
    figures = [_figures(each) for each in found]
    peaks = [label for each in found for label in _peaks(each)]
    labels = list(dict.fromkeys(peaks + [label for each in figures for label in each]))

    def cell(each: dict[str, Cells], label: str) -> str:
        value, sparse, _ = each.get(label, ("-", "", ""))
        return f"{value} | {sparse}" if sparse else value

    columns = ("", *(each.key for each in found))
    rows = [(label, *(cell(each, label) for each in figures)) for label in labels]
    return Table(columns, rows, frozenset(columns[1:]), "dense | 2:4 sparse, TFLOP/s a GPU")


def _figures(device: Accelerator) -> dict[str, Cells]:
    """Every figure of the file under the label that a reader knows it by."""
    rows = _peaks(device)
    memory = partial(_figure, say=units.gb_and_gib)
    rows["memory, printed"] = memory(device.memory)
    rows["memory, driver"] = memory(device.memory_visible)
    rows["memory, torch"] = _torch(device.memory_torch)
    rows["memory bandwidth"] = _figure(device.memory_bandwidth, partial(units.humanize, unit="B/s"))
    link = device.interconnect
    if link is not None:
        rows["interconnect"] = (link.name, "", "")
        rows["  both directions"] = _figure(link.bidirectional, partial(units.humanize, unit="B/s"))
        rows["  one direction"] = _figure(link.unidirectional, partial(units.humanize, unit="B/s"))
        rows["  devices reached"] = _figure(link.domain, units.figures)
    rows["TDP"] = _figure(device.tdp, partial(units.humanize, unit="W"))
    rows["device names"] = (", ".join(device.device_names), "", "")
    return {label: cells for label, cells in rows.items() if cells[0]}


def _peaks(device: Accelerator) -> dict[str, Cells]:
    rows: dict[str, Cells] = {}
    for dtype, peak in device.peak.items():
        rows |= _peak_rows(dtype, peak)
    return rows


def _peak_rows(dtype: str, peak: Peak) -> dict[str, Cells]:
    rows = {dtype: (_tera(peak.dense.value), _sparse(peak.sparse), peak.dense.source)}
    other = peak.dense_fp16_accumulate
    if other is not None:
        cells = (_tera(other.value), _sparse(peak.sparse_fp16_accumulate), other.source)
        rows[f"{dtype}, fp16 accumulate"] = cells
    return rows


def _sparse(figure: Figure | None) -> str:
    return "" if figure is None else _tera(figure.value)


def _tera(rate: float) -> str:
    """In units of 1e12, every digit of the source."""
    return f"{rate / 1e12:.6g}"


def _said(figure: Figure | None, unit: str) -> str:
    return "-" if figure is None else units.humanize(figure.value, unit)


def _figure(figure: Figure | None, say: Callable[[float], str]) -> Cells:
    return ("", "", "") if figure is None else (say(figure.value), "", figure.source)


def _torch(seen: tuple[Figure, ...]) -> Cells:
    if not seen:
        return ("", "", "")
    return (" to ".join(dict.fromkeys(units.gib(f.value) for f in seen)), "", seen[0].source)
