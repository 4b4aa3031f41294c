"""`napkin bench`."""

import shutil
import sys
from typing import Annotated

import typer

from napkin.cli.options import Dtype, Format, Output
from napkin.cli.respond import respond

Device = Annotated[
    str | None,
    typer.Option(metavar="cuda|cuda:N|cpu", help="Default: the first GPU, else the CPU."),
]
Size = Annotated[
    str | None,
    typer.Option(
        metavar="N[,N...]",
        help="Matrices of N x N; default 8192 on a GPU, what takes 20 ms on a CPU.",
    ),
]
Seconds = Annotated[
    str | None,
    typer.Option(
        metavar="S", show_default=False, help="How long to measure (default 3, on a CPU 1)."
    ),
]


NoSave = Annotated[bool, typer.Option("--no-save", help="Keep no figure for the other questions.")]


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:{width}}", end="" if line else "\r", file=sys.stderr, flush=True)


def bench(
    dtype: Dtype = None,
    device: Device = None,
    size: Size = None,
    seconds: Seconds = None,
    no_save: NoSave = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """What does my GPU really do?

    One matmul on random data: warmed up, timed call by call, checked against fp64,
    set against the promised dense peak.

    napkin bench --dtype bf16
    """
    respond("bench", locals() | {"progress": _progress})
