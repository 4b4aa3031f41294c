"""The ways to say how fast a run goes, each into tokens per second and GPU or FLOP per second."""

from collections.abc import Mapping, Sequence
from typing import Any

from napkin.accounting import compute
from napkin.errors import NapkinError
from napkin.quantity import Quantity, coefficient
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.examples import MFU
from napkin.questions.options import Text, flag
from napkin.questions.quantities import quantity
from napkin.record import NOTHING, Record

# The option that chooses the way -> the options that go with it.
WAYS: dict[str, tuple[str, ...]] = {
    "tokens_per_second": ("gpus",),
    "tokens_per_second_per_gpu": ("gpus",),
    "step_time": (
        *("gpus", "tokens_per_step", "seq_len"),
        *("global_batch", "micro_batch", "grad_accum", "steps"),
    ),
    "tokens": ("time", "gpu_hours", "gpus"),
    "achieved": ("gpus",),
    "flops": ("time", "gpus"),
}

# The inputs of every way.
COLUMNS = tuple(dict.fromkeys((*WAYS, *(each for beside in WAYS.values() for each in beside))))


class Settings(options.Settings):
    """The options of all ways; no `seq_len` where the model's is read already."""

    gpus: Text | None = None
    tokens_per_second: Text | None = None
    tokens_per_second_per_gpu: Text | None = None
    step_time: Text | None = None
    tokens_per_step: Text | None = None
    seq_len: Text | None = None
    global_batch: Text | None = None
    micro_batch: Text | None = None
    grad_accum: Text | None = None
    steps: Text | None = None
    tokens: Text | None = None
    time: Text | None = None
    gpu_hours: Text | None = None
    achieved: Text | None = None
    flops: Text | None = None


class Throughput(Record):
    """What is known of the rate, by symbol."""

    known: Mapping[str, Quantity]
    given: tuple[str, ...] = ()  # the options that say it
    inputs: Mapping[str, Any] = NOTHING
    notes: Sequence[str] = ()

    @property
    def of_run(self) -> bool:
        """Whether it is that of a whole run, by its tokens."""
        return "D" in self.known

    @property
    def counted(self) -> bool:
        """Whether it is in FLOP already."""
        return "A" in self.known or "C" in self.known


def read(asked: Settings, T: Quantity | None = None) -> Throughput:
    """The one way that the settings take; T where --seq-len is read already, for the model.

    Raises NapkinError for none, two, or leftovers.
    """
    chosen = [way for way in WAYS if way in asked.given]
    if len(chosen) != 1:
        raise NapkinError(_not_one(chosen))
    way = chosen[0]
    leftovers = set(asked.given) - {way, *WAYS[way]}
    asked.refuse(leftovers, f"does nothing beside {flag(way)}; leave it out")
    reader = _Reader(asked, T)
    known = reader.rate(way)
    return Throughput(known, tuple(asked.given), reader.inputs, reader.notes)


def _not_one(chosen: list[str]) -> str:
    if chosen:
        return f"{' and '.join(map(flag, chosen))} say the same thing twice; leave one out"
    return f"mfu needs a rate, one of {', '.join(map(flag, WAYS))}, as in: {MFU}"


class _Reader:
    """One method per way; each option that is read becomes an input of the answer."""

    def __init__(self, asked: Settings, T: Quantity | None) -> None:
        self.asked, self.T = asked, T
        self.inputs: Inputs = {}
        self.notes: list[str] = []

    def rate(self, way: str) -> dict[str, Quantity]:
        """By the method of that name."""
        methods = (
            self.tokens_per_second,
            self.tokens_per_second_per_gpu,
            self.step_time,
            self.tokens,
            self.achieved,
            self.flops,
        )
        return next(method for method in methods if method.__name__ == way)()

    def tokens_per_second(self) -> dict[str, Quantity]:
        why = "--tokens-per-second counts all GPUs; or use --tokens-per-second-per-gpu"
        return {"r": self._take("tokens_per_second"), "n": self._gpus(why)}

    def tokens_per_second_per_gpu(self) -> dict[str, Quantity]:
        if self.asked.gpus is not None:
            self._gpus("")
        return {"r₁": self._take("tokens_per_second_per_gpu")}

    def step_time(self) -> dict[str, Quantity]:
        t = self._take("step_time")
        n = self._gpus("--step-time is the step of all GPUs")
        known = {"K": self._tokens_per_step(n), "t_step": t, "n": n}
        return known if self.asked.steps is None else known | {"steps": self._take("steps")}

    def _tokens_per_step(self, n: Quantity) -> Quantity:
        direct = self.asked.tokens_per_step is not None
        given = self.asked.given
        if direct:
            counted = ("seq_len", "global_batch", "micro_batch", "grad_accum")
            self.asked.refuse(counted, "does nothing beside --tokens-per-step")
            return self._take("tokens_per_step")
        if {"global_batch", "micro_batch"} <= set(given):
            raise options.error("micro_batch", "--global-batch already says it; leave one out")
        has_length = "seq_len" in given or self.T is not None
        if not has_length or not {"global_batch", "micro_batch"} & set(given):
            raise options.error(
                "step_time",
                "needs --tokens-per-step, or --seq-len with --global-batch, "
                "or --seq-len with --micro-batch (and --grad-accum)",
            )
        T = self.T
        if T is None:
            T = self._take("seq_len")
        return compute.tokens_per_step(T, self._batch(n, T))

    def _batch(self, n: Quantity, T: Quantity) -> Quantity:
        if self.asked.global_batch is not None:
            if self.asked.grad_accum is not None:
                raise options.error("grad_accum", "is in --global-batch already; leave it out")
            return self._noted("global_batch", options.batch(self.asked.global_batch, T))
        b = self._take("micro_batch")
        if self.asked.grad_accum is None:
            self.notes.append("no gradient accumulation (assumed): a step is one micro-step")
        return compute.global_batch(b, self._take("grad_accum", usual=1), n)

    def tokens(self) -> dict[str, Quantity]:
        D = self._take("tokens")
        has = [option for option in ("time", "gpu_hours") if option in self.asked.given]
        if len(has) == 2:
            raise options.error("gpu_hours", "--time already says it; leave one out")
        if not has:
            raise options.error("tokens", "needs --time with --gpus, or --gpu-hours")
        if has == ["gpu_hours"]:
            if self.asked.gpus is not None:
                raise options.error("gpus", "is in --gpu-hours already; leave it out")
            return {"D": D, "h": self._take("gpu_hours")}
        return {"D": D, "t": self._take("time"), "n": self._gpus("--time is that of all GPUs")}

    def achieved(self) -> dict[str, Quantity]:
        if self.asked.gpus is not None:
            self._gpus("")
            self.notes.append("--achieved is the rate of one GPU, however many there are")
        return {"A": self._take("achieved")}

    def flops(self) -> dict[str, Quantity]:
        if self.asked.time is None:
            raise options.error("flops", "needs --time")
        n = self._gpus("") if self.asked.gpus is not None else coefficient(1, "GPU")
        return {"C": self._take("flops"), "t": self._take("time"), "n": n}

    def _gpus(self, why: str) -> Quantity:
        if self.asked.gpus is None:
            raise NapkinError(f"mfu needs --gpus: {why}")
        return self._take("gpus")

    def _take(self, option: str, usual: Text | None = None) -> Quantity:
        return self._noted(option, quantity(option, getattr(self.asked, option), usual))

    def _noted(self, option: str, one: Quantity) -> Quantity:
        self.inputs[option] = one.value
        return one
