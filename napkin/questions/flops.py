"""What does a token, a step or a run of this very model cost in FLOP?"""

from dataclasses import dataclass, field
from functools import partial

from napkin import parsing, units
from napkin.accounting import compute, conventions, lora, transformer
from napkin.errors import NapkinError, quoted
from napkin.quantity import Quantity, given
from napkin.questions import counting, options, subject
from napkin.questions.answer import Answer, Inputs, Words
from napkin.questions.conventions import CONVENTIONS
from napkin.questions.examples import FLOPS
from napkin.questions.options import Text
from napkin.questions.parts import Counted, counted, size
from napkin.questions.per_token import Attention as AttentionCost
from napkin.questions.per_token import attention, recomputed, training
from napkin.specs import models
from napkin.specs.model import Model, Stack

SYMBOLS = {
    "attention": "f_attn",
    "MLP": "f_mlp",
    "experts": "f_experts",
    "router": "f_router",
    "shared experts": "f_shared",
    "projections": "f_proj",
    "layers": "f_layers",
    "output head": "f_head",
}
RECOMPUTE = ("none", "selective", "full")
EXACT = "exact_full"
SHARES = (0.1, 0.5)  # of attention in all FLOP


@dataclass(slots=True)
class _Pass:
    """FLOP/token of one way through the model, and back."""

    forward: Quantity
    backward: Quantity
    again: Quantity | None
    f: Quantity
    notes: list[str] = field(default_factory=list)


def flops(
    *,
    model: str | None = None,
    seq_len: Text | None = None,
    global_batch: Text | None = None,
    tokens: Text | None = None,
    recompute: str | None = None,
    lora_rank: Text | None = None,
    check: bool = False,
) -> Answer:
    """Parameters, and FLOP per token forward, backward and in training by every convention.

    Options as on the command line, as text or numbers. Raises NapkinError.
    """
    if model is None:
        raise NapkinError(f"flops needs --model, as in: {FLOPS}")
    shape = options.read("model", model, models.find)
    again = "none" if recompute is None else options.read("recompute", recompute, _recompute)
    length, source, warnings = subject.sequence(shape, seq_len)
    T = given("T", "sequence length", length, "token/seq", source)
    parts, cost = counted(shape), attention(shape, T)
    through = _through(shape, parts, cost, again, _rank(shape, lora_rank))
    totals = {}
    if global_batch is not None:
        G = options.quantity(
            "global_batch", global_batch, parsing.whole, "G", "global batch", "seq/step"
        )
        totals["per_step"] = conventions.of_batch(through.f, T, G)
    if tokens is not None:
        D = options.quantity("tokens", tokens, parsing.count, "D", "training tokens", "token")
        totals["per_run"] = compute.training_compute_of(through.f, D)
    by_name = training(shape, parts, cost)
    inputs: Inputs = {
        "model": shape.name,
        "seq_len": length,
        "global_batch": None if global_batch is None else G.value,
        "tokens": None if tokens is None else D.value,
        "recompute": again,
        "lora_rank": None if lora_rank is None else parsing.whole(lora_rank),
    }
    result = {
        "params": parts.N.value,
        "active_params": parts.N_act.value,
        "matmul_params": parts.N_mm.value,
        "forward_per_token": through.forward.value,
        "backward_per_token": through.backward.value,
        "training_per_token": {name: f.value for name, f in by_name.items()},
        **{name: total.value for name, total in totals.items()},
    }
    lengths = _lengths(parts, cost)
    notes = [*through.notes, *shape.notes]
    if options.switch("check", check):
        if again != "none" or lora_rank is not None:
            raise options.error("check", "counts the plain model; leave the other options out")
        found = counting.checked(shape, length, result)
        result["counted"] = found.counted
        notes, warnings = [*notes, *found.notes], [*warnings, *found.warnings]
    words = partial(_words, shape, parts, T, through, by_name, lengths, totals, notes, warnings)
    steps = (*(totals.values() or (through.f,)),)
    asides = (parts.N, parts.N_act, *by_name.values(), *lengths)
    return Answer("flops", inputs, result, words, steps, asides)


def _recompute(text: object) -> str:
    if text not in RECOMPUTE:
        raise NapkinError(f"{quoted(text)} is not known here; write {', '.join(RECOMPUTE)}")
    return str(text)


def _rank(model: Model | Stack, rank: Text | None) -> Quantity | None:
    """r of --lora-rank, where adapters of this model are counted."""
    if rank is None:
        return None
    r = options.quantity("lora_rank", rank, parsing.whole, "r", "rank of the adapters", "1")
    if not isinstance(model, Stack) and model.moe_layers:
        raise options.error("lora_rank", f"adapters of experts ({model.name}) are not counted yet")
    if isinstance(model, Stack) or model.attention.latent is not None or model.mlp is None:
        problem = "adapters are counted for attention and an MLP alone"
        raise options.error("lora_rank", f"{problem}, which {model.name} has not")
    return r


