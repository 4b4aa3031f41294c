"""Low-rank adapters on a frozen model (LoRA 2106.09685): beside which matmuls they stand, and
their parameters.

Beside each frozen linear layer of in × out weights stand in × r and r × out, where peft 0.21
places them: on modules of torch's Linear, a fused one's together.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from napkin.accounting import operations as of
from napkin.accounting.errors import unmeasured
from napkin.accounting.layout import Layout
from napkin.accounting.matmuls import groups, symbol_of
from napkin.accounting.notation import TRACED, Notation
from napkin.accounting.operations import Adapters, Linear, Normalise, Operation
from napkin.accounting.parameters import PARAM
from napkin.accounting.sums import Term, collected, total
from napkin.errors import quoted
from napkin.quantity import Quantity, coefficient, define
from napkin.specs.architectures import modules
from napkin.specs.model import Model

# What people call them, beside the modules' own names.
WORDS = {
    "query": "q query",
    "key": "k key",
    "value": "v value",
    "output": "o out output",
    "gate": "g gate",
    "up": "u up",
    "down": "w down",
}
LETTERS, EVERY = "qkvoguw", ("all", "all-linear")
ONE = (coefficient(1),)
RANK = ("rank", "rank of the adapters")


class Site(NamedTuple):
    """A linear module of a block, and the matmuls that it is."""

    module: str
    linear: tuple[Linear, ...]


@lru_cache(maxsize=256)
def sites(model: Model) -> tuple[Site, ...]:
    """All that an adapter may stand beside: experts in one tensor and routers are no modules of
    torch's Linear."""
    return tuple(_sites(model))


def _sites(model: Model) -> Iterator[Site]:
    for group in groups(model):
        first = group[0]
        if first.layers is None or first.copies is not None or first.part == of.ROUTER:
            continue
        names = modules.of_layer(model.architecture, symbol_of(group), 0)
        last = [name.rpartition(".")[2] for name in names]
        if len(last) == 1:
            yield Site(last[0], tuple(group))
        else:
            yield from (Site(name, (o,)) for name, o in zip(last, group, strict=True))


@lru_cache(maxsize=256)
def chosen(model: Model, targets: tuple[str, ...]) -> tuple[Site, ...]:
    """Those that the words name; all for none. Raises Unmeasured for a word that names none, and
    for a part of what is one matrix."""
    every = sites(model)
    if not targets and model.architecture in modules.ALL_HAS_EXPERTS:
        known = ",".join(dict.fromkeys(s.module for s in every if s.linear[0].part == of.ATTENTION))
        problem = "peft's all-linear has experts too, and keeps their weights once more: write"
        raise unmeasured("lora_targets", f"{problem} {known}")
    if not targets:
        return every
    for word in targets:
        if not any(_named(site, (word,)) for site in every):
            known = " ".join(dict.fromkeys(site.module for site in every))
            problem = (
                f"{quoted(word)} is no linear layer of {model.name}'s blocks; they are {known}"
            )
            raise unmeasured("lora_targets", problem)
    found = []
    for site in every:
        named = _named(site, targets)
        if named and len(named) < len(site.linear):
            whole = ", ".join(o.name for o in site.linear)
            problem = f"{model.name} has {whole} in one matrix: write {site.module}"
            raise unmeasured("lora_targets", problem)
        found += [site] if named else []
    return tuple(found)


def _named(site: Site, words: Collection[str]) -> list[Linear]:
    """The matmuls of a site that the words name."""
    if site.module in words:
        return list(site.linear)
    return [o for o in site.linear if any(word in WORDS.get(o.name, "").split() for word in words)]


def targets(text: object) -> tuple[str, ...]:
    """`qv`, `q_proj,v_proj`; none for all of them."""
    words = str(text).strip().casefold()
    if words in EVERY:
        return ()
    if words and set(words) <= set(LETTERS):
        return tuple(words)
    return tuple(words.replace(",", " ").split())


def adapters(model: Model, layout: Layout, notation: Notation = TRACED) -> Adapters | None:
    """None where all weights are trained."""
    tuning = layout.tuning
    if tuning is None:
        return None
    beside = [o for site in chosen(model, tuning.targets) for o in site.linear]
    r = notation.letter(*RANK, tuning.rank, "--lora-rank")
    return Adapters(r, frozenset((o.part, o.name) for o in beside), layout.precision.weights)


def parameters_of(r: Quantity, every: Iterable[Site]) -> Quantity:
    """N_lora in param. What is one matmul has one pair."""
    by_layers: dict[int, tuple[Quantity, list[Term]]] = {}
    for site in every:
        first = site.linear[0]
        assert first.layers is not None
        sides = [Term(f"{first.name}, in", first.inputs)]
        sides += [Term(f"{o.name}, out", o.outputs or ONE) for o in site.linear]
        by_layers.setdefault(id(first.layers), (first.layers, []))[1].extend(sides)
    formula = total(layers * (r * collected(sides)) for layers, sides in by_layers.values())
    return define("N_lora", "adapters", PARAM * formula, "param")


def without_gradient(
    every: Sequence[Operation], beside: frozenset[tuple[str, str]]
) -> Iterator[Operation]:
    """Those of a first block whose input needs no gradient: nothing below them is trained. They
    keep nothing but for an adapter of their own."""
    untrained, is_any_trained = set(), False
    for o in every:
        if not isinstance(o, Linear | Normalise):
            if not is_any_trained:
                yield o
            continue
        if is_any_trained and o.x not in untrained:
            continue
        yield o
        untrained.add(o.x)
        if (o.part, o.name) in beside:
            is_any_trained = True
        else:
            untrained.add(o.y)
