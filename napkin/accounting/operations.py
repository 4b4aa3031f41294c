"""A model as the list of its operations: a layer is written once, here.

Parameters, FLOP, what is kept for the backward pass, matmul shapes and adapters are sums over
this list. Sizes are quantities where the working is shown, and plain numbers where thousands of
layouts are compared: the formulas are the same. Treat all records as immutable: frozen, comparable
and printable ones cost three times as much, at every start.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from napkin.accounting.notation import letter
from napkin.accounting.sums import Product
from napkin.quantity import Quantity
from napkin.record import Record
from napkin.specs.activations import BY_OUTPUT, KEPT
from napkin.specs.model import Experts, Head, Latent, Mlp, Model, Norm, Rotary, Stack

Size = Callable[..., Quantity]  # symbol, label, value; where it is from, but for the model

# The parts that operations stand in.
TABLE, POSITIONS, PROJECTIONS, HEAD = "input table", "positions", "projections", "output head"
NORMS, ATTENTION, MLP, FINAL_NORM = "norms", "attention", "MLP", "final norm"
EXPERTS, ROUTER, SHARED = "experts", "router", "shared experts"
HEAD_NORMS, CASTS, SQUARES = "head norms", "casts", "square matrices"
ROTARY, LOSS, CAP = "rotary", "log-softmax", "logit cap"

SHARED_OUT = "token of a rank"  # of those that tensor ranks share out in sequence parallel

FP32 = 4
RANDOM_STATE = 24  # bytes that the fused attention of a GPU keeps, dropout or not


class Value(Record):
    """A tensor of the forward pass: what there is of it for each token."""

    name: str
    part: str
    size: Product = ()
    bytes: int | None = None  # of one element; None: as many as the model's values have
    # or `pair` of tokens of a sequence, `sequence`, `position`, `model`, SHARED_OUT
    per: str = "token"


class Adapters(NamedTuple):
    """Low-rank pairs of matrices beside frozen matmuls (LoRA 2106.09685), which alone are
    trained."""

    r: Quantity
    beside: frozenset[tuple[str, str]]  # part and name of each that has a pair
    bytes: int  # of one of their values


class Kernels(NamedTuple):
    """How operations are computed, as the switches for experts say."""

    attention: str = "flash"
    masked: bool = False  # a window is shorter than the sequence: sdpa is given a mask
    norm: str = "upcast"
    autocast: bool = False  # bf16 matmuls on fp32 weights
    scores_again: bool = False  # eager attention's scores are computed once more
    in_fp32: bool = False  # all values: nothing is cast
    random_state: int = RANDOM_STATE
    adapters: Adapters | None = None  # None: every weight is trained


class Operation(Record, kw_only=True):
    """One step of the forward pass."""

    name: str
    part: str
    layers: Quantity | None = None  # in how many it stands; None: once in the model

    @property
    def vectors(self) -> tuple[tuple[str, Product, int], ...]:
        """Parameters that no matmul multiplies: what they are, a product of sizes, how often."""
        return ()

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        """What its backward pass needs."""
        return ()


class Linear(Operation, kw_only=True):
    """A matmul with inputs × outputs weights."""

    symbol: str  # as in W_q
    inputs: Product
    outputs: Product
    x: Value
    y: Value
    bias: bool = False
    tied: bool = False  # its weights are the input table's
    fused: str = ""  # `first` or `more` of several that are one matmul
    copies: Quantity | None = None  # experts, of which a token takes some
    taken: Quantity | None = None
    in_fp32: bool = False  # whatever the values are

    @property
    def weights(self) -> Product:
        return (*self.inputs, *self.outputs)

    @property
    def vectors(self) -> tuple[tuple[str, Product, int], ...]:
        return (("bias", self.outputs, 1),) if self.bias else ()

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        """Its input; autocast casts one in fp32 for each matmul anew. Frozen, it needs none, but
        for an adapter beside it, which peft 0.21 gives a cast of its own."""
        cast: tuple[Value, ...] = ()
        if self.in_fp32 and not kernels.in_fp32:
            cast = (Value(f"{self.name} in fp32", EXPERTS, self.weights, FP32, "model"),)
        if kernels.adapters is not None:
            return *cast, *self._for_its_adapter(kernels.adapters, kernels.in_fp32)
        if cast:
            x = self.x
            return *cast, Value(f"input of the {self.name}, cast", EXPERTS, x.size, FP32, x.per)
        if kernels.autocast and self.x.part in (NORMS, FINAL_NORM):
            part = self.x.part if self.layers is None else CASTS
            return (Value(f"input of the {self.name}, cast", part, self.x.size, per=self.x.per),)
        return (self.x,)

    def has(self, adapters: Adapters) -> bool:
        """A pair of its own: what is fused has one together."""
        return self.fused != "more" and (self.part, self.name) in adapters.beside

    def _for_its_adapter(self, adapters: Adapters, in_fp32: bool) -> tuple[Value, ...]:
        if not self.has(adapters):
            return ()
        between = Value(
            f"in the adapter of the {self.name}", self.part, (adapters.r,), adapters.bytes
        )
        if adapters.bytes == FP32 and not in_fp32:
            name = f"input of the {self.name}, cast for its adapter"
            return Value(name, self.part, self.x.size, FP32, self.x.per), between
        return self.x, between


class Normalise(Operation, kw_only=True):
    """RMSNorm (1910.07467) or LayerNorm (1607.06450) of rows of `width` values."""

    norm: Norm
    width: Product
    x: Value
    y: Value
    rows: Product = ()  # of each token: heads
    is_latent: bool = False  # of a compressed width

    @property
    def vectors(self) -> tuple[tuple[str, Product, int], ...]:
        return (("norm", self.width, self.norm.weights),) if self.norm.weights else ()

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        """As transformers 5.24 computes it; a fused kernel keeps its input and 1/rms. Where its
        weights are frozen, no gradient of them needs what was normalised."""

        def one(name: str, size: Product, bytes: int | None = FP32, per: str = "") -> Value:
            return Value(f"{self.name}, {name}", self.part, size, bytes, per or self.x.per)

        if self.norm.kind == "layer":
            return self.x, one("mean", self.rows), one("1/std", self.rows)
        scale = one("1/rms", self.rows)
        if kernels.norm == "fused" and self.part != HEAD_NORMS:
            return self.x, scale
        # A norm of a part of a tensor keeps that part, or where nothing is cast, all of it.
        size = self.width if self.is_latent else self.x.size
        x = one("input", self.x.size if kernels.in_fp32 else size)
        if kernels.adapters is not None:
            more = (
                (one("1 + weight", self.width, per="model"),) if self.norm.kind == "rms+1" else ()
            )
            return x, scale, *more
        if self.norm.kind == "rms":
            return x, one("normalised", size, FP32 if kernels.autocast else None), scale
        normalised = one("normalised", size)
        if self.norm.kind == "rms-fp32":
            return x, normalised, scale
        return x, normalised, scale, one("1 + weight", self.width, per="model")


class Attention(Operation, kw_only=True):
    """Scores, their softmax, and what they weigh (1706.03762), of H heads."""

    H: Quantity
    hd: Quantity
    queries: Value
    keys: Value
    values: Value
    copies: bool  # keys and values for every query head are copies, no views
    buffer: tuple[Value, ...]  # of which the values are a share
    attended: Value
    merged: Value  # the same, its heads merged: a copy where the values were in a buffer
    softmax_in_fp32: bool
    cap: bool = False
    sinks: bool = False

    @property
    def vectors(self) -> tuple[tuple[str, Product, int], ...]:
        return (("sinks", (self.H,), 1),) if self.sinks else ()

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        """Flash attention keeps queries, keys, values, the output and the log-sum-exp (2205.14135);
        eager attention its scores; sdpa, given a mask, the mask. The latter two have keys and
        values for every head."""
        # What it hands on, the output's matmul needs where it is trained.
        out = () if kernels.adapters is not None else (self.merged,)
        if kernels.attention == "eager" and kernels.scores_again:
            return self.queries, self.keys, self.values, *out
        if kernels.attention == "eager":
            return self.queries, *self._for_every_head(), *out, *self.scores(kernels)
        sums = Value("log-sum-exp", self.part, (self.H,), FP32)
        random = Value("random state", self.part, (), kernels.random_state, "model")
        inputs: tuple[Value, ...] = (self.queries, self.keys, self.values, *self.buffer)
        if kernels.masked:
            if self.copies:
                inputs = self.queries, *self._for_every_head()
            inputs = *inputs, Value("mask", self.part, per="pair")
        return *inputs, self.attended, *out, sums, random

    def _for_every_head(self) -> tuple[Value, Value]:
        keys, values = (
            Value(f"{x.name}, for every head", self.part, (self.H, self.hd))
            for x in (self.keys, self.values)
        )
        return keys, values

    def scores(self, kernels: Kernels) -> tuple[Value, ...]:
        """What eager attention keeps of them: their softmax, its cast, the tanh of a cap."""
        width = FP32 if self.softmax_in_fp32 else None
        of_sinks = Value("softmax of the sinks", self.part, (self.H,), width)
        upcast = self.softmax_in_fp32 and not kernels.in_fp32
        return (
            Value("softmax", self.part, (self.H,), width, "pair"),
            *((of_sinks,) if self.sinks else ()),
            *((Value("softmax, cast", self.part, (self.H,), per="pair"),) if upcast else ()),
            *((Value("tanh of scores", self.part, (self.H,), per="pair"),) if self.cap else ()),
        )


class Rotate(Operation, kw_only=True):
    """Turns queries and keys by their position (RoFormer 2104.09864); layers share the tables."""

    width: Quantity
    tables: int
    bytes: int | None
    is_complex: bool = False  # one table, of pairs in fp32

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        if self.is_complex:
            return (Value("rotations", self.part, (self.width,), FP32, "position"),)
        width = FP32 if kernels.autocast else self.bytes
        return tuple(
            Value(name, self.part, (self.width,), width, "position")
            for name in ("cosines", "sines")
            for _ in range(self.tables)
        )


class Activation(Operation, kw_only=True):
    """The function between two matmuls; it keeps `inside` tensors of its input's size, or its
    output, which a matmul that is trained keeps anyway."""

    x: Value
    y: Value
    inside: int
    by_output: bool

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        if self.by_output and kernels.adapters is not None:
            return (self.y,)
        more = range(1, self.inside)
        inner = (Value(f"{self.name}, inside", self.part, self.x.size) for _ in more)
        return (self.x, *inner) if self.inside else ()


class Gate(Operation, kw_only=True):
    """The product of a gate and of what it lets through (2002.05202)."""

    gate: Value
    up: Value

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        return self.gate, self.up


class ClampedGate(Operation, kw_only=True):
    """gpt-oss's: gate and up cut off, gate × sigmoid × (up + 1)."""

    gate: Value
    up: Value

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        names = ("gate, clamped", "its sigmoid", "up, clamped, + 1", "their product")
        return self.gate, self.up, *(Value(name, self.part, self.up.size) for name in names)


