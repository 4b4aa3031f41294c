"""The table of commands: what each answers, and its options; no question is loaded to list them."""

from napkin.questions import examples
from napkin.record import Record

ASK, CLOSER, KNOWN, MEASURE = "Ask", "Look closer", "What is known", "Measure"
PEAK = ("hardware", "dtype", "peak", "sparse")
SUBJECT = "subject"  # a model by its place, of commands that have --model
WRITTEN = ("explain", "format", "output")


class Entry(Record):
    """One command."""

    panel: str
    line: str
    about: str
    examples: tuple[str, ...]
    options: tuple[str, ...]  # those of its question, in the order of help


COMMANDS = {
    "train-time": Entry(
        ASK,
        "How long does a training run take, and what does it cost?",
        "6 FLOP per parameter and token, over GPUs x peak x MFU.",
        (examples.TRAIN_TIME,),
        (
            *("params", "tokens", "gpus", "within", "price", "budget", "model", "active_params"),
            *("compute_optimal", "mfu", *PEAK, "convention"),
            *("time", "gpu_hours", "flops", "seq_len", "epochs", "node", "lost_time", "goodput"),
            *("flops_per_param", "tokens_per_param", "energy", "power", "pue"),
            *("achieved", "tokens_per_second", "tokens_per_second_per_gpu"),
            *("steps", "step_time", "tokens_per_step", "global_batch"),
        ),
    ),
    "max-model": Entry(
        ASK,
        "How large a model fits into this many GPUs?",
        "Their memory over the bytes of training state per parameter: all of it sharded,\n"
        "activations not counted.",
        (examples.MAX_MODEL,),
        (
            *("gpus", "memory", "hardware", "precision", "optimizer", "bytes_per_param"),
            *("adapters", "quantize", "reserve"),
        ),
    ),
    "mfu": Entry(
        ASK,
        "What model FLOP utilization does a run reach?",
        "The model's own FLOP per second over the promised peak.",
        (examples.MFU,),
        (
            *("params", "active_params", "model", "gpus", "frozen_base", "recompute"),
            *(
                "lora_rank",
                "lora_targets",
                "convention",
                "tokens_per_second",
                "tokens_per_second_per_gpu",
                "step_time",
            ),
            *("tokens_per_step", "seq_len", "global_batch", "micro_batch", "grad_accum"),
            *("tokens", "time", "gpu_hours", "achieved", "flops", *PEAK),
            *("steps", "lost_time", "goodput", "flops_per_param"),
        ),
    ),
    "memory": Entry(
        ASK,
        "What does a training step keep on one GPU, and does it fit?",
        "By kind and phase by phase, the peak named.",
        (examples.MEMORY,),
        (
            *(SUBJECT, "model", "params", "gpus", "fit", "exit_code", "hardware", "memory"),
            *("precision", "optimizer", "bytes_per_param", "zero", "micro_batch", "seq_len"),
            *("lora_rank", "lora_targets", "quantize"),
            *("grad_accum", "tp", "pp", "cp", "ep"),
            *("recompute", "attention", "norm", "step", "chunked_loss", "bucket_view"),
            *("activations", "sequence_parallel", "virtual_stages", "imbalance"),
            *("inference", "context", "batch", "double_quant"),
        ),
    ),
    "flops": Entry(
        CLOSER,
        "What does a token of this very model cost, by every convention?",
        "Forward and backward by part, and what every MFU convention makes of it.",
        (examples.FLOPS, "napkin flops --model llama:L=32,d=4096,H=32,kv=8,ff=14336,V=128256"),
        (
            *(SUBJECT, "model", "seq_len", "global_batch", "tokens", "recompute"),
            *("lora_rank", "lora_targets", "check"),
        ),
    ),
    "tensor": Entry(
        CLOSER,
        "How many elements and bytes does a tensor have?",
        "By its sides, or by names: B=8,T=2048,d=4096; several add up.",
        (examples.TENSOR, "napkin tensor B=8,T=2048,d=4096 d=4096,V=128256"),
        ("shapes", "dtype", "double_quant"),
    ),
    "matmul": Entry(
        CLOSER,
        "What does a matmul cost, and what binds it: the peak or the memory?",
        "2 m k n FLOP over the peak against every operand once over the memory bandwidth.",
        (examples.MATMUL,),
        ("shapes", "time", *PEAK),
    ),
    "data": Entry(
        CLOSER,
        "How many bytes are the tokens of a training set?",
        "Two bytes a token up to 65,536 words, four beyond.",
        (examples.DATA,),
        ("tokens", "vocab", "model"),
    ),
    "checkpoint": Entry(
        CLOSER,
        "How large is a checkpoint, how often to save one, and what do failures cost?",
        "Weights, master weights and moments; the interval by Young and Daly.",
        (examples.CHECKPOINT,),
        (
            *(SUBJECT, "model", "params", "precision", "optimizer", "bandwidth"),
            *("gpus", "mtbf", "restart"),
        ),
    ),
    "models": Entry(
        KNOWN,
        "How many parameters does a model have, and where?",
        "Counted from its config.json, part by part.",
        (examples.MODELS,),
        ("name", "layer"),
    ),
    "hardware": Entry(
        KNOWN,
        "What can this accelerator do, and who says so?",
        "No name lists all, one shows every figure with its source, several stand side by side;\n"
        "--format yaml writes the file, as a start for one of your own.",
        (examples.HARDWARE,),
        ("names", "sources", "check", "lint", "dtype"),
    ),
    "dtypes": Entry(
        KNOWN,
        "How wide, how far, how fine is a number format, and who computes in it?",
        "Exact; no name lists all.",
        (examples.DTYPES,),
        ("name", "value"),
    ),
    "explain": Entry(
        KNOWN,
        "Why is it so? The reasons, in plain words.",
        "No topic lists all.",
        (examples.EXPLAIN,),
        ("topic",),
    ),
    "bench": Entry(
        MEASURE,
        "What does my GPU really do?",
        "One matmul on random data: warmed up, timed call by call, checked\n"
        "against fp64, set against the promised dense peak.",
        (examples.BENCH,),
        (
            *("dtype", "device", "size", "shape", "scan", "seconds", "warmup", "bandwidth"),
            *("model", "seq_len", "micro_batch", "no_save", "list"),
        ),
    ),
}

# What a bare `napkin` shows: what is asked, in the order in which people ask.
ASKED = {
    "train-time": "how long, how much",
    "max-model": "how large a model",
    "bench": "my own GPU",
    "memory": "does it fit",
    "mfu": "how well does it run",
    "flops": "FLOP of a model",
}


def screen(version: str) -> str:
    """What a bare `napkin` and its -h print."""
    lines = [f"napkin {version}: what training an LLM costs, working shown", ""]
    for name, question in ASKED.items():
        lines += [question, f"  {COMMANDS[name].examples[0]}"]
    return "\n".join(
        [
            *lines,
            _rest("a closer look", CLOSER),
            _rest("what is known", KNOWN),
            "",
            "numbers: 70B 15T 80GB 50% 30d 2.50 · lists: --gpus 8,16",
            "help: COMMAND -h in short, --help in full",
            "output: --explain · -f json|csv|markdown · -o answer.svg",
            "tab completion: napkin --install-completion",
        ]
    )


def _rest(title: str, panel: str) -> str:
    """Those that are not asked above."""
    names = [name for name in COMMANDS if name not in ASKED and COMMANDS[name].panel == panel]
    return f"{title}: napkin {' | '.join(names)}"
