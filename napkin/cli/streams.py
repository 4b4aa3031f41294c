"""Standard output and error, whatever they can show and wherever they go."""

import codecs
import os
import sys

from napkin.render import plain


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


def give_up(error: OSError) -> None:
    """One line for a stdout that takes nothing (a full disk), and none from the interpreter."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print(f"Error: stdout: {error.strerror}", file=sys.stderr)
