"""`napkin bench`."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from napkin.cli import streams
from napkin.cli.options import Format, Model, Output, SeqLen
from napkin.cli.respond import respond
from napkin.errors import NapkinError, printable

Device = Annotated[
    str | None,
    typer.Option(metavar="cuda|cuda:N|cpu", help="Default: the first GPU, else the CPU."),
]
Dtypes = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="NAME[,NAME...]",
        help="Precisions: bf16 fp16 fp32 fp64 int8, and on a GPU tf32 fp8 (default bf16).",
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        metavar="N[,N...]",
        help="Matrices of N x N; default 8192 on a GPU, what takes 20 ms on a CPU.",
    ),
]
Shape = Annotated[
    str | None, typer.Option(metavar="MxNxK[,...]", help="Any shapes: 8192x28672x8192.")
]
Scan = Annotated[
    bool,
    typer.Option("--scan", help="Several shapes; the fastest is measured again, and that counts."),
]
Warmup = Annotated[
    str | None,
    typer.Option(metavar="S", help="Calls before it counts (default 3, on a CPU 0.3)."),
]
Bandwidth = Annotated[
    bool, typer.Option("--bandwidth", help="Also the memory's: copy, triad and the ridge point.")
]
MicroBatch = Annotated[
    str | None,
    typer.Option(metavar="COUNT", help="Sequences of --model at a time (default 1)."),
]
List = Annotated[bool, typer.Option("--list", help="Show the figures on file and measure nothing.")]
Seconds = Annotated[
    str | None,
    typer.Option(metavar="S", help="How long to measure (default 3, on a CPU 1)."),
]


NoSave = Annotated[bool, typer.Option("--no-save", help="Keep no figure for the other questions.")]


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        line = printable(line)
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:{width}}", end="" if line else "\r", file=sys.stderr, flush=True)


def bench(
    dtype: Dtypes = None,
    device: Device = None,
    size: Size = None,
    shape: Shape = None,
    scan: Scan = False,
    seconds: Seconds = None,
    warmup: Warmup = None,
    bandwidth: Bandwidth = False,
    model: Model = None,
    seq_len: SeqLen = None,
    micro_batch: MicroBatch = None,
    no_save: NoSave = False,
    list: List = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """What does my GPU really do?

    One matmul on random data: warmed up, timed call by call, checked
    against fp64, set against the promised dense peak.

    napkin bench --dtype bf16
    """
    options = locals()
    with _the_first_speaks() as silent:
        if options.pop("list"):
            where = {name: options.pop(name) for name in ("format", "output")}
            if any(value not in (None, False) for value in options.values()):
                raise NapkinError("--list: measures nothing; leave the other options out")
            respond("figures", where, silent)
        else:
            with streams.interruptible():
                respond("bench", options if silent else options | {"progress": _progress}, silent)


@contextmanager
def _the_first_speaks() -> Iterator[bool]:
    """Whether this is another one of the ranks that torchrun started: the first speaks for all."""
    from napkin.questions.bench import is_another_rank

    silent = is_another_rank()
    try:
        yield silent
    except NapkinError:
        if silent:
            streams.let_the_first_speak()
        raise
