"""`napkin hardware`."""

from typing import Annotated

import typer

from napkin.cli.options import Format, Output, names_of_hardware
from napkin.cli.respond import respond

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME|FILE]...", autocompletion=names_of_hardware, help="None lists all."
    ),
]


def hardware(names: Names = None, format: Format = None, output: Output = None) -> None:
    """What can this accelerator do, and who says so?

    No name lists all, one shows every figure with its source, several stand side by side.

    napkin hardware h100-sxm
    """
    respond("hardware", locals())
