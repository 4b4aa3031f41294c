"""From a command's options to what is written: ask, render, put it where it was asked for."""

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from napkin import render
from napkin.errors import NapkinError, printable
from napkin.questions.answer import Answer, Report


def respond(ask: Callable[..., Answer | Report], options: dict[str, Any]) -> None:
    """Asks with the options that were given and writes the answer as --format, --output say."""
    given = {name: value for name, value in options.items() if value is not None}
    output = given.pop("output", None)
    format = render.chosen(given.pop("format", None), output)
    # Opened before the work starts: a path that cannot be written costs nothing then.
    target = None if output is None else _Target(output)
    try:
        answer = ask(**given)
    except BaseException:
        if target is not None:
            target.give_up()
        raise
    report = answer if isinstance(answer, Report) else Report(answer.question, [answer])
    if target is None:
        render.write(report, format, sys.stdout)
    else:
        render.write(report, format, target.emptied())
        target.file.close()
    if format == "csv":
        for each in report.answers:
            for warning in each.warnings:
                print(f"warning: {warning}", file=sys.stderr)


class _Target:
    """A file to write to, which keeps what it held until there is an answer."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.new = not os.path.lexists(path)
        try:
            self.file: TextIO = open(path, "a", encoding="utf-8", errors="backslashreplace")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise NapkinError(f"--output: {printable(path)}: {reason}") from None

    def emptied(self) -> TextIO:
        if self.file.seekable():  # a pipe or terminal is not
            self.file.truncate(0)
        return self.file

    def give_up(self) -> None:
        self.file.close()
        if self.new:
            os.unlink(self.path)
