"""FLOP per token of a model: forward and backward by part, what is computed again, and the
training FLOP of each convention that MFUs are published by.

N_act active parameters, N_mm the weights that a token multiplies, w the width of one token's
attention over all heads and layers (L · H · (hd_qk + hd_v)), T the sequence length in
token/seq. Each query meets T keys where attention is counted in full, as FLOP counters do,
half of them where it is causal. 6 = 2 forward + 4 backward throughout.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import add, sub

from napkin.accounting import compute
from napkin.accounting import operations as of
from napkin.accounting.compute import TRAINING
from napkin.accounting.notation import as_input, letter
from napkin.accounting.parameters import PARAM, Parameters, parameters
from napkin.errors import NapkinError
from napkin.quantity import Quantity, coefficient, define, given
from napkin.record import Record
from napkin.specs.conventions import SIX_N
from napkin.specs.model import Model, Stack

# A query and a key (a score), a score and a value: 2 FLOP for each value of a head's width.
FULL = coefficient(6, "FLOP·seq/token/token", "6 = 2 forward + 4 backward")
HALF = coefficient(3, "FLOP·seq/token/token", "3 = 6 / 2: a token sees half of them")
ONE_TOKEN = coefficient(1, "token/seq")
FORWARD = coefficient(2, "FLOP/param/token", "2 = 1 multiply + 1 add")
ONE_MULTIPLY_ADD = coefficient(1, "FLOP·seq/token/token", "half of the attention")
FORWARD_ATTENTION = coefficient(2, "FLOP·seq/token/token", "2 = 1 multiply + 1 add")
BACKWARD = coefficient(2, "1", "2 = gradients of both factors")
FIRST_INPUT = coefficient(2, "FLOP/token", "2 = an input gradient that nobody asks for")


def attention_width(L: Quantity, H: Quantity, hd_qk: Quantity, hd_v: Quantity | None) -> Quantity:
    """w_attn: what one pair of tokens costs, in multiply-adds, over all heads and layers."""
    return define("w_attn", "attention width, all layers", part_width(L, H, hd_qk, hd_v), "1")


def part_width(L: Quantity, H: Quantity, hd_qk: Quantity, hd_v: Quantity | None) -> Quantity:
    """That of some layers; queries, keys and values are of one width where hd_v is None."""
    return L * H * (2 * hd_qk) if hd_v is None else L * H * (hd_qk + hd_v)


def _named(name: str, label: str, formula: Quantity) -> Quantity:
    return define(f"f_{name}", label, formula, "FLOP/token")


def six_n_non_embedding(N_act: Quantity, embeddings: Sequence[Quantity]) -> Quantity:
    """6N without tables, positions and an untied head, as Kaplan et al. define N."""
    left = reduce(add, embeddings) if embeddings else None
    return _named(
        "six_n_non_embedding",
        "6N, no embeddings",
        TRAINING * N_act if left is None else TRAINING * (N_act - left),
    )


def palm(N_act: Quantity, positions: Quantity | None, w: Quantity | None, T: Quantity) -> Quantity:
    """6N + 12·L·H·hd·T (PaLM 2204.02311, appendix B): positions are no matmul, the table counts."""
    N = N_act if positions is None else N_act - positions
    return _named("palm", "PaLM", _with_attention(N, w, T, FULL))


def torchtitan(
    N_act: Quantity, table: Quantity | None, w: Quantity | None, T: Quantity
) -> Quantity:
    """6N without an input table of its own, attention in full (torchtitan's training metrics)."""
    N = N_act if table is None else N_act - table
    return _named("torchtitan", "torchtitan", _with_attention(N, w, T, FULL))


def megatron(N_meg: Quantity, w: Quantity | None, T: Quantity) -> Quantity:
    """Matmul weights without the router, attention of T²/2 pairs (Megatron-LM's FLOP count)."""
    return _named("megatron", "Megatron", _with_attention(N_meg, w, T, HALF))


def exact_full(N_mm: Quantity, w: Quantity | None, T: Quantity) -> Quantity:
    """Every matmul, T² pairs on every layer: what FLOP counters find."""
    return _named("exact_full", "exact, full attention", _with_attention(N_mm, w, T, FULL))


def _with_attention(N: Quantity, w: Quantity | None, T: Quantity, each: Quantity) -> Quantity:
    return TRAINING * N if w is None else TRAINING * N + each * w * T


def causal_pairs(T: Quantity) -> Quantity:
    """Twice the pairs of a token and one it may see, itself too: T(T+1)."""
    return T * (T + ONE_TOKEN)


def window_pairs(T: Quantity, T_w: Quantity) -> Quantity:
    """Twice those of a layer that sees w tokens back: w(w+1) + 2(T−w)w."""
    return T_w * (T_w + ONE_TOKEN) + 2 * (T - T_w) * T_w


def exact_causal(
    N_mm: Quantity, T: Quantity, attention: Sequence[tuple[Quantity, Quantity]]
) -> Quantity:
    """Every matmul, and only the pairs that a causal mask leaves; `attention` holds a width
    and twice the pairs for each kind of layer. Per sequence first: its counts are whole."""
    formula = TRAINING * N_mm * T
    for w, pairs in attention:
        formula = formula + HALF * w * pairs
    per_sequence = define("F_causal", "exact causal, one sequence", formula, "FLOP/seq")
    return _named("exact_causal", "exact, causal attention", per_sequence / T)


def exact_stack(name: str, N: Quantity, d: Quantity) -> Quantity:
    """6N − 2d² of a stack of matrices: the gradient of the first one's input is never made."""
    return _named(name, "exact", TRAINING * N - FIRST_INPUT * d * d)


def forward(symbol: str, label: str, weights: Quantity) -> Quantity:
    """FLOP/token of a matmul's weights, forward."""
    return define(symbol, label, FORWARD * weights, "FLOP/token")


def forward_attention(w: Quantity, T: Quantity) -> Quantity:
    """FLOP/token of the scores and what they weigh, forward, every token seeing all T."""
    label = "scores and values"
    return define("f_scores", label, FORWARD_ATTENTION * w * T, "FLOP/token")


def forward_pass(parts: Sequence[Quantity]) -> Quantity:
    """f_fwd in FLOP/token."""
    return define("f_fwd", "forward", reduce(add, parts), "FLOP/token")


def backward_pass(f_fwd: Quantity) -> Quantity:
    """f_bwd in FLOP/token: each matmul has two factors, and a gradient for each."""
    return define("f_bwd", "backward", BACKWARD * f_fwd, "FLOP/token")


def backward_stack(f_fwd: Quantity, d: Quantity) -> Quantity:
    """f_bwd in FLOP/token of a linear stack, whose first input needs no gradient."""
    return define("f_bwd", "backward", BACKWARD * f_fwd - FIRST_INPUT * d * d, "FLOP/token")


def training_step(parts: Sequence[Quantity]) -> Quantity:
    """f_train in FLOP/token: forward, backward, and what is computed again."""
    return define("f_train", "training", reduce(add, parts), "FLOP/token")


def attention_share(symbol: str, share: float, N_mm: Quantity, w: Quantity) -> Quantity:
    """T in token/seq from where attention, in full, is that share of all FLOP."""
    whole = coefficient(share, "1", f"{share:.0%} of the whole")
    times = whole / coefficient(1 - share)
    formula = times * (FORWARD * N_mm) / (FORWARD_ATTENTION * w)
    return define(symbol, f"attention is {share:.0%} from", formula, "token/seq")


def of_batch(f: Quantity, T: Quantity, G: Quantity) -> Quantity:
    """FLOP/step of G sequences of T tokens."""
    return define("C_step", "one optimizer step", f * T * G, "FLOP/step")


def second_forward(
    N_mm: Quantity, outside: Sequence[Quantity], w: Quantity | None, T: Quantity
) -> Quantity:
    """f_again in FLOP/token: every block once more, the head and what else is `outside` not
    (Narayanan et al. 2104.04473, section 3.5, whose 96 of 72 this is)."""
    formula = FORWARD * reduce(sub, outside, N_mm)
    if w is not None:
        formula = formula + FORWARD_ATTENTION * w * T
    return define("f_again", "second forward of the blocks", formula, "FLOP/token")


def half_of_scores(w: Quantity, T: Quantity) -> Quantity:
    """FLOP/token of what the scores weigh: not needed again, once the scores are back."""
    return define("f_half", "values weighed by scores", ONE_MULTIPLY_ADD * w * T, "FLOP/token")


def last_matmuls(L: Quantity, F: Quantity, d: Quantity) -> Quantity:
    """FLOP/token of every block's last matmul, whose output no gradient needs."""
    return define(
        "f_last", "last matmul of each block", FORWARD * (PARAM * L * F * d), "FLOP/token"
    )


def second_attention(w: Quantity, T: Quantity) -> Quantity:
    """f_again in FLOP/token of selective recomputation: the scores and what they weigh, once
    more (Korthikanti et al. 2205.05198, section 5; one forward, as FLOP counters find)."""
    formula = FORWARD_ATTENTION * w * T
    return define("f_again", "second forward of the attention", formula, "FLOP/token")


class AttentionCost(Record):
    """What attention over sequences of T tokens costs; None where a model has none."""

    T: Quantity
    width: Quantity | None  # over all heads and layers
    kinds: tuple[tuple[Quantity, Quantity], ...]  # width and twice the pairs, for causal masks


def attention(model: Model | Stack, T: Quantity) -> AttentionCost:
    """T in token/seq."""
    if isinstance(model, Stack):
        return AttentionCost(T, None, ())
    a = model.attention
    H = letter("H", "attention heads", a.heads)
    hd, hd_v = _head_widths(model)
    L = letter("L", "layers", model.layers)
    width = attention_width(L, H, hd, hd_v)
    kinds, left = [], model.layers
    for tokens, layers in model.windows:
        if tokens < T.value:
            L_w = letter("L_window", "layers with a window", layers)
            T_w = given("T_w", "window", tokens, "token/seq", "--model")
            pairs = window_pairs(T, T_w)
            kinds.append((part_width(L_w, H, hd, hd_v), pairs))
            left -= layers
    if not kinds:
        return AttentionCost(T, width, ((width, causal_pairs(T)),))
    if left:
        L_all = letter("L_all", "layers without", left)
        each = part_width(L_all, H, hd, hd_v)
        kinds.append((each, causal_pairs(T)))
    return AttentionCost(T, width, tuple(kinds))


def _head_widths(model: Model) -> tuple[Quantity, Quantity | None]:
    a = model.attention
    if a.latent is None:
        return letter("hd", "head_dim", a.qk), None
    return letter("hd_qk", "width of a query", a.qk), letter("hd_v", "width of a value", a.v)


class Totals(Record):
    """T in token/seq, N and N_act in param, all seven and what is recomputed in FLOP/token."""

    T: Quantity
    N: Quantity
    N_act: Quantity
    flop: dict[str, Quantity]
    again: dict[str, Quantity]  # by --recompute: full, selective


@lru_cache(maxsize=256)
def of_model(model: Model | Stack, seq_len: int, source: str) -> Totals:
    """From what the model holds in all."""
    T = given("T", "sequence length", seq_len, "token/seq", source)
    parts = summary(parameters(model), model.name)
    a = attention(model, T)
    return Totals(T, parts.N, parts.N_act, training(model, parts, a), recomputed(parts, a))


def recomputed(parts: Parameters, a: AttentionCost) -> dict[str, Quantity]:
    """What a second forward pass adds, in FLOP/token, by --recompute."""
    outside = [part for part in (parts.output, parts.projections) if part is not None]
    found = {"full": second_forward(parts.N_mm, outside, a.width, a.T)}
    if a.width is not None:
        found["selective"] = second_attention(a.width, a.T)
    return found


def training(model: Model | Stack, parts: Parameters, a: AttentionCost) -> dict[str, Quantity]:
    """All seven, in FLOP/token."""
    T = a.T
    left_out = [part for part in (parts.table, parts.positions, parts.head) if part is not None]
    found = {
        SIX_N: compute.flop_per_token(parts.N_act),
        "six_n_non_embedding": six_n_non_embedding(parts.N_act, left_out),
        "palm": palm(parts.N_act, parts.positions, a.width, T),
        "torchtitan": torchtitan(parts.N_act, None if _tied(model) else parts.table, a.width, T),
        "megatron": megatron(parts.N_meg, a.width, T),
    }
    if isinstance(model, Stack):
        d = letter("d", "d_model", model.d_model)
        return found | {
            name: exact_stack(name, parts.N, d) for name in ("exact_full", "exact_causal")
        }
    return found | {
        "exact_full": exact_full(parts.N_mm, a.width, T),
        "exact_causal": exact_causal(parts.N_mm, T, a.kinds),
    }


def _tied(model: Model | Stack) -> bool:
    return isinstance(model, Model) and model.tied


def summary(parts: Parameters, source: str) -> Parameters:
    """The totals alone, as inputs; what is one quantity in `parts` is one here."""
    known: dict[int, Quantity] = {}

    def once(q: Quantity) -> Quantity:
        return known.setdefault(id(q), as_input(q, source))

    def once_or_none(q: Quantity | None) -> Quantity | None:
        return None if q is None else once(q)

    return Parameters(
        N=once(parts.N),
        N_act=once(parts.N_act),
        N_mm=once(parts.N_mm),
        N_meg=once(parts.N_meg),
        table=once_or_none(parts.table),
        positions=once_or_none(parts.positions),
        head=once_or_none(parts.head),
        output=once_or_none(parts.output),
        projections=once_or_none(parts.projections),
        parts=parts.parts,
        rows=parts.rows,
    )


# What an answer calls the forward pass of a part.
SYMBOLS = {
    of.ATTENTION: "f_attn",
    of.MLP: "f_mlp",
    of.EXPERTS: "f_experts",
    of.ROUTER: "f_router",
    of.SHARED: "f_shared",
    of.PROJECTIONS: "f_proj",
    of.SQUARES: "f_sq",
    of.HEAD: "f_head",
}


class Pass(Record):
    """FLOP/token: forward, backward, what is computed again, and all of it."""

    forward: Quantity
    backward: Quantity
    f: Quantity
    again: Quantity | None = None
    adapters: Quantity | None = None  # in param
    notes: Sequence[str] = ()


def plain(model: Model | Stack, cost: AttentionCost) -> Pass:
    """Every weight is trained, nothing is computed twice."""
    fwd = forward_pass(forward_parts(model, cost))
    if isinstance(model, Stack):
        bwd = backward_stack(fwd, letter("d", "d_model", model.d_model))
    else:
        bwd = backward_pass(fwd)
    return Pass(fwd, bwd, training_step((fwd, bwd)))


def forward_parts(model: Model | Stack, cost: AttentionCost) -> list[Quantity]:
    """Of each part, that of the attention's scores the second."""
    each = [forward(SYMBOLS[name], name, weights) for name, weights in parameters(model).matmul]
    if cost.width is not None:
        each.insert(1, forward_attention(cost.width, cost.T))
    return each


def recomputing(model: Model | Stack, cost: AttentionCost, how: str) -> Pass:
    """With a second forward pass of the blocks, or of their attention. Raises NapkinError."""
    once = plain(model, cost)
    extra = recomputed(parameters(model), cost)
    if how not in extra:
        raise NapkinError(f"{model.name} has no attention to recompute")
    f = training_step((once.forward, once.backward, extra[how]))
    notes = [] if isinstance(model, Stack) else _stopping_early(model, cost, how)
    return Pass(once.forward, once.backward, f, extra[how], notes=notes)


def _stopping_early(model: Model, cost: AttentionCost, how: str) -> list[str]:
    """What a checkpoint leaves out that ends with the last tensor that is needed."""
    if how == "selective":
        assert cost.width is not None  # else there was nothing to recompute
        half = half_of_scores(cost.width, cost.T)
        return [f"a checkpoint that stops early saves {half} of it"]
    # A norm after the last matmul wants its output, so nothing of the block is left out.
    if model.mlp is None or model.moe_layers or model.norm.place != "before":
        return []
    L, F = letter("L", "layers", model.layers), letter("F", "d_ff", model.mlp.width)
    less = last_matmuls(L, F, letter("d", "d_model", model.d_model))
    return [f"torch's non-reentrant checkpoint stops early: {less} less, each block's last matmul"]
