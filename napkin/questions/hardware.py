"""What is known about accelerators: the list, one with every figure, several side by side."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from napkin import units
from napkin.accounting import compute
from napkin.errors import NapkinError, quoted
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Answer, Report, Table, Words, value_of
from napkin.questions.peak import DEFAULT_DTYPE, how_found
from napkin.specs import accelerators, hardware_file, measured
from napkin.specs.accelerator import Accelerator, Figure
from napkin.specs.dtypes import PRECISIONS, VECTOR
from napkin.specs.folders import hardware_names
from napkin.specs.measured import Measured
from napkin.specs.names import holding
from napkin.specs.text_file import expanded

LISTED = ("bf16", "fp8")
# Rows that --explain shows.
EXPLAINED = (
    *("P_fp64_vector", "P_fp32_vector", "M_torch_1", "M_torch_2", "M_torch_3"),
    *("L", "L₁", "L_peer", "L_any", "n_node", "n_link"),
)
RATE, BANDWIDTH = "FLOP/s/GPU", "B/s/GPU"
NOTHING = "-"
PEAKS = (*PRECISIONS, *VECTOR)
# Of csv: inputs, then the result; of every precision, whichever of them a device has.
COLUMNS = (
    *("hardware", "file", "name", "vendor"),
    *(f"peak.{dtype}.{kind}" for dtype in PEAKS for kind in ("dense", "sparse")),
    *("memory_bytes", "memory_visible_bytes", "memory_bandwidth", "tdp_watts", "device_names"),
    *(f"measured.{dtype}" for dtype in PEAKS),
)


def hardware(
    *,
    names: Sequence[str] = (),
    sources: bool = False,
    check: str | None = None,
    lint: str | None = None,
    dtype: str | None = None,
) -> Report:
    """Every accelerator, or those asked for, as figures with their file and line.

    Raises NapkinError for a name that is not known, and for everything that is wrong
    with a file to check, a line each.
    """
    for option, value in (("check", check), ("lint", lint)):
        if value is not None and not value.strip():
            raise options.error(option, "is empty; write a file")
        if value is not None and (names or (option == "lint" and check is not None)):
            raise options.error(option, "stands alone; leave the names and the other out")
    if dtype is not None and lint is None:
        raise options.error("dtype", "goes with --lint: the precision of its bare numbers")
    if lint is not None:
        from napkin.questions.lint import judged  # loads csv, which no other answer needs

        return judged(lint, DEFAULT_DTYPE if dtype is None else dtype)
    if check is not None:
        return _checked(check)
    several = _holding(names[0]) if len(names) == 1 else []
    which = f"names with {quoted(names[0])}; " if several else ""
    report = _shown(several or names, which)
    report.explain = options.switch("sources", sources)
    return report


def _holding(word: str) -> list[str]:
    """Of a word that is nobody's name but stands in some: those."""
    if accelerators.lookup(word) is not None:
        return []
    return holding(word, hardware_names())


def _shown(names: Sequence[str], which: str = "") -> Report:
    if names:
        found = [accelerators.find(name) for name in names]
        warnings = [accelerators.unseen()] if accelerators.unseen() else []
    else:
        found, broken = accelerators.everything_and_broken()
        warnings = [f"left out: {error}" for error in broken]
    warnings += _unread(found)
    if which or not names:
        table = _list(found, which)
    elif len(found) == 1:
        table = _one(found[0])
    else:
        table = _side_by_side(found)
    files = tuple(each.path for each in found)
    wanted = names or [each.key for each in found]
    answers = [_answer(each, name) for each, name in zip(found, wanted, strict=True)]
    return Report("hardware", answers, table, warnings, files=files)


def _checked(file: str) -> Report:
    path = expanded(file)
    problems = hardware_file.problems(path, file)
    if problems:
        raise NapkinError(*map(str, problems))
    report = _shown([f"{path.parent}/{path.name}"])
    (answer,) = report.answers
    words = answer.words
    doubts = _doubts(accelerators.find(str(path.absolute())))
    answer.words = words.replace(
        condition=f"{words.condition} · no problems found", warnings=[*words.warnings, *doubts]
    )
    return report


def _doubts(device: Accelerator) -> Iterator[str]:
    """What is allowed in a file, and may yet be a slip."""
    for dtype, peak in device.peak.items():
        ratio = peak.sparse.value / peak.dense.value if peak.sparse else 2
        if abs(ratio - 2) > 0.01:
            yield f"peak.{dtype}: sparse is {ratio:.3g} times dense; a note should say why"
    for block in ("peak", "memory"):
        if block not in device.sources:
            yield f"no source of {block}: who says so?"
    for name in device.names:
        shipped = accelerators.shipped(accelerators.alike(name))
        if shipped is not None and shipped.path != device.path:
            yield f"{name} is a name of the shipped {shipped.key}: in your folder, yours wins"


