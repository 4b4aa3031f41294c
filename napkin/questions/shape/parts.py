"""The parameters of a model, part by part, as quantities that derive one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from napkin.accounting import transformer
from napkin.quantity import Quantity, coefficient, given
from napkin.specs.model import Experts, Latent, Model, Stack


@dataclass(frozen=True, slots=True)
class Counted:
    """All in param; None is what the model does not have."""

    N: Quantity
    N_act: Quantity  # N itself where every parameter is active
    N_mm: Quantity  # weights that a token multiplies, the head's even where it is tied
    N_meg: Quantity  # the same as Megatron-LM counts them
    table: Quantity | None
    positions: Quantity | None
    head: Quantity | None  # an untied one
    output: Quantity | None  # the matmul of the head, tied or not
    projections: Quantity | None  # into and out of d
    parts: dict[str, int]  # all layers of each
    matmul: tuple[tuple[str, Quantity], ...] = ()  # what N_mm sums up, by part


@cache  # one quantity for one letter, wherever it is met
def size(symbol: str, label: str, value: int) -> Quantity:
    return given(symbol, label, value, "1", "--model")


class _Part(NamedTuple):
    """Of one of `layers`, or of the model: its parameters, and those that a token multiplies."""

    name: str
    each: Quantity
    layers: Quantity | None = None
    multiplied: Quantity | None = None

    @property
    def all(self) -> Quantity:
        return _all(self.layers, [self.each])


def _all(layers: Quantity | None, each: Sequence[Quantity]) -> Quantity:
    found = transformer.added(each)
    return found if layers is None else layers * found


@lru_cache(maxsize=256)
def counted(model: Model | Stack) -> Counted:
    """Every part of it."""
    if isinstance(model, Stack):
        return _stack(model)
    table, positions = _tables(model)
    head = _output(model)
    parts = [_Part("input table", table)]
    if positions is not None:
        parts.append(_Part("positions", positions))
    projections = _projections(model)
    parts += [*projections, *_layers(model), *_final_norm(model)]
    if head is not None and not model.tied:
        parts.append(_Part("output head", head))
    if model.head is not None and model.head.bias:
        bias = transformer.vectors("bias_h", "biases of the head", [_labels(model)])
        parts.append(_Part("head bias", bias))
    N = transformer.total("N", "parameters", _by_layers([(p.layers, p.each) for p in parts]))
    used = [(p.layers, p.multiplied) for p in parts if p.multiplied is not None]
    label = "weights a token multiplies"
    last = [] if head is None else [("output head", head)]
    N_mm = transformer.total("N_mm", label, [*_by_layers(used), *(each for _, each in last)])
    matmul = [(p.name, _all(p.layers, [p.multiplied])) for p in parts if p.multiplied is not None]
    return Counted(
        N=N,
        N_act=_active(model, N),
        N_mm=N_mm,
        N_meg=_megatron(model, N_mm),
        table=table,
        positions=positions,
        head=None if model.tied else head,
        output=head,
        projections=projections[0].each if projections else None,
        parts={part.name: int(part.all.value) for part in parts},
        matmul=(*matmul, *last),
    )


def _stack(model: Stack) -> Counted:
    L, d = size("L", "layers", model.layers), size("d", "d_model", model.d_model)
    matrices, head = transformer.stack_matrices(L, d), transformer.stack_head(d)
    N = transformer.total("N", "parameters", [matrices, head])
    parts = {"square matrices": int(matrices.value), "output head": model.d_model}
    matmul = (("square matrices", matrices), ("output head", head))
    return Counted(N, N, N, N, None, None, None, head, None, parts, matmul)


def _by_layers(terms: Sequence[tuple[Quantity | None, Quantity]]) -> list[Quantity]:
    """L × (a + b) for what every layer has, and so on: a sum that a line holds."""
    groups: dict[str, tuple[Quantity | None, list[Quantity]]] = {}
    for layers, each in terms:
        key = each.symbol if layers is None else layers.symbol
        groups.setdefault(key, (layers, []))[1].append(each)
    return [_all(layers, each) for layers, each in groups.values()]


def _output(model: Model) -> Quantity | None:
    """The last matmul, where there is one."""
    if model.head is None:
        return None
    if model.head.outputs is None:
        return transformer.head(_V(model), _width(model), model.tied)
    return transformer.classifier(_labels(model), _width(model))


def _labels(model: Model) -> Quantity:
    return size("labels", "labels", model.outputs)


def _V(model: Model) -> Quantity:
    return size("V", "vocabulary", model.vocab)


def _d(model: Model) -> Quantity:
    return size("d", "d_model", model.d_model)


def _width(model: Model) -> Quantity:
    """Of the token table."""
    if model.table_width in (0, model.d_model):
        return _d(model)
    return size("w", "width of the table", model.table_width)


def _tables(model: Model) -> tuple[Quantity, Quantity | None]:
    table = transformer.table(_V(model), _width(model))
    if not model.position_rows:
        return table, None
    return table, transformer.positions(size("T_max", "positions", model.position_rows), _d(model))


def _projections(model: Model) -> list[_Part]:
    if model.table_width in (0, model.d_model):
        return []
    both = transformer.projections(_width(model), _d(model))
    return [_Part("projections", both, multiplied=both)]


def _layers(model: Model) -> list[_Part]:
    L = size("L", "layers", model.layers)
    attention = _attention(model)
    found = [_Part("attention", attention, L, attention)]
    vectors = _layer_vectors(model)
    if vectors:
        label = "norms and biases, one layer"
        found.append(_Part("norms and biases", transformer.vectors("vec", label, vectors), L))
    return found + _mlp(model, L) + _experts(model)


def _attention(model: Model) -> Quantity:
    a, d = model.attention, _d(model)
    H = size("H", "attention heads", a.heads)
    if a.latent is None:
        H_kv = size("H_kv", "key-value heads", a.kv_heads)
        return transformer.attention(d, H, H_kv, size("hd", "head_dim", a.qk))
    query = a.latent.query
    return transformer.latent_attention(
        d,
        H,
        None if query is None else size("d_q", "compressed queries", query),
        size("d_kv", "compressed keys and values", a.latent.key_value),
        size("nope", "of a head, without position", a.latent.nope),
        size("rope", "of a head, with position", a.latent.rope),
        size("hd_v", "width of a value", a.v),
    )


def _layer_vectors(model: Model) -> list[Quantity]:
    """What one layer has beside matrices, its MLP's biases apart."""
    a, d = model.attention, _d(model)
    H, H_kv = size("H", "attention heads", a.heads), size("H_kv", "key-value heads", a.kv_heads)
    hd = size("hd", "head_dim", a.qk)
    terms = []
    if model.norm_weights:
        weights = model.norms * model.norm_weights
        terms.append(coefficient(weights, "1", f"{weights} = {_norms(model)}") * d)
    if a.latent is not None:
        terms += [_compressed(a.latent), *_latent_biases(a.latent, model.d_model)]
    elif a.qkv_bias:
        terms.append((H + 2 * H_kv) * hd)
    if a.out_bias:
        terms.append(d)
    if a.qk_norm == "head":
        terms.append(coefficient(2, "1", "2 = query + key norm") * hd)
    if a.qk_norm == "all":
        terms.append((H + H_kv) * hd)
    if a.sinks:
        terms.append(H)
    return terms


