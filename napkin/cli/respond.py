"""From a command's options to what is written: ask, render, put it where it was asked for."""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

from napkin import render
from napkin.errors import NapkinError, printable

if TYPE_CHECKING:
    from napkin.questions.answer import Answer, Report


def respond(question: str, options: dict[str, Any]) -> None:
    """Asks with the options that were given and writes the answer as --format, --output say.

    The question is loaded here and not by the commands: help and completion go without.
    """
    given = {name: value for name, value in options.items() if value is not None}
    output = given.pop("output", None)
    format = render.chosen(given.pop("format", None), output)
    # Opened before the work starts: a path that cannot be written costs nothing then.
    target = None if output is None else _Target(output)
    try:
        answer = _asked(question, given)
    except BaseException:
        if target is not None:
            target.give_up()
        raise
    from napkin.questions.answer import Report

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


def _asked(question: str, given: dict[str, Any]) -> "Answer | Report":
    ask = getattr(import_module(f"napkin.questions.{question}"), question)
    answer: Answer | Report = ask(**given)
    return answer


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
