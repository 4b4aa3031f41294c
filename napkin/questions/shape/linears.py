"""The linear layers of a model as transformers lays them out: what is one matmul, what several."""

from typing import NamedTuple

from napkin.specs.model import Model, Stack

# Queries, keys and values of one matmul; gate and up of one.
FUSED_QKV = ("phi3", "gpt2", "gpt_neox")
FUSED_GATE = ("phi3",)


class Linear(NamedTuple):
    """inputs × outputs weights, and how often they stand in the model."""

    symbol: str
    name: str
    inputs: int
    outputs: int
    often: int
    on_block_input: bool = False  # what it multiplies is what the block, or the first, is given
    of_experts: bool = False  # of one expert, which sees its share of the tokens alone
    outside: bool = False  # of the blocks: the head, and what stands beside it


def linears(model: Model | Stack) -> tuple[Linear, ...]:
    """All of them, the head last where there is one."""
    d = model.d_model
    if isinstance(model, Stack):
        return (
            Linear("sq", "square matrices", d, d, model.layers),
            Linear("head", "output head", d, 1, 1),
        )
    width = model.table_width or d
    outside = []
    if width != d:
        outside += [
            Linear("in", "into d", width, d, 1, True, outside=True),
            Linear("out", "out of d", d, width, 1, outside=True),
        ]
    if model.head is not None:
        outside.append(Linear("head", "output head", width, model.outputs, 1, outside=True))
    return (*_attention(model), *_feed_forward(model), *outside)


def _attention(model: Model) -> list[Linear]:
    a, d, L = model.attention, model.d_model, model.layers
    out = Linear("o", "attention output", a.heads * a.v, d, L)
    if model.architecture in FUSED_QKV:
        widths = (a.heads + 2 * a.kv_heads) * a.qk
        return [Linear("qkv", "query, key and value", d, widths, L, True), out]
    if a.latent is None:
        return [
            Linear("q", "query", d, a.heads * a.qk, L, True),
            Linear("kv", "key, value", d, a.kv_heads * a.qk, 2 * L, True),
            out,
        ]
    q, kv = a.latent.query, a.latent.key_value
    found = [
        Linear("kv_a", "keys and values, down", d, kv + a.latent.rope, L, True),
        Linear("kv_b", "keys and values, up", kv, a.heads * (a.latent.nope + a.v), L),
        out,
    ]
    if q is None:
        return [Linear("q", "query", d, a.heads * a.qk, L, True), *found]
    down = Linear("q_a", "query, down", d, q, L, True)
    return [down, Linear("q_b", "query, up", q, a.heads * a.qk, L), *found]


def _feed_forward(model: Model) -> list[Linear]:
    d, found = model.d_model, []
    if model.mlp is not None and model.dense_layers:
        F, L = model.mlp.width, model.dense_layers
        beside = model.parallel
        if model.architecture in FUSED_GATE:
            found.append(Linear("up", "gate and up", d, 2 * F, L, beside))
        elif model.mlp.gated:
            found.append(Linear("up", "gate, up", d, F, 2 * L, beside))
        else:
            found.append(Linear("up", "up", d, F, L, beside))
        found.append(Linear("down", "down", F, d, L))
    experts = model.experts
    if experts is not None:
        F, L = experts.width, model.moe_layers
        found += [
            Linear("router", "router", d, experts.count, L),
            Linear("up_e", "gate, up of an expert", d, F, 2 * L, of_experts=True),
            Linear("down_e", "down of an expert", F, d, L, of_experts=True),
        ]
        if experts.shared_width:
            F = experts.shared_width
            found.append(Linear("up_s", "gate, up, shared", d, F, 2 * L))
            found.append(Linear("down_s", "down, shared", F, d, L))
        if experts.shared_gate:
            found.append(Linear("gate_s", "gate of the shared", d, 1, L))
    return found
