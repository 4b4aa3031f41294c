"""What a person reads: the headline, the working under it, then what must be known."""

from collections.abc import Collection, Iterator, Sequence
from io import StringIO
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from napkin import quantity
from napkin.errors import printable
from napkin.quantity import Quantity
from napkin.questions.answer import Answer, Picture, Report, Table, Together, Words
from napkin.render import bars
from napkin.render.console import console

# Readable on a white ground and on a black one; nothing is said by a style alone.
ACCENT = "bold"  # symbols
ATTENTION = "italic"  # what is assumed
WARNING = "bold"
ASIDE = "dim"  # working
STRONG = "bold"
FAILS = "bold red"

BETWEEN_COLUMNS = "   "
WORKING = "the working of each: --explain"


def write(report: Report, out: TextIO) -> None:
    out.writelines(_lines(report, console(out)))


def text(report: Report) -> str:
    """The screen as one text, as wide as it is and without a colour."""
    return "".join(_lines(report, console(StringIO(), forced=False)))


def _lines(report: Report, on: Console) -> Iterator[str]:
    with on.capture() as captured:
        screen(report, on)
    return (f"{line.rstrip()}\n" for line in captured.get().splitlines())


def screen(report: Report, on: Console, letters: bool = True) -> None:
    """Prints the report on a console; without letters, what looking shows is drawn elsewhere."""
    for part in _parts(report, on.width, letters):
        on.print(part)


def width(report: Report, on: Console, longest_line: int) -> int:
    """Cells that its tables take, where nothing is folded, and its lines up to the longest."""
    parts = [part for part in _parts(report, on.width) if part]
    tables = [on.measure(part).maximum for part in parts if isinstance(part, RichTable)]
    lines = [on.measure(part).maximum for part in parts if not isinstance(part, RichTable)]
    return max(*tables, min(longest_line, max(lines, default=0)), 1)


def _parts(report: Report, width: int, letters: bool = True) -> Iterator[RenderableType]:
    if report.together is not None:
        yield from _side_by_side(report, report.together, width, letters)
    elif report.table is not None:
        yield from _listed(report, report.table, width, letters)
    else:
        for number, answer in enumerate(report.answers):
            if number:
                yield ""
            yield from _answered(answer, width, report.explain, letters)
    if report.topics:
        yield from ("", _text(f"why: napkin explain {' | '.join(report.topics)}", ASIDE))


def _side_by_side(
    report: Report, together: Together, width: int, letters: bool
) -> Iterator[RenderableType]:
    """Scenarios: a row each, and the whole working of each where it is asked for."""
    yield from (*_head(together.words), "")
    yield from _grid(together.table, together.table.rows, width)
    notes = [*together.words.notes, *([] if report.explain else [WORKING])]
    yield from _remarks(together.words, notes, letters)
    if report.explain:
        for label, answer in zip(together.labels, report.answers, strict=True):
            yield from ("", _text(label, STRONG))
            yield from _answered(answer, width, True, letters)


def _listed(report: Report, table: Table, width: int, letters: bool) -> Iterator[RenderableType]:
    alone = report.answers[0] if len(report.answers) == 1 else None
    if alone:
        yield from (*_head(alone.words), "")
    if table.rows:
        more = table.more if report.explain else ()
        yield from _grid(table, [*table.rows, *more], width)
    if table.caption:
        yield _text(table.caption, ASIDE)
    if alone:
        yield from _remarks(alone.words, _notes(alone, report.explain), letters)


def _answered(answer: Answer, width: int, explain: bool, letters: bool) -> Iterator[RenderableType]:
    yield from _head(answer.words)
    if answer.summary is not None:
        yield ""
        yield from _grid(answer.summary, answer.summary.rows, width)
        if answer.summary.caption:
            yield _text(answer.summary.caption, ASIDE)
    if explain or (answer.summary is None and answer.steps):
        yield ""
        yield _working(answer, width, explain)
    yield from _remarks(answer.words, _notes(answer, explain), letters)


def _head(words: Words) -> Iterator[RenderableType]:
    yield _headline(words)
    if words.settings:
        yield _assumptions(Text(), words.settings)


def _text(words: str, style: str = "") -> Text:
    """All that is printed goes through here: a line, whatever stood in a file."""
    return Text(printable(words), style)


def _headline(words: Words) -> Text:
    line = _text(words.headline, FAILS if words.failure else STRONG)
    if not words.condition:
        return line
    return _assumptions(line.append("  "), words.condition)


def _assumptions(line: Text, words: str) -> Text:
    """The words, with what is assumed marked."""
    before, assumed, after = printable(words).partition("(assumed)")
    plain = "not bold default"
    return line.append(before, plain).append(assumed, f"{plain} {ATTENTION}").append(after, plain)


