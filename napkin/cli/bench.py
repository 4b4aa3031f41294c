"""`napkin bench`: several ranks of which one speaks, and a line that tells what goes on."""

import gc
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from napkin.cli import streams
from napkin.cli.respond import respond
from napkin.errors import NapkinError, printable


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        line = printable(line)
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:{width}}", end="" if line else "\r", file=sys.stderr, flush=True)


def bench(options: dict[str, Any]) -> None:
    """Measures, or lists what is on file."""
    gc.enable()  # this one runs for long
    with _the_first_speaks() as silent:
        if options.pop("list"):
            where = {name: options.pop(name) for name in ("explain", "format", "output")}
            if any(value not in (None, False) for value in options.values()):
                raise NapkinError("--list: measures nothing; leave the other options out")
            respond("figures", where, silent)
        else:
            with streams.interruptible(), _cleared():
                respond("bench", options if silent else options | {"progress": _progress}, silent)


@contextmanager
def _cleared() -> Iterator[None]:
    """An error is said on a line of its own."""
    try:
        yield
    finally:
        _progress("")


@contextmanager
def _the_first_speaks() -> Iterator[bool]:
    """Whether this is another one of the ranks that torchrun started: the first speaks for all."""
    from napkin.questions.bench import is_another_rank

    silent = is_another_rank()
    try:
        yield silent
    except NapkinError:
        if silent:
            streams.let_the_first_speak()
        raise
