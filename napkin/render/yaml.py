"""Hardware files as they are, comments and all: a start for one of one's own."""

from pathlib import Path
from typing import TextIO

from napkin.errors import NapkinError, printable
from napkin.questions.answer import Report
from napkin.render import NO_FILES
from napkin.specs.text_file import text_of


def write(report: Report, out: TextIO) -> None:
    if not report.files:
        raise NapkinError(NO_FILES)
    out.write("---\n".join(map(_text, report.files)))


def _text(path: Path) -> str:
    # A tab is the one that may stand for something: between a value and its comment.
    lines = text_of(path, printable(path)).expandtabs().splitlines()
    return "".join(f"{printable(line)}\n" for line in lines)
