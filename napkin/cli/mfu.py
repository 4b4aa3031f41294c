"""`napkin mfu`."""

from typing import Annotated

import typer

from napkin.cli.options import (
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
    Sparse,
    option,
)
from napkin.cli.respond import respond

RATE, STEP, RUN, RAW = (
    "A rate",
    "or the time of a step (an optimizer step of all GPUs)",
    "or a whole run",
    "or FLOP",
)


TokensPerSecond = Annotated[
    str | None, option(RATE, "COUNT", "Tokens per second of all --gpus together.")
]
TokensPerSecondPerGpu = Annotated[
    str | None, option(RATE, "COUNT", "Tokens per second of one GPU.")
]
StepTime = Annotated[str | None, option(STEP, "TIME", "Time of one optimizer step: 0.98s, 20ms.")]
TokensPerStep = Annotated[str | None, option(STEP, "COUNT", "Tokens per optimizer step, all GPUs.")]
SeqLen = Annotated[str | None, option(STEP, "TOKENS", "Sequence length, for --model too.")]
GlobalBatch = Annotated[
    str | None, option(STEP, "COUNT", "Sequences per optimizer step, all GPUs; or '4M tokens'.")
]
MicroBatch = Annotated[str | None, option(STEP, "COUNT", "Sequences per GPU and micro-step.")]
GradAccum = Annotated[
    str | None, option(STEP, "COUNT", "Micro-steps per optimizer step (default 1).")
]
Tokens = Annotated[
    str | None,
    option(RUN, "COUNT", "Tokens trained in all.", "--tokens", "-D"),
]
Time = Annotated[str | None, option(RUN, "TIME", "Elapsed time: 30d, 13.5h.")]
GpuHours = Annotated[str | None, option(RUN, "COUNT", "GPU-hours, instead of --time and --gpus.")]
Achieved = Annotated[
    str | None, option(RAW, "RATE", "Model FLOP/s of one GPU, from a log: 400TFLOP/s.")
]
Flops = Annotated[
    str | None, option(RAW, "COUNT", "Model FLOP that --gpus (default 1) did in --time.")
]
Recompute = Annotated[
    str | None,
    typer.Option(
        metavar="full|selective|none", help="Recomputation of activations: shows HFU, leaves MFU."
    ),
]
FrozenBase = Annotated[
    bool, typer.Option("--frozen-base", help="LoRA: 4 FLOP per parameter and token, not 6.")
]


def mfu(
    params: Params = None,
    active_params: ActiveParams = None,
    model: Model = None,
    gpus: Gpus = None,
    frozen_base: FrozenBase = False,
    recompute: Recompute = None,
    convention: Convention = None,
    tokens_per_second: TokensPerSecond = None,
    tokens_per_second_per_gpu: TokensPerSecondPerGpu = None,
    step_time: StepTime = None,
    tokens_per_step: TokensPerStep = None,
    seq_len: SeqLen = None,
    global_batch: GlobalBatch = None,
    micro_batch: MicroBatch = None,
    grad_accum: GradAccum = None,
    tokens: Tokens = None,
    time: Time = None,
    gpu_hours: GpuHours = None,
    achieved: Achieved = None,
    flops: Flops = None,
    hardware: Hardware = None,
    dtype: Dtype = None,
    peak: Peak = None,
    sparse: Sparse = False,
    format: Format = None,
    output: Output = None,
) -> None:
    """What model FLOP utilization does a run reach?

    The model's own FLOP per second over the promised peak.

    napkin mfu --params 6.738e9 --tokens-per-second 9600 --gpus 1
    """
    respond("mfu", locals())
