"""Traced arithmetic: a number that knows its unit and the expression that made it.

`given` is an input, `coefficient` a number of a formula, `define` names a step and checks
its unit. What an answer depends on is what `derivation` shows: there is no recorder.
A UnitError is a bug in a formula, never a user's mistake.
"""

import math
from collections.abc import Callable
from typing import Never

from napkin import units


class UnitError(Exception):
    """A formula that does not have the unit it claims."""


class Quantity:
    """A value in base units, and how it was made. Treat it as immutable."""

    # By hand: a dataclass costs each start two milliseconds, a frozen one each step of a sweep.
    __slots__ = ("args", "label", "op", "source", "symbol", "unit", "value")

    def __init__(
        self,
        value: float,
        unit: str,
        op: str = "given",
        args: "tuple[Quantity, ...]" = (),
        symbol: str = "",
        label: str = "",
        source: str = "",
    ) -> None:
        self.value = value
        self.unit = unit
        self.op = op
        self.args = args
        self.symbol = symbol
        self.label = label
        self.source = source

    def __repr__(self) -> str:
        return f"<{self.symbol or self.op}: {self}>"

    # A coefficient that meets a plain number: the formula is computed without a trace.

    def __add__(self, other: "Number") -> "Quantity":
        if not isinstance(other, Quantity):
            if self.op == "coefficient":
                return self.value + other  # type: ignore[return-value]
            other = coefficient(other)
        return _same_unit("+", self, other)

    def __sub__(self, other: "Number") -> "Quantity":
        if not isinstance(other, Quantity):
            if self.op == "coefficient":
                return self.value - other  # type: ignore[return-value]
            other = coefficient(other)
        return _same_unit("-", self, other)

    def __mul__(self, other: "Number") -> "Quantity":
        if not isinstance(other, Quantity):
            if self.op == "coefficient":
                return self.value * other  # type: ignore[return-value]
            other = coefficient(other)
        unit = units.times(self.unit, other.unit)
        return Quantity(self.value * other.value, unit, "×", (self, other))

    def __truediv__(self, other: "Number") -> "Quantity":
        if not isinstance(other, Quantity):
            if self.op == "coefficient":
                return self.value / other  # type: ignore[return-value]
            other = coefficient(other)
        unit = units.times(self.unit, other.unit, -1)
        return Quantity(self.value / other.value, unit, "/", (self, other))

    def __pow__(self, power: int) -> "Quantity":
        unit = units.times("1", self.unit, power)
        return Quantity(self.value**power, unit, "^", (self, coefficient(power)))

    def __radd__(self, other: float) -> "Quantity":
        if self.op == "coefficient":
            return other + self.value  # type: ignore[return-value]
        return coefficient(other) + self

    def __rsub__(self, other: float) -> "Quantity":
        if self.op == "coefficient":
            return other - self.value  # type: ignore[return-value]
        return coefficient(other) - self

    def __rmul__(self, other: float) -> "Quantity":
        if self.op == "coefficient":
            return other * self.value  # type: ignore[return-value]
        return coefficient(other) * self

    def __rtruediv__(self, other: float) -> "Quantity":
        if self.op == "coefficient":
            return other / self.value  # type: ignore[return-value]
        return coefficient(other) / self

    def __bool__(self) -> Never:
        raise TypeError("a branch on a Quantity is not in the trace: branch on settings")

    def __str__(self) -> str:
        return units.humanize(self.value, self.unit)


Number = Quantity | int | float
Leaf = Callable[[Quantity], str]


def given(symbol: str, label: str, value: float, unit: str, source: str) -> Quantity:
    """An input: its value in base units and where it comes from (`--params`, `h100-sxm.yaml:9`)."""
    return Quantity(value, unit, "given", (), symbol, label, source)


def observed(symbol: str, label: str, value: float, unit: str, source: str) -> Quantity:
    """A measured input: shown to four figures, as what follows from it is."""
    return Quantity(value, unit, "observed", (), symbol, label, source)


def coefficient(value: float, unit: str = "1", reason: str = "") -> Quantity:
    """A number of a formula, with the unit it carries and the reason for it."""
    return Quantity(value, units.canonical(unit), "coefficient", (), "", reason)


def define(symbol: str, label: str, formula: Quantity, unit: str) -> Quantity:
    """Names a step. Raises UnitError where the formula has another unit.

    A formula on plain numbers is one, and has no trace.
    """
    if not isinstance(formula, Quantity):
        return formula
    if units.canonical(formula.unit) != units.canonical(unit):
        raise UnitError(f"{symbol} = {in_symbols(formula)} is in {formula.unit}, not {unit}")
    op, args = ("=", (formula,)) if formula.symbol else (formula.op, formula.args)
    return Quantity(formula.value, unit, op, args, symbol, label)