class Embedding(Operation, kw_only=True):
    """A look-up in a table of rows × width: no matmul."""

    rows: Quantity
    width: Quantity


class Route(Operation, kw_only=True):
    """Chooses k of E experts for each token, and weighs what they return."""

    E: Quantity
    k: Quantity
    d: Quantity
    normalised: bool
    cast: bool
    softmax_of_chosen: bool

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        scores = Value("scores of the router", self.part, (self.E,), FP32)
        if self.softmax_of_chosen:
            scores = Value("scores of the router", self.part, (self.k,))
        by_sum = (
            Value("sum of weights", self.part, (), FP32),
            Value("weights", self.part, (self.k,), FP32),
        )
        return (
            scores,
            *(by_sum if self.normalised else ()),
            Value("weights of rows", self.part, (self.k,), None if self.cast else FP32),
            Value("outputs of experts", self.part, (self.k, self.d)),
        )


class Cap(Operation, kw_only=True):
    """A tanh, before its values are scaled back (Gemma 2 2408.00118, section 2)."""

    x: Value

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        return (Value("tanh of the logits", self.part, self.x.size),)


class LogSoftmax(Operation, kw_only=True):
    """Of the logits, in fp32, and the loss; of one token of a sequence where `per` says so."""

    outputs: Quantity
    per: str

    def kept(self, kernels: Kernels) -> tuple[Value, ...]:
        return (
            Value("log-softmax", self.part, (self.outputs,), FP32, self.per),
            Value("loss", self.part, (), FP32, per="model"),
        )


