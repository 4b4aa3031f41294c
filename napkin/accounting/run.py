"""A training run: a handful of relations, each turned round for whichever quantity is missing.

C FLOP of work are done in h GPU-hours at A FLOP/s of a GPU; D tokens in t at r tokens per second.
A matmul of (m × n) by (n × p) costs 2·m·n·p FLOP, so a weight costs 2 FLOP per token forward
and, for the gradients of its input and of itself, 4 backward: C = 6·N·D (Kaplan et al. 2001.08361,
section 2.1). MFU is the model's FLOP, not the hardware's, over the peak (PaLM 2204.02311, B).
"""

from collections.abc import Mapping
from functools import cache

from napkin.accounting.compute import SECONDS_PER_HOUR
from napkin.quantity import Quantity, ceil, define, maximum, sqrt
from napkin.record import Record

Known = Mapping[str, Quantity]

# Symbol -> label, unit, of what can be solved for.
QUANTITIES = {
    "C": ("training compute", "FLOP"),
    "f": ("model FLOP per token", "FLOP/token"),
    "N": ("parameters", "param"),
    "D": ("training tokens", "token"),
    "D₁": ("tokens of one epoch", "token"),
    "steps": ("optimizer steps", "step"),
    "R": ("sustained throughput", "FLOP/s"),
    "A": ("achieved throughput", "FLOP/s/GPU"),
    "MFU": ("model FLOP utilization", "%"),
    "MFU_run": ("MFU of the whole run", "%"),
    "r": ("tokens per second", "token/s"),
    "r₁": ("tokens per second and GPU", "token/s/GPU"),
    "t": ("training time", "s"),
    "h": ("GPU-hours", "GPU·hour"),
    "cost": ("cost", "USD"),
    "p": ("price", "USD/GPU/hour"),
    "energy": ("energy", "W·hour"),
    "power": ("power of one GPU", "W/GPU"),
    "E_TDP": ("energy at TDP", "W·hour"),
}
ON_THE_WAY = frozenset({"R", "A", "f"})  # of a run, only where another needs them
CONSTANTS = {"hour": SECONDS_PER_HOUR}
ONE = frozenset({"goodput", "PUE"})  # factors that are 1 unless they are known


class _Step(Record):
    """One quantity from others: the product of those above over that of those below."""

    symbol: str
    above: tuple[str, ...]
    below: tuple[str, ...]

    def of(self, known: Known) -> Quantity:
        formula = _product(known, self.above)
        if self.below:
            formula = formula / _product(known, self.below)
        label, unit = QUANTITIES[self.symbol]
        return define(self.symbol, label, formula, unit)


def _product(known: Known, names: tuple[str, ...]) -> Quantity:
    product = known[names[0]]
    for name in names[1:]:
        product = product * known[name]
    return product


class Relation(Record):
    """Two products that are equal."""

    left: tuple[str, ...]
    right: tuple[str, ...]

    def missing(self, known: frozenset[str]) -> list[str]:
        names = (*self.left, *self.right)
        return [name for name in names if name not in known and name not in ONE]

    def turned(self, symbol: str, known: frozenset[str]) -> _Step:
        """To that one of its quantities."""
        sides = (self.left, self.right)
        here, there = sides if symbol in self.left else sides[::-1]
        below = tuple(name for name in here if name != symbol and name in known)
        return _Step(symbol, tuple(name for name in there if name in known), below)


Relations = tuple[Relation, ...]


def _read(*lines: str) -> Relations:
    sides = (line.split(" = ") for line in lines)
    return tuple(Relation(tuple(a.split()), tuple(b.split())) for a, b in sides)


# A run has three sides, of which any two say the third: the work that is done, C,
_WORK = (
    "D = D₁ e",
    "D = K steps",
    "D = D/N N",
    "C = f/N N D",
    "C = f D",
)
# the GPU-hours that it takes, h,
_HOURS = (
    "h hour = n t",
    "cost = h p",
    "energy = h power PUE",
)
# and the rate of a GPU, A.
_RATE = ("K = r t_step", "r = r₁ n", "f = f/N N", "A = f r₁", "A = P MFU")
WORK, HOURS, RATE = (_read(*side) for side in (_WORK, _HOURS, _RATE))

