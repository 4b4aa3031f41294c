"""Markdown: the headline, every row of the derivation, notes and warnings."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from napkin import quantity
from napkin.questions.answer import Answer, Report

COLUMNS = ("", "", "formula", "numbers", "value", "source")


def write(report: Report, out: TextIO) -> None:
    out.write(text(report))


def text(report: Report) -> str:
    """The report as one Markdown text."""
    if report.table is not None and len(report.answers) != 1:
        lines = [*_table(report.table.columns, report.table.rows), "", report.table.caption]
        return "\n".join(lines) + "\n"
    return "\n".join(line for answer in report.answers for line in _answer(answer))


def _answer(answer: Answer) -> Iterator[str]:
    words = answer.words
    yield f"**{_plain(words.headline)}** {_plain(words.condition)}"
    yield ""
    rows = [
        (
            f"`{q.symbol}`",
            q.label,
            quantity.in_symbols(q),
            quantity.in_numbers(q),
            str(q),
            q.source,
        )
        for q in quantity.derivation(*answer.steps, *answer.asides)
    ]
    yield from _table(COLUMNS, rows)
    yield ""
    yield from (f"- {_plain(note)}" for note in words.notes)
    yield from (f"- **Warning:** {_plain(warning)}" for warning in words.warnings)
    yield ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_plain(cell) for cell in row)} |"


def _plain(text: str) -> str:
    """Letter by letter: what Markdown would read as markup is escaped, code spans stay."""
    if text.startswith("`"):
        return text
    return "".join(f"\\{c}" if c in "\\|*_[]<>`" else c for c in text)
