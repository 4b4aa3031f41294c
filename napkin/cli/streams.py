"""Standard output and error, whatever they can show and wherever they go."""

import codecs
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import wrap

from napkin.errors import printable
from napkin.render import plain

FIRST_MAY_SPEAK = 5.0  # seconds


def _in_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain.letters(error.object[error.start : error.end]), error.end


def fill_closed() -> None:
    """What would go to a closed stream goes nowhere: neither to the next file that is opened,
    which would get the stream's number, nor to the other stream, as `print` would have it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    if sys.stderr is None:
        sys.stderr = open(2, "w")


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, for who has figures to show for it."""
    usual = signal.getsignal(signal.SIGINT)
    if not callable(usual):  # it is ignored
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def make_readable() -> None:
    """Both streams write what they cannot encode in plain letters."""
    codecs.register_error("napkin.plain", _in_letters)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="napkin.plain")


def let_the_first_speak() -> None:
    """Before an error of another rank than the first: torchrun ends every rank once one has
    failed, so that it is printed once, and by this rank only where it alone has it."""
    if "bench" in sys.argv and "LOCAL_RANK" in os.environ and os.environ.get("RANK", "0") != "0":
        time.sleep(FIRST_MAY_SPEAK)


def give_up(error: OSError) -> None:
    """One line for a stdout that takes nothing (a full disk), or for the file that the error
    names, and none from the interpreter."""
    where = "stdout" if error.filename is None else printable(error.filename)
    print(f"Error: {where}: {error.strerror}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def tell(line: str) -> None:
    """On stderr, one line; a terminal would cut its words, so there it ends between two."""
    if sys.stderr.isatty():
        columns = shutil.get_terminal_size().columns
        line = "\n".join(wrap(line, columns, break_long_words=False, break_on_hyphens=False))
    print(line, file=sys.stderr)
