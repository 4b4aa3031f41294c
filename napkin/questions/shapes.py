"""Shapes of tensors as people write them: `49152x12288`, `B=8,T=2048,d=4096`."""

import re
from collections.abc import Sequence

from napkin import parsing
from napkin.errors import NapkinError, quoted
from napkin.record import Record

TIMES = re.compile(r"\s*[x×*]\s*", re.IGNORECASE)
LETTER = re.compile(r"[^\W\d]\w*")
EXAMPLE = "49152x12288 or B=8,T=2048,d=4096"
MOST_SIDES = 16


class Shape(Record):
    """The sides of a tensor, with their letters or none."""

    text: str
    sides: Sequence[int]
    letters: Sequence[str]


def shape(text: object) -> Shape:
    """Raises NapkinError."""
    bare = str(text).strip()
    if not bare:
        raise NapkinError(f"a shape is empty; write {EXAMPLE}")
    if "=" in bare:
        pairs = [part.partition("=")[::2] for part in bare.strip("()[] ").split(",")]
        letters = [letter.strip() for letter, _ in pairs]
        for letter in letters:
            if not LETTER.fullmatch(letter):
                raise NapkinError(f"{quoted(letter)} of {quoted(text)} is no name; write {EXAMPLE}")
            if letters.count(letter) > 1:
                raise NapkinError(f"{quoted(text)} has {letter} twice; give each side its own name")
        sides = [side for _, side in pairs]
    else:
        sides = TIMES.split(bare.strip("()[] ").replace(",", "x") if "," in bare else bare)
        letters = []
    if len(sides) > MOST_SIDES:
        raise NapkinError(f"{quoted(text)} has more than {MOST_SIDES} sides")
    try:
        return Shape(bare, [parsing.size(side) for side in sides], letters)
    except NapkinError as error:
        raise error.within(quoted(text)) from None


def refuse_other_sizes(shapes: Sequence[Shape]) -> None:
    """Raises NapkinError where a letter has two sizes."""
    known: dict[str, int] = {}
    for each in shapes:
        for letter, side in zip(each.letters, each.sides, strict=False):
            if known.setdefault(letter, side) != side:
                raise NapkinError(f"{letter} is {known[letter]:,} and {side:,}; name one otherwise")
