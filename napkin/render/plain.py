"""What a stream that cannot show a character gets instead: `x` for `×`, never a crash."""

import re
from typing import TextIO

LETTERS = {
    "×": "x",
    "·": "|",
    "−": "-",
    "–": "-",
    "µ": "u",
    "₁": "1",
    "²": "^2",
    "³": "^3",
    "█": "#",
    "…": "...",
    "→": "->",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
}
TIMES = re.compile(r"(?<=\S)·(?=\S)")  # in a formula; between blanks it separates
_TABLE = str.maketrans(LETTERS)


def letters(text: str) -> str:
    """The text in letters that any encoding has, `?` for those that have none."""
    text = TIMES.sub("*", text)
    return "".join(LETTERS.get(c, c if c.isascii() else "?") for c in text)


def json_text(text: str) -> str:
    """A JSON document in ASCII: our own signs in letters, the user's escaped and so kept."""
    return "".join(
        c if c.isascii() else _json_escape(c) for c in TIMES.sub("*", text).translate(_TABLE)
    )


def json_printable(text: str) -> str:
    """A JSON document that holds the same, what cannot be shown escaped: json leaves some as it
    is that a terminal takes for a command."""
    return "\n".join(
        line if line.isprintable() else "".join(map(_json_shown, line)) for line in text.split("\n")
    )


def _json_shown(c: str) -> str:
    return c if c.isprintable() else _json_escape(c)


def _json_escape(c: str) -> str:
    import json  # only here: error messages need this module too

    return json.dumps(c)[1:-1]


def xml_text(text: str) -> str:
    """An XML document in ASCII that reads the same."""
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def speaks_utf8(out: TextIO) -> bool:
    """Whether a document can go out as it is: JSON and SVG are UTF-8 or ASCII, nothing else."""
    return (out.encoding or "utf-8").casefold().replace("-", "").replace("_", "") == "utf8"
