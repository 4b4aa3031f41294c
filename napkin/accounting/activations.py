"""Bytes that layers, the head and the loss keep for the backward pass, part by part.

Whole numbers, of what transformers 5.24's modules save (tests/checking measures them); each
part has its formula beside it. n = B·T tokens, s bytes a value; H query and K key-value heads
of width h, e = n·h·(H + K) what the head norms see. Softmax and RMSNorm are computed in fp32.
"""

from typing import NamedTuple

RNG = 24  # bytes of random state that the fused attention of a GPU keeps, dropout or not


class Sizes(NamedTuple):
    """Of one micro-batch on one GPU."""

    B: int
    T: int
    d: int
    H: int
    K: int
    h: int
    F: int
    V: int  # outputs of the head
    s: int
    of_loss: str = "n·V"  # the outputs that the loss sees: B·labels where one token of each does

    @property
    def n(self) -> int:
        return self.B * self.T

    @property
    def seen(self) -> int:
        """As many as `of_loss` says."""
        return (self.B if self.of_loss.startswith("B") else self.n) * self.V


class Part(NamedTuple):
    """What a part of a layer keeps, in bytes, and by which formula."""

    bytes: int
    formula: str


def _times(count: int, sum_of: str) -> str:
    return sum_of if count == 1 else f"{count}·({sum_of})"


def flash_attention(z: Sizes, rng: int = RNG) -> Part:
    """Queries, keys, values, output and the log-sum-exp (FlashAttention 2205.14135)."""
    kept = z.s * z.n * z.h * (2 * z.H + 2 * z.K) + 4 * z.n * z.H + rng
    return Part(kept, "s·n·h·(2H + 2K) + 4·n·H")


def eager_attention(z: Sizes, capped: bool = False) -> Part:
    """Keys and values for every query head, and the scores."""
    scores = scores_kept(z, upcast=True, capped=capped)
    return Part(4 * z.s * z.n * z.H * z.h + scores.bytes, f"4·s·n·H·h + {scores.formula}")


def _softmax(z: Sizes) -> int:
    """Bytes a score: in fp32, and its cast."""
    return 4 if z.s == 4 else 4 + z.s


def windowed(z: Sizes, of_buffer: bool = False) -> Part:
    """What PyTorch's sdpa keeps more than flash attention under a window, whose mask it is given:
    the mask in the values' width, layer by layer, and keys and values for every query head. One
    head for all is a view; where values were in one buffer with queries and keys (`of_buffer`),
    that is gone."""
    mask = z.s * z.B * z.T**2
    if z.K in (1, z.H):
        return Part(mask, "s·B·T²")
    heads, said = (z.H - 3 * z.K, "H − 3K") if of_buffer else (2 * (z.H - z.K), "2H − 2K")
    return Part(z.s * z.n * z.h * heads + mask, f"s·n·h·({said}) + s·B·T²")


def recomputed_attention(z: Sizes) -> Part:
    """Queries, keys, values and output: the scores are made again (Korthikanti 2205.05198)."""
    return Part(z.s * z.n * z.h * (2 * z.H + 2 * z.K), "s·n·h·(2H + 2K)")


def rms_norms(z: Sizes, count: int = 2) -> Part:
    """x in fp32, normalised, the output, and 1/rms: Llama's."""
    return Part(count * ((4 + 2 * z.s) * z.n * z.d + 4 * z.n), _times(count, "(4 + 2s)·n·d + 4n"))


def fused_norms(z: Sizes, count: int = 2) -> Part:
    """x, the output and 1/rms: a fused kernel's."""
    return Part(count * (2 * z.s * z.n * z.d + 4 * z.n), _times(count, "2s·n·d + 4n"))


def gemma_norms(z: Sizes, count: int = 2, after: int = 0) -> Part:
    """x and what is normalised in fp32, 1/rms, 1 + weight; the output too, but for the norms
    that come `after` a sublayer."""
    each = 8 * z.n * z.d + 4 * z.n + 4 * z.d
    kept = (count + after) * each + count * z.s * z.n * z.d
    return Part(kept, f"{_times(count + after, '8·n·d + 4n + 4d')} + {count}·s·n·d")