def _norms(model: Model) -> str:
    return f"{model.norms} norms" + (" of weight and bias" if model.norm_weights == 2 else "")


def _compressed(latent: Latent) -> Quantity:
    """The widths that MLA normalises."""
    return size("d_c", "compressed widths", latent.key_value + (latent.query or 0))


def _latent_biases(latent: Latent, d_model: int) -> list[Quantity]:
    if not latent.bias:
        return []
    biases = latent.key_value + latent.rope + (latent.query or 0) + d_model
    return [size("b_c", "latent biases", biases)]


def _mlp(model: Model, L: Quantity) -> list[_Part]:
    mlp = model.mlp
    if mlp is None or not model.dense_layers:
        return []
    layers = size("L_dense", "dense layers", model.dense_layers) if model.moe_layers else L
    d, F = _d(model), size("F", "d_ff", mlp.width)
    matrices = transformer.mlp(d, F, mlp.gated)
    found = [_Part("MLP", matrices, layers, matrices)]
    if mlp.bias:
        biases = [2 * F + d if mlp.gated else F + d]
        bias = transformer.vectors("bias", "MLP biases, one layer", biases)
        found.append(_Part("MLP biases", bias, layers))
    return found


def _moe_layers(model: Model) -> Quantity:
    if not model.dense_layers:
        return size("L", "layers", model.layers)
    return size("L_moe", "layers with experts", model.moe_layers)


