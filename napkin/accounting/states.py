"""What one GPU holds of a model's weights, gradients and optimizer state, sharded or not, and
what a training step needs beside them."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from napkin.accounting import adapters
from napkin.accounting import operations as of
from napkin.accounting.errors import unmeasured
from napkin.accounting.layout import Degrees, Layout
from napkin.accounting.matmuls import groups
from napkin.accounting.memory import split
from napkin.accounting.notation import PLAIN, TRACED, Notation, letter
from napkin.accounting.operations import Linear, operations
from napkin.accounting.parameters import PARAM, parameters
from napkin.accounting.quantised import quantised
from napkin.accounting.sums import Term, collected, product, total
from napkin.quantity import Quantity, coefficient, define
from napkin.record import Record
from napkin.specs.model import Model, Stack
from napkin.specs.optimizers import terms
from napkin.specs.quantization import Quantization

TWO_BLOCKS = coefficient(2, "1", "2 = now + next")
TWO_PARTS = coefficient(2, "1", "2 = head + look-up")
# Degrees that take GPUs away from data parallelism: symbol and label of each.
DEGREES = {
    "tp": ("n_tp", "tensor-parallel ranks"),
    "pp": ("n_pp", "pipeline stages"),
}
WEIGHTS, GRADIENTS, MASTER = "weights", "gradients", "master"
STAGES = {WEIGHTS: 3, GRADIENTS: 2}  # of ZeRO, from which on ranks share it; all else from 1 on


class States(Record):
    """In B of one GPU; None is what the recipe does not have."""

    weights: Quantity  # that are trained
    gradients: Quantity
    master: Quantity | None
    optimizer: Quantity | None
    terms: Mapping[str, Quantity]  # B/param by kind
    frozen: Quantity | None = None  # weights that are not trained
    paged: Quantity | None = None  # optimizer state in the host's memory

    @property
    def all(self) -> tuple[Quantity, ...]:
        """On the GPU."""
        kinds = (self.frozen, self.weights, self.master, self.gradients, self.optimizer)
        return tuple(kind for kind in kinds if kind is not None)

    @property
    def trained(self) -> tuple[Quantity, ...]:
        """On the GPU, but for what is frozen."""
        return tuple(kind for kind in self.all if kind is not self.frozen)


def shared(layout: Layout, stage: int, notation: Notation) -> Quantity | None:
    """The ranks that share what ZeRO shares from that stage on; None where nobody does."""
    if layout.ranks == 1 or layout.zero < stage:
        return None
    return _data_parallel(layout.ranks, layout.degrees, notation)


@lru_cache(maxsize=256)  # one quantity of one answer
def _data_parallel(ranks: int, degrees: Degrees, notation: Notation) -> Quantity:
    """n_dp: what tensor and pipeline parallelism leave of the GPUs; context-parallel ranks share
    states as well."""
    label = "data-parallel ranks" if degrees.cp == 1 else "data- and context-parallel ranks"
    ways = [
        notation.letter(*DEGREES[name], getattr(degrees, name), f"--{name}")
        for name in DEGREES
        if getattr(degrees, name) > 1
    ]
    if not ways:
        return notation.letter("n_dp", label, ranks, "--gpus")
    n = notation.letter("n", "GPUs", ranks * degrees.tp * degrees.pp, "--gpus")
    return define("n_dp", label, n / product(ways), "1")


@lru_cache(maxsize=256)
def _of_experts(ranks: int, degrees: Degrees, notation: Notation) -> Quantity:
    """n_edp: the ranks that hold the same experts."""
    n_ep = notation.letter("n_ep", "expert-parallel ranks", degrees.ep, "--ep")
    formula = _data_parallel(ranks, degrees, notation) / n_ep
    return define("n_edp", "ranks that share experts", formula, "1")


class Held(Record):
    """Parameters of one GPU that are trained, in param: all, and the experts among them where
    ranks hold different ones, which fewer ranks share."""

    N: Quantity
    experts: Quantity | None = None

    def split(
        self,
        symbol: str,
        label: str,
        each: Quantity,
        layout: Layout,
        stage: int,
        notation: Notation,
    ) -> Quantity:
        """In B, of `each` B/param, shared from that stage of ZeRO on."""
        ranks = shared(layout, stage, notation)
        if ranks is None or self.experts is None:
            return split(symbol, label, each * self.N, ranks)
        n_edp = _of_experts(layout.ranks, layout.degrees, notation)
        formula = each * (self.N - self.experts) / ranks + each * self.experts / n_edp
        return define(symbol, label, formula, "B")


def held(
    model: Model | Stack | None, N: Quantity, layout: Layout, notation: Notation = TRACED
) -> Held:
    """What one GPU trains, of N parameters in all."""
    if layout.tuning is not None:
        assert isinstance(model, Model)
        which = adapters.chosen(model, layout.tuning.targets)
        if not which:
            raise unmeasured("lora_targets", f"{model.name} has none of them on every stage")
        r = letter(*adapters.RANK, layout.tuning.rank, "--lora-rank")
        N_lora = adapters.parameters_of(r, which)
        return Held(notation.known(N_lora) if notation is PLAIN else N_lora)
    if layout.degrees.ep == 1 or layout.ranks == 1 or not isinstance(model, Model):
        return Held(N)
    of_experts = [
        each.layers * each.held
        for each in parameters(model).rows
        if each.copies is not None and each.layers is not None
    ]
    if not of_experts:  # a stage of dense layers
        return Held(N)
    experts = total(notation.known(define("", "", each, "param")) for each in of_experts)
    return Held(N, define("N_exp", "parameters of experts", experts, "param"))


def states(held: Held, layout: Layout, source: str, notation: Notation = TRACED) -> States:
    """ZeRO 1 shares the optimizer's state, 2 the gradients too, 3 the weights too
    (1910.02054, section 5)."""
    each = {
        term.symbol: notation.given(*term, "B/param", source)
        for term in terms(layout.precision, layout.optimizer)
    }
    moments = [q for symbol, q in each.items() if symbol not in (WEIGHTS, GRADIENTS, MASTER)]

    def kind(symbol: str, label: str, bytes: Quantity, stage: int = 1) -> Quantity:
        return held.split(symbol, label, bytes, layout, stage, notation)

    optimizer = kind("O", "optimizer state", total(moments)) if moments else None
    is_paged = layout.optimizer.paged
    on_gpu = {name: q for name, q in each.items() if not (is_paged and q in moments)}
    return States(
        kind("W", "weights", each[WEIGHTS], STAGES[WEIGHTS]),
        kind("G", "gradients", each[GRADIENTS], STAGES[GRADIENTS]),
        kind("W_32", "fp32 master weights", each[MASTER]) if MASTER in each else None,
        None if is_paged else optimizer,
        on_gpu,
        paged=optimizer if is_paged else None,
    )


def frozen(model: Model, N: Quantity, layout: Layout, notation: Notation) -> Quantity | None:
    """W_0 in B: the weights of a model that adapters leave as they are, quantised where
    bitsandbytes would; None where all are trained."""
    if layout.tuning is None:
        return None
    ranks, label = shared(layout, STAGES[WEIGHTS], notation), "frozen weights"
    w = _frozen_bytes(layout.weight_bytes, notation)
    N_q = _quantised(model, layout, notation)
    if N_q is None:
        return split("W_0", label, w * N, ranks)
    assert layout.tuning.stored is not None
    q = _stored(layout.tuning.stored, notation)
    return split("W_0", label, q * N_q + w * (N - N_q), ranks)


@cache  # one quantity of one answer
def _frozen_bytes(size: int, notation: Notation) -> Quantity:
    return notation.given("w_0", "bytes of a frozen weight", size, "B/param", "--precision")


@lru_cache(maxsize=256)
def _stored(how: Quantization, notation: Notation) -> Quantity:
    """q in B/param, scales in it."""
    label = f"bytes of a {how.precision} weight"
    return notation.given("q", label, how.bits / 8, "B/param", "--quantize")


def _quantised(model: Model, layout: Layout, notation: Notation) -> Quantity | None:
    """N_q in param, where some are."""
    assert layout.tuning is not None
    how, label = layout.tuning.stored, "weights that are quantised"
    if how is None:
        return None
    return notation.given("N_q", label, quantised(model, how), "param", model.name)


def at_work(model: Model, layout: Layout, notation: Notation) -> Quantity | None:
    """The largest quantised matrix as the values are, in which bitsandbytes multiplies it."""
    if layout.tuning is None or layout.tuning.stored is None:
        return None
    sites = [o.weights for site in adapters.sites(model) for o in site.linear]
    largest = max((PARAM * product(weights) for weights in sites), key=lambda q: q.value)
    formula = _frozen_bytes(layout.weight_bytes, notation) * notation.known(largest)
    return define("W_deq", "largest matrix, dequantised", formula, "B")


def buckets(held: States, layout: Layout) -> Quantity | None:
    """DDP's copy of the gradients, which it has unless they are views of it."""
    if layout.ranks == 1 or layout.zero or layout.bucket_view:
        return None
    return define("buckets", "DDP's copy of the gradients", held.gradients, "B")


