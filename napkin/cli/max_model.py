"""`napkin max-model`."""

from typing import Annotated

from napkin.cli.options import (
    ASSUMPTIONS,
    BytesPerParam,
    Format,
    Gpus,
    Hardware,
    Memory,
    Optimizer,
    Output,
    option,
    recipes,
)
from napkin.cli.respond import respond
from napkin.specs import optimizers

Precision = Annotated[
    str | None,
    option(
        ASSUMPTIONS,
        "RECIPE",
        f"Precision of the training state: {' '.join(optimizers.PRECISIONS)} (default fp32).",
        completing=recipes,
    ),
]
Reserve = Annotated[
    str | None,
    option(ASSUMPTIONS, "SHARE", "Held back for activations, buffers and the context: 10%."),
]


def max_model(
    gpus: Gpus = None,
    memory: Memory = None,
    hardware: Hardware = None,
    precision: Precision = None,
    optimizer: Optimizer = None,
    bytes_per_param: BytesPerParam = None,
    reserve: Reserve = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """How large a model fits into this many GPUs?

    Their memory over the bytes of training state per parameter: all of it sharded,
    activations not counted.

    napkin max-model --gpus 8
    """
    respond("max_model", locals())
