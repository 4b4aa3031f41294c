"""Markdown: the headline, every row of the derivation, notes and warnings."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from napkin import quantity
from napkin.errors import printable
from napkin.questions.answer import Answer, Report

COLUMNS = ("", "", "formula", "numbers", "value", "source")


def write(report: Report, out: TextIO) -> None:
    out.write(text(report))


def text(report: Report) -> str:
    """The report as one Markdown text."""
    if report.table is not None and len(report.answers) != 1:
        columns, *rows = ([*map(_plain, row)] for row in (report.table.columns, *report.table.rows))
        lines = [*_table(columns, rows), "", printable(report.table.caption)]
        return "\n".join(lines) + "\n"
    return "\n".join(line for answer in report.answers for line in _answer(answer))


def _answer(answer: Answer) -> Iterator[str]:
    words = answer.words
    yield f"**{_plain(words.headline)}** {_plain(words.condition)}"
    if words.settings:
        yield _plain(words.settings)
    yield ""
    rows = [
        (
            f"`{q.symbol}`",
            _plain(q.label),
            _plain(quantity.in_symbols(q)),
            _plain(quantity.in_numbers(q)),
            _plain(str(q)),
            _plain(q.source),
        )
        for q in quantity.derivation(*answer.steps, *answer.asides)
    ]
    yield from _table(COLUMNS, rows)
    yield ""
    yield from (f"- {_plain(note)}" for note in answer.notes)
    yield from (f"- **Warning:** {_plain(warning)}" for warning in answer.warnings)
    yield ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Of cells that are Markdown already."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _plain(text: str) -> str:
    """Letter by letter: what Markdown would read as markup is escaped."""
    return "".join(f"\\{c}" if c in "\\|*_[]<>`" else c for c in printable(text))
