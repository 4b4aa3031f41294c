"""The matmuls of a model as transformers lays them out: what is one, what several."""

from collections.abc import Iterator
from functools import lru_cache

from napkin.accounting import operations as of
from napkin.accounting.operations import Linear, operations
from napkin.accounting.sums import Product, product
from napkin.record import Record
from napkin.specs.model import Model, Stack

# What tells the matmuls of a part from those of another that has the same.
WHOSE = {of.EXPERTS: ("_e", " of an expert"), of.SHARED: ("_s", " of the shared")}


class Matmul(Record):
    """inputs × outputs weights, and how often they stand in the model."""

    symbol: str
    name: str
    inputs: int
    outputs: int
    often: int
    of_experts: bool = False  # of one expert, which sees its share of the tokens alone


@lru_cache(maxsize=256)
def matmuls(model: Model | Stack) -> tuple[Matmul, ...]:
    """All of them, the head last."""
    return tuple(_matmul(group) for group in groups(model))


def groups(model: Model | Stack) -> Iterator[list[Linear]]:
    """Linear layers: fused into one, or alike and side by side."""
    group: list[Linear] = []
    for operation in operations(model):
        if not isinstance(operation, Linear):
            continue
        if group and not (operation.fused == "more" or _alike(group[-1], operation)):
            yield group
            group = []
        group.append(operation)
    yield group


def _alike(a: Linear, b: Linear) -> bool:
    return (a.part, a.inputs, a.outputs, a.x) == (b.part, b.inputs, b.outputs, b.x)


def _matmul(group: list[Linear]) -> Matmul:
    first = group[0]
    _, whose = WHOSE.get(first.part, ("", ""))
    name = (" and " if first.fused else ", ").join(each.name for each in group)
    widths = [_value(each.outputs) for each in group]
    layers = 1 if first.layers is None else int(first.layers.value)
    return Matmul(
        symbol_of(group),
        name + whose,
        _value(first.inputs),
        sum(widths) if first.fused else widths[0],
        layers if first.fused else layers * len(group),
        of_experts=first.copies is not None,
    )


def symbol_of(group: list[Linear]) -> str:
    """As in W_q: the letters of its linear layers."""
    suffix, _ = WHOSE.get(group[0].part, ("", ""))
    return "".join(each.symbol for each in group) + suffix


def _value(sizes: Product) -> int:
    return int(product(sizes).value) if sizes else 1
