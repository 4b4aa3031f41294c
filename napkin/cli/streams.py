"""What a terminal that cannot show a character gets instead: `x` for `×`, never a crash."""

import codecs
import sys

PLAIN = {
    "×": "x",
    "·": "|",
    "−": "-",
    "–": "-",
    "µ": "u",
    "₁": "1",
    "³": "^3",
    "…": "...",
    "→": "->",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "█": "#",
    "░": ".",
}


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(PLAIN.get(c, "?") for c in wrong), error.end


def make_readable() -> None:
    """Both streams write what they cannot encode in plain letters."""
    codecs.register_error("napkin.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="napkin.plain")
