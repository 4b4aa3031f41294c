"""The model and its training state as inputs: N, and the bytes that each parameter keeps."""

from napkin import parsing
from napkin.accounting import memory
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.options import Text
from napkin.specs import optimizers
from napkin.specs.optimizers import Optimizer, Precision


def parameters(params: Text | None, active_params: Text | None) -> tuple[Quantity, Quantity]:
    """N and the parameters that compute: all of them, or a mixture of experts' active ones."""
    N = options.quantity("params", params, parsing.count, "N", "parameters", "param")
    if active_params is None:
        return N, N
    active = options.quantity(
        "active_params", active_params, parsing.count, "N_act", "active parameters", "param"
    )
    if active.value > N.value:
        raise options.error("active_params", f"{active} are more than the {N} there are")
    return N, active


def sum_given(text: Text) -> Quantity:
    """s in B/param as --bytes-per-param says it."""
    label = "training state per parameter"
    return options.quantity("bytes_per_param", text, parsing.bytes_per_param, "s", label, "B/param")


def bytes_per_param(precision: Precision, optimizer: Optimizer, source: str) -> Quantity:
    """s in B/param, the sum of the recipe's terms."""
    terms = optimizers.terms(precision, optimizer)
    return memory.bytes_per_param([given(*term, "B/param", source) for term in terms])
