"""Hardware files as they are, comments and all: a start for one of one's own."""

from typing import TextIO

from napkin.errors import NapkinError
from napkin.questions.answer import Report


def write(report: Report, out: TextIO) -> None:
    if not report.files:
        raise NapkinError("--format: yaml is what `napkin hardware NAME` writes; write json")
    out.write("---\n".join(report.files))
