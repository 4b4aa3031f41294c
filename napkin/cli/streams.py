"""Standard output and error, whatever they can show and wherever they go."""

import codecs
import os
import sys
import time

from napkin.render import plain

FIRST_MAY_SPEAK = 5.0  # seconds


def _in_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain.letters(error.object[error.start : error.end]), error.end


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
    """One line for a stdout that takes nothing (a full disk), and none from the interpreter."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print(f"Error: stdout: {error.strerror}", file=sys.stderr)
