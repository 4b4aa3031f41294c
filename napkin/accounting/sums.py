"""Sums of products of sizes, like terms collected: `2 × d × H × hd`, 2 = query + output."""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add, mul
from typing import NamedTuple

from napkin import quantity
from napkin.quantity import Quantity, coefficient

Product = tuple[Quantity, ...]  # of sizes


class Term(NamedTuple):
    """`times` a product of sizes, and what each of them is."""

    name: str
    sizes: Product
    times: int = 1


def product(sizes: Iterable[Quantity]) -> Quantity:
    return reduce(mul, sizes)


def total(parts: Iterable[Quantity]) -> Quantity:
    return reduce(add, parts)


def collected(terms: Sequence[Term], reason: str = "") -> Quantity:
    """Their sum; `reason` for a coefficient where the names of the terms do not say it."""
    like: dict[tuple[object, ...], list[Term]] = {}
    for term in terms:
        key = tuple(sorted(map(_letter, term.sizes)))
        like.setdefault(key, []).append(term)
    return total(_times(group, reason) for group in like.values())


def _letter(size: Quantity) -> str:
    return size.symbol or quantity.in_symbols(size)


def _times(like: Sequence[Term], reason: str) -> Quantity:
    times = sum(term.times for term in like)
    sizes = like[0].sizes
    if times == 1:
        return product(sizes)
    why = reason or " + ".join(term.name for term in like)
    return product((coefficient(times, "1", f"{times} = {why}"), *sizes))
