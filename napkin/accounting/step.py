"""One training step on one GPU, phase by phase: what is alive in each, and where the peak is."""

from collections.abc import Iterator, Sequence

from napkin.accounting import activations as act
from napkin.accounting import operations as of
from napkin.accounting import states
from napkin.accounting.layout import Layout
from napkin.accounting.notation import TRACED, Notation, amount
from napkin.accounting.states import Held, States
from napkin.accounting.sums import total
from napkin.quantity import Quantity, coefficient, define
from napkin.record import Record
from napkin.specs.model import Model, Stack

Alive = tuple[Quantity, ...]
Moment = Sequence[Quantity | None]  # what is alive at once; None is what there is not
# A part of the step, what it computes per token, and its moments.
Passes = tuple[tuple[str, str, Sequence[Moment]], ...]
MLPS = (of.MLP, of.EXPERTS)
BATCH = "--micro-batch"
HALVES = coefficient(2, "1", "2 = attention + MLP")


class Phase(Record):
    """A part of the step, what it computes, and what is alive when that is most."""

    name: str
    flop: str  # per token
    alive: Alive
    bytes: float


class Step(Record):
    """What a GPU holds, in B; None is what there is not, or what is not known without a model."""

    params: Held
    states: States
    phases: tuple[Phase, ...]
    activations: Quantity | None = None
    loss: Quantity | None = None
    temporaries: Alive = ()  # of the optimizer's step, and DDP's buckets
    notes: tuple[str, ...] = ()
    stage: str = ""  # of a pipeline, that it is of
    in_flight: float = 1.0  # micro-batches

    @property
    def peak(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.bytes)


def step(
    model: Model | Stack | None,
    N: Quantity,
    layout: Layout,
    source: str = "",
    notation: Notation = TRACED,
    in_flight: Quantity | None = None,
) -> Step:
    """Of a model, or of N parameters alone, with the activations of so many micro-batches where
    a pipeline has several. Raises NapkinError for layers never measured."""
    params = states.held(model, N, layout, notation)
    held = states.states(params, layout, source, notation)
    if isinstance(model, Model):
        held = held.replace(frozen=states.frozen(model, N, layout, notation))
    if model is None:
        return Step(params, held, (_fullest((), "states", "", [held.all]),))
    buckets = states.buckets(held, layout)
    always = (held.frozen, held.weights, held.master, held.optimizer, buckets)
    passes: _Stack | _Transformer
    if isinstance(model, Stack):
        passes = _Stack(model, layout, held, notation)
    else:
        passes = _Transformer(model, N, params, layout, held, notation, in_flight)
    cast = states.cast_gradients(params, layout, notation)
    buffers = states.step_buffers(model, params, layout, source, notation)
    moments: Passes = (
        ("start", "", [()]),
        *passes.passes,
        ("step", "", [(held.gradients, cast, buffers)]),
        ("zero_grad", "", [()]),
    )
    alive = _there(always)
    phases = tuple([_fullest(alive, *each) for each in moments])
    temporaries = _there((buckets, cast, buffers))
    return Step(params, held, phases, passes.A, passes.loss, temporaries, passes.notes)


def _there(moment: Moment) -> Alive:
    return tuple([q for q in moment if q is not None])


def _together(symbol: str, label: str, parts: Alive) -> Alive:
    """Under one name where they are several."""
    return (define(symbol, label, total(parts), "B"),) if len(parts) > 1 else parts


def _fullest(always: Alive, name: str, flop: str, moments: Sequence[Moment]) -> Phase:
    """Of a phase, the moment in which most is alive."""
    several = [always + _there(moment) for moment in moments]
    sums = [amount(alive) for alive in several]
    bytes = max(sums)
    return Phase(name, flop, several[sums.index(bytes)], bytes)


