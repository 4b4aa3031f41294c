"""FLOP of a frozen model with low-rank adapters (LoRA 2106.09685)."""

from napkin.accounting.adapters import chosen, parameters_of, without_gradient
from napkin.accounting.flop_per_token import (
    BACKWARD,
    FORWARD,
    AttentionCost,
    Pass,
    forward_parts,
    forward_pass,
    training_step,
)
from napkin.accounting.notation import letter
from napkin.accounting.operations import Attention, Linear, operations
from napkin.accounting.parameters import PARAM, parameters
from napkin.accounting.sums import Term, collected
from napkin.errors import NapkinError
from napkin.quantity import Quantity, define
from napkin.specs.model import Model, Stack


def adapted(model: Model | Stack, cost: AttentionCost, r: Quantity, words: tuple[str, ...]) -> Pass:
    """With the model frozen and adapters of rank r beside the linear layers that the words name,
    every one of its blocks for none.

    Raises NapkinError where those are not counted.
    """
    if isinstance(model, Stack):
        raise NapkinError(f"adapters are counted for transformers alone, not for {model.name}")
    if r.value > model.d_model:
        raise NapkinError(f"{r} is more than d_model, {model.d_model:,}")
    which = chosen(model, words)
    beside = frozenset((o.part, o.name) for site in which for o in site.linear)
    N_lora = parameters_of(r, which)
    f_lora = define("f_lora", "adapters, forward", FORWARD * N_lora, "FLOP/token")
    parts = forward_parts(model, cost)
    fwd = forward_pass([*parts, f_lora])
    f_scores = parts[1]
    idle = list(without_gradient(operations(model), beside))
    f_first = first_inputs([o for o in idle if isinstance(o, Linear)], r, beside)
    # No gradient of a frozen weight.
    formula = FORWARD * parameters(model).N_mm + BACKWARD * f_scores + BACKWARD * f_lora - f_first
    if any(isinstance(o, Attention) for o in idle):  # nor of the first attention's inputs
        formula = formula - BACKWARD * f_scores / letter("L", "layers", model.layers)
    bwd = define("f_bwd", "backward, base frozen", formula, "FLOP/token")
    where = "every linear layer of the blocks"
    if words:
        where = ", ".join(dict.fromkeys(site.module for site in which))
    notes = [f"LoRA: {N_lora} of rank {r} on {where}; the conventions count training all of it"]
    return Pass(fwd, bwd, training_step((fwd, bwd)), adapters=N_lora, notes=notes)


def first_inputs(linear: list[Linear], r: Quantity, beside: frozenset[tuple[str, str]]) -> Quantity:
    """f_first in FLOP/token: gradients of the first block's input, which nothing below needs, by
    its weights and by the adapters beside them."""
    weights = collected([Term(o.name, o.weights) for o in linear])
    adapted = [o for o in linear if (o.part, o.name) in beside and o.fused != "more"]
    if adapted:
        weights = weights + r * collected([Term(o.name, o.inputs) for o in adapted])
    formula = FORWARD * (PARAM * weights)
    return define("f_first", "first block's input gradient", formula, "FLOP/token")
