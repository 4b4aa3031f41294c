"""What a user did wrong, said in one line that says what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import takewhile
from typing import Self


class NapkinError(Exception):
    """A mistake of the user's: one line on stderr, exit code 2, no traceback.

    Of several mistakes, as a checked file may have, each is an argument and a line. Whatever
    a line quotes, it is printable and stays one line.
    """

    exit_code = 2

    def __init__(self, *lines: str) -> None:
        self.lines = tuple(map(printable, lines))
        super().__init__(*self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def within(self, context: str) -> Self:
        """The same mistake with where it stands in front: an option, a file and line."""
        return self.with_lines(*(f"{context}: {line}" for line in self.lines))

    def with_lines(self, *lines: str) -> Self:
        """The same kind of mistake in other words."""
        return type(self)(*lines)


class DeviceError(NapkinError):
    """A device that cannot be used as it is: nothing to retype, so exit code 1."""

    exit_code = 1


class Lacking(NapkinError):
    """What one device has no figure of, and another may have: `what`, in a few words."""

    def __init__(self, *lines: str, what: str) -> None:
        super().__init__(*lines)
        self.what = what

    def with_lines(self, *lines: str) -> Self:
        return type(self)(*lines, what=self.what)


def printable(text: object) -> str:
    """User text on one line, whatever it holds: a line break becomes \\n."""
    line = str(text)
    return line if line.isprintable() else "".join(map(_shown, line))


def _shown(c: str) -> str:
    return c if c.isprintable() else repr(c)[1:-1]


def quoted(text: object, longest: int = 60) -> str:
    """User text in quotes, on one line whatever it holds."""
    shown = str(text)
    return repr(shown if len(shown) <= longest else shown[: longest - 3] + "...")


def first_line(error: Exception) -> str:
    """The reason, of what a library raised, which may say a page, or nothing.

    A line that ends with a colon only says where: the reason is the next one.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = 1 + sum(1 for _ in takewhile(lambda line: line.endswith(":"), lines))
    return printable(" ".join(lines[:said])) or type(error).__name__


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'bf16'?` where a known word is near, else nothing."""
    if "," in word:
        return "; write one, without a comma"
    near = get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
