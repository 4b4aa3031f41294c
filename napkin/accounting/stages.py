"""A model divided over ranks: what each stage of a pipeline holds, and which holds most.

Tensor parallelism divides heads, d_ff and the vocabulary (1909.08053), its sequence parallelism
the tokens of the rest (2205.05198); a pipeline in one-forward-one-backward order divides layers
(2104.04473); experts are divided over ranks of the data (2006.16668), sequences over ranks of the
context (2310.01889).
"""

from collections.abc import Iterator
from functools import lru_cache

from napkin.accounting.activations import short_windows
from napkin.accounting.errors import unmeasured
from napkin.accounting.layout import Degrees, Layout
from napkin.accounting.notation import IN_FULL, PLAIN, TRACED, Notation
from napkin.accounting.parameters import parameters
from napkin.accounting.states import DEGREES
from napkin.accounting.step import Step, step
from napkin.accounting.sums import product
from napkin.quantity import Quantity, coefficient, define
from napkin.record import Record
from napkin.specs.model import Model, Share

WARM_UP = coefficient(2, "1", "2 = there and back")
ENDS = 2  # table and head, where each is given the place of a layer


class Stage(Record):
    """What one rank of a pipeline holds."""

    number: int  # from 0 on
    model: Model  # of its layers alone
    first: int  # of its layers, where they are not in several places
    ends: str  # what of the ends lies here: ` + input table`


def of_one_rank(N: Quantity, degrees: Degrees, notation: Notation) -> Quantity:
    """N_r in param: an even share, where no model says what lies where."""
    ways = [
        notation.letter(*DEGREES[name], getattr(degrees, name), f"--{name}")
        for name in DEGREES
        if getattr(degrees, name) > 1
    ]
    return define("N_r", "parameters of one rank", N / product(ways), "param") if ways else N


def fullest(model: Model, layout: Layout, source: str, notation: Notation = TRACED) -> Step:
    """The step on the rank that holds most. Raises Unmeasured for what cannot be so divided."""
    _refuse(model, layout)
    stages = divided(model, layout.degrees)
    if len(stages) > 1:
        peaks = [_step(each, layout, source, PLAIN).peak.bytes for each in stages]
        stages = (stages[peaks.index(max(peaks))],)
    stage = stages[0]
    flying = in_flight(stage, layout, TRACED)
    return _step(stage, layout, source, IN_FULL if notation is TRACED else notation).replace(
        stage=_named(stage, model, layout), in_flight=1 if flying is None else flying.value
    )


def _step(stage: Stage, layout: Layout, source: str, notation: Notation) -> Step:
    N = notation.known(parameters(stage.model).N)
    N = define("N_r", "parameters of one rank", N, "param")
    return step(stage.model, N, layout, source, notation, in_flight(stage, layout, notation))


def in_flight(stage: Stage, layout: Layout, notation: Notation) -> Quantity | None:
    """n_fly: micro-batches whose activations a stage j holds at once: n_pp − j, or as many as
    there are (2104.04473, section 2.2); of v interleaved stages those of
    2·(n_pp − j − 1) + (v − 1)·n_pp + 1 chunks, v to a micro-batch."""
    degrees = layout.degrees
    stages, v = degrees.pp, degrees.virtual_stages
    if stages == 1:
        return None
    n_pp = notation.letter(*DEGREES["pp"], stages, "--pp")
    j = notation.letter("j", "stage, from 0 on", stage.number, "the one that holds most")
    label = "micro-batches in flight"
    count: float = stages - stage.number
    formula = n_pp - j
    if v > 1:
        chunks = notation.letter("n_vp", "virtual stages of a rank", v, "--virtual-stages")
        count = (2 * (count - 1) + (v - 1) * stages + 1) / v
        formula = (WARM_UP * (n_pp - j - 1) + (chunks - 1) * n_pp + 1) / chunks
    if count >= layout.grad_accum:  # all that there are
        m = layout.grad_accum
        return notation.letter("n_fly", label, m, "--grad-accum")
    return define("n_fly", label, formula, "1")


@lru_cache(maxsize=256)
def divided(model: Model, degrees: Degrees) -> tuple[Stage, ...]:
    """Stages of which one holds most: both ends, and of those between the first of each size."""
    share = Share(degrees.tp, degrees.ep, degrees.sequence_parallel, degrees.imbalance)
    model = model.replace(share=share)
    if degrees.pp == 1:
        return (Stage(0, model, 0, ""),)
    found: dict[object, Stage] = {}
    for stage in _stages(model, degrees):
        of = stage.model
        found.setdefault((of.layers, of.moe_layers, of.table, of.head), stage)
    return tuple(found.values())


