"""`napkin flops`."""

from typing import Annotated

import typer

from napkin.cli.options import Format, Model, Output, SeqLen, Tokens
from napkin.cli.respond import respond

GlobalBatch = Annotated[
    str | None,
    typer.Option(
        metavar="COUNT",
        help="Sequences per optimizer step, or '4M tokens': the FLOP of a step too.",
    ),
]
Recompute = Annotated[
    str | None,
    typer.Option(
        metavar="none|selective|full", help="What is computed twice: the attention, every block."
    ),
]
LoraRank = Annotated[
    str | None,
    typer.Option(metavar="R", help="The base frozen, adapters on every linear layer: 16."),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check", help="Build the model with transformers, count it with torch, show both."
    ),
]


def flops(
    model: Model = None,
    seq_len: SeqLen = None,
    global_batch: GlobalBatch = None,
    tokens: Tokens = None,
    recompute: Recompute = None,
    lora_rank: LoraRank = None,
    check: Check = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """What does a token of this very model cost?

    Forward and backward by part, and what every MFU convention makes of it.

    napkin flops --model llama-3-8b --seq-len 8192

    napkin flops --model llama:L=32,d=4096,H=32,kv=8,ff=14336,V=128256
    """
    respond("flops", locals())
