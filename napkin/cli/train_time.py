"""`napkin train-time`."""

from typing import Annotated

import typer

from napkin.cli.options import (
    ASSUMPTIONS,
    ActiveParams,
    Convention,
    Dtype,
    Format,
    Gpus,
    Hardware,
    Model,
    Output,
    Params,
    Peak,
    SeqLen,
    Sparse,
    Tokens,
    option,
)
from napkin.cli.respond import respond

Epochs = Annotated[
    str | None,
    typer.Option(metavar="TIMES", help="Passes over --tokens: 2, 39.72."),
]
Mfu = Annotated[
    str | None,
    option(
        ASSUMPTIONS,
        "SHARE",
        "Model FLOP utilization, recomputation not counted: 40%, 0.4 (default 50%).",
    ),
]
Price = Annotated[
    str | None,
    typer.Option(metavar="DOLLARS", help="Price of a GPU-hour, for the cost: 2.50."),
]


def train_time(
    params: Params = None,
    tokens: Tokens = None,
    gpus: Gpus = None,
    active_params: ActiveParams = None,
    model: Model = None,
    seq_len: SeqLen = None,
    epochs: Epochs = None,
    price: Price = None,
    hardware: Hardware = None,
    dtype: Dtype = None,
    peak: Peak = None,
    sparse: Sparse = False,
    mfu: Mfu = None,
    convention: Convention = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """How long does a training run take, and what does it cost?

    6 FLOP per parameter and token, over GPUs x peak x MFU.

    napkin train-time --params 70e9 --tokens 15e12 --gpus 1024
    """
    respond("train_time", locals())
