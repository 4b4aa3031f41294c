"""The shape of a model: what its parameters and its FLOP are counted from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from napkin.specs.quantization import Quantization


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2 2405.04434, section 2.1): the compressed widths."""

    query: int | None  # None: queries are not compressed
    key_value: int
    nope: int  # of a head's queries and keys, without and with a rotary position
    rope: int
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Attention:
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


@dataclass(frozen=True, slots=True)
class Mlp:
    """A feed-forward layer of two matrices, or of three where it is gated."""

    width: int
    gated: bool
    bias: bool = False
    activation: str = ""  # as config.json names it, where a plain MLP's kind matters


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of gated experts, of which each token takes `active`."""

    count: int
    active: int
    width: int
    shared_width: int = 0  # of all shared experts together
    shared_gate: bool = False
    router_bias: bool = False
    bias: bool = False
    activation: str = "silu"  # of their gates


@dataclass(frozen=True, slots=True)
class Head:
    """The last matmul, on the hidden state of every token."""

    outputs: int | None  # None: one for each token of the vocabulary
    bias: bool = False
    pooled: bool = False  # one token of a sequence has a loss


LANGUAGE = Head(None)


@dataclass(frozen=True, slots=True)
class Model:
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
    head: Head | None = LANGUAGE
    tied: bool = False  # the output head is the input table
    table_width: int = 0  # of the token table where it is not d_model
    position_rows: int = 0
    norms: int = 2  # a layer
    norm_weights: int = 1  # per value: 2 with a bias, 0 without either
    final_norm: bool = True
    parallel: bool = False  # attention and MLP side by side, both on the block's input
    ends_in_norm: bool = False  # a block, after its last matmul
    rotary_share: float = 1.0  # of a head that is rotated
    score_cap: bool = False  # attention's scores go through a tanh
    logit_cap: bool = False  # so do the logits
    longest: int | None = None  # tokens of a sequence
    notes: tuple[str, ...] = ()
    quantization: Quantization | None = None  # in which its file's weights are stored
    # What config.json says of it, for who builds the very model.
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def outputs(self) -> int:
        """Of the head, for every token; 0 without one."""
        if self.head is None:
            return 0
        return self.vocab if self.head.outputs is None else self.head.outputs

    @property
    def dense_layers(self) -> int:
        return self.layers - self.moe_layers


@dataclass(frozen=True, slots=True)
class Stack:
    """The lecture's deep linear model: L square matrices and a head of one output
    (CS336 2025, lecture 2). A sample counts as a token."""

    name: str
    layers: int
    d_model: int
    longest: int | None = None
    notes: tuple[str, ...] = ("a linear stack: each sample counts as a token",)
