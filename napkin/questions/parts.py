"""The parameters of a model, part by part, as quantities that derive one another."""

from dataclasses import dataclass
from functools import cache, lru_cache

from napkin.accounting import transformer
from napkin.quantity import Quantity, coefficient, given
from napkin.specs.model import Experts, Model, Stack


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
    output: Quantity  # the matmul of the head, tied or not
    parts: dict[str, int]  # all layers of each
    matmul: tuple[tuple[str, Quantity], ...] = ()  # the terms of N_mm


@lru_cache(maxsize=256)
def counted(model: Model | Stack) -> Counted:
    """Every part of it."""
    if isinstance(model, Stack):
        L, d = size("L", "layers", model.layers), size("d", "d_model", model.d_model)
        matrices, head = transformer.stack_matrices(L, d), transformer.stack_head(d)
        N = transformer.total("N", "parameters", [matrices, head])
        parts = {"square matrices": int(matrices.value), "output head": model.d_model}
        matmul = (("square matrices", matrices), ("output head", head))
        return Counted(N, N, N, N, None, None, None, head, parts, matmul)
    return _Count(model).counted()


@cache  # one quantity for one letter, wherever it is met
def size(symbol: str, label: str, value: int) -> Quantity:
    return given(symbol, label, value, "1", "--model")