def cast_gradients(held: Held, layout: Layout, notation: Notation = TRACED) -> Quantity | None:
    """Gradients as the fp32 master weights need them: torch's optimizers step no two dtypes."""
    precision = layout.precision
    if precision.gradients >= precision.master:
        return None
    label = "bytes of a gradient that is stepped"
    g = notation.given("g_step", label, precision.master, "B/param", "fp32")
    return held.split("cast", "gradients in fp32", g, layout, 1, notation)


def step_buffers(
    model: Model | Stack, held: Held, layout: Layout, source: str, notation: Notation = TRACED
) -> Quantity | None:
    """What the optimizer's step holds beside the state, of the copy that it updates: of all of it
    on lists of tensors, of the largest one tensor by tensor, of nothing in a fused kernel."""
    optimizer, precision = layout.optimizer, layout.precision
    if layout.step == "fused":
        return None
    stepped = precision.master or precision.weights
    w = notation.given("w_step", "bytes of what is stepped", stepped, "B/param", source)
    label = "buffers of the step"
    if layout.step == "foreach" and optimizer.foreach:
        times = optimizer.foreach
        copies = coefficient(times, "1", f"{times} = copies of what is stepped" * (times > 1))
        return held.split("step", label, copies * w, layout, 1, notation)
    if not optimizer.loop:
        return None
    times = optimizer.loop
    copies = coefficient(times, "1", f"{times} = copies of the largest tensor")
    largest = largest_tensor(model, optimizer.hidden_only, notation)
    return define("step", label, copies * w * largest, "B")


