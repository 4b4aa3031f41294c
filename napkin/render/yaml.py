"""Hardware files as they are, comments and all: a start for one of one's own."""

from typing import TextIO

from napkin.errors import NapkinError, printable
from napkin.questions.answer import Report
from napkin.render import NO_FILES
from napkin.specs.text_file import text_of


def write(report: Report, out: TextIO) -> None:
    if not report.files:
        raise NapkinError(NO_FILES)
    out.write("---\n".join(text_of(path, printable(path)) for path in report.files))
