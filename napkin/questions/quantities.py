"""The figures of a run that options say: each by its reader, symbol, label and unit."""

from collections.abc import Callable
from typing import Any

from napkin import parsing
from napkin.accounting import run
from napkin.quantity import Quantity
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.options import Text

QUANTITIES: dict[str, tuple[Callable[[Any], float], str, str, str]] = {
    "flops": (parsing.amount, "C", "training compute", "FLOP"),
    "flops_per_param": (
        parsing.flops_per_param,
        "f/N",
        "FLOP per parameter and token",
        "FLOP/param/token",
    ),
    "tokens": (parsing.tokens, "D", "training tokens", "token"),
    "tokens_per_param": (parsing.factor, "D/N", "tokens per parameter", "token/param"),
    "epochs": (parsing.factor, "e", "epochs", "1"),
    "gpus": (parsing.gpus, "n", "GPUs", "GPU"),
    "node": (parsing.gpus, "n_node", "GPUs of a node", "GPU"),
    "time": (parsing.duration, "t", "training time", "s"),
    "within": (parsing.duration, "t", "training time", "s"),
    "gpu_hours": (parsing.gpu_hours, "h", "GPU-hours", "GPU·hour"),
    "price": (parsing.money, "p", "price", "USD/GPU/hour"),
    "budget": (parsing.budget, "cost", "budget", "USD"),
    "power": (parsing.power, "power", "power of one GPU", "W/GPU"),
    "pue": (parsing.pue, "PUE", "power of the data center over its GPUs'", "1"),
    "energy": (parsing.energy, "energy", "energy", "W·hour"),
    "mfu": (parsing.fraction, "MFU", "utilization", "%"),
    "achieved": (parsing.achieved, "A", "achieved throughput of one GPU", "FLOP/s/GPU"),
    "tokens_per_second": (
        parsing.tokens_per_second,
        "r",
        "tokens per second, all GPUs",
        "token/s",
    ),
    "tokens_per_second_per_gpu": (
        parsing.tokens_per_second_per_gpu,
        "r₁",
        "tokens per second and GPU",
        "token/s/GPU",
    ),
    "steps": (parsing.whole, "steps", "optimizer steps", "step"),
    "step_time": (parsing.duration, "t_step", "optimizer step time", "s/step"),
    "tokens_per_step": (parsing.tokens_per_step, "K", "tokens per optimizer step", "token/step"),
    "seq_len": (parsing.whole, "T", "sequence length", "token/seq"),
    "micro_batch": (parsing.whole, "b", "micro-batch of one GPU", "seq/GPU"),
    "grad_accum": (parsing.whole, "a", "gradient accumulation", "1/step"),
    "lost_time": (parsing.share, "lost", "share of the time that is lost", "%"),
    "goodput": (parsing.fraction, "goodput", "share of the time that is not lost", "%"),
}


def quantity(
    option: str, text: Text | None, usual: Text | None = None, symbol: str = "", label: str = ""
) -> Quantity:
    """The option as an input; under another symbol and label where it is not the quantity itself.

    Raises NapkinError that begins with the option's name.
    """
    parse, usually, named, unit = QUANTITIES[option]
    return options.quantity(option, text, parse, symbol or usually, label or named, unit, usual)


def goodput(lost_time: Text | None, goodput: Text | None) -> tuple[dict[str, Quantity], Inputs]:
    """The share of the time that is not lost, by symbol, and the option that says it.

    Raises NapkinError.
    """
    if lost_time is None and goodput is None:
        return {}, {}
    if lost_time is None:
        share = quantity("goodput", goodput)
        return {"goodput": share}, {"goodput": share.value}
    if goodput is not None:
        raise options.error("goodput", "--lost-time says it already; leave one out")
    lost = quantity("lost_time", lost_time)
    return {"goodput": run.goodput(lost)}, {"lost_time": lost.value}