def _steps(answer: Answer, explain: bool) -> Sequence[Quantity]:
    if answer.napkin and not explain:
        return answer.napkin
    # A count that was typed is in the headline and in the numbers; a rate has a row.
    derived = quantity.derivation(*answer.steps, *(answer.asides if explain else ()))
    return [q for q in derived if q.args or "/" in q.unit or not q.source.startswith("--")]


def _working(answer: Answer, width: int, explain: bool) -> RichTable:
    steps = _steps(answer, explain)
    shown = set() if explain else {step.symbol for step in steps}
    rows = [(_text(s.symbol), _label(s), _formula(s, shown), _text(str(s))) for s in steps]
    headers = ("", "", "working", "value")
    widths = _widths(rows, width, len(headers)) if rows else [0] * len(headers)
    if explain:  # which shows the headers
        widths = [max(cells, len(header)) for cells, header in zip(widths, headers, strict=True)]
    table = _laid_out(headers, widths, {"value"}, show_header=explain)
    for row in rows:
        table.add_row(*row)
    return table


def _label(step: Quantity) -> Text:
    label = _text(step.label)
    reasons = (number.label for number in quantity.coefficients(step))
    for reason in dict.fromkeys(filter(None, reasons)):
        label.append(f"\n  {printable(reason)}", ASIDE)
    return label


def _formula(step: Quantity, shown: Collection[str]) -> Text:
    if not step.args:
        return _text(step.source, ASIDE)
    working = _text(quantity.in_symbols(step))
    if all(term in shown for term in working.plain.split(" + ")):
        return working  # whose numbers stand above it
    numbers = printable(quantity.in_numbers(step))
    return working if numbers == working.plain else working.append(f"\n{numbers}", ASIDE)


def _notes(answer: Answer, explain: bool) -> Sequence[str]:
    return answer.notes if explain else answer.words.notes


def _remarks(words: Words, notes: Sequence[str], letters: bool) -> Iterator[RenderableType]:
    drawn = words.picture if letters and isinstance(words.picture, Picture) else None
    if notes or words.warnings or drawn:
        yield ""
    if drawn:
        yield from (_text(line, ASIDE) for line in bars.lines(drawn))
    yield from (_text(note, ASIDE) for note in notes)
    yield from (_text(f"warning: {warning}", WARNING) for warning in words.warnings)


def _grid(table: Table, lines: Sequence[Sequence[str]], width: int) -> Iterator[RenderableType]:
    """As many columns as there is room for, those that are left out by name."""
    rows = [[_text(cell) for cell in row] for row in (table.columns, *lines)]
    widths = _widths(rows, width)
    grid = _laid_out(table.columns, widths, table.right)
    for row in rows[1:]:
        grid.add_row(*row[: len(widths)])
    yield grid
    left_out = list(filter(None, table.columns[len(widths) :]))
    if left_out:
        yield _text(f"no room for: {', '.join(left_out)}", ASIDE)


def _laid_out(
    headers: Sequence[str], widths: Sequence[int], right: Collection[str], show_header: bool = True
) -> RichTable:
    """Columns of these widths, as many as there are."""
    table = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        show_edge=False,
        show_header=show_header,
    )
    for index, (header, cells) in enumerate(zip(headers, widths, strict=False)):
        table.add_column(
            _text(header),
            style="" if index else ACCENT,
            justify="right" if header in right else "left",
            overflow="fold",
            width=cells,
        )
    return table


def _widths(rows: Sequence[Sequence[Text]], width: int, fewest: int = 2) -> list[int]:
    """Of the columns that fit where nothing is split, the last ones as wide as they would be: where
    it is narrow, a label breaks before a formula, and a formula before a figure."""
    columns = list(zip(*rows, strict=True))
    room = width - (len(columns) - 1) * len(BETWEEN_COLUMNS)
    least = [max(_unbroken(cell, 2) for cell in column) for column in columns]
    while len(least) > fewest and sum(least) > room:
        least.pop()
        room += len(BETWEEN_COLUMNS)
    if sum(least) > room:  # a figure may part from its unit
        least = [max(_unbroken(cell, 1) for cell in column) for column in columns[: len(least)]]
    left = max(0, room - sum(least))
    for index in reversed(range(len(least))):
        whole = max(cell_len(line) for cell in columns[index] for line in _lines_of(cell))
        more = min(left, whole - least[index])
        least[index] += more
        left -= more
    return least


def _lines_of(cell: Text) -> list[str]:
    return cell.plain.split("\n")


def _unbroken(cell: Text, together: int) -> int:
    """Cells that it takes where so many words stay together, as a figure beside its unit does, and
    what has more may break."""
    lines = [line.split() for line in _lines_of(cell)]
    return max(
        cell_len(" ".join(words)) if len(words) <= together else max(map(cell_len, words))
        for words in lines
    )
