"""From a command's options to what is written: ask, render, put it where it was asked for."""

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

import typer

from napkin import render
from napkin.errors import NapkinError, printable

if TYPE_CHECKING:
    from napkin.cli.target import Target
    from napkin.questions.answer import Report

# Options that the environment can set: an error names what the user did set.
VARIABLES = {"hardware": "NAPKIN_HARDWARE", "peak": "NAPKIN_PEAK"}


def respond(question: str, options: dict[str, Any], silent: bool = False) -> None:
    """Asks with the options that were given and writes the answer as --format, --output say.

    Nothing is written where another process of the same call, `silent` says, writes it.
    """
    given = {name: value for name, value in options.items() if value is not None}
    output = given.pop("output", None)
    output = None if output == "-" else output
    explain = bool(given.pop("explain", False))
    format = render.chosen(given.pop("format", None), output, question)
    target = None if output is None or silent else _opened(output)
    try:
        report = _asked(question, given)
        report.explain = explain or report.explain
        if report.explain:
            from napkin.specs import topics

            report.topics = topics.OF.get(question, ())
        if not silent:
            _write(report, format, sys.stdout if target is None else target.file, target)
    except BaseException:
        if target is not None:
            target.give_up()
        raise
    if target is not None:
        target.finish()
        if not target.as_it_is:
            print(f"wrote {printable(target.path)} ({format})", file=sys.stderr)
    for warning in _beside(report, format) if not silent else ():
        print(f"warning: {printable(warning)}", file=sys.stderr)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _beside(report: "Report", format: str) -> Iterator[str]:
    """What goes to stderr as warnings, since the format has no place for it."""
    yield from report.warnings
    together = report.together
    if together is not None and format in ("csv", "json"):
        yield from together.left_out
    if format == "csv":
        for number, answer in enumerate(report.answers):
            which = "" if together is None else f"{together.labels[number]}: "
            yield from (f"{which}{warning}" for warning in answer.warnings)


def _opened(output: str) -> "Target":
    from napkin.cli.target import Target  # which most calls do without

    return Target(output)


def _asked(question: str, given: dict[str, Any]) -> "Report":
    # Loaded here and not by the commands: help and completion go without.
    ask = getattr(import_module(f"napkin.questions.{question}"), question)
    from napkin.questions import scenarios
    from napkin.questions.answer import Report

    try:
        answer = scenarios.asked(question, ask, given)
    except NapkinError as error:
        raise _naming_the_variable(error, given) from None
    return answer if isinstance(answer, Report) else Report(answer.question, [answer])


def _naming_the_variable(error: NapkinError, given: dict[str, Any]) -> NapkinError:
    for option, variable in VARIABLES.items():
        text = str(error)
        value = os.environ.get(variable)
        if value and text.startswith(f"--{option}:") and value == given.get(option):
            return error.with_lines(variable + text.removeprefix(f"--{option}"))
    return error


def _write(report: "Report", format: str, out: TextIO | None, target: "Target | None") -> None:
    where = "stdout" if target is None else target.shown
    if out is None:
        raise NapkinError(f"{where}: is closed")
    try:
        render.write(report, format, out)
        out.flush()
    except OSError as error:
        raise NapkinError(f"{where}: {error.strerror}") from None