def _answer(device: Accelerator, wanted: str) -> Answer:
    result = {
        "name": device.name,
        "vendor": device.vendor or None,
        "peak": {
            dtype: {"dense": peak.dense.value, "sparse": value_of(peak.sparse)}
            for dtype, peak in device.peak.items()
        },
        "memory_bytes": device.memory.value,
        "memory_visible_bytes": value_of(device.memory_visible),
        "memory_bandwidth": value_of(device.memory_bandwidth),
        "tdp_watts": value_of(device.tdp),
        "device_names": list(device.device_names),
        "measured": {dtype: figure.rate for dtype, figure in _measured(device).items()},
    }
    inputs = {"hardware": device.key, "file": device.file}
    steps = tuple(quantity for row in _rows(device) for quantity in row.quantities())
    return Answer(
        "hardware", inputs, result, partial(_words, device, wanted), steps, columns=COLUMNS
    )


def _words(device: Accelerator, wanted: str) -> Words:
    names = ", ".join((device.key, *device.aliases))
    about = (names, device.architecture, device.form_factor, device.released)
    notes = how_found(device, wanted, holding(wanted, hardware_names()))
    notes += [f"device name: {name}" for name in device.device_names]
    details = [f"link: {device.interconnect.name}"] if device.interconnect else []
    details += [f"accumulate: {device.accumulate}"] if device.accumulate else []
    details += device.notes
    for block, texts in device.sources.items():
        details += [f"source of {block.replace('_', ' ')}: {text}" for text in texts]
    notes.append("notes and sources: --sources")
    return Words(device.name, " · ".join(filter(None, about)), notes, details=details)


class _Row(NamedTuple):
    """One figure of a file under the label that a reader knows it by."""

    label: str
    symbol: str
    unit: str
    figure: Figure
    sparse: Figure | None = None  # its 2:4 sparse twin

    def quantities(self) -> Iterator[Quantity]:
        yield given(self.symbol, self.label, self.figure.value, self.unit, self.figure.source)
        if self.sparse:
            symbol, label = f"{self.symbol}_sparse", f"{self.label}, 2:4 sparse"
            yield given(symbol, label, self.sparse.value, self.unit, self.sparse.source)

    def dense_text(self) -> str:
        return _text(self.figure.value, self.unit)

    def sparse_text(self) -> str:
        return _text(self.sparse.value, self.unit) if self.sparse else ""


def _text(amount: float, unit: str) -> str:
    if unit == RATE:
        return units.tera(amount)
    if unit == "B/GPU":
        return units.gb_and_gib(amount)
    return units.humanize(amount, unit.removesuffix("/GPU"))


def _rows(device: Accelerator) -> list[_Row]:
    """Every figure of the file, peaks first."""
    return [*_peaks(device), *_memory(device), *_link(device)]


def _peaks(device: Accelerator) -> Iterator[_Row]:
    for dtype, peak in device.peak.items():
        yield _Row(dtype, f"P_{dtype}", RATE, peak.dense, peak.sparse)
        other = peak.dense_fp16_accumulate
        if other:
            label, sparse = f"{dtype}, fp16 accumulate", peak.sparse_fp16_accumulate
            yield _Row(label, f"P_{dtype}_fp16_accumulate", RATE, other, sparse)
    for dtype, figure in device.reported.items():
        yield _Row(f"{dtype}, others measured", f"R_{dtype}", RATE, figure)
    for dtype, here in _measured(device).items():
        yield _Row(f"{dtype}, measured here", f"H_{dtype}", RATE, Figure(here.rate, here.source))


def _measured(device: Accelerator) -> dict[str, Measured]:
    """What bench has on file for it; `_unread` names what cannot be read."""
    found = {}
    for dtype in device.peak:
        with suppress(NapkinError):
            found[dtype] = measured.find(device, dtype)
    return {dtype: figure for dtype, figure in found.items() if figure}


def _unread(devices: list[Accelerator]) -> list[str]:
    """Of the figures on file for these, why some cannot be read."""
    problems = []
    for device in devices:
        for dtype in device.peak:
            try:
                measured.find(device, dtype)
            except NapkinError as error:
                problems.append(f"a measured figure cannot be read: {error}")
    return list(dict.fromkeys(problems))


def _memory(device: Accelerator) -> Iterator[_Row]:
    yield _Row("memory, printed", "M₁", "B/GPU", device.memory)
    if device.memory_visible:
        yield _Row("memory, driver", "M_driver", "B/GPU", device.memory_visible)
    for number, figure in enumerate(device.memory_torch):
        which = ("least", "most")[number] if len(device.memory_torch) == 2 else f"seen {number + 1}"
        yield _Row(f"memory, torch, {which}", f"M_torch_{number + 1}", "B/GPU", figure)
    if device.memory_bandwidth:
        yield _Row("memory bandwidth", "BW", BANDWIDTH, device.memory_bandwidth)


