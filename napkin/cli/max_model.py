"""`napkin max-model`."""

from typing import Annotated

import typer

from napkin.cli.options import ASSUMPTIONS, Format, Gpus, Hardware, Output, starting_with
from napkin.cli.respond import respond
from napkin.specs import optimizers


def _precisions(incomplete: str) -> list[str]:
    return starting_with(list(optimizers.PRECISIONS), incomplete)


def _optimizers(incomplete: str) -> list[str]:
    return starting_with(list(optimizers.OPTIMIZERS), incomplete)


Precision = Annotated[
    str | None,
    typer.Option(
        metavar="RECIPE",
        autocompletion=_precisions,
        show_default=False,
        help=f"Precision of the training state: {' '.join(optimizers.PRECISIONS)} (default fp32).",
        rich_help_panel=ASSUMPTIONS,
    ),
]
Optimizer = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_optimizers,
        show_default=False,
        help=f"{' '.join(optimizers.OPTIMIZERS)} (default adamw).",
        rich_help_panel=ASSUMPTIONS,
    ),
]
BytesPerParam = Annotated[
    str | None,
    typer.Option(
        metavar="BYTES",
        help="The sum itself, instead of a precision and an optimizer: 18.",
        rich_help_panel=ASSUMPTIONS,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory of one GPU instead of the hardware's: 80GB, 80GiB, 85520809984.",
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