# All of them, in the order in which a person would use them: of a run, its FLOP come first,
RUN = _read(
    *_WORK,
    "R = n P MFU",
    "R = n A",
    "C = R t goodput",
    *_HOURS,
    "E_TDP = h TDP PUE",
    "K = r t_step",
    "D = r t goodput",
    "r = r₁ n",
    "A = P MFU",
    "C = A h hour goodput",
    "f = f/N N",
    "A = f r₁",
    "D = r₁ h hour goodput",
)
# of a speed, its tokens.
SPEED = _read(
    "K = r t_step",
    "t goodput = steps t_step",
    "D = r t goodput",
    "r = r₁ n",
    "h hour = n t",
    "D = r₁ h hour goodput",
    "A = f r₁",
    "C = A n t goodput",
    "A = P MFU",
)
LOST = _read("MFU_run = MFU goodput")


class _Plan(Record):
    """What follows step by step, and the relations that say again what is known already."""

    steps: tuple[_Step, ...]
    again: tuple[_Step, ...]


@cache
def _plan(known: frozenset[str], relations: Relations) -> _Plan:
    """The same for every scenario that gives the same options."""
    steps, left = [], list(relations)
    while True:
        for relation in left:
            missing = relation.missing(known)
            if len(missing) == 1 and missing[0] in QUANTITIES:
                steps.append(relation.turned(missing[0], known))
                known |= {missing[0]}
                left.remove(relation)
                break
        else:
            break
    whole = [relation for relation in left if not relation.missing(known)]
    names = [next(n for n in (*each.left, *each.right) if n in QUANTITIES) for each in whole]
    again = (each.turned(name, known) for each, name in zip(whole, names, strict=True))
    if relations is RUN:
        steps = _needed(steps)
    return _Plan(tuple(steps), tuple(again))


def _needed(steps: list[_Step]) -> list[_Step]:
    kept: list[_Step] = []
    for step in reversed(steps):
        needed = any(step.symbol in (*later.above, *later.below) for later in kept)
        if needed or step.symbol not in ON_THE_WAY:
            kept.append(step)
    return kept[::-1]


def solve(known: Known, relations: Relations) -> dict[str, Quantity]:
    """All that follows from what is known, by the first relation that lacks one quantity."""
    found = {**CONSTANTS, **known}
    for step in _plan(frozenset(found), relations).steps:
        found[step.symbol] = step.of(found)
    return found


class Sides(Record):
    """Which sides of a run are known."""

    work: bool
    hours: bool
    rate: bool
    tokens: bool
    twice: bool  # whether one is known in two ways


@cache
def sides(known: frozenset[str]) -> Sides:
    """Of the symbols that are known."""
    known = known.union(CONSTANTS)
    plans = [_plan(known, side) for side in (WORK, HOURS, RATE)]
    found = [known.union(step.symbol for step in plan.steps) for plan in plans]
    work, hours, rate = found
    twice = any(plan.again for plan in plans)
    return Sides("C" in work, "h" in hours, "A" in rate, "D" in work, twice)


def said_twice(known: Known) -> list[tuple[Quantity, Quantity]]:
    """Each quantity that a side says in two ways, by both of them."""
    said = []
    for side in (WORK, HOURS, RATE):
        found = solve(known, side)
        again = _plan(frozenset({**CONSTANTS, **known}), side).again
        said += [(found[step.symbol], step.of(found)) for step in again]
    return said


def goodput(lost: Quantity) -> Quantity:
    """Of the share of the time that is lost: to failures, restarts, evaluation, idling."""
    return define("goodput", "share of the time that is not lost", 1 - lost, "%")


def time_of_steps(
    symbol: str, label: str, steps: Quantity, t_step: Quantity, goodput: Quantity | None
) -> Quantity:
    """In s: that of the steps, and what is lost between them."""
    t = steps * t_step
    return define(symbol, label, t if goodput is None else t / goodput, "s")


def optimal_params(C: Quantity, f_N: Quantity, each: Quantity) -> Quantity:
    """N of the least loss for C, where D is `each` tokens a parameter (Chinchilla, 2203.15556)."""
    return define("N", "parameters", sqrt(C / (f_N * each)), "param")


def gpus_in_time(
    h: Quantity, t_max: Quantity, least: Quantity | None, node: Quantity | None
) -> Quantity:
    """n in GPU: the fewest that do h GPU-hours in t_max and are no fewer than `least`; whole ones,
    in whole nodes."""
    n = define("n_t", "GPUs that the time asks for", h * SECONDS_PER_HOUR / t_max, "GPU")
    if least is not None and least.value > n.value:  # shown only where it is what counts
        n = maximum(n, least)
    if node is None:
        return define("n", "GPUs", ceil(n), "GPU")
    return define("n", "GPUs in whole nodes", node * ceil(n / node), "GPU")
