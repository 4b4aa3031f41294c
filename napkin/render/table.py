"""What a person reads: the headline, the working under it, then what must be known."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from napkin import quantity
from napkin.errors import printable
from napkin.quantity import Quantity
from napkin.questions.answer import Answer, Report, Table
from napkin.render.console import console

ACCENT = "cyan"  # symbols
ATTENTION = "yellow"  # assumptions and warnings
ASIDE = "dim"  # working
STRONG = "bold"

BETWEEN_COLUMNS = "   "
SHORTEST_LABEL = 10


def write(report: Report, out: TextIO) -> None:
    on = console(out)
    with on.capture() as captured:
        screen(report, on)
    out.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def screen(report: Report, on: Console) -> None:
    """Prints the report on a console."""
    for part in _parts(report, on.width):
        on.print(part)


def _parts(report: Report, width: int) -> Iterator[RenderableType]:
    if report.table is not None:
        alone = report.answers[0] if len(report.answers) == 1 else None
        if alone:
            yield _headline(alone)
            yield ""
        if report.table.rows:
            yield _grid(report.table, width)
        if report.table.caption:
            yield _text(report.table.caption, ASIDE)
        if alone:
            yield from _remarks(alone)
        return
    for number, answer in enumerate(report.answers):
        if number:
            yield ""
        yield _headline(answer)
        yield ""
        yield _working(answer, width)
        yield from _remarks(answer)


def _text(words: str, style: str = "") -> Text:
    """All that is printed goes through here: a line, whatever stood in a file."""
    return Text(printable(words), style)


def _headline(answer: Answer) -> Text:
    line = _text(answer.words.headline, STRONG)
    if answer.words.condition:
        line.append("  ")
        before, assumed, after = printable(answer.words.condition).partition("(assumed)")
        line.append(before, "not bold").append(assumed, f"not bold {ATTENTION}")
        line.append(after, "not bold")
    return line


def _working(answer: Answer, width: int) -> RichTable:
    # A count that was typed is in the headline and in the numbers; a rate has a row.
    derived = quantity.derivation(*answer.steps)
    steps = [q for q in derived if q.args or "/" in q.unit or not q.source.startswith("--")]
    rows = [(_text(s.symbol), _label(s), _formula(s), _text(str(s))) for s in steps]
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("", style=ACCENT, overflow="fold")
    table.add_column("", overflow="fold", max_width=_left_for_labels(rows, 1, width))
    table.add_column("working", overflow="fold")
    table.add_column("value", justify="right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _left_for_labels(rows: Sequence[Sequence[Text]], label: int, width: int) -> int | None:
    """Where it is narrow, a label of several words breaks, not a number or a file's name."""
    widest = [
        max(cell_len(line) for cell in column for line in cell.plain.split("\n"))
        for column in zip(*rows, strict=True)
    ]
    left = width - sum(widest) + widest[label] - (len(widest) - 1) * len(BETWEEN_COLUMNS)
    return left if left >= SHORTEST_LABEL else None


def _label(step: Quantity) -> Text:
    label = _text(step.label)
    reasons = (number.label for number in quantity.coefficients(step))
    for reason in dict.fromkeys(filter(None, reasons)):
        label.append(f"\n  {printable(reason)}", ASIDE)
    return label


def _formula(step: Quantity) -> Text:
    if not step.args:
        return _text(step.source, ASIDE)
    working = _text(quantity.in_symbols(step))
    return working.append(f"\n{printable(quantity.in_numbers(step))}", ASIDE)


def _remarks(answer: Answer) -> Iterator[RenderableType]:
    words = answer.words
    if words.notes or words.warnings:
        yield ""
    yield from (_text(note, ASIDE) for note in words.notes)
    yield from (_text(f"warning: {warning}", ATTENTION) for warning in words.warnings)


def _grid(table: Table, width: int) -> RichTable:
    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    rows = [[_text(cell) for cell in row] for row in (table.columns, *table.rows)]
    for index, name in enumerate(table.columns):
        grid.add_column(
            rows[0][index],
            justify="right" if name in table.right else "left",
            style="" if index else ACCENT,
            overflow="fold",
            max_width=None if index else _left_for_labels(rows, 0, width),
        )
    for row in rows[1:]:
        grid.add_row(*row)
    return grid
