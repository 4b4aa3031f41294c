"""Hardware files as they are, comments and all: a start for one of one's own."""

from typing import TextIO

from napkin.questions.answer import Report


def write(report: Report, out: TextIO) -> None:
    out.write("---\n".join(report.files))
