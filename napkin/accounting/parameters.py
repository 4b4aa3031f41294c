"""Parameters of a model, part by part, and those that a token multiplies.

Checked against the parameters that transformers builds.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from napkin.accounting import operations as of
from napkin.accounting.operations import Embedding, Linear, Operation, operations
from napkin.accounting.sums import Term, collected, total
from napkin.quantity import Quantity, coefficient, define
from napkin.record import Record
from napkin.specs.model import Model, Stack

PARAM = coefficient(1, "param")

# The parts in the order in which answers list them: symbol and label of the weights of each.
WEIGHTS = {
    of.TABLE: ("table", "input table"),
    of.POSITIONS: ("pos", "learned positions"),
    of.PROJECTIONS: ("proj", "into and out of d"),
    of.SQUARES: ("squares", "one square matrix"),
    of.ATTENTION: ("attn", "attention, one layer"),
    of.NORMS: ("", ""),
    of.MLP: ("mlp", "MLP, one layer"),
    of.EXPERTS: ("expert", "one expert"),
    of.ROUTER: ("router", "router, one layer"),
    of.SHARED: ("shared", "shared experts, one layer"),
    of.FINAL_NORM: ("", ""),
    of.HEAD: ("head", "output head"),
}
# Name, symbol and label of their vectors: norms, biases and sinks, which no matmul multiplies.
VECTORS = {
    of.NORMS: ("norms and biases", "vec", "norms and biases, one layer"),
    of.MLP: ("MLP biases", "bias", "MLP biases, one layer"),
    of.EXPERTS: ("expert biases", "bias_e", "one expert's biases"),
    of.ROUTER: ("router bias", "bias_r", "router bias, one layer"),
    of.FINAL_NORM: ("final norm", "norm", "final norm"),
    of.HEAD: ("head bias", "bias_h", "biases of the head"),
}
# Every name that a part may have, in that order.
PARTS = tuple(
    name
    for part, (symbol, _) in WEIGHTS.items()
    for name in (part if symbol else "", VECTORS[part][0] if part in VECTORS else "")
    if name
)
# The vectors of attention stand in one row with the norms around it.
BESIDE_NORMS = (of.NORMS, of.ATTENTION, of.HEAD_NORMS)


class Part(Record):
    """Parameters of a part of one layer; of the model where `layers` is None. Of experts, of
    which a token takes some, `one` is of one of them."""

    name: str
    one: Quantity
    layers: Quantity | None = None
    copies: Quantity | None = None
    taken: Quantity | None = None
    is_matmul: bool = False

    @property
    def held(self) -> Quantity:
        return self.one if self.copies is None else self.copies * self.one

    @property
    def multiplied(self) -> Quantity:
        """By one token."""
        return self.one if self.taken is None else self.taken * self.one


class Parameters(Record):
    """All in param; None is what the model does not have."""

    N: Quantity
    N_act: Quantity  # N itself where every parameter is active
    N_mm: Quantity  # weights that a token multiplies, the head's even where it is tied
    N_meg: Quantity  # the same as Megatron-LM counts them
    table: Quantity | None
    positions: Quantity | None
    head: Quantity | None  # an untied one
    output: Quantity | None  # the matmul of the head, tied or not
    projections: Quantity | None  # into and out of d
    parts: dict[str, int]  # all layers of each
    rows: tuple[Part, ...]  # the same, with what one layer has
    outside: tuple[Quantity, ...] = ()  # of what is in no layer
    layer: tuple[Quantity, ...] = ()  # matmuls of one layer
    matmul: tuple[tuple[str, Quantity], ...] = ()  # what N_mm sums up, by part


@lru_cache(maxsize=256)
def parameters(model: Model | Stack) -> Parameters:
    """Every part of it."""
    parts = {part.name: part for part in _parts(operations(model))}
    tied = isinstance(model, Model) and model.tied
    held = [part for part in parts.values() if not (tied and part.name == of.HEAD)]
    used = [part for part in parts.values() if part.is_matmul]
    N = define("N", "parameters", _by_layers((p.layers, p.held) for p in held), "param")
    multiplied = _by_layers((p.layers, p.multiplied) for p in used)
    N_mm = define("N_mm", "weights a token multiplies", multiplied, "param")
    if len(used) == len(parts):  # matmuls alone: one quantity, not two of the same value
        N_mm = N
    output = parts[of.HEAD].one if of.HEAD in parts else None
    return Parameters(
        N=N,
        N_act=_active(N, parts),
        N_mm=N_mm,
        N_meg=_megatron(model, N_mm, parts),
        table=parts[of.TABLE].one if of.TABLE in parts else None,
        positions=parts[of.POSITIONS].one if of.POSITIONS in parts else None,
        head=output if of.TABLE in parts and not tied else None,
        output=output,
        projections=parts[of.PROJECTIONS].one if of.PROJECTIONS in parts else None,
        parts={p.name: int(_in_all(p.layers, [p.held]).value) for p in held},
        rows=tuple(held),
        outside=tuple(p.one for p in held if p.layers is None),
        layer=tuple(p.one for p in used if p.layers is not None),
        matmul=tuple((p.name, _in_all(p.layers, [p.multiplied])) for p in used),
    )


def _parts(every: Sequence[Operation]) -> Iterator[Part]:
    """In the order in which answers list them: the weights of a part, then its vectors."""
    for part in WEIGHTS:
        mine = [o for o in every if o.part == part]
        linear = [o for o in mine if isinstance(o, Linear)]
        yield from (_table(o) for o in mine if isinstance(o, Embedding))
        if linear:
            yield _weights(linear)
        beside = BESIDE_NORMS if part == of.NORMS else (part,)
        vectors = [o for o in every if o.part in beside and o.vectors]
        if vectors and part in VECTORS:
            yield _vectors(part, vectors)


def _table(table: Embedding) -> Part:
    """A look-up, no matmul."""
    symbol, label = WEIGHTS[table.part]
    return Part(table.part, define(symbol, label, PARAM * table.rows * table.width, "param"))


def _weights(linear: Sequence[Linear]) -> Part:
    first = linear[0]
    symbol, label = WEIGHTS[first.part]
    label = first.name if first.part == of.HEAD else label
    again = " (the input table again)" if first.tied else ""
    terms = collected([Term(o.name, o.weights) for o in linear])
    one = define(symbol, label + again, PARAM * terms, "param")
    return Part(first.part, one, first.layers, first.copies, first.taken, is_matmul=True)


def _vectors(part: str, every: Sequence[Operation]) -> Part:
    name, symbol, label = VECTORS[part]
    one = define(symbol, label, PARAM * vector_sizes(every), "param")
    first = every[0]
    copies = first.copies if isinstance(first, Linear) else None
    return Part(name, one, first.layers, copies)


def vector_sizes(every: Iterable[Operation]) -> Quantity:
    """Their values: norms, then biases, then what else there is."""
    kinds: dict[str, list[Term]] = {}
    for operation in every:
        for kind, sizes, times in operation.vectors:
            kinds.setdefault(kind, []).append(Term(operation.name, sizes, times))
    norms = kinds.get("norm", [])
    doubled = f"{len(norms)} norms of weight and bias" if norms and norms[0].times == 2 else ""
    return total(
        collected(terms, doubled if kind == "norm" else "") for kind, terms in kinds.items()
    )


def _by_layers(terms: Iterable[tuple[Quantity | None, Quantity]]) -> Quantity:
    """L × (a + b) for what every layer has, and so on: a sum that a line holds."""
    groups: dict[object, tuple[Quantity | None, list[Quantity]]] = {}
    for layers, each in terms:
        groups.setdefault(id(each if layers is None else layers), (layers, []))[1].append(each)
    return total(_in_all(layers, each) for layers, each in groups.values())


def _in_all(layers: Quantity | None, each: Sequence[Quantity]) -> Quantity:
    return total(each) if layers is None else layers * total(each)


def _active(N: Quantity, parts: dict[str, Part]) -> Quantity:
    """What one token passes: k of E experts on every layer that has them."""
    experts = [part for part in parts.values() if part.copies is not None]
    if not experts:
        return N
    E, k, layers = experts[0].copies, experts[0].taken, experts[0].layers
    assert E is not None
    assert k is not None
    assert layers is not None
    idle = layers * (E - k) * total(part.one for part in experts)
    return define("N_act", "active parameters", N - idle, "param")


def _megatron(model: Model | Stack, N_mm: Quantity, parts: dict[str, Part]) -> Quantity:
    """Megatron-LM leaves the router out, and counts the norms of MLA's compressed widths as if
    they were matmuls."""
    formula = N_mm
    if of.ROUTER in parts:
        router = parts[of.ROUTER]
        formula = formula - _in_all(router.layers, [router.one])
    latent = [o for o in operations(model) if isinstance(o, of.Normalise) and o.is_latent]
    if latent:
        label = "norms of compressed widths"
        each = define("norm_c", label, PARAM * vector_sizes(latent), "param")
        formula = formula + _in_all(latent[0].layers, [each])
    if formula is N_mm:
        return N_mm
    return define("N_meg", "Megatron's weights", formula, "param")
