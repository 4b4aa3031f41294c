"""One training step on one GPU, phase by phase: what is alive in each, and where the peak is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from napkin.accounting import activations, memory
from napkin.accounting.activations import Part
from napkin.quantity import Quantity, given, observed
from napkin.questions.shape.parts import counted, size
from napkin.questions.step.blocks import How, of_model, sizes
from napkin.specs.model import Model, Stack
from napkin.specs.optimizers import Optimizer, Precision, terms

STEPS = ("foreach", "fused", "loop")
WEIGHTS, GRADIENTS, MASTER = "weights", "gradients", "master"


@dataclass(frozen=True, slots=True)
class Setup:
    """All that decides what one GPU holds, but for the model."""

    precision: Precision
    optimizer: Optimizer
    ranks: int  # data-parallel
    zero: int
    micro_batch: int = 1
    seq_len: int = 1
    grad_accum: int = 1
    step: str = "foreach"
    bucket_view: bool = False
    how: How = field(default_factory=How)

    @property
    def value_bytes(self) -> int:
        """Of an activation: that of the weights that compute."""
        return self.precision.weights


@dataclass(frozen=True, slots=True)
class Phase:
    """A moment of the step, what it computes, and what is alive."""

    name: str
    flop: str  # per token
    alive: tuple[Quantity, ...]

    @property
    def bytes(self) -> float:
        return sum(each.value for each in self.alive)


@dataclass(frozen=True, slots=True)
class Step:
    """By kind, in B of one GPU; None is what the model does not have or is not known to."""

    weights: Quantity
    master: Quantity | None
    gradients: Quantity
    optimizer: Quantity | None
    activations: Quantity | None
    loss: Quantity | None
    buffers: Quantity | None  # of the optimizer's step
    buckets: Quantity | None  # DDP's
    phases: tuple[Phase, ...]
    notes: tuple[str, ...] = ()

    @property
    def peak(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.bytes)

    @property
    def states(self) -> tuple[Quantity, ...]:
        """What stays between two steps, and the gradients."""
        kinds = (self.weights, self.master, self.gradients, self.optimizer)
        return tuple(each for each in kinds if each is not None)


def states(N: Quantity, setup: Setup, source: str) -> Step:
    """Weights, gradients and the optimizer's state of N parameters, and nothing else."""
    kinds = _kinds(N, setup, source)
    held = [each for each in kinds.values() if each is not None]
    return Step(
        kinds[WEIGHTS],  # type: ignore[arg-type]
        kinds[MASTER],
        kinds[GRADIENTS],  # type: ignore[arg-type]
        kinds["optimizer"],
        *(None,) * 4,
        phases=(Phase("states", "", tuple(held)),),
    )


def shared_by(ranks: int) -> Quantity | None:
    """n, where there are several."""
    return size("n_dp", "data-parallel ranks", ranks) if ranks > 1 else None


def _kinds(N: Quantity, setup: Setup, source: str) -> dict[str, Quantity | None]:
    """Each kind of state over the ranks that share it: ZeRO 1 the optimizer's, 2 the gradients
    too, 3 the weights too."""
    each = {t.symbol: given(*t, "B/param", source) for t in terms(setup.precision, setup.optimizer)}
    n = shared_by(setup.ranks)

    def shared(zero: int) -> Quantity | None:
        return n if setup.zero >= zero else None

    moments = [q for symbol, q in each.items() if symbol not in (WEIGHTS, GRADIENTS, MASTER)]
    master = [each[MASTER]] if MASTER in each else []
    return {
        WEIGHTS: memory.copies("W", "weights", [each[WEIGHTS]], N, shared(3)),
        MASTER: memory.copies("M", "fp32 master weights", master, N, shared(1)) if master else None,
        GRADIENTS: memory.copies("G", "gradients", [each[GRADIENTS]], N, shared(2)),
        "optimizer": memory.copies("O", "optimizer state", moments, N, shared(1))
        if moments
        else None,
    }


def of_stack(model: Stack, N: Quantity, setup: Setup, source: str) -> Step:
    """The lecture's linear model; its output is one number, so there is no log-softmax."""
    s = setup.value_bytes
    part = activations.stack(setup.micro_batch * setup.seq_len, model.d_model, model.layers, s)
    A = memory.copy_of("A", "activations", _traced("a_stack", "inputs, outputs, loss", part))
    largest = size("N_max", "largest tensor", model.d_model**2)
    return _phases(N, setup, source, A, None, None, None, largest)


