"""One training step on one GPU, phase by phase: what is alive in each, and where the peak is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from napkin.accounting import activations, memory
from napkin.accounting.activations import Part, Sizes
from napkin.quantity import Quantity, given, observed
from napkin.questions.shape.parts import counted, size
from napkin.questions.step import states as kinds
from napkin.questions.step.blocks import Kept, of_model, sizes
from napkin.questions.step.states import Setup, States
from napkin.specs.model import Model, Stack

Alive = tuple[Quantity, ...]
MLPS, NORMS, CASTS = ("MLP", "experts"), "norms", "cast weights"


class _Parts(NamedTuple):
    """What a layer and the head keep, each an input of the derivation."""

    by_name: dict[str, Quantity]  # of a layer
    head: list[Quantity]
    last_norm: Quantity
    inside: dict[str, Quantity]  # of a layer's backward pass, at each of its full moments
    block: Quantity  # what a layer keeps that is computed again
    windowed: Quantity | None  # what a layer with a short window keeps more
    mask: Quantity | None  # where checkpoints hold one
    half_norms: Quantity | None  # those of the attention, or of the MLP

    @property
    def layer(self) -> list[Quantity]:
        return list(self.by_name.values())

    @property
    def outside(self) -> list[Quantity]:
        return self.head if self.mask is None else [*self.head, self.mask]

    @property
    def mlp(self) -> list[Quantity]:
        """With the norms beside it."""
        done = [each for name, each in self.by_name.items() if name in MLPS]
        return done if self.half_norms is None else [*done, self.half_norms]

    @property
    def without_mlp(self) -> list[Quantity]:
        left = [each for name, each in self.by_name.items() if name not in (*MLPS, NORMS)]
        return left if self.half_norms is None else [*left, self.half_norms]

    @property
    def largest_layer(self) -> list[Quantity]:
        return self.layer if self.windowed is None else [*self.layer, self.windowed]


class _Gradients(NamedTuple):
    """That are there beside those of all parameters, or before them."""

    head: Quantity | None  # the first that is there
    late: Quantity  # when the first layer begins
    down: Quantity | None  # of the layer's last matrix, before its other ones
    tied: Quantity | None
    block: Quantity | None  # not shared yet


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the step, what it computes, and what is alive when that is most."""

    name: str
    flop: str  # per token
    alive: Alive

    @property
    def bytes(self) -> float:
        return _bytes(self.alive)


def _bytes(alive: Alive) -> float:
    return sum(each.value for each in alive)


@dataclass(frozen=True, slots=True)
class Step:
    """What a GPU holds, in B; None is what there is not, or what is not known without a model."""

    states: States
    phases: tuple[Phase, ...]
    activations: Quantity | None = None
    loss: Quantity | None = None
    temporaries: Alive = ()  # of the optimizer's step, and DDP's buckets
    notes: tuple[str, ...] = ()

    @property
    def peak(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.bytes)


def states_alone(N: Quantity, setup: Setup, source: str) -> Step:
    """Weights, gradients and the optimizer's state of N parameters, and nothing else."""
    held = kinds.states(N, setup, source)
    return Step(held, (Phase("states", "", held.all),))


def of_stack(model: Stack, N: Quantity, setup: Setup, source: str) -> Step:
    """The lecture's linear model; its output is one number, so there is no log-softmax."""
    held = kinds.states(N, setup, source)
    rows, s = setup.micro_batch * setup.seq_len, setup.precision.weights
    part = activations.stack(rows, model.d_model, model.layers, s)
    A = memory.as_much("A", "activations", _traced("a_stack", "inputs, outputs, loss", part))
    before = [held.gradients] if setup.grad_accum > 1 else []
    moments: list[tuple[str, str, list[list[Quantity | None]]]] = [
        ("forward", "2N", [[A, *before]]),
        ("loss", "", [[A, *before]]),
        ("backward", "4N", [[A, *before], [held.gradients]]),
    ]
    return _step(model, N, setup, source, held, moments, A, None)


