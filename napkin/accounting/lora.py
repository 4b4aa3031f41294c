"""Low-rank adapters on a frozen model (LoRA 2106.09685): their parameters and their FLOP.

Every linear layer of every block has a pair: in × r and r × out, beside the frozen in × out.
"""

from napkin.accounting.conventions import BACKWARD, FORWARD
from napkin.quantity import Quantity, coefficient, define

PARAM = coefficient(1, "param")
FOUR = coefficient(2, "1", "2 = query + output")
KEY_VALUE = coefficient(2, "1", "2 = key + value")
THREE_INPUTS = coefficient(3, "1", "3 = query, key and value")


def adapters(
    L: Quantity,
    r: Quantity,
    d: Quantity,
    H: Quantity,
    H_kv: Quantity,
    hd: Quantity,
    F: Quantity,
    matrices: Quantity,
) -> Quantity:
    """N_lora in param; `matrices` of the MLP."""
    sides = FOUR * (d + H * hd) + KEY_VALUE * (d + H_kv * hd) + matrices * (d + F)
    return define("N_lora", "adapters", PARAM * (L * r * sides), "param")


def forward(N_lora: Quantity) -> Quantity:
    """f_lora in FLOP/token."""
    return define("f_lora", "adapters, forward", FORWARD * N_lora, "FLOP/token")


def first_inputs(d: Quantity, H: Quantity, H_kv: Quantity, hd: Quantity, r: Quantity) -> Quantity:
    """f_first in FLOP/token: gradients of the first block's input, which nothing below needs."""
    weights = d * H * hd + KEY_VALUE * d * H_kv * hd + THREE_INPUTS * d * r
    formula = FORWARD * (PARAM * weights)
    return define("f_first", "first block's input gradient", formula, "FLOP/token")


def backward(N_mm: Quantity, f_scores: Quantity, f_lora: Quantity, f_first: Quantity) -> Quantity:
    """f_bwd in FLOP/token: no gradient of a frozen weight."""
    formula = FORWARD * N_mm + BACKWARD * f_scores + BACKWARD * f_lora - f_first
    return define("f_bwd", "backward, base frozen", formula, "FLOP/token")