def _through(
    model: Model | Stack, parts: Counted, cost: AttentionCost, again: str, rank: Quantity | None
) -> _Pass:
    """Forward, backward, and what is recomputed, part by part."""
    each = [conventions.forward(SYMBOLS[name], name, weights) for name, weights in parts.matmul]
    if cost.width is not None:
        scores = conventions.forward_attention(cost.width, cost.T)
        each.insert(1, scores)
    if isinstance(model, Stack):
        fwd = conventions.forward_pass(each)
        bwd = conventions.backward_stack(fwd, size("d", "d_model", model.d_model))
    elif rank is not None:
        return _adapted(model, parts, each, scores, rank, again)
    else:
        fwd = conventions.forward_pass(each)
        bwd = conventions.backward_pass(fwd)
    if again == "none":
        return _Pass(fwd, bwd, None, conventions.training_step((fwd, bwd)))
    extra = recomputed(parts, cost)
    if again not in extra:
        raise options.error("recompute", f"{model.name} has no attention to recompute")
    f = conventions.training_step((fwd, bwd, extra[again]))
    return _Pass(fwd, bwd, extra[again], f, _of_recomputation(model, parts, cost, again))


def _adapted(
    model: Model,
    parts: Counted,
    each: list[Quantity],
    scores: Quantity,
    r: Quantity,
    again: str,
) -> _Pass:
    if again != "none":
        raise options.error("recompute", "is not counted with --lora-rank yet; leave it out")
    assert model.mlp is not None  # _rank has seen to it
    a = model.attention
    d, L = size("d", "d_model", model.d_model), size("L", "layers", model.layers)
    H, H_kv = size("H", "attention heads", a.heads), size("H_kv", "key-value heads", a.kv_heads)
    hd, F = size("hd", "head_dim", a.qk), size("F", "d_ff", model.mlp.width)
    matrices = transformer.GATE_UP_DOWN if model.mlp.gated else transformer.UP_DOWN
    N_lora = lora.adapters(L, r, d, H, H_kv, hd, F, matrices)
    f_lora = lora.forward(N_lora)
    fwd = conventions.forward_pass([*each, f_lora])
    first = lora.first_inputs(d, H, H_kv, hd, r)
    bwd = lora.backward(parts.N_mm, scores, f_lora, first)
    notes = [f"LoRA: {N_lora} of rank {r} on every linear layer of the blocks are trained"]
    return _Pass(fwd, bwd, None, conventions.training_step((fwd, bwd)), notes)


def _of_recomputation(
    model: Model | Stack, parts: Counted, cost: AttentionCost, again: str
) -> list[str]:
    """What stops early: the last matmul of what is recomputed is not needed again."""
    if isinstance(model, Stack) or cost.width is None:
        return []
    if again == "selective":
        half = conventions.FORWARD_ATTENTION.value * cost.width.value * cost.T.value / 2
        return [f"a checkpoint that stops early saves {units.humanize(half, 'FLOP/token')} of it"]
    if model.mlp is None or model.moe_layers:
        return []
    last = 2 * model.layers * model.mlp.width * model.d_model
    said = units.humanize(last, "FLOP/token")
    return [f"torch's non-reentrant checkpoint stops early: {said} less, each block's last matmul"]


def _lengths(parts: Counted, cost: AttentionCost) -> list[Quantity]:
    """From which sequence length attention is a tenth, and half."""
    if cost.width is None:
        return []
    return [
        conventions.attention_share(f"T_{share:.0%}".rstrip("%"), share, parts.N_mm, cost.width)
        for share in SHARES
    ]


def _words(
    model: Model | Stack,
    parts: Counted,
    T: Quantity,
    through: _Pass,
    by_name: dict[str, Quantity],
    lengths: list[Quantity],
    totals: dict[str, Quantity],
    said: list[str],
    warnings: list[str],
) -> Words:
    size_said = str(parts.N)
    if parts.N_act is not parts.N:
        size_said += f", {units.count(parts.N_act.value)} active"
    assumed = " (assumed)" if T.source.endswith("(assumed)") else ""
    condition = f"to train {model.name} ({size_said}) on sequences of {T.value:,}{assumed}"
    exact = by_name[EXACT].value
    notes = [
        f"{name.replace('_', '-'):19}  {_ratio(f, exact)}  {CONVENTIONS[name]}"
        for name, f in by_name.items()
    ]
    if lengths:
        tenth, half = (units.count(int(q.value)) for q in lengths)
        notes.append(f"attention is 10 % of all FLOP from {tenth} tokens, half of them from {half}")
    notes += said
    return Words(" · ".join(map(str, (through.f, *totals.values()))), condition, notes, warnings)


def _ratio(f: Quantity, exact: float) -> str:
    return f"{units.humanize(f.value, 'FLOP'):>11}  {f.value / exact:.3f}"