def of_transformer(model: Model, N: Quantity, setup: Setup, source: str) -> Step:
    """Raises NapkinError for layers that were never measured."""
    how, s = setup.how, setup.precision.weights
    kept = of_model(model, setup.micro_batch, setup.seq_len, s, how)
    z = sizes(model, setup.micro_batch, setup.seq_len, 2 if how.autocast else s)
    held = kinds.states(N, setup, source)
    L = size("L", "layers", model.layers)
    parts = _parts(kept)
    of_layers = _of_layers(kept, parts, L, how.recompute == "full")
    A = memory.activations(of_layers, parts.outside)
    loss = None
    if not how.chunked_loss and z.V:
        part = activations.loss_backward(z)
        loss = _traced("a_loss", "gradients of loss, log-softmax", part)
    Z = kinds.gathered(model, setup)
    before = held.gradients if setup.grad_accum > 1 else None
    forward = [[A, Z, before]]
    if how.recompute == "full" and kept.scores is not None:
        work = _traced("a_work", "scores at work, one layer", kept.scores.forward)
        forward.append([A, work, Z, before])
    if how.recompute == "full" and CASTS in parts.by_name:
        # Autocast holds them until its context ends, whatever is computed again.
        casts = memory.of_each("A_casts", "cast weights of all layers", L, parts.by_name[CASTS])
        forward.append([A, casts, Z, before])
    others = _Gradients(
        _of_head(model, held, setup),
        _late(model, N, held, setup),
        _down(model, held, setup),
        _tied(model, held, setup),
        kinds.unshared(model, held, setup),
    )
    backward = _backward(z, setup, held, kept, parts, L, of_layers, others)
    moments = [
        ("forward", "2N", forward),
        ("loss", "", [[A, loss, Z, before]]),
        ("backward", "4N" if how.recompute != "full" else "6N", [[*b, Z] for b in backward]),
    ]
    return _step(model, N, setup, source, held, moments, A, loss, kept.notes)


def _of_layers(kept: Kept, parts: _Parts, L: Quantity, full: bool) -> Quantity:
    """What all layers keep, the head apart."""
    if full:
        return memory.of_layers(L, [parts.block], None)
    more = None
    if parts.windowed is not None:
        L_w = size("L_w", "layers with a window", kept.windowed_layers)
        more = memory.of_each("A_windows", "more, layers with a window", L_w, parts.windowed)
    return memory.of_layers(L, parts.layer, more)


