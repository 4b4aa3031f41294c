"""The working that an answer shows, done again as a reader with a calculator would."""

import math
import re
from fractions import Fraction
from typing import Any

NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")


def evaluated(numbers: str) -> Fraction:
    """What they come to, exactly."""
    exact = NUMBER.sub(lambda number: f"Fraction({number[0]!r})", numbers)
    value = eval(
        exact.replace("×", "*").replace("^", "**"),
        {"ceil": math.ceil, "max": max, "sqrt": _root, "Fraction": Fraction},
    )
    return Fraction(value)


def _root(value: Fraction) -> Fraction:
    return Fraction(math.sqrt(value))


def check(answer: dict[str, Any]) -> None:
    """Every row is an input that says where it comes from, or its numbers come to its value."""
    for row in answer["derivation"]:
        if not row["formula"]:
            assert row["source"], row
            assert not row["numbers"], row
            continue
        found, value = evaluated(row["numbers"]), row["value"]
        if isinstance(value, int):
            assert found == value, row
        else:
            assert math.isclose(found, value, rel_tol=1e-9), row
