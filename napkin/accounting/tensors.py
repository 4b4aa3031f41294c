"""Elements and bytes of tensors; the roofline of a matmul."""

from collections.abc import Sequence
from functools import reduce
from operator import add, mul

from napkin.accounting.compute import MULTIPLY_ADD
from napkin.quantity import Quantity, coefficient, define, maximum

ONE = coefficient(1, "GPU")


def elements(symbol: str, label: str, sides: Sequence[Quantity]) -> Quantity:
    """Of one tensor: the product of its sides."""
    return define(symbol, label, reduce(mul, sides), "1")


def bytes_of(symbol: str, label: str, count: Quantity, s: Quantity) -> Quantity:
    """In B, of s bytes an element."""
    return define(symbol, label, count * s, "B")


def together(symbol: str, label: str, parts: Sequence[Quantity], unit: str) -> Quantity:
    """The sum over several tensors."""
    return define(symbol, label, reduce(add, parts), unit)


def moved(m: Quantity, k: Quantity, n: Quantity, s: Quantity) -> Quantity:
    """Q in B: both operands are read once and the product is written once, s bytes an element."""
    e = define("e", "elements moved", m * k + k * n + m * n, "1")
    return define("Q", "bytes moved", s * e, "B")


def intensity(C: Quantity, Q: Quantity) -> Quantity:
    """I in FLOP/B (Williams et al., "Roofline", 2009)."""
    return define("I", "arithmetic intensity", C / Q, "FLOP/B")


def computing(C: Quantity, P: Quantity) -> Quantity:
    """t_C in s, at the peak."""
    return define("t_C", "at the peak", C / (ONE * P), "s")


def moving(Q: Quantity, BW: Quantity) -> Quantity:
    """t_Q in s, at the memory's bandwidth."""
    return define("t_Q", "at the memory's bandwidth", Q / (ONE * BW), "s")


def roofline(t_C: Quantity, t_Q: Quantity) -> Quantity:
    """t in s, which no kernel can beat: moving overlaps computing at best."""
    return define("t", "the longer of both", maximum(t_C, t_Q), "s")


def utilization(C: Quantity, t: Quantity, P: Quantity) -> Quantity:
    """MFU of a matmul that took t: the share of the peak."""
    return define("MFU", "share of the peak", C / t / (ONE * P), "%")


def least_rows(k: Quantity, n: Quantity, s: Quantity, I_P: Quantity) -> Quantity:
    """m from which 2·m·k·n FLOP over s·(m·k + k·n + m·n) bytes reach the ridge point.

    Negative or without a bound where they never do.
    """
    formula = I_P * s * k * n / (MULTIPLY_ADD * k * n - I_P * s * (k + n))
    return define("m_I", "rows that reach the ridge point", formula, "1")


def on_measured(C: Quantity, t_Q: Quantity, P_here: Quantity) -> Quantity:
    """t_here in s, at the rate that was measured on this device."""
    return define("t_here", "on the measured peak", maximum(C / (ONE * P_here), t_Q), "s")


def of_measured(C: Quantity, t: Quantity, P_here: Quantity) -> Quantity:
    """The share of the measured rate."""
    return define("MFU_here", "share of the measured peak", C / t / (ONE * P_here), "%")
