"""`napkin memory`."""

from typing import Annotated

import typer

from napkin.cli.options import (
    ASSUMPTIONS,
    BytesPerParam,
    Format,
    Gpus,
    Hardware,
    Memory,
    Model,
    Optimizer,
    Output,
    Params,
    SeqLen,
    option,
    recipes,
)
from napkin.cli.respond import respond
from napkin.specs import optimizers

EXPERT, SERVING = "For experts", "To serve instead"


Precision = Annotated[
    str | None,
    option(
        ASSUMPTIONS,
        "RECIPE",
        f"{' '.join(optimizers.PRECISIONS)} (default mixed); to serve, any precision, nf4 too.",
        completing=recipes,
    ),
]
Zero = Annotated[
    str | None,
    option(ASSUMPTIONS, "0|1|2|3", "What the GPUs share (default 3 where there are several)."),
]
MicroBatch = Annotated[
    str | None, option(ASSUMPTIONS, "COUNT", "Sequences per GPU and micro-step (default 1).")
]
GradAccum = Annotated[
    str | None, option(EXPERT, "COUNT", "Micro-steps per optimizer step (default 1).")
]
Recompute = Annotated[
    str | None,
    option(ASSUMPTIONS, "none|selective|full", "Activation recomputation (default none)."),
]
Attention = Annotated[
    str | None, option(EXPERT, "flash|sdpa|eager", "Default flash; under a window sdpa.")
]
Norm = Annotated[
    str | None, option(EXPERT, "upcast|fused", "Default upcast: in fp32, as transformers does.")
]
Step = Annotated[
    str | None, option(EXPERT, "foreach|fused|loop", "The optimizer's (default foreach).")
]
ChunkedLoss = Annotated[
    bool,
    typer.Option("--chunked-loss", help="No logits are kept.", rich_help_panel=EXPERT),
]
BucketView = Annotated[
    bool,
    typer.Option(
        "--bucket-view",
        help="DDP without its copy of the gradients (gradient_as_bucket_view).",
        rich_help_panel=EXPERT,
    ),
]
Activations = Annotated[
    str | None,
    option(EXPERT, "measured|korthikanti", "By which formula (default measured)."),
]
Fit = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The largest micro-batch, seq-len or params that fits, or the fewest gpus.",
    ),
]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="End with 3 where it does not fit, for scripts.")
]
Inference = Annotated[
    bool,
    typer.Option("--inference", help="Weights and KV cache.", rich_help_panel=SERVING),
]
Context = Annotated[str | None, option(SERVING, "TOKENS", "Of each sequence.")]
Batch = Annotated[str | None, option(SERVING, "COUNT", "Sequences at a time (default 1).")]

DoubleQuant = Annotated[
    bool,
    typer.Option(
        "--double-quant", help="The scales of nf4 quantised too.", rich_help_panel=SERVING
    ),
]


def memory(
    model: Model = None,
    params: Params = None,
    gpus: Gpus = None,
    fit: Fit = None,
    exit_code: ExitCode = False,
    hardware: Hardware = None,
    memory: Memory = None,
    precision: Precision = None,
    optimizer: Optimizer = None,
    bytes_per_param: BytesPerParam = None,
    zero: Zero = None,
    micro_batch: MicroBatch = None,
    seq_len: SeqLen = None,
    grad_accum: GradAccum = None,
    recompute: Recompute = None,
    attention: Attention = None,
    norm: Norm = None,
    step: Step = None,
    chunked_loss: ChunkedLoss = False,
    bucket_view: BucketView = False,
    activations: Activations = None,
    inference: Inference = False,
    context: Context = None,
    batch: Batch = None,
    double_quant: DoubleQuant = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """What does a training step keep on one GPU, and does it fit?

    By kind and phase by phase, the peak named.

    napkin memory --model llama-3-8b --gpus 8 --seq-len 8192
    """
    respond("memory", locals())
