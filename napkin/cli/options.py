"""Every option, once: its names, what stands for its value, its help, its panel, and the words
that complete it. All values are text: the questions read them."""

from collections.abc import Callable, Iterable
from inspect import Parameter
from typing import Annotated, Any

import typer

from napkin.cli.commands import COMMANDS, SUBJECT
from napkin.questions.lists import ALL, CALCULATORS, LISTS
from napkin.record import Record
from napkin.render import FORMATS
from napkin.specs import optimizers, topics
from napkin.specs.conventions import CONVENTIONS, dashed
from napkin.specs.dtypes import PRECISIONS
from napkin.specs.folders import hardware_names, model_names

DASHED = [dashed(name) for name in CONVENTIONS]
RECIPES = tuple(optimizers.PRECISIONS)
# Choices whose words are few enough to stand for the value.
RECOMPUTE, ATTENTION, NORM = "none|selective|full", "flash|sdpa|eager", "upcast|fused"
STEP, ZERO, ACTIVATIONS = "foreach|fused|loop", "0|1|2|3", "measured|korthikanti"
FIT = ("micro-batch", "seq-len", "params", "gpus", "batch")
ANYWHERE, ON_GPUS = ("bf16", "fp16", "fp32", "fp64", "int8"), ("tf32", "fp8")  # what is measured

ASSUMED, OUTPUT, EXPERT, SERVING, DIVIDED = (
    *("What is assumed", "Output"),
    *("For experts", "To serve instead", "The model divided over GPUs"),
)
TUNING = "Adapters on a frozen model"
DETAIL = "A run in detail"
RATE, STEP_TIME, RUN, RAW = (
    "A rate",
    "or the time of a step (an optimizer step of all GPUs)",
    "or a whole run",
    "or FLOP",
)

Words = Iterable[str] | Callable[[], Iterable[str]]


class Option(Record):
    """An option of the command line; a switch where nothing stands for a value."""

    metavar: str
    help: str
    panel: str | None = None
    short: str = ""
    words: Words = ()
    variable: str | None = None  # of the environment
    brief: str = ""  # for a line of -h, where the first words of the help do not do
    positional: str = ""  # `one` or `several`: no option, but an argument


