"""Weights, gradients and the optimizer's state on one GPU, and what a step needs beside them."""

from dataclasses import dataclass, field
from functools import cache

from napkin.accounting import memory
from napkin.quantity import Quantity, given
from napkin.questions.shape.linears import linears
from napkin.questions.shape.parts import counted, size
from napkin.questions.step.blocks import How
from napkin.specs.model import Model, Stack
from napkin.specs.optimizers import Optimizer, Precision, terms

STEPS = ("foreach", "fused", "loop")
WEIGHTS, GRADIENTS, MASTER = "weights", "gradients", "master"
OUTSIDE = ("input table", "positions", "output head", "head bias", "final norm", "projections")


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

    def shared_from(self, zero: int) -> Quantity | None:
        """The ranks that share what ZeRO shares from that stage on; None where nobody does."""
        return shared_by(self.ranks) if self.zero >= zero else None


def shared_by(ranks: int) -> Quantity | None:
    """n, where there are several."""
    return size("n_dp", "data-parallel ranks", ranks) if ranks > 1 else None


@dataclass(frozen=True, slots=True)
class States:
    """In B of one GPU; None is what the recipe does not have."""

    weights: Quantity
    gradients: Quantity
    master: Quantity | None
    optimizer: Quantity | None
    g: Quantity  # B/param of a gradient

    @property
    def all(self) -> tuple[Quantity, ...]:
        kinds = (self.weights, self.master, self.gradients, self.optimizer)
        return tuple(each for each in kinds if each is not None)


def states(N: Quantity, setup: Setup, source: str) -> States:
    """ZeRO 1 shares the optimizer's state, 2 the gradients too, 3 the weights too
    (1910.02054, section 5)."""
    each = {t.symbol: given(*t, "B/param", source) for t in terms(setup.precision, setup.optimizer)}
    moments = [q for symbol, q in each.items() if symbol not in (WEIGHTS, GRADIENTS, MASTER)]
    first, second, third = (setup.shared_from(stage) for stage in (1, 2, 3))
    master = optimizer = None
    if MASTER in each:
        master = memory.copies("M", "fp32 master weights", [each[MASTER]], N, first)
    if moments:
        optimizer = memory.copies("O", "optimizer state", moments, N, first)
    return States(
        memory.copies("W", "weights", [each[WEIGHTS]], N, third),
        memory.copies("G", "gradients", [each[GRADIENTS]], N, second),
        master,
        optimizer,
        each[GRADIENTS],
    )


def buckets(held: States, setup: Setup) -> Quantity | None:
    """DDP's copy of the gradients, which it has unless they are views of it."""
    if setup.ranks == 1 or setup.zero or setup.bucket_view:
        return None
    return memory.as_much("buckets", "DDP's copy of the gradients", held.gradients)


def cast(N: Quantity, setup: Setup) -> Quantity | None:
    """Gradients as the fp32 master weights need them: torch's optimizers step no two dtypes."""
    precision = setup.precision
    if precision.gradients >= precision.master:
        return None
    each = given(
        "g_step", "bytes of a gradient that is stepped", precision.master, "B/param", "fp32"
    )
    return memory.copies("cast", "gradients cast to fp32", [each], N, setup.shared_from(1))


def buffers(model: Model | Stack, N: Quantity, setup: Setup, source: str) -> Quantity | None:
    """What the step holds beside the state, of the copy that it updates."""
    optimizer, precision = setup.optimizer, setup.precision
    if setup.step == "fused":
        return None
    stepped = precision.master or precision.weights
    each = given("w_step", "bytes of what is stepped", stepped, "B/param", source)
    if setup.step == "foreach" and optimizer.foreach:
        return memory.step_buffers(optimizer.foreach, each, N, setup.shared_from(1))
    if not optimizer.loop:
        return None
    return memory.loop_buffers(optimizer.loop, each, _largest(model, optimizer.hidden_only))


def _largest(model: Model | Stack, hidden_only: bool) -> Quantity:
    """The largest tensor that the optimizer steps."""
    tensors = [each.inputs * each.outputs for each in linears(model) if each.symbol != "head"]
    if not isinstance(model, Stack):
        if not hidden_only:
            tensors.append(model.vocab * (model.table_width or model.d_model))
        if model.experts is not None:  # transformers keeps gate and up of all experts in one
            tensors.append(2 * model.experts.count * model.d_model * model.experts.width)
    return given("N_max", "largest tensor", max(tensors), "param", model.name)


def gathered(model: Model, setup: Setup) -> Quantity | None:
    """Whole weights under ZeRO-3: of two blocks, and of all that is in none."""
    if setup.shared_from(3) is None:
        return None
    w = given("w", "bytes of a weight", setup.precision.weights, "B/param", "--precision")
    return memory.gathered(block(model), _root(model), w)


def unshared(model: Model, held: States, setup: Setup) -> Quantity | None:
    """A block's gradients before the ranks have shared them out."""
    if setup.shared_from(2) is None:
        return None
    return memory.block_gradients(block(model), held.g)


@cache  # one quantity, wherever it is met
def block(model: Model) -> Quantity:
    """Parameters of one layer."""
    parts = counted(model).parts
    inside = sum(each for name, each in parts.items() if name not in OUTSIDE)
    return given("N_block", "parameters, one layer", inside / model.layers, "param", model.name)


def _root(model: Model) -> Quantity:
    parts = counted(model).parts
    outside = sum(each for name, each in parts.items() if name in OUTSIDE)
    return given("N_root", "parameters in no layer", outside, "param", model.name)