def _stages(model: Model, degrees: Degrees) -> Iterator[Stage]:
    sizes, begin = layers_of(model.layers, degrees), 0
    for number, layers in enumerate(sizes):
        first, last = number == 0, number == degrees.pp - 1
        dense = max(0, min(begin + layers, model.dense_layers) - begin)
        of = model.replace(
            layers=layers,
            table=first,
            position_rows=model.position_rows if first else 0,
            head=model.head if last else None,
            final_norm=model.final_norm and last,
            tied=False,
            mlp=model.mlp if dense else None,
            experts=model.experts if layers > dense else None,
            moe_layers=layers - dense if model.experts else 0,
        )
        ends = " + input table" * first + " + head" * (last and model.head is not None)
        yield Stage(number, of, begin, ends)
        begin += layers


def layers_of(layers: int, degrees: Degrees) -> list[int]:
    """Of each stage: as many in all (Megatron-LM), one less at both ends where that comes out
    even (Llama 3 2407.21783, section 3.3.2), else one more in the first ones.

    Raises Unmeasured.
    """
    stages, v = degrees.pp, degrees.virtual_stages
    if layers < stages * v:
        chunks = f"{stages} stages" if v == 1 else f"{stages} x {v} stages"
        raise unmeasured("pp", f"{layers} layers do not fill {chunks}")
    if v > 1 and layers % (stages * v):
        raise unmeasured("virtual_stages", f"{stages} x {v} do not divide the {layers} layers")
    each, rest = divmod(layers, stages)
    if rest and (layers + ENDS) % stages == 0:
        each = (layers + ENDS) // stages
        return [each - 1, *([each] * (stages - ENDS)), each - 1]
    return [each + (number < rest) for number in range(stages)]


def _named(stage: Stage, whole: Model, layout: Layout) -> str:
    """`stage 0 of 8 holds most: layers 0-9 of 80 + input table`."""
    stages, layers = layout.degrees.pp, stage.model.layers
    if stages == 1:
        return ""
    if layout.degrees.virtual_stages > 1:
        which = f"{layers} layers in {layout.degrees.virtual_stages} places"
    else:
        which = f"layers {stage.first}-{stage.first + layers - 1}"
    return (
        f"stage {stage.number} of 0-{stages - 1} holds most: {which} of {whole.layers}{stage.ends}"
    )


def _refuse(model: Model, layout: Layout) -> None:
    """What cannot be divided so, by the option that asks for it."""
    d, a, experts = layout.degrees, model.attention, model.experts
    widths = [("d_ff", model.mlp.width)] if model.mlp else []
    if experts is not None:
        widths += [("width of an expert", experts.width), ("shared experts", experts.shared_width)]
    for name, size in (("attention heads", a.heads), *widths):
        if size % d.tp:
            raise unmeasured("tp", f"{d.tp} do not divide the {size:,} of {model.name}: {name}")
    if a.kv_heads % d.tp and d.tp % a.kv_heads:
        problem = f"{d.tp} ranks and the {a.kv_heads} key-value heads of {model.name} do not divide"
        raise unmeasured("tp", problem)
    if d.tp > 1 and a.qk_norm == "all":
        raise unmeasured("tp", f"norms over all heads ({model.architecture}) are not counted")
    if d.ep > 1 and experts is None:
        raise unmeasured("ep", f"{model.name} has no experts")
    if experts is not None and experts.count % d.ep:
        raise unmeasured("ep", f"{d.ep} do not divide the {experts.count} experts of {model.name}")
    if layout.seq_len % d.cp:
        raise unmeasured("cp", f"{d.cp} do not divide the {layout.seq_len:,} tokens of --seq-len")
    if d.cp > 1 and layout.attention != "flash":
        raise unmeasured("cp", "ranks pass keys and values on in flash attention alone")
    if d.pp > 1 and model.table_width not in (0, model.d_model):
        raise unmeasured("pp", f"the narrow table of {model.name} in stages is not counted")
    masked = layout.attention == "sdpa" and short_windows(model, layout.seq_len)
    if d.pp > 1 and masked:
        problem = f"which stage of {model.name} has the windows is not known; write flash"
        raise unmeasured("attention", problem)