OPTIONS = {
    "params": Option("COUNT", "Parameters: 70e9, 70B.", short="-N"),
    "active_params": Option(
        "COUNT",
        "Active parameters of a mixture of experts: they compute, all --params take memory.",
    ),
    "model": Option(
        "MODEL",
        "A name that `napkin models` lists, a config.json or its folder, or a shape: "
        "llama:L=2,d=64,...",
        short="-m",
        words=model_names,
    ),
    "convention": Option(
        "NAME",
        f"How FLOP are counted: {' '.join(DASHED)} (default six-n).",
        ASSUMED,
        words=DASHED,
        brief="How FLOP are counted (default six-n)",
    ),
    "seq_len": Option(
        "TOKENS",
        "Sequence length (default 4096, or the model's if that is less).",
        brief="Sequence length (default 4096 or the model's)",
    ),
    "tokens": Option("COUNT", "Training tokens: 15e12, 15T.", short="-D"),
    "epochs": Option("TIMES", "Passes over --tokens: 2, 39.72.", DETAIL),
    "train-time seq_len": Option(
        "TOKENS",
        "Sequence length, for --model (default 4096, or its own if less) and --global-batch.",
        DETAIL,
    ),
    "gpus": Option("COUNT", "GPUs in all (packages): 1024, 1e3, 8xH100.", short="-g"),
    "hardware": Option(
        "NAME|FILE",
        "Accelerator: a name that `napkin hardware` lists, a driver's device name, "
        "your own YAML file, or all of them: `all` (default h100-sxm).",
        ASSUMED,
        short="-H",
        words=lambda: [*hardware_names(), ALL],
        variable="NAPKIN_HARDWARE",
        brief="Accelerator, or all (default h100-sxm)",
    ),
    "dtype": Option(
        "PRECISION",
        "Which peak: bf16 fp16 fp32 tf32 fp64 fp8 and smaller (default bf16).",
        ASSUMED,
        words=PRECISIONS,
        brief="Which peak: bf16 fp16 fp8 (default bf16)",
    ),
    "peak": Option(
        "RATE",
        "Of one GPU: '700 TFLOP/s', measured (by bench) or promised (by the datasheet, the "
        "default).",
        ASSUMED,
        words=("promised", "measured"),
        variable="NAPKIN_PEAK",
        brief="promised, measured, or a rate of your own",
    ),
    "sparse": Option("", "Take the 2:4 sparse peak, which dense training cannot reach.", ASSUMED),
    "mfu": Option(
        "SHARE",
        "Model FLOP utilization, recomputation not counted: 40%, 0.4 (default 50%).",
        ASSUMED,
        brief="Utilization (default 50%)",
    ),
    "within": Option("TIME", "How long it may take: 30d; then all but one of the others."),
    "train-time time": Option("TIME", "How long it took: 30d; the same as --within.", DETAIL),
    "train-time gpu_hours": Option(
        "COUNT", "GPU-hours, beside or instead of --gpus: 30.84M.", DETAIL
    ),
    "budget": Option("DOLLARS", "What it may cost: 2M; with --price, its GPU-hours."),
    "energy": Option("ENERGY", "Energy of the run: 2.5GWh.", DETAIL),
    "power": Option(
        "WATTS", "Mean power of one GPU, for the energy: '600 W' (default TDP).", DETAIL
    ),
    "pue": Option("FACTOR", "Power of the data center over its GPUs': 1.1 (default 1).", DETAIL),
    "train-time flops": Option(
        "COUNT", "Training compute, instead of a model or of --tokens: 3.14e23.", DETAIL
    ),
    "flops_per_param": Option(
        "FLOP", "FLOP per parameter and token: 8 with recomputation (default 6).", DETAIL
    ),
    "compute_optimal": Option("", "20 tokens a parameter (Chinchilla): finds tokens, or both."),
    "tokens_per_param": Option("COUNT", "Tokens a parameter, for --compute-optimal: 200.", DETAIL),
    "node": Option("COUNT", "GPUs of a node: whole nodes, 8.", DETAIL),
    "lost_time": Option(
        "SHARE",
        "Of the time, lost to failures, restarts, evaluation: 10%; MFU is the steps'.",
        DETAIL,
    ),
    "goodput": Option("SHARE", "The rest, instead of --lost-time: 90%.", DETAIL),
    "train-time global_batch": Option(
        "COUNT", "Sequences per optimizer step, all GPUs; or '4M tokens'.", STEP_TIME
    ),
    "steps": Option("COUNT", "Optimizer steps of the run.", STEP_TIME),
    "train-time achieved": Option("RATE", "FLOP/s of one GPU, instead of --mfu: 400TFLOP/s.", RATE),
    "price": Option("DOLLARS", "Price of a GPU-hour, for the cost: 2.50."),
    "frozen_base": Option("", "LoRA: 4 FLOP per parameter and token, not 6."),
    # The state of training, and what one GPU holds of it.
    "precision": Option(
        "RECIPE",
        f"{' '.join(RECIPES)} (default mixed); transformers' bf16=True: amp, FSDP and DeepSpeed: "
        "mixed, Megatron: mixed-fp32-grads. To serve, any precision, nf4 too.",
        ASSUMED,
        words=tuple(dict.fromkeys((*RECIPES, *PRECISIONS))),
        brief="What is kept of a parameter (default mixed)",
    ),
    "max-model precision": Option(
        "RECIPE",
        f"Precision of the training state: {' '.join(RECIPES)} (default fp32).",
        ASSUMED,
        words=RECIPES,
        brief="What is kept of a parameter (default fp32)",
    ),
    "optimizer": Option(
        "NAME",
        f"{' '.join(optimizers.OPTIMIZERS)} (default adamw).",
        ASSUMED,
        words=optimizers.OPTIMIZERS,
        brief="adamw adam8bit sgd momentum lion muon (or more)",
    ),
    "bytes_per_param": Option(
        "BYTES", "The sum itself, instead of a precision and an optimizer: 18.", ASSUMED
    ),
    "memory": Option(
        "SIZE", "Memory of one GPU instead of the hardware's: 80GB, 80GiB, 85520809984."
    ),
    "reserve": Option("SHARE", "Held back for activations, buffers and the context: 10%.", ASSUMED),
    "zero": Option(
        ZERO,
        "What the GPUs share (default 3 where there are several).",
        ASSUMED,
        brief="What GPUs share (default 3)",
    ),
    "tp": Option("COUNT", "Tensor-parallel ranks: heads, d_ff, vocabulary.", DIVIDED),
    "pp": Option("COUNT", "Pipeline stages, one forward, one backward.", DIVIDED),
    "cp": Option("COUNT", "Context-parallel ranks: tokens of a sequence.", DIVIDED),
    "ep": Option("COUNT", "Expert-parallel ranks, among the data-parallel.", DIVIDED),
    "sequence_parallel": Option("", "What --tp leaves whole is divided by tokens.", DIVIDED),
    "virtual_stages": Option("COUNT", "Of one rank of --pp, interleaved (default 1).", DIVIDED),
    "imbalance": Option(
        "TIMES", "Rows sent to the fullest rank of --ep, over the mean (default 1).", DIVIDED
    ),
    "micro_batch": Option("COUNT", "Sequences per GPU and micro-step (default 1).", ASSUMED),
    "grad_accum": Option("COUNT", "Micro-steps per optimizer step (default 1, or --pp).", EXPERT),
    "recompute": Option(RECOMPUTE, "Activation recomputation (default none).", ASSUMED),
    "attention": Option(ATTENTION, "Default flash; under a window sdpa.", EXPERT),
    "norm": Option(NORM, "Default upcast: in fp32, as transformers does.", EXPERT),
    "step": Option(STEP, "The optimizer's (default foreach).", EXPERT),
    "chunked_loss": Option("", "No logits are kept.", EXPERT),
    "bucket_view": Option(
        "", "DDP without its copy of the gradients (gradient_as_bucket_view).", EXPERT
    ),
    "activations": Option(ACTIVATIONS, "By which formula (default measured).", EXPERT),
    "fit": Option(
        "NAME",
        "The largest micro-batch, seq-len, params, (to serve) batch that fits, the fewest gpus.",
        words=FIT,
        brief="Most micro-batch, seq-len, params, batch; least gpus",
    ),
    "exit_code": Option("", "End with 3 where it does not fit, for scripts."),
    "inference": Option("", "Weights and KV cache.", SERVING),
    "double_quant": Option("", "The scales of nf4 quantised too.", SERVING),
    "context": Option("TOKENS", "Of each sequence.", SERVING),
    "batch": Option("COUNT", "Sequences at a time (default 1).", SERVING),
    # Of a token, a step, a run.
    "global_batch": Option(
        "COUNT", "Sequences per optimizer step, or '4M tokens': the FLOP of a step too."
    ),
    "flops recompute": Option(RECOMPUTE, "What is computed twice: the attention, every block."),
    "lora_rank": Option("R", "The base frozen, adapters of this rank: 16.", TUNING),
    "lora_targets": Option(
        "NAMES",
        "Beside which linear layers: q_proj,v_proj, or letters of qkvoguw (default all).",
        TUNING,
    ),
    "adapters": Option("SHARE", "Trained beside a frozen model (default 1%).", TUNING),
    "quantize": Option("nf4|int8", "The frozen linear layers, as bitsandbytes has them.", TUNING),
    "flops check": Option("", "Build the model with transformers, count it with torch, show both."),
    "mfu recompute": Option(RECOMPUTE, "Recomputation of activations: shows HFU, leaves MFU."),
    "tokens_per_second": Option("COUNT", "Tokens per second of all --gpus together.", RATE),
    "tokens_per_second_per_gpu": Option("COUNT", "Tokens per second of one GPU.", RATE),
    "step_time": Option("TIME", "Time of one optimizer step: 0.98s, 20ms.", STEP_TIME),
    "tokens_per_step": Option("COUNT", "Tokens per optimizer step, all GPUs.", STEP_TIME),
    "mfu seq_len": Option("TOKENS", "Sequence length, for --model too.", STEP_TIME),
    "mfu global_batch": Option(
        "COUNT", "Sequences per optimizer step, all GPUs; or '4M tokens'.", STEP_TIME
    ),
    "mfu micro_batch": Option("COUNT", "Sequences per GPU and micro-step.", STEP_TIME),
    "mfu grad_accum": Option("COUNT", "Micro-steps per optimizer step (default 1).", STEP_TIME),
    "mfu tokens": Option("COUNT", "Tokens trained in all.", RUN, short="-D"),
    "time": Option("TIME", "Elapsed time: 30d, 13.5h.", RUN),
    "gpu_hours": Option("COUNT", "GPU-hours, instead of --time and --gpus.", RUN),
    "achieved": Option("RATE", "Model FLOP/s of one GPU, from a log: 400TFLOP/s.", RAW),
    "flops": Option("COUNT", "Model FLOP that --gpus (default 1) did in --time.", RAW),
    # The model once more, by its place.
    SUBJECT: Option("[MODEL]", "The same as --model.", words=model_names, positional="one"),
    # Tensors, matmuls, files.
    "shapes": Option(
        "SHAPE...", "Sides, or sides by name: 49152x12288, B=8,T=2048,d=4096.", positional="several"
    ),
    "tensor dtype": Option(
        "PRECISION",
        f"{' '.join(PRECISIONS)} (default fp32).",
        words=PRECISIONS,
        brief="Of each element (default fp32)",
    ),
    "tensor double_quant": Option("", "nf4's scales quantised too: 4.127 bits."),
    "matmul shapes": Option("MxK KxN", "1024x51200 51200x51200.", positional="several"),
    "matmul time": Option("TIME", "That it took, for its MFU: 0.03s, 20ms."),
    "vocab": Option("COUNT", "Words of the vocabulary: 32000."),
    "checkpoint bandwidth": Option("RATE", "At which it is written: 2TB/s, 10GB/s."),
    "checkpoint gpus": Option("COUNT", "GPUs of the run, for what failures cost.", short="-g"),
    "mtbf": Option("GPU-HOURS", "GPU-hours from one interruption to the next (default 50,000)."),
    "restart": Option("TIME", "From an interruption to the next step (default 10min)."),
    # What is known.
    "name": Option(
        "[NAME|FILE]",
        "A model, a config.json or its folder, or a shape; none lists all.",
        words=model_names,
        positional="one",
    ),
    "dtypes name": Option(
        "[NAME]",
        "bf16, fp8_e5m2, nf4; none lists all.",
        words=PRECISIONS,
        positional="one",
    ),
    "topic": Option("[TOPIC]", "None lists all.", words=topics.names, positional="one"),
    "value": Option("NUMBER", "What becomes of it in each: 1e-8, 70000."),
    "layer": Option("", "One layer of it, operation by operation, with the sums."),
    "names": Option(
        "[NAME|FILE]...",
        "None lists all; `here` is this machine's GPU.",
        words=hardware_names,
        positional="several",
    ),
    "sources": Option("", "Who says so, figure by figure, and all that a file notes."),
    "hardware check": Option("FILE", "Name everything that is wrong with a file of yours."),
    "lint": Option("FILE", "Judge a table of device and FLOP/s (YAML, JSON, CSV), row by row."),
    # What is measured.
    "device": Option("cuda|cuda:N|cpu", "Default: the first GPU, else the CPU."),
    "bench dtype": Option(
        "NAME[,NAME...]",
        f"Precisions: {' '.join(ANYWHERE)}, and on a GPU {' '.join(ON_GPUS)} (default bf16).",
        words=(*ANYWHERE, *ON_GPUS),
    ),
    "size": Option(
        "N[,N...]", "Matrices of N x N; default 8192 on a GPU, what takes 20 ms on a CPU."
    ),
    "shape": Option("MxNxK[,...]", "Any shapes: 8192x28672x8192."),
    "scan": Option("", "Several shapes; the fastest is measured again, and that counts."),
    "seconds": Option("S", "How long to measure (default 3, on a CPU 1)."),
    "warmup": Option("S", "Calls before it counts (default 3, on a CPU 0.3)."),
    "bandwidth": Option("", "Also the memory's: copy, triad and the ridge point."),
    "bench micro_batch": Option("COUNT", "Sequences of --model at a time (default 1)."),
    "no_save": Option("", "Keep no figure for the other questions."),
    "list": Option("", "Show the figures on file and measure nothing."),
    "explain": Option("", "Every step of the working, with its reason and source.", OUTPUT),
    "format": Option("NAME", f"{' '.join(FORMATS)} (default table).", OUTPUT, "-f", FORMATS),
    "output": Option("FILE", "Write to a file; its suffix chooses the format.", OUTPUT, "-o"),
}