@lru_cache(maxsize=256)
def operations(model: Model | Stack, size: Size = letter) -> tuple[Operation, ...]:
    """All of them in the order of the forward pass, a layer's once."""
    if isinstance(model, Stack):
        return tuple(_stack(model, size))
    return tuple(_Writer(model, size).model())


def _stack(model: Stack, size: Size) -> Iterator[Operation]:
    """The lecture's: square matrices and a head of one output."""
    L, d = size("L", "layers", model.layers), size("d", "d_model", model.d_model)
    x, y = Value("input", SQUARES, (d,)), Value("output", HEAD)
    yield Linear(
        symbol="sq", name="square", part=SQUARES, layers=L, inputs=(d,), outputs=(d,), x=x, y=x
    )
    yield Linear(symbol="head", name="head", part=HEAD, inputs=(d,), outputs=(), x=x, y=y)


def divided(model: Model, size: Size, symbol: str, label: str, value: int) -> Quantity:
    """A size of which each tensor rank has its share."""
    whole = size(symbol, label, value)
    return whole if model.share.tensor == 1 else whole / tensor_ranks(model, size)


def tensor_ranks(model: Model, size: Size) -> Quantity:
    return size("n_tp", "tensor-parallel ranks", model.share.tensor, "--tp")


def _vocabulary(model: Model) -> tuple[str, str, int]:
    """V, padded so that tensor ranks divide it."""
    short = -model.vocab % model.share.tensor
    return "V", "vocabulary" + ", padded" * (short > 0), model.vocab + short


