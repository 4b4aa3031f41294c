"""What a user did wrong, said in one line that says what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self


class NapkinError(Exception):
    """A mistake of the user's: one line on stderr, exit code 2, no traceback."""

    exit_code = 2

    def within(self, context: str) -> Self:
        """The same mistake with where it stands in front: an option, a file and line."""
        return type(self)(f"{context}: {self}")


class DeviceError(NapkinError):
    """A device that cannot be used as it is: nothing to retype, so exit code 1."""

    exit_code = 1


def printable(text: object) -> str:
    """User text on one line, whatever it holds: a line break becomes \\n."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def quoted(text: object, longest: int = 60) -> str:
    """User text in quotes, on one line whatever it holds."""
    shown = str(text)
    return repr(shown if len(shown) <= longest else shown[: longest - 3] + "...")


def first_line(error: Exception) -> str:
    """Of what a library raised, which may say a page, or nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'bf16'?` where a known word is near, else nothing."""
    if "," in word:
        return "; write one, without a comma"
    near = get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
