"""What every question returns, whichever way it is shown."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from napkin import quantity, units
from napkin.errors import printable
from napkin.quantity import Quantity
from napkin.record import Record
from napkin.specs.accelerator import Figure

# What was asked, in base units, by option name.
Inputs = dict[str, Any]


def value_of(of: Quantity | Figure | None) -> float | None:
    """What a result holds of it: null where there is none."""
    return None if of is None else of.value


def bar(amount: float, most: float, end: float | None = None, width: int = 28) -> str:
    """As long as the amount on a scale up to `most`, in letters; `|` is where it ends."""
    length = max(1, round(width * amount / most))
    line = f"{'█' * length:{width}}"
    if end is None:
        return line
    at = round(width * end / most)
    return f"{line[:at]}|{line[at:]}"


class Bar(Record):
    """One figure, as long as its parts are together."""

    name: str
    figure: str
    parts: tuple[tuple[str, float], ...]  # what each is, and how much
    remark: str = ""

    @property
    def amount(self) -> float:
        return sum(amount for _, amount in self.parts)


class Picture(Record):
    """What looking shows better than reading: bars on one scale, and where it ends."""

    bars: Sequence[Bar]
    end: float | None = None
    end_is: str = ""

    @property
    def most(self) -> float:
        return max(self.end or 0, *(bar.amount for bar in self.bars))


class Roofline(Record):
    """FLOP/s over FLOP per byte: the memory's slope up to the ridge point, then the peak."""

    peak: float
    ridge: float
    intensity: float  # of the work that is asked about
    points: Sequence[tuple[str, float]]  # what it reaches, FLOP/s


class Words(Record):
    """What an answer says beside its figures."""

    headline: str
    condition: str = ""  # what the headline holds under; an assumption is called one
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    settings: str = ""  # the second line: what else was given or assumed
    details: Sequence[str] = ()  # notes that --explain shows
    failure: str = ""  # the bad news of the headline, which the other formats warn of
    picture: Picture | Roofline | None = None  # under the working; a roofline in SVG alone


class Table(Record):
    """Rows of text for answers that are figures, not a derivation."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    right: frozenset[str] = frozenset()  # the columns that align right
    caption: str = ""  # what the numbers are in
    more: Sequence[tuple[str, ...]] = ()  # rows that --explain shows too


class Answer(Record):
    """One scenario's answer: what was asked, the figures, and the quantities they rest on."""

    question: str
    inputs: Inputs
    result: dict[str, Any]  # base units, keys fixed by the contract
    say: Callable[[], Words]  # called when the words are read: a sweep reads only figures
    steps: tuple[Quantity, ...] = ()  # whose derivation is the working on the screen
    asides: tuple[Quantity, ...] = ()  # derived too; on the screen notes, and --explain's rows
    columns: tuple[str, ...] = ()  # of csv, whatever was asked: dotted where they are nested
    napkin: tuple[Quantity, ...] = ()  # the steps a person would write; empty: all of them
    summary: Table | None = None  # or a row for each part

    def __repr__(self) -> str:
        return printable(f"<{self.question}: {self.words.headline} {self.words.condition}>")

    @cached_property
    def words(self) -> Words:
        """Headline, condition, notes and warnings."""
        return self.say()

    @property
    def notes(self) -> list[str]:
        """What must be known to read the answer right."""
        return [*self.words.notes, *self.words.details]

    @property
    def warnings(self) -> list[str]:
        """What is wrong or impossible about what was asked."""
        failure = [self.words.failure] if self.words.failure else []
        return [*failure, *self.words.warnings]

    @property
    def derivation(self) -> list[dict[str, Any]]:
        """Every named quantity in base units, each after what it needs; numbers exact."""
        return [
            {
                "symbol": q.symbol,
                "label": q.label,
                "formula": quantity.in_symbols(q),
                "numbers": quantity.in_numbers(q, exact=True),
                "value": q.value,
                "unit": units.canonical(q.unit),
                "source": q.source,
            }
            for q in quantity.derivation(*self.steps, *self.asides)
        ]


class Together(Record):
    """Several scenarios as one: a row for each, and what is said of all."""

    words: Words
    table: Table
    labels: Sequence[str]  # what tells each from the others
    left_out: Sequence[str] = ()  # what was asked for and has no row, and why


class Report(Record, frozen=False):
    """All that one command answers."""

    question: str
    answers: list[Answer]
    table: Table | None = None
    warnings: Sequence[str] = ()  # of no answer in particular
    explain: bool = False  # every step and note on the screen
    exit_code: int = 0  # 130 for what an interrupted run had found
    topics: Sequence[str] = ()  # of `napkin explain`, under the whole working
    files: tuple[Path, ...] = ()  # the hardware files, for who wants one to start from
    say: Callable[[], Together] | None = None  # of scenarios; called when it is read

    @cached_property
    def together(self) -> Together | None:
        """The scenarios as one; None where the answers are no scenarios."""
        return None if self.say is None else self.say()