def _experts(model: Model) -> list[_Part]:
    experts = model.experts
    if experts is None:
        return []
    d, layers = _d(model), _moe_layers(model)
    E, k = _E(experts), _k(experts)
    each, bias = _one_expert(model, experts), _expert_bias(model, experts)
    router = _router(model, experts)
    found = [_Part("experts", E * each, layers, k * each)]
    if bias is not None:
        found.append(_Part("expert biases", E * bias, layers))
    found.append(_Part("router", router, layers, router))
    if experts.router_bias:
        of_router = transformer.vectors("bias_r", "router bias, one layer", [E])
        found.append(_Part("router bias", of_router, layers))
    if experts.shared_width or experts.shared_gate:
        F_s = size("F_s", "width of the shared experts", experts.shared_width)
        shared = transformer.shared_experts(d, F_s, experts.shared_gate)
        found.append(_Part("shared experts", shared, layers, shared))
    return found


def _E(experts: Experts) -> Quantity:
    return size("E", "experts", experts.count)


def _k(experts: Experts) -> Quantity:
    return size("k", "experts a token takes", experts.active)


@cache
def _router(model: Model, experts: Experts) -> Quantity:
    return transformer.router(_d(model), _E(experts))


@cache
def _one_expert(model: Model, experts: Experts) -> Quantity:
    return transformer.expert(_d(model), size("F_e", "width of an expert", experts.width))


@cache
def _expert_bias(model: Model, experts: Experts) -> Quantity | None:
    if not experts.bias:
        return None
    F = size("F_e", "width of an expert", experts.width)
    return transformer.vectors("bias_e", "one expert's biases", [2 * F + _d(model)])


def _final_norm(model: Model) -> list[_Part]:
    if not model.final_norm or not model.norm_weights:
        return []
    return [_Part("final norm", transformer.vectors("norm", "final norm", [_norm(model)]))]


def _norm(model: Model) -> Quantity:
    return _d(model) if model.norm_weights == 1 else model.norm_weights * _d(model)


def _active(model: Model, N: Quantity) -> Quantity:
    experts = model.experts
    if experts is None:
        return N
    each, bias = _one_expert(model, experts), _expert_bias(model, experts)
    return transformer.active(N, _moe_layers(model), _E(experts), _k(experts), each, bias)


def _megatron(model: Model, N_mm: Quantity) -> Quantity:
    """N_mm by Megatron-LM's count, which has quirks where there is a router or MLA."""
    experts, latent = model.experts, model.attention.latent
    routers = norms = None
    if experts is not None:
        routers = _moe_layers(model) * _router(model, experts)
    if latent is not None:
        each = transformer.vectors("norm_c", "norms of compressed widths", [_compressed(latent)])
        norms = size("L", "layers", model.layers) * each
    if routers is None and norms is None:
        return N_mm
    return transformer.megatron_weights(N_mm, routers, norms)
