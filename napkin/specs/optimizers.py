"""Training state in bytes per parameter, term by term: the one table that memory answers share.

Precisions fix the bytes of weights, gradients, a master copy and each optimizer moment;
optimizers fix how many moments there are. Measured by stepping torch 2.13's optimizers,
whose state has the parameter's dtype; ZeRO (1910.02054, section 3.1) counts the mixed
recipe's 2 + 2 + 12.
"""

from functools import cache
from typing import NamedTuple, TypeVar

from napkin.errors import NapkinError, quoted, suggestion
from napkin.record import Record


class Precision(Record):
    """Bytes per parameter of each kind of copy, `master` 0 where there is none."""

    weights: int
    gradients: int
    master: int
    moment: int


PRECISIONS = {
    "fp32": Precision(4, 4, 0, 4),
    "mixed": Precision(2, 2, 4, 4),
    "mixed-fp32-grads": Precision(2, 4, 4, 4),
    "amp": Precision(4, 4, 0, 4),
    "bf16": Precision(2, 2, 0, 2),
    "bf16-fp32-moments": Precision(2, 2, 0, 4),
}


# Of adapters on a frozen model of the recipe's weights. peft 0.21 trains them in fp32 where those
# are in bf16, unless autocast_adapter_dtype says otherwise.
ADAPTERS = {
    "mixed": Precision(4, 4, 0, 4),
    "fp32": Precision(4, 4, 0, 4),
    "bf16": Precision(2, 2, 0, 2),
    "bf16-fp32-moments": Precision(2, 2, 0, 4),
}


class Optimizer(Record):
    """The moments kept per parameter, and what a reader must know about them."""

    moments: tuple[tuple[str, str], ...]  # (symbol, label)
    moment_bytes: float | None = None  # where it does not follow the precision
    note: str = ""
    foreach: int = 1  # what a step needs beside the state: copies of all that it updates,
    loop: int = 3  # or, tensor by tensor, copies of the largest one,
    fused: bool = False  # or, in one kernel, nothing
    hidden_only: bool = False  # tables and head are stepped by another
    paged: bool = False  # its state is in the host's memory


_ADAM = (("m", "first moment"), ("v", "second moment"))

# 8-bit values and one fp32 scale per block of 256 (bitsandbytes).
_BLOCKWISE_8BIT = 1 + 4 / 256

OPTIMIZERS = {
    "adamw": Optimizer(_ADAM, fused=True),
    "adam8bit": Optimizer(
        _ADAM,
        _BLOCKWISE_8BIT,
        "8-bit moments: 1 byte and a fp32 scale per block of 256",
        foreach=0,
        loop=0,
        fused=True,
    ),
    "paged-adam8bit": Optimizer(
        _ADAM,
        _BLOCKWISE_8BIT,
        "paged: 8-bit moments in the host's memory, where the driver moves them to and fro",
        foreach=0,
        loop=0,
        fused=True,
        paged=True,
    ),
    "sgd": Optimizer((), note="plain SGD keeps no state", foreach=0, loop=0, fused=True),
    "momentum": Optimizer((("m", "momentum"),), foreach=0, loop=0, fused=True),
    "adagrad": Optimizer((("v", "sum of squares"),), foreach=2, loop=2, fused=True),
    "rmsprop": Optimizer((("v", "mean of squares"),), loop=2),
    "adafactor": Optimizer(
        (),
        note="adafactor's row and column factors depend on the shapes and are not counted: "
        "0.01 B/param on GPT-2",
        loop=2,
    ),
    "lion": Optimizer((("m", "momentum"),)),
    "muon": Optimizer(
        (("m", "momentum"),),
        note="muon updates hidden matrices; embeddings and norms stay with AdamW, at two moments",
        foreach=0,
        hidden_only=True,
    ),
}


class Term(NamedTuple):
    """One kind of copy and its bytes per parameter."""

    symbol: str
    label: str
    bytes: float


@cache
def terms(precision: Precision, optimizer: Optimizer) -> tuple[Term, ...]:
    """What stays in memory for every parameter between two training steps."""
    each = precision.moment if optimizer.moment_bytes is None else optimizer.moment_bytes
    copies = [
        Term("weights", "weights", precision.weights),
        Term("gradients", "gradients", precision.gradients),
        Term("master", "fp32 master weights", precision.master),
        *(Term(symbol, label, each) for symbol, label in optimizer.moments),
    ]
    return tuple(term for term in copies if term.bytes)


HALVES = ("fp16", "float16", "half", "16-mixed", "bf16-mixed")  # bf16 alone is a recipe


def precision(text: object) -> tuple[str, Precision]:
    """A recipe by its name. Raises NapkinError."""
    if str(text).strip().casefold() in HALVES:
        raise NapkinError(
            f"{quoted(text)} is no recipe of training precision: its training keeps fp32 weights "
            "too; write amp (torch's autocast) or mixed"
        )
    return _named(text, PRECISIONS, "recipe of training precision")


def optimizer(text: object) -> tuple[str, Optimizer]:
    """An optimizer by its name. Raises NapkinError."""
    return _named(text, OPTIMIZERS, "optimizer that napkin knows")


T = TypeVar("T")


def _named(text: object, table: dict[str, T], kind: str) -> tuple[str, T]:
    name = str(text).strip().casefold().replace("_", "-")
    if name not in table:
        hint = suggestion(name, table) or f"; write one of {' '.join(table)}"
        raise NapkinError(f"{quoted(text)} is no {kind}{hint}")
    return name, table[name]
