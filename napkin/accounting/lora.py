"""Low-rank adapters on a frozen model (LoRA 2106.09685): their parameters and their FLOP.

Beside each frozen linear layer of in × out weights stand in × r and r × out.
"""

from collections.abc import Iterator, Sequence

from napkin.accounting.flop_per_token import (
    BACKWARD,
    FORWARD,
    AttentionCost,
    Pass,
    forward_parts,
    forward_pass,
    training_step,
)
from napkin.accounting.operations import Linear, Normalise, Operation, operations
from napkin.accounting.parameters import PARAM, parameters
from napkin.accounting.sums import Term, collected
from napkin.errors import NapkinError
from napkin.quantity import Quantity, define
from napkin.specs.model import Model, Stack


def adapted(model: Model | Stack, cost: AttentionCost, r: Quantity) -> Pass:
    """With the model frozen and adapters of rank r on every linear layer of its blocks.

    Raises NapkinError where those are not counted.
    """
    _refuse_uncounted(model, r)
    every = [o for o in operations(model) if isinstance(o, Linear) and o.layers is not None]
    assert isinstance(model, Model)
    N_lora = adapters(r, every)
    f_lora = define("f_lora", "adapters, forward", FORWARD * N_lora, "FLOP/token")
    parts = forward_parts(model, cost)
    fwd = forward_pass([*parts, f_lora])
    f_scores = parts[1]
    f_first = first_inputs(list(without_input_gradient(operations(model))), r)
    N_mm = parameters(model).N_mm
    # No gradient of a frozen weight.
    formula = FORWARD * N_mm + BACKWARD * f_scores + BACKWARD * f_lora - f_first
    bwd = define("f_bwd", "backward, base frozen", formula, "FLOP/token")
    notes = [
        f"LoRA: {N_lora} of rank {r} on every linear layer of the blocks; the conventions count "
        "training all of it"
    ]
    return Pass(fwd, bwd, training_step((fwd, bwd)), adapters=N_lora, notes=notes)


def _refuse_uncounted(model: Model | Stack, r: Quantity) -> None:
    if isinstance(model, Model) and model.moe_layers:
        raise NapkinError(f"adapters of experts ({model.name}) are not counted yet")
    if isinstance(model, Stack) or model.attention.latent is not None or model.mlp is None:
        problem = "adapters are counted for attention and an MLP alone"
        raise NapkinError(f"{problem}, which {model.name} has not")
    if r.value > model.d_model:
        raise NapkinError(f"{r} is more than d_model, {model.d_model:,}")


def adapters(r: Quantity, linear: list[Linear]) -> Quantity:
    """N_lora in param. What is one matmul has one adapter."""
    sides = [Term(f"{each.name}, in", each.inputs) for each in linear if each.fused != "more"]
    sides += [Term(f"{each.name}, out", each.outputs) for each in linear]
    layers = linear[0].layers
    assert layers is not None
    formula = layers * (r * collected(sides))
    return define("N_lora", "adapters", PARAM * formula, "param")


def without_input_gradient(every: Sequence[Operation]) -> Iterator[Linear]:
    """The linear layers whose input needs no gradient: nothing below it is trained. Of a block
    that is the first one's."""
    steps = [o for o in every if isinstance(o, Linear | Normalise)]
    untrained = {steps[0].x}
    for step in steps:
        if step.x not in untrained:
            continue
        if isinstance(step, Linear):
            yield step
        if isinstance(step, Normalise) or step.layers is None:  # no adapter stands beside it
            untrained.add(step.y)


def first_inputs(linear: list[Linear], r: Quantity) -> Quantity:
    """f_first in FLOP/token: gradients of the first block's input, which nothing below needs, by
    its weights and by the adapters beside them."""
    weights = collected([Term(o.name, o.weights) for o in linear])
    adapted = [o for o in linear if o.layers is not None and o.fused != "more"]
    inputs = collected([Term(o.name, o.inputs) for o in adapted])
    formula = FORWARD * (PARAM * (weights + r * inputs))
    return define("f_first", "first block's input gradient", formula, "FLOP/token")