class _Stack:
    """The lecture's linear model; its output is one number, so there is no log-softmax."""

    def __init__(self, model: Stack, layout: Layout, held: States, notation: Notation) -> None:
        before = held.gradients if layout.grad_accum > 1 else None
        rows = layout.micro_batch * layout.seq_len
        B = notation.given("B", "samples", rows, "1", "--micro-batch")
        self.A = act.stack(model, B, layout, notation)
        self.loss = None
        self.notes: tuple[str, ...] = ()
        self.passes: Passes = (
            ("forward", "2N", [(self.A, before)]),
            ("loss", "", [(self.A, before)]),
            ("backward", "4N", [(self.A, before), (held.gradients,)]),
        )


class _Transformer:
    """What is alive at each moment of the forward and of the backward pass."""

    def __init__(
        self,
        model: Model,
        N: Quantity,
        params: Held,
        layout: Layout,
        held: States,
        notation: Notation,
        in_flight: Quantity | None,
    ) -> None:
        self.model, self.layout, self.notation = model, layout, notation
        given = notation.given
        B = self.B = given("B", "sequences of a micro-batch", layout.micro_batch, "1", BATCH)
        T = given("T", "sequence length", layout.seq_len, "1", "--seq-len")
        if layout.degrees.cp > 1:
            n_cp = notation.letter("n_cp", "context-parallel ranks", layout.degrees.cp, "--cp")
            T = define("T_cp", "tokens of a sequence on one rank", T / n_cp, "1")
        self.T, self.in_flight = T, in_flight
        self.L = notation.letter("L", "layers", model.layers)
        again = layout.recompute == "full"
        kept = self.kept = act.of_model(model, B, T, layout, notation)
        self.notes = kept.notes
        self.in_layers = self.L * kept.block if again else self._in_layers()
        self.waiting = None  # what other micro-batches keep meanwhile
        if in_flight is not None:
            label = "kept for other micro-batches"
            self.waiting = define("A_wait", label, (in_flight - 1) * self.in_layers, "B")
            self.in_layers = in_flight * self.in_layers
        outside = _together("a_end", "activations outside layers", kept.outside)
        self.A = define("A", "activations", total((self.in_layers, *outside)), "B")
        self.loss = None
        if not layout.chunked_loss:
            self.loss = act.loss_backward(model, B, T, notation)
        self.scores = None
        if layout.attention == "eager":
            self.scores = act.Scores(model, B, T, layout, notation)
        self.inside = act.inside_layer(model, B, T, layout, notation)
        counts = states.counts(model, N, notation)
        self.gradients = states.gradients(model, params, counts, held, layout, notation)
        self.dequantised = states.at_work(model, layout, notation)
        before = held.gradients if layout.grad_accum > 1 else None
        Z = states.gathered(counts, layout, notation)
        backward = self._recomputing(before) if again else self._backward(before)
        last = (held.gradients, self.gradients.tied, self.gradients.unshared, self.waiting)
        backward.append(last)
        self.passes = (
            ("forward", "2N", [(*moment, Z, before) for moment in self._forward(again)]),
            ("loss", "", [(self.A, self.loss, Z, before)]),
            ("backward", self._backward_flop(again), [(*moment, Z) for moment in backward]),
        )

    def _backward_flop(self, again: bool) -> str:
        """Frozen weights have no gradients; blocks may be computed once more."""
        times = (4 if self.layout.tuning is None else 2) + (2 if again else 0)
        return f"{times}N"

    def _in_layers(self) -> Quantity:
        """What all layers keep, some of them more: under a window."""
        common, dense, sparse = self.kept.kinds
        in_layers = self.L * total(_together("a_layer", "activations of a layer", common))
        if dense:
            model, letter = self.model, self.notation.letter
            L_dense = letter("L_dense", "dense layers", model.dense_layers)
            L_moe = letter("L_moe", "layers with experts", model.moe_layers)
            label = "more, layers with experts"
            in_layers = in_layers + L_dense * total(dense)
            in_layers = in_layers + L_moe * total(_together("a_sparse", label, sparse))
        if self.kept.first is not None:
            in_layers = in_layers - self.kept.first
        if self.kept.window is None:
            return in_layers
        short = act.short_windows(self.model, self.layout.seq_len)
        L_w = self.notation.letter("L_w", "layers with a window", short)
        label = "more, layers with a window"
        return in_layers + define("A_windows", label, L_w * self.kept.window, "B")

    def _forward(self, again: bool) -> list[Moment]:
        moments: list[Moment] = [(self.A,)]
        if again and self.scores is not None:
            work = self.scores.of("a_work", "scores at work, one layer", self.scores.forward)
            moments.append((self.A, work))
        if again and act.CAST in self.kept.layer:
            # Autocast holds them until its context ends, whatever is computed again.
            casts = self.L * self.kept.layer[act.CAST]
            moments.append((self.A, define("A_casts", "cast weights of all layers", casts, "B")))
        return moments

    def _in_layer(self) -> Iterator[Moment]:
        """What is at work in a layer, with the gradient that its MLP's way back begins with."""
        for place, inside in self.inside.items():
            down = self.gradients.down if place in MLPS else None
            yield inside, down, self.kept.frozen.get(place)

    def _half_of_norms(self) -> list[Quantity]:
        """Those of the attention, or of the MLP."""
        norms = self.kept.layer.get(of.NORMS)
        if norms is None:
            return []
        label = "norms of one sublayer"
        return [define("a_half_norms", label, norms / HALVES, "B")]

    def _softmax(self, scores: act.Scores) -> Quantity:
        return scores.of("a_softmax", "inside the softmax", scores.backward)

    def _backward(self, before: Quantity | None) -> list[Moment]:
        """In the last norm; in the last layer, whose MLP comes before its attention."""
        label = "kept by the layers"
        in_layers = define("A_layers", label, self.in_layers, "B")
        early = self.gradients.head if before is None else before
        rest = (early, self.gradients.unshared, self.dequantised)
        moments: list[Moment] = []
        if of.FINAL_NORM in self.kept.rest:
            norm = act.inside_norm(self.model, self.B * self.T, self.notation)
            back = self.kept.frozen.get(of.FINAL_NORM)
            moments.append((in_layers, self.kept.rest[of.FINAL_NORM], norm, back, *rest))
        moments += [(in_layers, *inside, *rest) for inside in self._in_layer()]
        moments += self._in_the_first_layer(before)
        if self.scores is None:
            return moments
        again = None
        if self.layout.recompute == "selective":
            again = self.scores.of("a_scores", "scores again, one layer", self.scores.kept)
        done = [q for part, q in self.kept.layer.items() if part in MLPS]
        left = in_layers
        if done:
            gone = total((*done, *self._half_of_norms()))
            left = define("A_left", "the same, one MLP done", in_layers - gone, "B")
        return [*moments, (left, again, self._softmax(self.scores), *rest)]

    def _in_the_first_layer(self, before: Quantity | None) -> list[Moment]:
        """Where all gradients but its own are there: most, where parameters are more than what
        layers keep."""
        label = "kept by the first layer"
        one = define("A_first", label, total(self.kept.largest_layer), "B")
        there = self.gradients.late if before is None else before
        rest = (there, self.gradients.unshared, self.waiting, self.dequantised)
        return [(one, *inside, *rest) for inside in self._in_layer()]

    def _recomputing(self, before: Quantity | None) -> list[Moment]:
        """In the last layer, and in the first, the others' inputs gone by then."""
        kept, gradients = self.kept, self.gradients
        without_mlp = [q for part, q in kept.layer.items() if part not in (*MLPS, of.NORMS)]
        without_mlp += self._half_of_norms()
        softmax = None if self.scores is None else self._softmax(self.scores)
        in_layer = list(self._in_layer())
        moments: list[Moment] = []
        for symbol, label, inputs, there in (
            ("A_again", "all inputs, one layer again", self.in_layers, gradients.head),
            ("A_one", "one input, its layer again", kept.block, gradients.late),
        ):
            waiting = self.waiting if inputs is kept.block else None
            there = there if before is None else before
            rest = (kept.mask, there, gradients.unshared, waiting, self.dequantised)
            one = define(symbol, label, total((inputs, *kept.largest_layer)), "B")
            moments += [(one, *inside, *rest) for inside in in_layer]
            if softmax is not None:
                left = define(f"{symbol}_attn", label, total((inputs, *without_mlp)), "B")
                moments.append((left, softmax, *rest))
        return moments