def olmo_norms(z: Sizes) -> Part:
    """Norms after each sublayer, and the sublayers' inputs."""
    return Part(2 * (8 * z.n * z.d + 4 * z.n) + 2 * z.s * z.n * z.d, "2·(8·n·d + 4n) + 2·s·n·d")


def layer_norms(z: Sizes, inputs: int = 2) -> Part:
    """Two LayerNorms: their inputs (one, where both share it), outputs, means and 1/std."""
    kept = (inputs + 2) * z.s * z.n * z.d + 16 * z.n
    return Part(kept, f"{inputs + 2}·s·n·d + 16n")


def head_norms(z: Sizes) -> Part:
    """Qwen3's of queries and keys."""
    heads = z.n * (z.H + z.K)
    return Part((4 + z.s) * heads * z.h + 4 * heads, "(4 + s)·e + 4·n·(H + K)")


def gemma_head_norms(z: Sizes) -> Part:
    """As `gemma_norms`, of queries and keys."""
    heads = z.n * (z.H + z.K)
    return Part(8 * heads * z.h + 4 * heads + 8 * z.h, "8·e + 4·n·(H + K) + 8h")


def olmo_head_norms(z: Sizes) -> Part:
    """One of all queries, one of all keys."""
    return Part(8 * z.n * (z.H + z.K) * z.h + 8 * z.n, "8·e + 8n")


def gated_mlp(z: Sizes, inside: int) -> Part:
    """Up, the gate's activation and their product, and `inside` what the activation function
    keeps (specs.activations): the gate (SiLU), nothing (ReLU), several tensors."""
    return Part((3 + inside) * z.s * z.n * z.F, f"{3 + inside}·s·n·F")


def fused_flash_attention(z: Sizes, rng: int = RNG) -> Part:
    """Phi-3's: the values stay in the buffer of queries, keys and values, rotated queries and
    keys beside it, and the heads are merged in a copy."""
    kept = z.s * z.n * z.h * (4 * z.H + 3 * z.K) + 4 * z.n * z.H + rng
    return Part(kept, "s·n·h·(4H + 3K) + 4·n·H")


def plain_mlp(z: Sizes, inside: int) -> Part:
    """The second matmul's input, and `inside` what the activation function keeps."""
    return Part((1 + inside) * z.s * z.n * z.F, f"{1 + inside}·s·n·F")


def fused_projections(z: Sizes, rng: int = RNG, rotated: bool = False) -> Part:
    """Attention whose queries, keys and values stay in the buffer of one matmul (GPT-2); where
    they are rotated (GPT-NeoX), rotated queries and keys and the merged heads too."""
    times = 7 if rotated else 4
    return Part(times * z.s * z.n * z.d + 4 * z.n * z.H + rng, f"{times}·s·n·d + 4·n·H")


def plain_eager_attention(z: Sizes, upcast: bool) -> Part:
    """Queries, keys, values and what they attend to (h·H = d), and the scores."""
    scores = scores_kept(z, upcast)
    return Part(4 * z.s * z.n * z.d + scores.bytes, f"4·s·n·d + {scores.formula}")


def projected(z: Sizes, width: int) -> Part:
    """Inputs of the matrices into d and to the head, of OPT's table of another `width`."""
    return Part(2 * z.s * z.n * width, f"2·s·n·{width}")


def logit_cap(z: Sizes) -> Part:
    """The tanh of the logits, before they are scaled back."""
    return Part(z.s * z.n * z.V, "s·n·V")


def routed_experts(z: Sizes, E: int, k: int, inside: int) -> Part:
    """k experts for every token, each gated, and the router (F is an expert's width)."""
    kept = z.s * z.n * k * ((3 + inside) * z.F + 2 * z.d) + 4 * z.n * E + 4 * z.n + 8 * z.n * k
    return Part(kept, f"s·n·k·({3 + inside}F + 2d) + 4·n·E + 4n + 8·n·k")