def largest_tensor(
    model: Model | Stack, hidden_only: bool, notation: Notation = TRACED
) -> Quantity:
    """N_max in param, of those that an optimizer steps."""
    tensors = [_tensor(group) for group in groups(model) if group[0].part != of.HEAD]
    if isinstance(model, Model) and not hidden_only:
        table = parameters(model).table
        if table is not None:
            tensors.append(table)
    largest = max(tensors, key=lambda q: q.value)
    return define("N_max", "largest tensor", notation.known(largest), "param")


def _tensor(group: Sequence[Linear]) -> Quantity:
    """In param: what transformers keeps in one; of experts, gate and up of all of them."""
    first = group[0]
    terms = [Term(each.name, each.weights) for each in group]
    if first.copies is not None:
        return PARAM * (first.copies * collected(terms))
    return PARAM * collected(terms if first.fused else terms[:1])


class Counts(Record):
    """Parameters of a model, in param: all, of one layer, and of what stands outside the layers."""

    N: Quantity
    layer: Quantity
    table: Quantity | None
    positions: Quantity | None
    output: Quantity | None
    root: Quantity | None  # in no layer


@lru_cache(maxsize=256)
def counts(model: Model, N: Quantity, notation: Notation = TRACED) -> Counts:
    """How they come about is what `napkin models` shows."""
    parts = parameters(model)
    known = notation.known
    L = notation.letter("L", "layers", model.layers)
    root, in_layers = None, N
    if parts.outside:  # a stage in the middle has none
        outside = total(map(known, parts.outside))
        root = define("N_root", "parameters in no layer", outside, "param")
        in_layers = N - root
    layer = define("N_block", "parameters, one layer", in_layers / L, "param")
    table, output, positions = (
        None if part is None else known(part)
        for part in (parts.table, parts.output, parts.positions)
    )
    return Counts(N, layer, table, positions, output, root)