_ALMOST = 1 - 1e-12


def ceil(a: Quantity) -> Quantity:
    """The next whole number; of one that only a float's last digits are above, that one."""
    if round(a.value) < a.value <= round(a.value) / _ALMOST:
        a = coefficient(_ALMOST, "1", "whole but for a float's last digits") * a
    return Quantity(math.ceil(a.value), a.unit, "ceil", (a,))


def maximum(a: Quantity, b: Quantity) -> Quantity:
    """The larger of two of one unit."""
    return Quantity(max(a.value, b.value), _same_unit("+", a, b).unit, "max", (a, b))


def sqrt(a: Quantity) -> Quantity:
    """The side of a square: of s^2, s."""
    return Quantity(math.sqrt(a.value), units.root(a.unit), "sqrt", (a,))


def _same_unit(op: str, a: Quantity, b: Quantity) -> Quantity:
    unit = units.canonical(a.unit)
    if unit != units.canonical(b.unit):
        raise UnitError(f"{_symbol(a)} {op} {_symbol(b)} joins {a.unit} and {b.unit}")
    return Quantity(a.value + b.value if op == "+" else a.value - b.value, unit, op, (a, b))


def derivation(*answers: Quantity) -> list[Quantity]:
    """The named quantities that the answers rest on, each after what it needs."""
    found: dict[str, Quantity] = {}
    seen: set[int] = set()

    def visit(q: Quantity) -> None:
        if id(q) in seen:
            return
        seen.add(id(q))
        for arg in q.args:
            visit(arg)
        if q.symbol:
            if q.symbol in found:
                raise ValueError(f"two quantities are called {q.symbol}")
            found[q.symbol] = q

    for answer in answers:
        visit(answer)
    return list(found.values())


_BINDS = {"+": 1, "-": 1, "×": 2, "/": 2, "^": 3}


def in_symbols(q: Quantity) -> str:
    """The formula as the field writes it: `6 × N × D`; empty for an input."""
    return _formula(q, _symbol)


def in_numbers(q: Quantity, exact: bool = False) -> str:
    """The same formula in base units: `6 × 70e9 × 15e12`.

    What was typed is exact; all else has four figures unless `exact`.
    """

    def number(leaf: Quantity) -> str:
        typed = leaf.op == "coefficient" or leaf.source.startswith("--")
        whole = isinstance(leaf.value, int) and abs(leaf.value) < 10**6
        digits = None if typed or whole or exact else 4
        text = units.engineering(leaf.value, digits)
        return f"({text})" if leaf.value < 0 else text

    return _formula(q, number)


def _symbol(q: Quantity) -> str:
    if q.symbol or q.args:
        return q.symbol or in_symbols(q)
    return units.engineering(q.value, 4 if q.op == "observed" else None)


def coefficients(q: Quantity) -> list[Quantity]:
    """The numbers of this step's own formula."""
    parts = [arg for arg in q.args if not arg.symbol]
    return [c for part in parts for c in ([part] if not part.args else coefficients(part))]


def _formula(q: Quantity, leaf: Leaf) -> str:
    return _expression(q, leaf)[0] if q.args else ""


def _expression(q: Quantity, leaf: Leaf) -> tuple[str, int]:
    """The step's own formula, down to the next names, and how tightly it binds."""
    if q.op == "=":
        return leaf(q.args[0]), 4
    if q.op not in _BINDS:
        return f"{q.op}({', '.join(_operand(a, leaf)[0] for a in q.args)})", 4
    binds = _BINDS[q.op]
    left, right = q.args
    if q.op == "×" and _is_carrier(left):
        return _operand(right, leaf)
    if q.op == "/" and _is_carrier(right):
        return _operand(left, leaf)
    a, binds_a = _operand(left, leaf)
    b, binds_b = _operand(right, leaf)
    a = f"({a})" if binds_a < binds or (q.op == "^" and binds_a == binds) else a
    chains = right.op == q.op and q.op in "+×"
    b = f"({b})" if binds_b < binds or (binds_b == binds and not chains) else b
    return f"{a} {q.op} {b}", binds


def _operand(q: Quantity, leaf: Leaf) -> tuple[str, int]:
    return (leaf(q), 4) if q.symbol or not q.args else _expression(q, leaf)


def _is_carrier(q: Quantity) -> bool:
    """A factor of one that only carries a unit."""
    return q.op == "coefficient" and q.value == 1
