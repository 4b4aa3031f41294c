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
FILES = "yaml"  # what `napkin hardware` reads is what it can write
NO_FILES = "--format: yaml is what `napkin hardware NAME` writes; write json"
SUFFIXES = {
    ".txt": "table",
    ".json": "json",
    ".md": "markdown",
    ".csv": "csv",
    ".svg": "svg",
    ".yaml": FILES,
    ".yml": FILES,
}


def chosen(format: str | None, output: str | None, question: str) -> str:
    """The format asked for, else the one of the file's suffix, else a table."""
    found = format if format is not None else _by_suffix(output)
    if found == FILES and question != "hardware":
        raise NapkinError(NO_FILES)
    if found not in (*FORMATS, FILES):
        hint = suggestion(found, FORMATS) or f"; write one of {' '.join(FORMATS)}"
        raise NapkinError(f"--format: {quoted(format)} is not a format{hint}")
    return found


def _by_suffix(output: str | None) -> str:
    if output is None:
        return "table"
    suffix = PurePath(output).suffix.casefold()
    if suffix not in SUFFIXES:
        known = [each for each, format in SUFFIXES.items() if format in FORMATS]
        raise NapkinError(
            f"--output: {quoted(output)} has no suffix of {' '.join(known)}; say --format too"
        )
    return SUFFIXES[suffix]


def write(report: "Report", format: str, out: TextIO) -> None:
    """Writes the report in one of FORMATS."""
    import_module(f"napkin.render.{format}").write(report, out)