class _Count:
    """One model's sizes, each an input by its letter, and what follows from them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.d = size("d", "d_model", model.d_model)
        self.L = size("L", "layers", model.layers)
        self.V = size("V", "vocabulary", model.vocab)
        a = model.attention
        self.H = size("H", "attention heads", a.heads)
        self.H_kv = size("H_kv", "key-value heads", a.kv_heads)
        self.hd = size("hd", "head_dim", a.qk)
        self.parts: dict[str, int] = {}
        self.terms: list[Quantity] = []  # of N
        self.matmul: list[tuple[str, Quantity]] = []  # of N_mm
        self.quirks: list[Quantity] = []  # what Megatron-LM adds to N_mm

    def counted(self) -> Counted:
        model = self.model
        width = self.d
        if model.table_width not in (0, model.d_model):
            width = size("w", "width of the table", model.table_width)
            self.add("projections", transformer.projections(width, self.d), matmul=True)
        table = self.add("input table", transformer.table(self.V, width))
        positions = None
        if model.position_rows:
            rows = size("T_max", "positions", model.position_rows)
            positions = self.add("positions", transformer.positions(rows, self.d))
        self.add("attention", self.attention(), self.L, matmul=True)
        self.vectors("norms and biases", "vec", self.layer_vectors(), self.L)
        self.feed_forward()
        if model.final_norm and model.norm_weights:
            self.vectors("final norm", "norm", [model.norm_weights * self.d])
        head = transformer.head(self.V, width, model.tied)
        self.matmul.append(("output head", head))
        if not model.tied:
            self.add("output head", head)
        N = transformer.total("N", "parameters", self.terms)
        N_mm = transformer.total("N_mm", "weights a token multiplies", [q for _, q in self.matmul])
        return Counted(
            N,
            self.active(N),
            N_mm,
            self.megatron(N_mm),
            table,
            positions,
            None if model.tied else head,
            head,
            self.parts,
            tuple(self.matmul),
        )

    def add(
        self, name: str, each: Quantity, layers: Quantity | None = None, matmul: bool = False
    ) -> Quantity:
        """A part of N, and of N_mm where it is a matmul."""
        term = each if layers is None else layers * each
        self.terms.append(term)
        if matmul:
            self.matmul.append((name, term))
        self.parts[name] = self.parts.get(name, 0) + int(term.value)
        return each

    def vectors(
        self, name: str, symbol: str, terms: list[Quantity], layers: Quantity | None = None
    ) -> None:
        label = name if layers is None else f"{name}, one layer"
        if terms:
            self.add(name, transformer.vectors(symbol, label, terms), layers)

    def attention(self) -> Quantity:
        latent = self.model.attention.latent
        if latent is None:
            return transformer.attention(self.d, self.H, self.H_kv, self.hd)
        query = None
        if latent.query is not None:
            query = size("d_q", "compressed queries", latent.query)
        return transformer.latent_attention(
            self.d,
            self.H,
            query,
            size("d_kv", "compressed keys and values", latent.key_value),
            size("nope", "of a head, without position", latent.nope),
            size("rope", "of a head, with position", latent.rope),
            size("hd_v", "width of a value", self.model.attention.v),
        )

    def layer_vectors(self) -> list[Quantity]:
        model, a, d = self.model, self.model.attention, self.d
        terms = []
        if model.norm_weights:
            weights = model.norms * model.norm_weights
            terms.append(coefficient(weights, "1", f"{weights} = {_norms(model)}") * d)
        if a.latent is not None:
            terms += self.latent_vectors()
        elif a.qkv_bias:
            terms.append((self.H + 2 * self.H_kv) * self.hd)
        if a.out_bias:
            terms.append(d)
        if a.qk_norm == "head":
            terms.append(coefficient(2, "1", "2 = query + key norm") * self.hd)
        if a.qk_norm == "all":
            terms.append((self.H + self.H_kv) * self.hd)
        if a.sinks:
            terms.append(self.H)
        return terms

    def latent_vectors(self) -> list[Quantity]:
        """The norms of the compressed widths, and their biases."""
        latent = self.model.attention.latent
        assert latent is not None
        found = []
        norms = latent.key_value + (latent.query or 0)
        found.append(size("d_c", "compressed widths", norms))
        self.quirks.append(self.L * transformer.vectors("norm_c", "their norms", [found[0]]))
        if latent.bias:
            biases = latent.key_value + latent.rope + (latent.query or 0) + self.model.d_model
            found.append(size("b_c", "latent biases", biases))
        return found

    def feed_forward(self) -> None:
        model = self.model
        mlp, experts = model.mlp, model.experts
        if mlp is not None and model.dense_layers:
            layers = self.L
            if model.moe_layers:
                layers = size("L_dense", "dense layers", model.dense_layers)
            F = size("F", "d_ff", mlp.width)
            self.add("MLP", transformer.mlp(self.d, F, mlp.gated), layers, matmul=True)
            if mlp.bias:
                terms = [2 * F + self.d if mlp.gated else F + self.d]
                self.vectors("MLP biases", "bias", terms, layers)
        if experts is not None:
            self.experts(experts)

    def experts(self, experts: Experts) -> None:
        model = self.model
        self.E, self.k = (
            size("E", "experts", experts.count),
            size("k", "experts a token takes", experts.active),
        )
        layers = self.L
        if model.dense_layers:
            layers = size("L_moe", "layers with experts", model.moe_layers)
        self.moe = layers
        F = size("F_e", "width of an expert", experts.width)
        self.expert = transformer.expert(self.d, F)
        self.add("experts", self.E * self.expert, layers)
        self.matmul.append(("experts", layers * (self.k * self.expert)))
        if experts.bias:
            bias = transformer.vectors("bias_e", "one expert's biases", [2 * F + self.d])
            self.add("expert biases", self.E * bias, layers)
            self.expert_bias: Quantity | None = bias
        else:
            self.expert_bias = None
        self.router = self.add("router", transformer.router(self.d, self.E), layers, matmul=True)
        if experts.router_bias:
            self.vectors("router bias", "bias_r", [self.E * coefficient(1)], layers)
        if experts.shared_width:
            F_s = size("F_s", "width of the shared experts", experts.shared_width)
            shared = transformer.shared_experts(self.d, F_s, experts.shared_gate)
            self.add("shared experts", shared, layers, matmul=True)

    def active(self, N: Quantity) -> Quantity:
        if self.model.experts is None:
            return N
        return transformer.active(N, self.moe, self.E, self.k, self.expert, self.expert_bias)

    def megatron(self, N_mm: Quantity) -> Quantity:
        routers = None if self.model.experts is None else self.moe * self.router
        if routers is None and not self.quirks:
            return N_mm
        return transformer.megatron_weights(N_mm, routers, self.quirks)


def _norms(model: Model) -> str:
    return f"{model.norms} norms" + (" of weight and bias" if model.norm_weights == 2 else "")
