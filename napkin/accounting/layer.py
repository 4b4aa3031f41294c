"""One layer as the list of its operations, each with what it adds to every sum."""

import math
from collections.abc import Iterator
from typing import NamedTuple, cast

from napkin.accounting import operations as of
from napkin.accounting.matmuls import WHOSE
from napkin.accounting.notation import PLAIN
from napkin.accounting.operations import Attention, Kernels, Linear, Operation, Value, operations
from napkin.accounting.sums import Product
from napkin.quantity import Quantity
from napkin.specs.model import Model

NONE = ("", "")


class Row(NamedTuple):
    """An operation of one layer."""

    name: str
    shape: tuple[int, ...]  # inputs × outputs of a matmul; else a row of what it works on
    parameters: int
    flop: int  # of one token, forward
    kept: int  # bytes of one token, each value where it is first needed


def rows(model: Model, seq_len: int, s: int, kernels: Kernels) -> Iterator[Row]:
    """In the order of the forward pass, of values of s bytes and sequences of seq_len tokens; a
    layer with experts where there are two kinds."""
    seen: set[Value] = set()
    for operation in operations(model, PLAIN.letter):
        if operation.layers is None or (model.moe_layers and operation.part == of.MLP):
            continue
        new = dict.fromkeys(value for value in operation.kept(kernels) if value not in seen)
        seen.update(new)
        _, whose = NONE if isinstance(operation, of.Route) else WHOSE.get(operation.part, NONE)
        yield Row(
            operation.name + whose,
            _shape(operation),
            _parameters(operation),
            _flop(operation, seq_len),
            sum(_bytes(value, seq_len, s) for value in new),
        )


def _shape(operation: Operation) -> tuple[int, ...]:
    match operation:
        case Linear(inputs=inputs, outputs=outputs, copies=copies):
            experts = () if copies is None else (_of(copies),)
            return (*experts, _product(inputs), _product(outputs))
        case of.Normalise(width=width):
            return (_product(width),)
        case Attention(H=H, hd=hd):
            return _of(H), _of(hd)
        case of.Activation(x=x) | of.Gate(up=x) | of.ClampedGate(up=x):
            return (_product(x.size),)
    return ()


def _parameters(operation: Operation) -> int:
    vectors = sum(times * _product(sizes) for _, sizes, times in operation.vectors)
    if not isinstance(operation, Linear):
        return vectors
    copies = 1 if operation.copies is None else _of(operation.copies)
    return copies * (_product(operation.weights) + vectors)


def _flop(operation: Operation, seq_len: int) -> int:
    """2 for each weight; of attention, for each value of a key and of a value that is met."""
    match operation:
        case Linear(weights=weights, taken=taken):
            return 2 * _product(weights) * (1 if taken is None else _of(taken))
        case Attention(queries=queries, attended=y):
            return 2 * seq_len * (_product(queries.size) + _product(y.size))
    return 0


def _bytes(value: Value, seq_len: int, s: int) -> int:
    if value.per not in ("token", "pair"):
        return 0
    width = s if value.bytes is None else value.bytes
    return width * _product(value.size) * (seq_len if value.per == "pair" else 1)


def _product(sizes: Product) -> int:
    return math.prod(map(_of, sizes))


def _of(size: Quantity) -> int:
    """A size of the plain notation is a number already."""
    return cast(int, size)
