"""`napkin max-model`."""

from typing import Annotated

import typer

from napkin.cli.options import (
    ASSUMPTIONS,
    BytesPerParam,
    Format,
    Gpus,
    Hardware,
    Memory,
    Optimizer,
    Output,
    recipes,
)
from napkin.cli.respond import respond
from napkin.specs import optimizers

Precision = Annotated[
    str | None,
    typer.Option(
        metavar="RECIPE",
        autocompletion=recipes,
        show_default=False,
        help=f"Precision of the training state: {' '.join(optimizers.PRECISIONS)} (default fp32).",
        rich_help_panel=ASSUMPTIONS,
    ),
]
Reserve = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Held back for activations, buffers and the context: 10%.",
        rich_help_panel=ASSUMPTIONS,
    ),
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