def _link(device: Accelerator) -> Iterator[_Row]:
    link = device.interconnect
    if link:
        for label, symbol, unit, figure in (
            ("link, both directions", "L", BANDWIDTH, link.bidirectional),
            ("link, one direction", "L₁", BANDWIDTH, link.unidirectional),
            ("link, one direction and peer", "L_peer", BANDWIDTH, link.unidirectional_per_peer),
            ("link, direction not stated", "L_any", BANDWIDTH, link.direction_not_stated),
            ("in a node", "n_node", "GPU", link.per_node),
            ("reached by the link", "n_link", "GPU", link.domain),
        ):
            if figure:
                yield _Row(label, symbol, unit, figure)
    if device.tdp:
        yield _Row("TDP", "TDP", "W/GPU", device.tdp)


def _list(found: list[Accelerator], which: str = "") -> Table:
    """A line each; the peaks are dense, in TFLOP/s."""

    def figure(of: Figure | None, unit: str) -> str:
        return units.humanize(of.value, unit) if of else NOTHING

    def row(device: Accelerator) -> tuple[str, ...]:
        return (
            _named(device),
            *(_listed(device, dtype) for dtype in LISTED),
            figure(device.memory, "B"),
            units.gib(device.memory.value).removesuffix(" GiB"),
            _text(device.memory_bandwidth.value, RATE) if device.memory_bandwidth else NOTHING,
            figure(device.tdp, "W"),
        )

    columns = ("name", *LISTED, "memory", "GiB", "TB/s", "TDP")
    caption = "dense peaks in TFLOP/s (* fp16, there is no bf16); memory bandwidth in TB/s"
    return Table(columns, [row(each) for each in found], frozenset(columns[1:]), which + caption)


def _named(device: Accelerator) -> str:
    return f"{device.key} (yours)" if device.own else device.key


def _listed(device: Accelerator, dtype: str) -> str:
    if dtype in device.peak:
        return _text(device.peak[dtype].dense.value, RATE)
    # Volta and Turing have 16-bit matrix units, for fp16 alone.
    if dtype == "bf16" and "fp16" in device.peak:
        return f"{_text(device.peak['fp16'].dense.value, RATE)}*"
    return NOTHING


def _one(device: Accelerator) -> Table:
    def line(row: _Row) -> str:
        return row.figure.source.rpartition(":")[2]

    def cells(row: _Row) -> tuple[str, ...]:
        return row.label, row.dense_text(), row.sparse_text(), line(row)

    first = [row for row in _rows(device) if row.symbol not in EXPLAINED]
    rest = [row for row in _rows(device) if row.symbol in EXPLAINED]
    columns = ("", "dense", "2:4 sparse", "line")
    caption = f"peaks in TFLOP/s; lines of {device.file}"
    rows = [*map(cells, first), *_ridge(device)]
    return Table(columns, rows, frozenset(columns[1:]), caption, more=[*map(cells, rest)])


def _ridge(device: Accelerator) -> list[tuple[str, ...]]:
    """FLOP a byte from which a matmul is bound by the peak (the roofline's ridge point)."""
    peak = device.peak.get(DEFAULT_DTYPE)
    if peak is None or device.memory_bandwidth is None:
        return []
    P = given("P", "peak", peak.dense.value, RATE, peak.dense.source)
    bandwidth = device.memory_bandwidth
    W = given("BW", "memory bandwidth", bandwidth.value, BANDWIDTH, bandwidth.source)
    ridge = compute.promised_ridge(P, W)
    return [(f"ridge point, {DEFAULT_DTYPE}", str(ridge), "", "")]


def _side_by_side(found: list[Accelerator]) -> Table:
    every = [_rows(each) for each in found]
    peaks = [row.label for rows in every for row in rows if row.unit == RATE]
    labels = dict.fromkeys(peaks + [row.label for rows in every for row in rows])
    cells = [{row.label: row for row in rows} for rows in every]

    def cell(rows: dict[str, _Row], label: str) -> str:
        if label not in rows:
            return NOTHING
        return " | ".join(filter(None, (rows[label].dense_text(), rows[label].sparse_text())))

    columns = ("", *(_named(each) for each in found))
    table = [(label, *(cell(rows, label) for rows in cells)) for label in labels]
    table.append(("accumulate", *(_briefly(each.accumulate) for each in found)))
    table.append(("device names", *(", ".join(each.device_names) or NOTHING for each in found)))
    return Table(columns, table, frozenset(columns[1:]), "peaks in TFLOP/s: dense | 2:4 sparse")


def _briefly(text: str) -> str:
    """The first words; the whole is in the answer for the one device."""
    return re.split(r"[:(;]", text)[0].strip() or NOTHING