class _Writer:
    """Writes down the operations of one model, by the field's letters."""

    def __init__(self, model: Model, size: Size) -> None:
        self.m, self.size = model, size
        a, share = model.attention, model.share
        self.rows = SHARED_OUT if share.sequence else "token"
        self.V, self.d = self.divided(*_vocabulary(model)), size("d", "d_model", model.d_model)
        self.projected = model.table_width not in (0, model.d_model)
        self.w = size("w", "width of the table", model.table_width) if self.projected else self.d
        self.H = self.divided("H", "attention heads", a.heads)
        self.L = size("L", "layers", model.layers)

    def divided(self, symbol: str, label: str, value: int) -> Quantity:
        return divided(self.m, self.size, symbol, label, value)

    def stream(self, name: str, part: str = NORMS) -> Value:
        """As wide as d: whole on every tensor rank, but for its tokens in sequence parallel."""
        return Value(name, part, (self.d,), per=self.rows)

    def model(self) -> Iterator[Operation]:
        m, d, w = self.m, self.d, self.w
        if m.table:
            yield Embedding(name="input table", part=TABLE, rows=self.V, width=w)
        if m.table and m.position_rows:
            rows = self.size("T_max", "positions", m.position_rows)
            yield Embedding(name="positions", part=POSITIONS, rows=rows, width=d)
        x = self.stream("residual stream")
        if self.projected:
            row = Value("row of the table", PROJECTIONS, (w,))
            yield self.linear("in", "into d", PROJECTIONS, (w,), (d,), row, x, None)
        yield from self.layer(x)
        last = self.stream("input of the head", FINAL_NORM)
        if m.final_norm:
            final = self.stream("residual stream at the end", FINAL_NORM)
            yield self.norm("final norm", FINAL_NORM, final, last, None)
        if self.projected:
            narrow = Value("input of the head, narrow", PROJECTIONS, (w,))
            yield self.linear("out", "out of d", PROJECTIONS, (d,), (w,), last, narrow, None)
            last = narrow
        if m.head is not None:
            yield from self.head(m.head, last)

    def head(self, head: Head, x: Value) -> Iterator[Operation]:
        """The last matmul, on the hidden state of every token, and the loss."""
        name, outputs = "output head", self.V
        if head.outputs is not None:
            name, outputs = "classification head", self.size("labels", "labels", head.outputs)
        of: dict[str, Any] = {"tied": self.m.tied, "bias": head.bias}
        logits = Value("logits", HEAD, (outputs,))
        yield self.linear("head", name, HEAD, (self.w,), (outputs,), x, logits, None, **of)
        per = "sequence" if head.pooled else "token"
        yield LogSoftmax(name="log-softmax", part=LOSS, outputs=outputs, per=per)
        if self.m.logit_cap and head.outputs is None:  # transformers' classifiers have no cap
            yield Cap(name="cap of the logits", part=CAP, x=logits)

    def layer(self, x: Value) -> Iterator[Operation]:
        """Attention, then the MLP or experts, each added to the residual stream."""
        place = self.m.norm.place
        attended = self.stream("residual stream, attention added")
        for name, write, stream in (
            ("attention", self.attention, x),
            ("MLP", self.feed_forward, x if self.m.parallel else attended),
        ):
            inner, outer = stream, self.stream(f"output of the {name}")
            if place in ("before", "both"):
                inner = self.stream(f"input of the {name}")
                yield self.norm(f"norm before the {name}", NORMS, stream, inner, self.L)
            yield from write(inner, outer)
            if place in ("after", "both"):
                yield self.norm(f"norm after the {name}", NORMS, outer, outer, self.L)
            if place == "post":
                added = self.stream(f"sum with the {name}")
                yield self.norm(f"norm after the {name}", NORMS, added, attended, self.L)

    def norm(self, name: str, part: str, x: Value, y: Value, layers: Quantity | None) -> Normalise:
        width, norm = (self.d,), self.m.norm
        return Normalise(name=name, part=part, layers=layers, norm=norm, width=width, x=x, y=y)

    def linear(
        self,
        symbol: str,
        name: str,
        part: str,
        inputs: Product,
        outputs: Product,
        x: Value,
        y: Value,
        layers: Quantity | None,
        **more: Any,
    ) -> Linear:
        of: dict[str, Any] = {"inputs": inputs, "outputs": outputs, "x": x, "y": y}
        return Linear(symbol=symbol, name=name, part=part, layers=layers, **of, **more)

    def attention(self, x: Value, y: Value) -> Iterator[Operation]:
        a, d, H, L = self.m.attention, self.d, self.H, self.L
        if a.latent is not None:
            yield from self.latent_attention(a.latent, x, y)
            return
        H_kv = self.key_value_heads(a.kv_heads)
        hd = self.size("hd", "head_dim", a.qk)
        q = Value("query", ATTENTION, (H, hd))
        k, v = (Value(name, ATTENTION, (H_kv, hd)) for name in ("key", "value"))
        for made in (q, k, v):
            fused = "" if not a.fused else "first" if made is q else "more"
            more = {"bias": a.qkv_bias, "fused": fused}
            yield self.linear(
                made.name[0], made.name, ATTENTION, (d,), made.size, x, made, L, **more
            )
        if a.qk_norm:
            every = a.qk_norm == "all"
            for made in (q, k):
                yield Normalise(
                    name=f"{made.name} norm",
                    part=HEAD_NORMS,
                    layers=L,
                    norm=self.m.norm,
                    width=made.size if every else (hd,),
                    x=made,
                    y=made,
                    rows=() if every else made.size[:1],
                )
        queries, keys = q, k
        if a.rotary is not None:
            yield self.rotary(a.rotary, hd)
            queries, keys = (
                Value(f"{made.name}, rotated", ATTENTION, made.size) for made in (q, k)
            )
        attended = Value("attended", ATTENTION, (H, hd))
        # Out of a fused buffer, rotated heads come in an order that a copy merges.
        copied = a.fused and a.rotary is not None
        merged = Value("attended, merged", ATTENTION, (H, hd)) if copied else attended
        yield Attention(
            name="scores and their values",
            part=ATTENTION,
            layers=L,
            H=H,
            hd=hd,
            queries=queries,
            keys=keys,
            values=v,
            copies=a.kv_heads not in (1, a.heads),
            buffer=(q, k) if a.fused else (),
            attended=attended,
            merged=merged,
            softmax_in_fp32=a.softmax_in_fp32,
            cap=a.cap,
            sinks=a.sinks,
        )
        yield self.linear("o", "output", ATTENTION, (H, hd), (d,), merged, y, L, bias=a.out_bias)

    def key_value_heads(self, count: int) -> Quantity:
        """Of which each rank needs one, where there are more ranks than heads."""
        if self.m.share.tensor > count:
            return self.size("H_kv", "key-value heads of a rank", 1)
        return self.divided("H_kv", "key-value heads", count)

    def rotary(self, rotary: Rotary, hd: Quantity) -> Rotate:
        width = hd
        if rotary.share != 1:
            rotated = int(self.m.attention.qk * rotary.share)
            width = self.size("hd_rot", "rotated part of a head", rotated)
        if rotary.in_pairs:
            width = self.size("hd_rot", "pairs of a head", self.m.attention.qk // 2)
        windowed = self.m.windowed_layers
        tables = 2 if rotary.by_window and 0 < windowed < self.m.layers else 1
        bytes = FP32 if rotary.in_fp32 else None
        of: dict[str, Any] = {"bytes": bytes, "is_complex": rotary.is_complex}
        return Rotate(name="rotary", part=ROTARY, width=width, tables=tables, **of)

    def latent_attention(self, latent: Latent, x: Value, y: Value) -> Iterator[Operation]:
        """MLA (DeepSeek-V2 2405.04434, section 2.1): through compressed widths."""
        a, d, H, L, size = self.m.attention, self.d, self.H, self.L, self.size
        nope = size("nope", "of a head, without position", latent.nope)
        rope = size("rope", "of a head, with position", latent.rope)
        d_kv = size("d_kv", "compressed keys and values", latent.key_value)
        hd_v = size("hd_v", "width of a value", a.v)
        q = Value("query", ATTENTION, (H, nope + rope))
        queries, keys = (Value(f"{name}, rotated", ATTENTION, q.size) for name in ("query", "key"))
        narrow = Value("compressed keys and values", ATTENTION, (d_kv + rope,))
        kv = Value("key and value", ATTENTION, (H, nope + hd_v))
        bias, q_in = {"bias": latent.bias}, x
        if latent.query is not None:
            d_q = size("d_q", "compressed queries", latent.query)
            q_in = Value("compressed queries", ATTENTION, (d_q,))
            yield self.linear("q_a", "query, down", ATTENTION, (d,), (d_q,), x, q_in, L, **bias)
            yield self.latent_norm("norm of queries", d_q, q_in)
        symbol, name = ("q", "query") if latent.query is None else ("q_b", "query, up")
        yield self.linear(symbol, name, ATTENTION, q_in.size, q.size, q_in, q, L)
        yield self.linear(
            "kv_a", "key and value, down", ATTENTION, (d,), narrow.size, x, narrow, L, **bias
        )
        inner = Value("compressed keys and values, normalised", ATTENTION, (d_kv,))
        yield self.latent_norm("norm of keys and values", d_kv, narrow, inner)
        yield self.linear("kv_b", "key and value, up", ATTENTION, (d_kv,), kv.size, inner, kv, L)
        if a.rotary is not None:
            yield self.rotary(a.rotary, rope)
        attended, merged = (
            Value(name, ATTENTION, (H, hd_v)) for name in ("attended", "attended, merged")
        )
        yield Attention(
            name="scores and their values",
            part=ATTENTION,
            layers=L,
            H=H,
            hd=nope + rope,
            queries=queries,
            keys=keys,
            values=kv,
            copies=False,
            buffer=(),
            attended=attended,
            merged=merged,
            softmax_in_fp32=True,
        )
        yield self.linear("o", "output", ATTENTION, (H, hd_v), (d,), merged, y, L, **bias)

    def latent_norm(
        self, name: str, width: Quantity, x: Value, y: Value | None = None
    ) -> Normalise:
        norm, L = self.m.norm, self.L
        of: dict[str, Any] = {"layers": L, "norm": norm, "width": (width,), "x": x, "y": y or x}
        return Normalise(name=name, part=NORMS, is_latent=True, **of)

    def feed_forward(self, x: Value, y: Value) -> Iterator[Operation]:
        m = self.m
        if m.mlp is not None and m.dense_layers:
            L = self.size("L_dense", "dense layers", m.dense_layers) if m.moe_layers else self.L
            F = self.divided("F", "d_ff", m.mlp.width)
            yield from self.mlp(MLP, F, m.mlp, x, y, L)
        if m.experts is not None:
            L = self.L
            if m.dense_layers:
                L = self.size("L_moe", "layers with experts", m.moe_layers)
            yield from self.experts(m.experts, x, y, L)

    def mlp(
        self,
        part: str,
        F: Quantity,
        mlp: Mlp,
        x: Value,
        y: Value,
        layers: Quantity,
        experts: tuple[Quantity, Quantity] | None = None,
    ) -> Iterator[Operation]:
        """Two matmuls, or three where it is gated; of E experts, k for each token."""
        d, rows = self.d, () if experts is None else experts[1:]
        kind = mlp.activation
        keeps: dict[str, Any] = {"inside": KEPT[kind], "by_output": kind in BY_OUTPUT}
        bias: dict[str, Any] = {"bias": mlp.bias}
        if experts is not None:
            bias |= {"copies": experts[0], "taken": experts[1]}
        up, activated = Value("up", part, (*rows, F)), Value("activated", part, (*rows, F))
        of: dict[str, Any] = {"part": part, "layers": layers}
        if mlp.gated:
            gate, inner = Value("gate", part, (*rows, F)), Value("gated", part, (*rows, F))
            first, more = ("first", "more") if mlp.fused else ("", "")
            yield self.linear("", "gate", part, (d,), (F,), x, gate, layers, fused=first, **bias)
            yield self.linear("up", "up", part, (d,), (F,), x, up, layers, fused=more, **bias)
            if mlp.clamped:
                yield ClampedGate(name="clamped product", gate=gate, up=up, **of)
            else:
                yield Activation(name="activation", x=gate, y=activated, **keeps, **of)
                yield Gate(name="product", gate=activated, up=up, **of)
        else:
            inner = activated
            yield self.linear("up", "up", part, (d,), (F,), x, up, layers, **bias)
            yield Activation(name="activation", x=up, y=activated, **keeps, **of)
        yield self.linear("down", "down", part, (F,), (d,), inner, y, layers, **bias)

    def experts(self, experts: Experts, x: Value, y: Value, L: Quantity) -> Iterator[Operation]:
        E = self.size("E", "experts", experts.count)
        k = self.size("k", "experts a token takes", experts.active)
        F_e = self.divided("F_e", "width of an expert", experts.width)
        held = E
        if self.m.share.experts > 1:
            held = E / self.size("n_ep", "expert-parallel ranks", self.m.share.experts, "--ep")
        scores = Value("scores of the router", ROUTER, (E,))
        how = {"bias": experts.router_bias, "in_fp32": experts.router_in_fp32}
        yield self.linear("router", "router", ROUTER, (self.d,), (E,), x, scores, L, **how)
        facts = {
            "normalised": experts.normalised,
            "cast": experts.cast,
            "softmax_of_chosen": experts.softmax_of_chosen,
        }
        yield Route(name="routing", part=EXPERTS, layers=L, E=E, k=k, d=self.d, **facts)
        routed = k
        if self.m.share.imbalance != 1:
            label = "rows of the fullest experts"
            routed = self.size("r_imb", label, self.m.share.imbalance, "--imbalance") * k
        gathered = Value("inputs of experts", EXPERTS, (routed, self.d))
        facts = {"bias": experts.bias, "clamped": experts.clamped}
        each = Mlp(experts.width, gated=True, activation=experts.activation, **facts)
        yield from self.mlp(EXPERTS, F_e, each, gathered, y, L, (held, routed))
        if experts.shared_width:
            F_s = self.divided("F_s", "width of the shared experts", experts.shared_width)
            shared = Mlp(experts.shared_width, gated=True, activation=experts.activation)
            yield from self.mlp(SHARED, F_s, shared, x, y, L)
        if experts.shared_gate:
            gate = Value("gate of the shared", SHARED)
            yield self.linear("gate", "gate of the shared", SHARED, (self.d,), (), x, gate, L)
            opened, out = Value("sigmoid", SHARED), Value("output of the shared", SHARED, (self.d,))
            yield Gate(name="product of the shared", part=SHARED, layers=L, gate=opened, up=out)
