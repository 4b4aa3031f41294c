"""A Report into text: one module per format, each with a `write(report, out)`.

The only place that imports rich, and only where a person is to read the answer.
"""

from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, TextIO

from napkin.errors import NapkinError, quoted, suggestion

if TYPE_CHECKING:
    from napkin.questions.answer import Report

FORMATS = ("table", "json", "markdown", "csv", "svg")
SUFFIXES = {
    ".txt": "table",
    ".json": "json",
    ".md": "markdown",
    ".csv": "csv",
    ".svg": "svg",
}


def chosen(format: str | None, output: str | None) -> str:
    """The format asked for, else the one of the file's suffix, else a table."""
    if format is not None:
        if format not in FORMATS:
            hint = suggestion(format, FORMATS) or f"; write one of {' '.join(FORMATS)}"
            raise NapkinError(f"--format: {quoted(format)} is not a format{hint}")
        return format
    if output is None:
        return "table"
    suffix = PurePath(output).suffix.casefold()
    if suffix not in SUFFIXES:
        raise NapkinError(
            f"--output: {quoted(output)} has no suffix of {' '.join(SUFFIXES)}; say --format too"
        )
    return SUFFIXES[suffix]


def write(report: "Report", format: str, out: TextIO) -> None:
    """Writes the report in one of FORMATS."""
    import_module(f"napkin.render.{format}").write(report, out)
