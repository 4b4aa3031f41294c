"""FLOP, rates and utilization: what accounting.run relates, in its parts and in other units.

N parameters (active ones for a mixture of experts), D tokens, n GPUs, P peak per GPU.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add

from napkin.quantity import Quantity, coefficient, define

TRAINING = coefficient(6, "FLOP/param/token", "6 = 2 forward + 4 backward")
FROZEN_BASE = coefficient(4, "FLOP/param/token", "4 = 2 forward + 2 input gradients")
SECOND_FORWARD = coefficient(8, "1", "8 = 6 + 2 for a second forward") / coefficient(6)
SECOND_FORWARD_FROZEN = coefficient(6, "1", "6 = 4 + 2 for a second forward") / coefficient(4)
MULTIPLY_ADD = coefficient(2, "FLOP", "2 = 1 multiply + 1 add")
PASSES = coefficient(3, "1", "3 = forward + 2 gradients")
PFS_DAY = coefficient(86_400 * 10**15, "FLOP/pfs-day", "1e15 FLOP/s for 86,400 s")
TOKENS_PER_PARAM = coefficient(20, "token/param", "20 = Chinchilla's")
SECONDS_PER_HOUR = coefficient(3600, "s/hour")
USES = {2: "2 = 1 read + 1 written", 3: "3 = 2 read + 1 written"}


def time_at_measured(t: Quantity, P: Quantity, P_here: Quantity) -> Quantity:
    """t_here in s, at the same share of the peak that was measured on this device."""
    return define("t_here", "training time on the measured peak", t * P / P_here, "s")


def mfu_at_measured(MFU: Quantity, P: Quantity, P_here: Quantity) -> Quantity:
    """MFU_here: that share as an MFU, which is over the promised peak."""
    return define("MFU_here", "MFU at that share of the measured", MFU * P_here / P, "%")


def mfu_of_measured(A: Quantity, P_here: Quantity) -> Quantity:
    """MFU_here: the share of what was measured on this device, no MFU that others could compare."""
    return define("MFU_here", "share of the measured peak", A / P_here, "%")


def petaflop_s_days(C: Quantity) -> Quantity:
    """C in petaflop/s-days, the unit of OpenAI's "AI and Compute"."""
    return define("C_pfs", "petaflop/s-days", C / PFS_DAY, "pfs-day")


def flop_per_token(N: Quantity, each: Quantity = TRAINING) -> Quantity:
    """f in FLOP/token. A frozen base (LoRA) has no weight gradients: 4·N."""
    return define("f", "model FLOP per token", each * N, "FLOP/token")


def hfu(MFU: Quantity, frozen_base: bool = False) -> Quantity:
    """HFU with full activation recomputation: the hardware runs the forward pass twice,
    8·N for 6·N (Narayanan et al. 2104.04473, section 3.5). MFU stays as it is."""
    again = SECOND_FORWARD_FROZEN if frozen_base else SECOND_FORWARD
    return define("HFU", "hardware FLOP utilization", MFU * again, "%")


def hfu_of(f: Quantity, again: Quantity, r1: Quantity, P: Quantity) -> Quantity:
    """HFU of f and of what is recomputed, both in FLOP/token."""
    f_hw = define("f_hw", "FLOP per token that are computed", f + again, "FLOP/token")
    return define("HFU", "hardware FLOP utilization", f_hw * r1 / P, "%")


def tokens_per_step(T: Quantity, batch: Quantity) -> Quantity:
    """K in token/step, of `batch` sequences per optimizer step over all GPUs."""
    return define("K", "tokens per optimizer step", T * batch, "token/step")


def global_batch(b: Quantity, a: Quantity, n: Quantity) -> Quantity:
    """G in seq/step: b sequences per GPU and micro-step, a micro-steps, n GPUs."""
    return define("B_all", "global batch", b * a * n, "seq/step")


def matmul(m: Quantity, n: Quantity, k: Quantity) -> Quantity:
    """F in FLOP of (m × k) by (k × n)."""
    return define("C", "FLOP of one matmul", MULTIPLY_ADD * m * n * k, "FLOP")


def linear_flop(
    symbol: str, name: str, count: Quantity, m: Quantity, n: Quantity, k: Quantity
) -> Quantity:
    """FLOP of a linear layer of k × n weights on m rows, forward and both gradients."""
    formula = count * PASSES * (MULTIPLY_ADD * m * n * k)
    return define(symbol, f"{name}, FLOP", formula, "FLOP")


def linear_time(symbol: str, name: str, count: Quantity, times: Sequence[Quantity]) -> Quantity:
    """Time in s of the same three matmuls."""
    return define(symbol, f"{name}, time", count * reduce(add, times), "s")


def rate_of_all(F: Sequence[Quantity], t: Sequence[Quantity]) -> Quantity:
    """R in FLOP/s: all FLOP over all time, the FLOP-weighted harmonic mean of the rates."""
    F_all = define("C", "FLOP of all", reduce(add, F), "FLOP")
    t_all = define("t", "time of all", reduce(add, t), "s")
    return define("R", "rate of all together", F_all / t_all, "FLOP/s")


def rate(F: Quantity, t: Quantity) -> Quantity:
    """R in FLOP/s, of F FLOP in t on one device."""
    return define("R", "measured throughput", F / t, "FLOP/s")


def ratio(R: Quantity, P: Quantity) -> Quantity:
    """The share of the promised peak that was measured."""
    return define("R/P", "share of the promised peak", R / P, "%")


def ridge(R: Quantity, W: Quantity) -> Quantity:
    """I in FLOP/B: work of fewer FLOP per byte waits for the memory (Williams et al., "Roofline",
    2009). R in FLOP/s, W in B/s."""
    return define("I", "ridge point", R / W, "FLOP/B")


def promised_ridge(P: Quantity, W_P: Quantity) -> Quantity:
    """I_P in FLOP/B, of what the datasheet promises."""
    return define("I_P", "promised ridge point", P / W_P, "FLOP/B")


def moved(array: Quantity, arrays: int) -> Quantity:
    """Q in B: every array of a call once, read or written (STREAM's count)."""
    return define(
        "Q", "bytes moved by one call", coefficient(arrays, "1", USES[arrays]) * array, "B"
    )


def bandwidth(Q: Quantity, t: Quantity) -> Quantity:
    """W in B/s."""
    return define("BW", "measured memory bandwidth", Q / t, "B/s")


def share_of_bandwidth(W: Quantity, W_P: Quantity) -> Quantity:
    """The share of the promised bandwidth that was measured."""
    return define("BW/BW_P", "share of the promised bandwidth", W / W_P, "%")
