"""Low-rank adapters on a frozen model (LoRA 2106.09685): their parameters and their FLOP.

Beside each frozen linear layer of in × out weights stand in × r and r × out.
"""

from napkin.accounting.conventions import BACKWARD, FORWARD
from napkin.accounting.transformer import PARAM
from napkin.quantity import Quantity, define


def adapters(r: Quantity, sides: Quantity) -> Quantity:
    """N_lora in param; `sides` is the sum of in + out over all linear layers."""
    return define("N_lora", "adapters", PARAM * (r * sides), "param")


def forward(N_lora: Quantity) -> Quantity:
    """f_lora in FLOP/token."""
    return define("f_lora", "adapters, forward", FORWARD * N_lora, "FLOP/token")


def first_inputs(N_first: Quantity, r: Quantity, inputs: Quantity) -> Quantity:
    """f_first in FLOP/token: gradients of the first block's input, which nothing below needs, by
    N_first weights and by the adapters beside them, whose inputs sum up to `inputs`."""
    formula = FORWARD * (N_first + PARAM * (r * inputs))
    return define("f_first", "first block's input gradient", formula, "FLOP/token")


def backward(N_mm: Quantity, f_scores: Quantity, f_lora: Quantity, f_first: Quantity) -> Quantity:
    """f_bwd in FLOP/token: no gradient of a frozen weight."""
    formula = FORWARD * N_mm + BACKWARD * f_scores + BACKWARD * f_lora - f_first
    return define("f_bwd", "backward, base frozen", formula, "FLOP/token")
