"""One token's way through a model and back, part by part, in FLOP."""

from dataclasses import dataclass, field

from napkin import parsing
from napkin.accounting import conventions, lora
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.options import Text
from napkin.questions.shape.linears import linears
from napkin.questions.shape.parts import Counted, counted, size
from napkin.questions.shape.per_token import AttentionCost, recomputed
from napkin.specs.model import Model, Stack

SYMBOLS = {
    "attention": "f_attn",
    "MLP": "f_mlp",
    "experts": "f_experts",
    "router": "f_router",
    "shared experts": "f_shared",
    "projections": "f_proj",
    "square matrices": "f_sq",
    "output head": "f_head",
}


@dataclass(slots=True)
class Pass:
    """FLOP/token: forward, backward, what is computed again, and all of it."""

    forward: Quantity
    backward: Quantity
    f: Quantity
    again: Quantity | None = None
    adapters: Quantity | None = None  # in param
    notes: list[str] = field(default_factory=list)


def plain(model: Model | Stack, cost: AttentionCost) -> Pass:
    """Every weight is trained, nothing is computed twice."""
    fwd = conventions.forward_pass(_forward(counted(model), cost))
    if isinstance(model, Stack):
        bwd = conventions.backward_stack(fwd, size("d", "d_model", model.d_model))
    else:
        bwd = conventions.backward_pass(fwd)
    return Pass(fwd, bwd, conventions.training_step((fwd, bwd)))


def _forward(parts: Counted, cost: AttentionCost) -> list[Quantity]:
    each = [conventions.forward(SYMBOLS[name], name, weights) for name, weights in parts.matmul]
    if cost.width is not None:
        each.insert(1, conventions.forward_attention(cost.width, cost.T))
    return each


def recomputing(model: Model | Stack, cost: AttentionCost, how: str) -> Pass:
    """With a second forward pass of the blocks, or of their attention. Raises NapkinError."""
    once = plain(model, cost)
    extra = recomputed(counted(model), cost)
    if how not in extra:
        raise options.error("recompute", f"{model.name} has no attention to recompute")
    f = conventions.training_step((once.forward, once.backward, extra[how]))
    notes = [] if isinstance(model, Stack) else _stopping_early(model, cost, how)
    return Pass(once.forward, once.backward, f, extra[how], notes=notes)


def _stopping_early(model: Model, cost: AttentionCost, how: str) -> list[str]:
    """What a checkpoint leaves out that ends with the last tensor that is needed."""
    if how == "selective":
        assert cost.width is not None  # else there was nothing to recompute
        half = conventions.half_of_scores(cost.width, cost.T)
        return [f"a checkpoint that stops early saves {half} of it"]
    # A norm after the last matmul wants its output, so nothing of the block is left out.
    if model.mlp is None or model.moe_layers or model.ends_in_norm:
        return []
    L, F = size("L", "layers", model.layers), size("F", "d_ff", model.mlp.width)
    less = conventions.last_matmuls(L, F, size("d", "d_model", model.d_model))
    return [f"torch's non-reentrant checkpoint stops early: {less} less, each block's last matmul"]


def adapted(model: Model | Stack, cost: AttentionCost, rank: Text) -> Pass:
    """With the model frozen and adapters on every linear layer of its blocks.

    Raises NapkinError where those are not counted.
    """
    r = options.quantity("lora_rank", rank, parsing.whole, "r", "rank of the adapters", "1")
    if not isinstance(model, Stack) and model.moe_layers:
        raise options.error("lora_rank", f"adapters of experts ({model.name}) are not counted yet")
    if isinstance(model, Stack) or model.attention.latent is not None or model.mlp is None:
        problem = "adapters are counted for attention and an MLP alone"
        raise options.error("lora_rank", f"{problem}, which {model.name} has not")
    if r.value > model.d_model:
        raise options.error("lora_rank", f"{r} is more than d_model, {model.d_model:,}")
    inside = [each for each in linears(model) if not each.outside]
    sides = sum(each.often * (each.inputs + each.outputs) for each in inside)
    N_lora = lora.adapters(
        r, given("sides", "inputs + outputs, all layers", sides, "1", model.name)
    )
    f_lora = lora.forward(N_lora)
    parts = _forward(counted(model), cost)
    f_scores = parts[1]
    fwd = conventions.forward_pass([*parts, f_lora])
    first = [each for each in linears(model) if each.on_block_input]
    once = [(1 if each.outside else each.often // model.layers, each) for each in first]
    weights = sum(times * each.inputs * each.outputs for times, each in once)
    inputs = sum(times * each.inputs for times, each in once if not each.outside)
    f_first = lora.first_inputs(
        given("N_first", "weights on a block's input", weights, "param", model.name),
        r,
        given("d_first", "inputs of their adapters", inputs, "1", model.name),
    )
    bwd = lora.backward(counted(model).N_mm, f_scores, f_lora, f_first)
    notes = [
        f"LoRA: {N_lora} of rank {r} on every linear layer of the blocks are trained, nothing else;"
        " the conventions below are those of training all of it"
    ]
    return Pass(fwd, bwd, conventions.training_step((fwd, bwd)), adapters=N_lora, notes=notes)