ASKED = Parameter("asked", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)


def of(command: str, name: str) -> Option:
    """A command's own row of that option, else the common one."""
    return OPTIONS.get(f"{command} {name}") or OPTIONS[name]


def lists(command: str) -> list[str]:
    """The options of a command that take several values."""
    if command.replace("-", "_") not in CALCULATORS:
        return []
    return [name for name in COMMANDS[command].options if name in LISTS]


def parameter(command: str, name: str) -> Parameter:
    """The option as Typer reads it off a function's signature."""
    option = of(command, name)
    more: dict[str, Any] = {"help": option.help, "rich_help_panel": option.panel}
    if option.metavar:
        complete = completing(option, name in lists(command))
        more |= {"metavar": option.metavar, "autocompletion": complete}
    if option.positional:
        info = typer.Argument(**more)
    else:
        flags = ["--" + name.replace("_", "-"), *([option.short] if option.short else [])]
        info = typer.Option(*flags, envvar=option.variable, **more)
    annotation: Any = Annotated[str | None, info]
    if option.positional == "several":
        annotation = Annotated[list[str] | None, info]
    default = None
    if not option.metavar:
        annotation, default = Annotated[bool, info], False
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def completing(option: Option, several: bool = False) -> Callable[[str], list[str]] | None:
    words = option.words or (option.metavar.split("|") if _is_choice(option.metavar) else ())
    if not words:
        return None

    def complete(incomplete: str) -> list[str]:
        known = words() if callable(words) else words
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        # A file's name that cannot be shown cannot be typed either.
        found = [word for word in known if word.startswith(last) and word.isprintable()]
        return [f"{before}{comma}{word}" for word in found]

    return complete


def _is_choice(metavar: str) -> bool:
    """`flash|eager`, but not `NAME|FILE`."""
    return "|" in metavar and metavar == metavar.lower() and ":" not in metavar
