"""`napkin hardware`."""

from typing import Annotated

import typer

from napkin.cli.options import Dtype, Format, Output, names_of_hardware
from napkin.cli.respond import respond

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME|FILE]...",
        autocompletion=names_of_hardware,
        help="None lists all; `here` is this machine's GPU.",
    ),
]
Check = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Name everything that is wrong with a file of yours."),
]
Lint = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Judge a table of device and FLOP/s (YAML, JSON, CSV), row by row.",
    ),
]


def hardware(
    names: Names = None,
    check: Check = None,
    lint: Lint = None,
    dtype: Dtype = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """What can this accelerator do, and who says so?

    No name lists all, one shows every figure with its source, several stand side by side;
    --format yaml writes the file, as a start for one of your own.

    napkin hardware h100-sxm
    """
    respond("hardware", locals())