def korthikanti(z: Sizes, scores: bool) -> Part:
    """A GPT block in 16 bits with dropout: 34·s·b·h, and 5·a·s²·b where the scores are kept
    (2205.05198, equation 2)."""
    kept = 34 * z.n * z.d + (5 * z.B * z.H * z.T**2 if scores else 0)
    return Part(kept, "34·n·d + 5·B·H·T²" if scores else "34·n·d")


def block_input(z: Sizes) -> Part:
    """All that a checkpointed block keeps."""
    return Part(z.s * z.n * z.d, "s·n·d")


def log_softmax(z: Sizes) -> Part:
    """In fp32, and the loss itself."""
    return Part(4 * z.seen + 4, f"4·{z.of_loss} + 4")


def rotary(z: Sizes, width: int, each: int, tables: int = 1) -> Part:
    """Cosines and sines, which all layers of a kind share."""
    return Part(2 * tables * each * z.T * width, f"{2 * tables}·{each}·T·{width}")


def loss_backward(z: Sizes) -> Part:
    """Gradients of the loss and of the log-softmax, in fp32."""
    return Part(8 * z.seen, f"8·{z.of_loss}")


def inside_mlp(z: Sizes, residual: bool, normed: bool) -> Part:
    """Gradients on the way through a layer's MLP: two of its width, and that of the residual
    stream unless it stands in for an input that is counted twice; a norm after the MLP is done
    by then. Measured on whole steps, within some percent."""
    kept, formula = 2 * z.s * z.n * z.F, "2·s·n·F"
    if residual:
        kept, formula = kept + z.s * z.n * z.d, f"{formula} + s·n·d"
    if normed:
        kept, formula = kept - 8 * z.n * z.d, f"{formula} − 8·n·d"
    return Part(kept, formula)


def inside_experts(z: Sizes, k: int) -> Part:
    """The same of routed experts: gradients inside, their outputs' places free again."""
    return Part(z.s * z.n * k * (2 * z.F - z.d), "s·n·k·(2F − d)")


def inside_weighting(z: Sizes, k: int) -> Part:
    """Gradients of the experts' weighted outputs, in fp32, and of the residual stream."""
    return Part(12 * z.n * k * z.d + z.s * z.n * z.d, "12·n·k·d + s·n·d")


def inside_norm(z: Sizes) -> Part:
    """Gradients on the way through a norm: four tensors in fp32."""
    return Part(16 * z.n * z.d, "16·n·d")


def inside_norm_after(z: Sizes, residual: bool) -> Part:
    """The same of one after a sublayer, beside the residual stream's (see `inside_mlp`)."""
    if not residual:
        return inside_norm(z)
    return Part((16 + z.s) * z.n * z.d, "(16 + s)·n·d")


def scores_backward(z: Sizes, upcast: bool) -> Part:
    """Gradients of eager attention's softmax: in fp32 and in the values' own width, or all in
    the latter (GPT-2)."""
    width = 4 + z.s if upcast else 2 * z.s
    return Part(width * z.B * z.H * z.T**2, f"{width}·B·H·T²")


def scores_kept(z: Sizes, upcast: bool, capped: bool = False) -> Part:
    """What a layer's eager attention keeps of its scores: the softmax, in the values' width or
    in fp32 with its cast (`upcast`), and the tanh where they are capped."""
    width = (_softmax(z) if upcast else z.s) + (z.s if capped else 0)
    return Part(width * z.B * z.H * z.T**2, f"{width}·B·H·T²")


def scores_forward(z: Sizes, upcast: bool) -> Part:
    """Scores, their softmax and its cast, at once."""
    width = 8 if upcast else 2 * z.s
    return Part(width * z.B * z.H * z.T**2, f"{width}·B·H·T²")


def mask(z: Sizes, count: int) -> Part:
    """Eager attention's masks, one of each kind of layer, which checkpoints hold."""
    return Part(count * z.s * z.B * z.T**2, f"{count}·s·B·T²")


def stack(B: int, d: int, L: int, s: int) -> Part:
    """Inputs of each matrix and of the head, and the loss's two operands; the lecture's B·D·L
    leaves out the first and the last (CS336 2025, lecture 2)."""
    return Part(s * (B * d * (L + 1) + 2 * B), "s·(B·d·(L + 1) + 2B)")