def _parts(kept: Kept) -> _Parts:
    layer = {
        name: _traced(f"a_{name}", f"{name}, one layer", part) for name, part in kept.layer.items()
    }
    head = {name: _traced(f"a_{name}", name, part) for name, part in kept.head.items()}
    norm = head["final norm"] if "final norm" in head else head["head input"]
    block = _traced("a_block", "input, one layer", kept.block)
    windowed = kept.windowed and _traced("a_window", "under a window, one layer", kept.windowed)
    inside = {
        name: _traced("a_inside", f"inside the {name}", part) for name, part in kept.inside.items()
    }
    mask = kept.mask and _traced("a_mask", "mask", kept.mask)
    half = None
    if NORMS in kept.layer:
        norms = kept.layer[NORMS]
        of_one = Part(norms.bytes // 2, f"({norms.formula}) / 2")
        half = _traced("a_half_norms", "norms of a sublayer", of_one)
    return _Parts(layer, list(head.values()), norm, inside, block, windowed, mask, half)


def _traced(symbol: str, label: str, part: Part) -> Quantity:
    """A sum of whole numbers as an input, to four figures, its formula as its source."""
    return observed(re.sub(r"\W", "_", symbol), label, part.bytes, "B", part.formula)


def _backward(
    z: Sizes,
    setup: Setup,
    held: States,
    kept: Kept,
    parts: _Parts,
    L: Quantity,
    layers: Quantity,
    others: _Gradients,
) -> list[list[Quantity | None]]:
    """Its moments: in the last norm; in the last layer, whose MLP comes before its attention; and
    at the end, with every gradient. Where layers are computed again, in the first layer too,
    the others' inputs gone by then."""
    before = held.gradients if setup.grad_accum > 1 else None
    early = others.head if before is None else before
    late = others.late if before is None else before
    end = [held.gradients, others.tied, others.block]
    scores: Quantity | None = None
    if kept.scores is not None:
        scores = _traced("a_softmax", "inside the softmax", kept.scores.backward)
    if setup.how.recompute == "full":
        moments = []
        for symbol, label, inputs, there in (
            ("A_again", "all inputs, one layer again", L, early),
            ("A_one", "one input, its layer again", None, late),
        ):
            one = memory.layers_and_one(symbol, label, inputs, parts.block, parts.largest_layer)
            rest = (parts.mask, there, others.block)
            moments += [[one, inside, down, *rest] for inside, down in _inside(parts, others)]
            if scores is not None:
                left = memory.layers_and_one(
                    f"{symbol}_attn", label, inputs, parts.block, parts.without_mlp
                )
                moments.append([left, scores, *rest])
        return [*moments, end]
    of_layers = memory.as_much("A_layers", "activations of the layers", layers)
    norm = _traced("a_norm", "inside the last norm", activations.inside_norm(z))
    moments = [[of_layers, parts.last_norm, norm, early, others.block]]
    for inside, down in _inside(parts, others):
        moments.append([of_layers, inside, down, early, others.block])
    if kept.scores is not None:
        again: Quantity | None = None
        if setup.how.recompute == "selective":
            again = _traced("a_scores", "scores again, one layer", kept.scores.again)
        left = of_layers
        if parts.mlp:
            left = memory.less("A_left", "the same, one MLP done", of_layers, parts.mlp)
        moments.append([left, again, scores, early, others.block])
    return [*moments, end]


def _inside(parts: _Parts, others: _Gradients) -> list[tuple[Quantity, Quantity | None]]:
    """What is at work inside a layer, with the gradient that its MLP's way back begins with."""
    return [(each, others.down if name in MLPS else None) for name, each in parts.inside.items()]


def _of_head(model: Model, held: States, setup: Setup) -> Quantity | None:
    """Gradients that are there before the layers' are."""
    head = counted(model).output
    if head is None:
        return None
    return memory.gradients_of("G_head", "gradient of the head", head, held.g, setup.shared_from(2))


def _down(model: Model, held: States, setup: Setup) -> Quantity | None:
    """The gradient of a layer's last matrix, while those of its MLP's others are not there yet;
    shared out, it is in a block's gradients."""
    if setup.grad_accum > 1 or setup.shared_from(2) is not None:
        return None
    weights = given("N_down", "parameters, last matrix", _of_down(model), "param", model.name)
    return memory.gradients_of("G_down", "gradient of the last matrix", weights, held.g, None)


def _of_down(model: Model) -> int:
    if model.experts is not None:
        return model.experts.count * model.d_model * model.experts.width
    return model.d_model * model.mlp.width if model.mlp is not None else 0


def _late(model: Model, N: Quantity, held: States, setup: Setup) -> Quantity:
    """All but those of the layer that is at work, of positions and of a table of its own."""
    left = N - kinds.block(model)
    if not model.tied:
        left = left - _table(model)
    positions = counted(model).positions
    if positions is not None:
        left = left - positions
    return memory.gradients_of(
        "G_late", "gradients but the first layer's", left, held.g, setup.shared_from(2)
    )


def _table(model: Model) -> Quantity:
    found = counted(model).table
    assert found is not None  # a transformer's
    return found


def _tied(model: Model, held: States, setup: Setup) -> Quantity | None:
    """The table's gradient by the head, that by the look-up, and their sum are one moment."""
    head = counted(model).output
    if head is None or not model.tied or setup.shared_from(2) is not None:
        return None
    return memory.tied_gradients(head, held.g)


def _step(
    model: Model | Stack,
    N: Quantity,
    setup: Setup,
    source: str,
    held: States,
    moments: Sequence[tuple[str, str, Sequence[Sequence[Quantity | None]]]],
    A: Quantity,
    loss: Quantity | None,
    notes: tuple[str, ...] = (),
) -> Step:
    """All phases; of each, its fullest moment."""
    buckets = kinds.buckets(held, setup)
    cast = kinds.cast(N, setup)
    buffers = kinds.buffers(model, N, setup, source)
    always = (held.weights, held.master, held.optimizer, buckets)

    def fullest(several: Sequence[Sequence[Quantity | None]]) -> Alive:
        each = [tuple(q for q in (*always, *moment) if q is not None) for moment in several]
        return max(each, key=_bytes)

    between = [
        ("start", "", [[]]),
        *moments,
        ("step", "", [[held.gradients, cast, buffers]]),
        ("zero_grad", "", [[]]),
    ]
    phases = tuple(Phase(name, flop, fullest(several)) for name, flop, several in between)
    temporaries = tuple(each for each in (buckets, cast, buffers) if each is not None)
    return Step(held, phases, A, loss, temporaries, notes)