def of_transformer(model: Model, N: Quantity, setup: Setup, source: str) -> Step:
    """Raises NapkinError for layers that were never measured."""
    how = setup.how
    kept = of_model(model, setup.micro_batch, setup.seq_len, setup.value_bytes, how)
    L = size("L", "layers", model.layers)
    layer = [_traced(f"a_{name}", f"{name}, one layer", part) for name, part in kept.layer.items()]
    head = [_traced(f"a_{name}", name, part) for name, part in kept.head.items()]
    block = _traced("a_block", "input, one layer", kept.block)
    again = None
    if how.recompute == "full":
        A = memory.recomputed_activations(L, block, head)
        again = memory.recomputed_layer(L, block, layer)
    else:
        A = memory.activations(L, layer, head)
    z = sizes(model, setup.micro_batch, setup.seq_len, setup.value_bytes)
    loss = None
    if not how.chunked_loss:
        part = activations.loss_backward(z)
        loss = _traced("a_loss", "gradients of loss, log-softmax", part)
    gathered = _gathered(model, setup) if setup.zero == 3 and setup.ranks > 1 else None
    largest = _largest(model)
    return _phases(N, setup, source, A, loss, again, gathered, largest, kept.notes)


def _traced(symbol: str, label: str, part: Part) -> Quantity:
    """A sum of whole numbers as an input, to four figures, its formula as its source."""
    return observed(re.sub(r"\W", "_", symbol), label, part.bytes, "B", part.formula)


def _gathered(model: Model, setup: Setup) -> Quantity:
    parts = counted(model).parts
    outside = ("input table", "positions", "output head", "final norm", "projections")
    inside = sum(each for name, each in parts.items() if name not in outside)
    block = given("N_block", "parameters, one layer", inside / model.layers, "param", model.name)
    w = given("w", "weights", setup.precision.weights, "B/param", "--precision")
    return memory.gathered(block, w)


def _largest(model: Model) -> Quantity:
    """The largest tensor that an optimizer steps."""
    width = model.d_model
    tensors = [model.vocab * (model.table_width or width)]
    if model.mlp is not None:
        tensors.append(width * model.mlp.width)
    if model.experts is not None:  # transformers keeps gate and up of all experts in one
        tensors.append(2 * model.experts.count * width * model.experts.width)
    return given("N_max", "largest tensor", max(tensors), "param", model.name)


def _phases(
    N: Quantity,
    setup: Setup,
    source: str,
    A: Quantity,
    loss: Quantity | None,
    again: Quantity | None,
    gathered: Quantity | None,
    largest: Quantity,
    notes: Sequence[str] = (),
) -> Step:
    kinds = _kinds(N, setup, source)
    W, M, G, O = (kinds[k] for k in (WEIGHTS, MASTER, GRADIENTS, "optimizer"))  # noqa: E741
    assert W is not None
    assert G is not None
    buckets = None
    if setup.ranks > 1 and setup.zero == 0 and not setup.bucket_view:
        buckets = memory.copy_of("buckets", "DDP's copy of the gradients", G)
    buffers = _buffers(N, setup, source, largest)

    def phase(name: str, flop: str, *parts: Quantity | None) -> Phase:
        held = (W, M, O, buckets, *parts)
        return Phase(name, flop, tuple(each for each in held if each is not None))

    before = G if setup.grad_accum > 1 else None  # of earlier micro-batches
    backward = (again, G) if again is not None else (A, before)
    phases = (
        phase("start", ""),
        phase("forward", "2N", A, gathered, before),
        phase("loss", "", A, loss, gathered, before),
        phase("backward", "4N" if again is None else "6N", *backward, gathered),
        phase("step", "", G, buffers),
        phase("zero_grad", ""),
    )
    return Step(W, M, G, O, A, loss, buffers, buckets, phases, tuple(notes))


def _buffers(N: Quantity, setup: Setup, source: str, largest: Quantity) -> Quantity | None:
    """What the step holds beside the state, of the copy that it updates."""
    optimizer, precision = setup.optimizer, setup.precision
    if setup.step == "fused":
        return None
    stepped = precision.master or precision.weights
    each = given("w_step", "bytes of what is stepped", stepped, "B/param", source)
    if setup.step == "foreach" and optimizer.foreach:
        n = shared_by(setup.ranks) if setup.zero >= 1 else None
        return memory.step_buffers(optimizer.foreach, each, N, n)
    return memory.loop_buffers(optimizer.loop, each, largest) if optimizer.loop else None
