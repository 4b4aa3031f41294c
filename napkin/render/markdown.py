"""Markdown: the headline, every row of the derivation, notes and warnings."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from napkin import quantity
from napkin.errors import printable
from napkin.questions.answer import Answer, Picture, Report, Table, Together, Words
from napkin.render import bars

COLUMNS = ("", "", "formula", "numbers", "value", "source")


def write(report: Report, out: TextIO) -> None:
    out.write(text(report))


def text(report: Report) -> str:
    """The report as one Markdown text."""
    if report.together is not None:
        return "\n".join(_scenarios(report.together, report.answers))
    if report.table is not None and len(report.answers) != 1:
        return "\n".join(_rows(report.table)) + "\n"
    return "\n".join(line for answer in report.answers for line in _answer(answer))


def _scenarios(together: Together, answers: Sequence[Answer]) -> Iterator[str]:
    """The table, what is said of all, and each by itself."""
    yield from _head(together.words)
    yield from (*_rows(together.table), "")
    yield from _remarks(together.words.notes, together.words.warnings)
    for label, answer in zip(together.labels, answers, strict=True):
        yield from (f"### {_plain(label)}", "")
        yield from _answer(answer)


def _head(words: Words) -> Iterator[str]:
    yield f"**{_plain(words.headline)}** {_plain(words.condition)}"
    if words.settings:
        yield _plain(words.settings)
    yield ""


def _answer(answer: Answer) -> Iterator[str]:
    words = answer.words
    yield from _head(words)
    if answer.summary is not None:
        yield from _rows(answer.summary)
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
    yield from _table(COLUMNS, rows, [name == "value" for name in COLUMNS])
    yield ""
    if isinstance(words.picture, Picture):
        yield from ("```", *map(printable, bars.lines(words.picture)), "```", "")
    yield from _remarks(answer.notes, answer.warnings)


def _remarks(notes: Sequence[str], warnings: Sequence[str]) -> Iterator[str]:
    yield from (f"- {_note(note)}" for note in notes)
    yield from (f"- **Warning:** {_plain(warning)}" for warning in warnings)
    yield ""


def _rows(table: Table) -> Iterator[str]:
    """A table of text, and what its numbers are in."""
    columns, *rows = ([*map(_plain, row)] for row in (table.columns, *table.rows))
    yield from _table(columns, rows, [name in table.right for name in table.columns])
    if table.caption:
        yield from ("", _plain(table.caption))


def _note(note: str) -> str:
    """Bars and columns keep their places: Markdown would make one blank of several."""
    return f"`{printable(note)}`" if "  " in note else _plain(note)


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> Iterator[str]:
    """Of cells that are Markdown already, some columns aligned right."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{''.join(' ---: |' if each else ' --- |' for each in right)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _plain(text: str) -> str:
    """Letter by letter: what Markdown would read as markup is escaped."""
    return "".join(f"\\{c}" if c in "\\|*_[]<>`" else c for c in printable(text))