def gathered(counted: Counts, layout: Layout, notation: Notation = TRACED) -> Quantity | None:
    """Z in B: whole weights of the block at work and of the next, which FSDP gathers ahead, and
    of what is in no block, which it keeps."""
    if shared(layout, 3, notation) is None:
        return None
    w = notation.given("w", "bytes of a weight", layout.weight_bytes, "B/param", "--precision")
    blocks = TWO_BLOCKS * counted.layer
    if layout.tuning is not None and layout.tuning.stored is not None:
        # Blocks are gathered as they are stored.
        formula = _stored(layout.tuning.stored, notation) * blocks
        formula = formula if counted.root is None else formula + w * counted.root
        return define("Z", "gathered weights", formula, "B")
    formula = w * (blocks if counted.root is None else blocks + counted.root)
    return define("Z", "gathered weights", formula, "B")


class Gradients(Record):
    """In B: those that are there beside those of all parameters, or before them."""

    head: Quantity | None  # the first that is there
    late: Quantity  # when the first layer begins
    down: Quantity | None  # of a layer's last matrix, before those of its MLP's others are there
    tied: Quantity | None  # both parts of a tied table's, from the head and from the look-up
    unshared: Quantity | None  # of a block, before the ranks have shared them out


def gradients(
    model: Model,
    params: Held,
    counted: Counts,
    held: States,
    layout: Layout,
    notation: Notation = TRACED,
) -> Gradients:
    """What there is of them at the moments of a backward pass."""
    ranks, g = shared(layout, STAGES[GRADIENTS], notation), held.terms[GRADIENTS]
    if layout.tuning is not None:
        return _of_adapters(model, params, g, ranks, notation)
    head = tied = down = unshared = None
    if counted.output is not None:
        head = split("G_head", "gradient of the head", g * counted.output, ranks)
        if model.tied and ranks is None:  # else there is no such moment
            label = "both parts of the tied gradient"
            tied = define("G_tied", label, TWO_PARTS * g * counted.output, "B")
    left = counted.N - counted.layer
    if not model.tied and counted.table is not None:
        left = left - counted.table
    if counted.positions is not None:
        left = left - counted.positions
    if ranks is not None:
        label = "gradients of a block"
        unshared = define("G_block", label, g * counted.layer, "B")
    elif layout.grad_accum == 1:
        weights = define("N_down", "parameters, last matrix", _down(model, notation), "param")
        down = define("G_down", "gradient of the last matrix", g * weights, "B")
    late = split("G_late", "gradients but the first layer's", g * left, ranks)
    return Gradients(head, late, down, tied, unshared)


def _of_adapters(
    model: Model, params: Held, g: Quantity, ranks: Quantity | None, notation: Notation
) -> Gradients:
    """Every layer has as many; those of one are small."""
    L = notation.letter("L", "layers", model.layers)
    left = g * (params.N - params.N / L)
    late = split("G_late", "gradients but the first layer's", left, ranks)
    unshared = None
    if ranks is not None:
        unshared = define("G_block", "gradients of a block", g * params.N / L, "B")
    return Gradients(None, late, None, None, unshared)


@lru_cache(maxsize=256)
def _down(model: Model, notation: Notation) -> Quantity:
    """In param; of experts, of all of them."""
    *_, last = (o for o in operations(model) if isinstance(o, Linear) and o.symbol == "down")
    weights = PARAM * product(last.weights)
    return notation.known(weights if last.copies is None else last.copies * weights)
