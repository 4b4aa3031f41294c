"""How numbers enter the formulas: as quantities, whose working is shown, or as they are, where
thousands of layouts are compared. The formulas are the same."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import cast

from napkin.quantity import Quantity, given
from napkin.record import Record


@cache  # one quantity for one letter, wherever it is met
def letter(symbol: str, label: str, value: int, source: str = "--model") -> Quantity:
    """A size, of the model unless another source is named."""
    return given(symbol, label, value, "1", source)


def as_input(q: Quantity, source: str) -> Quantity:
    """A count as an input: how it comes about is what `napkin models` shows."""
    return given(q.symbol, q.label, q.value, q.unit, source)


def _plain_letter(symbol: str, label: str, value: int, source: str = "") -> Quantity:
    return cast(Quantity, value)


def _plain(symbol: str, label: str, value: float, unit: str, source: str) -> Quantity:
    return cast(Quantity, value)


class Notation(Record):
    given: Callable[[str, str, float, str, str], Quantity]
    letter: Callable[..., Quantity]  # symbol, label, value; where it is from, but for the model
    known: Callable[[Quantity], Quantity]  # of what is computed already


@cache
def _known(q: Quantity) -> Quantity:
    """An input: how it comes about, another answer shows."""
    return as_input(q, "--model") if q.symbol else q


TRACED = Notation(given, letter, _known)
IN_FULL = Notation(given, letter, lambda q: q)  # of a rank's counts, which no other answer shows
PLAIN = Notation(_plain, _plain_letter, lambda q: cast(Quantity, q.value))


def amount(alive: Sequence[Quantity]) -> float:
    """The sum of their values, in either notation."""
    if alive and isinstance(alive[0], Quantity):
        return sum([q.value for q in alive])
    return cast(float, sum(alive))
