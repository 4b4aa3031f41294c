"""A model's training FLOP per token by each of the seven conventions, and what is recomputed."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from napkin.accounting import compute, conventions
from napkin.quantity import Quantity, given
from napkin.questions.shape.conventions import SIX_N
from napkin.questions.shape.parts import Counted, counted, size
from napkin.specs.model import Model, Stack


@dataclass(frozen=True, slots=True)
class AttentionCost:
    """What attention over sequences of T tokens costs; None where a model has none."""

    T: Quantity
    width: Quantity | None  # over all heads and layers
    kinds: tuple[tuple[Quantity, Quantity], ...]  # width and twice the pairs, for causal masks


def attention(model: Model | Stack, T: Quantity) -> AttentionCost:
    """T in token/seq."""
    if isinstance(model, Stack):
        return AttentionCost(T, None, ())
    a = model.attention
    H = size("H", "attention heads", a.heads)
    hd, hd_v = _head_widths(model)
    L = size("L", "layers", model.layers)
    width = conventions.width(L, H, hd, hd_v)
    kinds, left = [], model.layers
    for tokens, layers in model.windows:
        if tokens < T.value:
            L_w = size("L_window", "layers with a window", layers)
            T_w = given("T_w", "window", tokens, "token/seq", "--model")
            pairs = conventions.window_pairs(T, T_w)
            kinds.append((conventions.part_width(L_w, H, hd, hd_v), pairs))
            left -= layers
    if not kinds:
        return AttentionCost(T, width, ((width, conventions.causal_pairs(T)),))
    if left:
        L_all = size("L_all", "layers without", left)
        each = conventions.part_width(L_all, H, hd, hd_v)
        kinds.append((each, conventions.causal_pairs(T)))
    return AttentionCost(T, width, tuple(kinds))


def _head_widths(model: Model) -> tuple[Quantity, Quantity | None]:
    a = model.attention
    if a.latent is None:
        return size("hd", "head_dim", a.qk), None
    return size("hd_qk", "width of a query", a.qk), size("hd_v", "width of a value", a.v)


class Totals(NamedTuple):
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
    parts = summary(counted(model), model.name)
    a = attention(model, T)
    return Totals(T, parts.N, parts.N_act, training(model, parts, a), recomputed(parts, a))


def recomputed(parts: Counted, a: AttentionCost) -> dict[str, Quantity]:
    """What a second forward pass adds, in FLOP/token, by --recompute."""
    outside = [each for each in (parts.output, parts.projections) if each is not None]
    found = {"full": conventions.second_forward(parts.N_mm, outside, a.width, a.T)}
    if a.width is not None:
        found["selective"] = conventions.second_attention(a.width, a.T)
    return found


def training(model: Model | Stack, parts: Counted, a: AttentionCost) -> dict[str, Quantity]:
    """All seven, in FLOP/token."""
    T = a.T
    left_out = [part for part in (parts.table, parts.positions, parts.head) if part is not None]
    found = {
        SIX_N: compute.flop_per_token(parts.N_act),
        "six_n_non_embedding": conventions.six_n_non_embedding(parts.N_act, left_out),
        "palm": conventions.palm(parts.N_act, parts.positions, a.width, T),
        "torchtitan": conventions.torchtitan(
            parts.N_act, None if _tied(model) else parts.table, a.width, T
        ),
        "megatron": conventions.megatron(parts.N_meg, a.width, T),
    }
    if isinstance(model, Stack):
        d = size("d", "d_model", model.d_model)
        return found | {
            name: conventions.exact_stack(name, parts.N, d)
            for name in ("exact_full", "exact_causal")
        }
    return found | {
        "exact_full": conventions.exact_full(parts.N_mm, a.width, T),
        "exact_causal": conventions.exact_causal(parts.N_mm, T, a.kinds),
    }


def _tied(model: Model | Stack) -> bool:
    return isinstance(model, Model) and model.tied


def told(q: Quantity, source: str) -> Quantity:
    """A count as an input: how it comes about is what `napkin models` shows."""
    return given(q.symbol, q.label, q.value, q.unit, source)


def summary(parts: Counted, source: str) -> Counted:
    """The totals alone, as inputs; what is one quantity in `parts` is one here."""
    known: dict[int, Quantity] = {}

    def once(q: Quantity) -> Quantity:
        return known.setdefault(id(q), told(q, source))

    def once_or_none(q: Quantity | None) -> Quantity | None:
        return None if q is None else once(q)

    return Counted(
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
    )
