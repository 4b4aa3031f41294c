"""Parameters of a decoder-only transformer, part by part, and what each token multiplies.

Sizes are pure numbers: V vocabulary, d = d_model, H heads, H_kv key-value heads, hd head_dim,
F = d_ff, E experts of width F_e, L layers. A matmul's weights are counted here, vectors
(norms, biases) in `vectors`. Checked against the parameters that transformers builds.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add

from napkin.quantity import Quantity, coefficient, define

PARAM = coefficient(1, "param")
QUERY_OUT = coefficient(2, "1", "2 = query + output")
KEY_VALUE = coefficient(2, "1", "2 = key + value")
UP_DOWN = coefficient(2, "1", "2 = up + down")
GATE_UP_DOWN = coefficient(3, "1", "3 = gate + up + down")


def table(V: Quantity, d: Quantity) -> Quantity:
    """Input embedding in param: a look-up, no matmul."""
    return define("table", "input table", PARAM * V * d, "param")


def positions(rows: Quantity, d: Quantity) -> Quantity:
    """Learned positions in param: a look-up too."""
    return define("pos", "learned positions", PARAM * rows * d, "param")


def head(V: Quantity, d: Quantity, tied: bool) -> Quantity:
    """The matmul with every token's output, in param; where it is tied it is no weight more."""
    label = "output head (the input table again)" if tied else "output head"
    return define("head", label, PARAM * V * d, "param")


def classifier(labels: Quantity, d: Quantity) -> Quantity:
    """The head of a classifier in param: a matmul with every token's output too."""
    return define("head", "classification head", PARAM * labels * d, "param")


def attention(d: Quantity, H: Quantity, H_kv: Quantity, hd: Quantity) -> Quantity:
    """Query, key, value and output of one layer, in param; under grouped-query attention
    (GQA, 2305.13245) keys and values have fewer heads."""
    formula = QUERY_OUT * d * H * hd + KEY_VALUE * d * H_kv * hd
    return define("attn", "attention, one layer", PARAM * formula, "param")


def latent_attention(
    d: Quantity,
    H: Quantity,
    query: Quantity | None,
    key_value: Quantity,
    nope: Quantity,
    rope: Quantity,
    hd_v: Quantity,
) -> Quantity:
    """MLA of one layer, in param (DeepSeek-V2 2405.04434, section 2.1): queries, keys and values
    through their compressed widths."""
    q = d * H * (nope + rope) if query is None else d * query + query * H * (nope + rope)
    kv = d * (key_value + rope) + key_value * H * (nope + hd_v)
    queries = define("attn_q", "queries, one layer", PARAM * q, "param")
    keys_values = define("attn_kv", "keys and values, one layer", PARAM * kv, "param")
    formula = queries + keys_values + PARAM * (H * hd_v * d)
    return define("attn", "latent attention, one layer", formula, "param")


def mlp(d: Quantity, F: Quantity, gated: bool) -> Quantity:
    """One dense feed-forward layer, in param (gated: 2002.05202)."""
    matrices = GATE_UP_DOWN if gated else UP_DOWN
    return define("mlp", "MLP, one layer", PARAM * (matrices * d * F), "param")


def expert(d: Quantity, F_e: Quantity) -> Quantity:
    """One gated expert of one layer, in param."""
    return define("expert", "one expert", PARAM * (GATE_UP_DOWN * d * F_e), "param")


def router(d: Quantity, E: Quantity) -> Quantity:
    """One layer's router, in param."""
    return define("router", "router, one layer", PARAM * d * E, "param")


def shared_experts(d: Quantity, F_s: Quantity, gate: bool) -> Quantity:
    """Experts of one layer that see every token, and the one output that gates them, in param."""
    formula = GATE_UP_DOWN * d * F_s + d if gate else GATE_UP_DOWN * d * F_s
    return define("shared", "shared experts, one layer", PARAM * formula, "param")


def projections(w: Quantity, d: Quantity) -> Quantity:
    """Into and out of d where the table is w wide, in param (OPT-350m)."""
    return define("proj", "into and out of d", PARAM * (2 * w * d), "param")


def vectors(symbol: str, label: str, terms: Sequence[Quantity]) -> Quantity:
    """Norms, biases and sinks, in param: nothing of a matmul."""
    return define(symbol, label, PARAM * added(terms), "param")


def added(parts: Sequence[Quantity]) -> Quantity:
    """Their sum, without a name."""
    return reduce(add, parts)


def total(symbol: str, label: str, parts: Sequence[Quantity]) -> Quantity:
    """The sum of parts in param, each already times its layers."""
    return define(symbol, label, added(parts), "param")


def stack_matrices(L: Quantity, d: Quantity) -> Quantity:
    """L square matrices in param (CS336 2025, lecture 2)."""
    return define("squares", "square matrices", PARAM * (L * d * d), "param")


def stack_head(d: Quantity) -> Quantity:
    """Its head in param."""
    return define("head", "output head", PARAM * d, "param")


def active(
    N: Quantity,
    layers: Quantity,
    E: Quantity,
    k: Quantity,
    each: Quantity,
    biases: Quantity | None,
) -> Quantity:
    """N_act in param: what one token passes, k of E experts on every layer that has them."""
    one = each if biases is None else each + biases
    return define("N_act", "active parameters", N - layers * (E - k) * one, "param")


def megatron_weights(N_mm: Quantity, routers: Quantity | None, norms: Quantity | None) -> Quantity:
    """N_meg in param: Megatron-LM leaves the router out, and counts the norms of MLA's
    compressed widths as if they were matmuls."""
    formula = N_mm if routers is None else N_mm - routers
    formula = formula if norms is None else formula + norms
    return define("N_meg", "Megatron's weights", formula, "param")
