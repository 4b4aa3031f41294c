"""Options, as text or numbers, into quantities; every error names its option."""

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any, TypeVar

from napkin import parsing
from napkin.errors import NapkinError, quoted
from napkin.quantity import Quantity, given
from napkin.record import Record

T = TypeVar("T")

# What the command line, a file or Python may give for a number.
Text = str | float


class Settings(Record):
    """Options as they were given, text or numbers; None or False where they were not."""

    @property
    def given(self) -> list[str]:
        """The names of those that were."""
        # By identity: 0 is a value, and equal to False.
        fields = self.__dict__.items()
        return [name for name, value in fields if value is not None and value is not False]

    def refuse(self, names: Container[str], problem: str) -> None:
        """Raises NapkinError for the first of them that was given."""
        for option in self.given:
            if option in names:
                raise error(option, problem)


def flag(option: str) -> str:
    """`--tokens-per-second` for tokens_per_second."""
    return "--" + option.replace("_", "-")


def read(option: str, text: object, parse: Callable[[Any], T], usual: Text | None = None) -> T:
    """The option's value, the usual one where it was not given.

    Raises NapkinError that begins with the option's name.
    """
    try:
        return parse(usual if text is None else text)
    except NapkinError as error:
        raise error.within(flag(option)) from None


def quantity(
    option: str,
    text: object,
    parse: Callable[[Any], float],
    symbol: str,
    label: str,
    unit: str,
    usual: Text | None = None,
) -> Quantity:
    """The option as an input of the derivation; the usual value where it was not given, which is
    then said to be assumed."""
    source = flag(option) if text is not None else f"{flag(option)} (assumed)"
    return given(symbol, label, read(option, text, parse, usual), unit, source)


def batch(text: Text, T: Quantity) -> Quantity:
    """--global-batch, B_all in seq/step, of sequences of T tokens."""
    parse = partial(parsing.sequences, length=int(T.value))
    return quantity("global_batch", text, parse, "B_all", "global batch", "seq/step")


def choice(option: str, text: object, known: Sequence[str], usual: str | None = None) -> str:
    """One of a few words, however it is written; the usual or first one where it was not given.

    Raises NapkinError that names them all.
    """
    if text is None:
        return known[0] if usual is None else usual
    word = str(text).strip().casefold().replace("_", "-")
    if word not in known:
        *most, last = known
        raise error(option, f"{quoted(text)} is not known here; write {', '.join(most)} or {last}")
    return word


def switch(option: str, value: object) -> bool:
    """True or False, as the command line's switches are."""
    if not isinstance(value, bool):
        raise error(option, f"{quoted(value)} is neither True nor False")
    return value


def required(question: str, example: str, **options: object) -> None:
    """Refuses a question that lacks what it cannot do without."""
    missing = [flag(option) for option, value in options.items() if value is None]
    if missing:
        *most, last = missing
        named = f"{', '.join(most)} and {last}" if most else last
        raise NapkinError(f"{question} needs {named}, as in: {example}")


def error(option: str, problem: str) -> NapkinError:
    """A mistake in this option."""
    return NapkinError(problem).within(flag(option))
