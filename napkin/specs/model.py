"""The shape of a model: what its parameters and its FLOP are counted from."""

from collections.abc import Mapping
from typing import Any

from napkin.record import NOTHING, Record
from napkin.specs.quantization import Quantization


class Latent(Record):
    """Multi-head latent attention (DeepSeek-V2 2405.04434, section 2.1): the compressed widths."""

    query: int | None  # None: queries are not compressed
    key_value: int
    nope: int  # of a head's queries and keys, without and with a rotary position
    rope: int
    bias: bool = False


class Norm(Record):
    """How values are normalised, and where in a block."""

    kind: str = "rms"  # `rms+1`: weights about one; `rms-fp32`: weights in fp32; `layer`: LayerNorm
    place: str = "before"  # a sublayer; `after` it; `both`; `post`: after the sum
    weights: int = 1  # per value: 2 with a bias, 0 without either

    @property
    def per_layer(self) -> int:
        return 4 if self.place == "both" else 2


class Rotary(Record):
    """Positions as rotations of queries and keys (RoFormer 2104.09864)."""

    share: float = 1.0  # of a head's width
    by_window: bool = False  # layers with a window have tables of their own
    in_fp32: bool = False
    is_complex: bool = False  # one table of complex numbers
    in_pairs: bool = False  # tables of an angle for each pair, not for each value


class Attention(Record):
    """One layer's attention; widths of a head."""

    heads: int
    kv_heads: int
    qk: int
    v: int
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: str = ""  # `head`: weights of one head; `all`: of every head
    sinks: bool = False
    latent: Latent | None = None
    rotary: Rotary | None = None
    fused: bool = False  # queries, keys and values by one matmul
    softmax_in_fp32: bool = True  # where scores are stored
    cap: bool = False  # the scores go through a tanh
    upcast: bool = False  # eager attention is computed in fp32


class Mlp(Record):
    """A feed-forward layer of two matrices, or of three where it is gated."""

    width: int
    gated: bool
    bias: bool = False
    activation: str = ""  # as config.json names it
    fused: bool = False  # gate and up by one matmul
    clamped: bool = False  # gate and up are, and one is added to up (gpt-oss)


class Experts(Record):
    """A mixture of gated experts, of which each token takes `active`."""

    count: int
    active: int
    width: int
    shared_width: int = 0  # of all shared experts together
    shared_gate: bool = False
    router_bias: bool = False
    bias: bool = False
    activation: str = "silu"  # of their gates
    # How a router weighs those that it chooses.
    normalised: bool = True  # by their sum
    cast: bool = False  # to the values' own width
    router_in_fp32: bool = False
    softmax_of_chosen: bool = False  # not of all
    clamped: bool = False  # as an Mlp may be


class Head(Record):
    """The last matmul, on the hidden state of every token."""

    outputs: int | None  # None: one for each token of the vocabulary
    bias: bool = False
    pooled: bool = False  # one token of a sequence has a loss


class Share(Record):
    """What one rank holds of each layer: heads, d_ff and vocabulary over `tensor` ranks
    (Megatron-LM 1909.08053, section 3), experts over `experts` ranks too (GShard 2006.16668)."""

    tensor: int = 1
    experts: int = 1
    sequence: bool = False  # what no tensor rank divides is divided by tokens (2205.05198)
    imbalance: float = 1.0  # rows of the fullest rank's experts, in those of an even routing


LANGUAGE = Head(None)
PLAIN_NORM = Norm()
WHOLE = Share()


class Model(Record):
    """A decoder-only transformer. Every layer attends alike, but for its window."""

    name: str
    architecture: str  # transformers' model_type
    vocab: int
    d_model: int
    layers: int
    attention: Attention
    mlp: Mlp | None  # of the layers that are dense
    experts: Experts | None = None  # of the others
    moe_layers: int = 0
    windows: tuple[tuple[int, int], ...] = ()  # (tokens, layers); other layers see all
    table: bool = True  # a later stage of a pipeline has none
    head: Head | None = LANGUAGE
    tied: bool = False  # the output head is the input table
    table_width: int = 0  # of the token table where it is not d_model
    position_rows: int = 0
    norm: Norm = PLAIN_NORM
    parallel: bool = False  # attention and MLP side by side, both on the block's input
    final_norm: bool = True
    logit_cap: bool = False  # the logits go through a tanh
    longest: int | None = None  # tokens of a sequence
    share: Share = WHOLE
    notes: tuple[str, ...] = ()
    quantization: Quantization | None = None  # in which its file's weights are stored
    # What config.json says of it, for who builds the very model.
    fields: Mapping[str, Any] = NOTHING

    @property
    def windowed_layers(self) -> int:
        """Those that do not see all tokens."""
        return sum(layers for _, layers in self.windows)

    @property
    def outputs(self) -> int:
        """Of the head, for every token; 0 without one."""
        if self.head is None:
            return 0
        return self.vocab if self.head.outputs is None else self.head.outputs

    @property
    def dense_layers(self) -> int:
        return self.layers - self.moe_layers


class Stack(Record):
    """The lecture's deep linear model: L square matrices and a head of one output
    (CS336 2025, lecture 2). A sample counts as a token."""

    name: str
    layers: int
    d_model: int
    longest: int | None = None
    notes: tuple[str, ...] = ("a linear stack: each sample counts as a token",)
