"""A training run: a handful of relations, each turned round for whichever quantity is missing.

C FLOP of work are done in h GPU-hours at A FLOP/s of a GPU; D tokens in t at r tokens per second.
A matmul of (m × n) by (n × p) costs 2·m·n·p FLOP, so a weight costs 2 FLOP per token forward
and, for the gradients of its input and of itself, 4 backward: C = 6·N·D (Kaplan et al. 2001.08361,
section 2.1). MFU is the model's FLOP, not the hardware's, over the peak (PaLM 2204.02311, B).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, reduce
from operator import mul

from napkin.accounting.compute import SECONDS_PER_HOUR
from napkin.quantity import Quantity, define
from napkin.record import Record

Known = Mapping[str, Quantity]

# Symbol -> label, unit, of what can be solved for.
QUANTITIES = {
    "C": ("training compute", "FLOP"),
    "D": ("training tokens", "token"),
    "f": ("model FLOP per token", "FLOP/token"),
    "R": ("sustained throughput", "FLOP/s"),
    "A": ("achieved throughput", "FLOP/s/GPU"),
    "MFU": ("model FLOP utilization", "%"),
    "r": ("tokens per second", "token/s"),
    "r₁": ("tokens per second and GPU", "token/s/GPU"),
    "t": ("training time", "s"),
    "h": ("GPU-hours", "GPU·hour"),
    "cost": ("cost", "USD"),
    "E_TDP": ("energy at TDP", "W·hour"),
}
CONSTANTS = {"hour": SECONDS_PER_HOUR}


class _Step(Record):
    """One quantity from others: the product of those above over that of those below."""

    symbol: str
    above: tuple[str, ...]
    below: tuple[str, ...]

    def of(self, known: Known) -> Quantity:
        formula = reduce(mul, (known[name] for name in self.above))
        if self.below:
            formula = formula / reduce(mul, (known[name] for name in self.below))
        label, unit = QUANTITIES[self.symbol]
        return define(self.symbol, label, formula, unit)


class Relation(Record):
    """Two products that are equal."""

    left: tuple[str, ...]
    right: tuple[str, ...]

    def turned(self, known: frozenset[str]) -> Iterator[_Step]:
        """To its one quantity that is not known."""
        missing = [name for name in (*self.left, *self.right) if name not in known]
        if len(missing) == 1:
            sides = (self.left, self.right)
            here, there = sides if missing[0] in self.left else sides[::-1]
            yield _Step(missing[0], there, tuple(name for name in here if name != missing[0]))


def _read(*lines: str) -> tuple[Relation, ...]:
    sides = (line.split(" = ") for line in lines)
    return tuple(Relation(tuple(a.split()), tuple(b.split())) for a, b in sides)


# In the order in which a person would use them: of a run, its FLOP come first,
RUN = _read(
    "D = D₁ e",
    "C = k N D",
    "C = f D",
    "R = n P MFU",
    "C = R t",
    "h hour = n t",
    "D = r t",
    "r = r₁ n",
    "cost = h p",
    "E_TDP = h TDP",
)
# of a speed, its tokens.
SPEED = _read(
    "D = r t",
    "K = r t_step",
    "r = r₁ n",
    "h hour = n t",
    "D = r₁ h hour",
    "A = f r₁",
    "C = A n t",
    "A = P MFU",
)


def solve(known: Known, relations: tuple[Relation, ...]) -> dict[str, Quantity]:
    """All that follows from what is known, by the first relation that lacks one quantity."""
    found = {**CONSTANTS, **known}
    for step in _plan(frozenset(found), relations):
        found[step.symbol] = step.of(found)
    return found


@cache
def _plan(known: frozenset[str], relations: tuple[Relation, ...]) -> tuple[_Step, ...]:
    """The same for every scenario that gives the same options."""
    steps: list[_Step] = []
    while True:
        step = next(_of_all(known, relations), None)
        if step is None:
            return tuple(steps)
        steps.append(step)
        known |= {step.symbol}


def _of_all(known: frozenset[str], relations: Iterable[Relation]) -> Iterator[_Step]:
    for relation in relations:
        yield from relation.turned(known)
