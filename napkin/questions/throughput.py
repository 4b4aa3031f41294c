"""The ways to say how fast a run goes, each into tokens per second and GPU or FLOP per second."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from napkin import parsing
from napkin.accounting import compute
from napkin.errors import NapkinError
from napkin.quantity import Quantity, coefficient
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.examples import MFU
from napkin.questions.options import Text, flag
from napkin.record import NOTHING, Record

# The option that chooses the way -> the options that go with it.
WAYS: dict[str, tuple[str, ...]] = {
    "tokens_per_second": ("gpus",),
    "tokens_per_second_per_gpu": ("gpus",),
    "step_time": (
        *("gpus", "tokens_per_step", "seq_len"),
        *("global_batch", "micro_batch", "grad_accum"),
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
    tokens: Text | None = None
    time: Text | None = None
    gpu_hours: Text | None = None
    achieved: Text | None = None
    flops: Text | None = None


class Throughput(Record):
    """r₁ in token/s/GPU, or A in FLOP/s/GPU where the rate is in FLOP/s already."""

    r1: Quantity | None = None
    A: Quantity | None = None
    h: Quantity | None = None  # of a whole run, in GPU·hour
    t: Quantity | None = None  # and its time in s
    given: tuple[str, ...] = ()  # the options that say it
    inputs: Mapping[str, Any] = NOTHING
    notes: Sequence[str] = ()


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
    return reader.rate(way).replace(
        given=tuple(asked.given), inputs=reader.inputs, notes=reader.notes
    )


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

    def rate(self, way: str) -> Throughput:
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

    def tokens_per_second(self) -> Throughput:
        label = "tokens per second, all GPUs"
        rate = self._take(
            "tokens_per_second",
            self.asked.tokens_per_second,
            parsing.tokens_per_second,
            "r",
            label,
            "token/s",
        )
        return Throughput(
            compute.token_rate_per_gpu(
                rate,
                self._gpus(
                    "--tokens-per-second counts all GPUs; or use --tokens-per-second-per-gpu"
                ),
            )
        )

    def tokens_per_second_per_gpu(self) -> Throughput:
        if self.asked.gpus is not None:
            self._gpus("")
        label = "tokens per second and GPU"
        parse = parsing.tokens_per_second_per_gpu
        return Throughput(
            self._take(
                "tokens_per_second_per_gpu",
                self.asked.tokens_per_second_per_gpu,
                parse,
                "r₁",
                label,
                "token/s/GPU",
            )
        )

    def step_time(self) -> Throughput:
        t = self._take(
            "step_time",
            self.asked.step_time,
            parsing.duration,
            "t_step",
            "optimizer step time",
            "s/step",
        )
        n = self._gpus("--step-time is the step of all GPUs")
        r = compute.step_token_rate(self._tokens_per_step(n), t)
        return Throughput(compute.token_rate_per_gpu(r, n))

    def _tokens_per_step(self, n: Quantity) -> Quantity:
        direct = self.asked.tokens_per_step is not None
        given = self.asked.given
        if direct:
            counted = ("seq_len", "global_batch", "micro_batch", "grad_accum")
            self.asked.refuse(counted, "does nothing beside --tokens-per-step")
            label = "tokens per optimizer step"
            return self._take(
                "tokens_per_step",
                self.asked.tokens_per_step,
                parsing.tokens_per_step,
                "K",
                label,
                "token/step",
            )
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
            T = self._whole("seq_len", self.asked.seq_len, "T", "sequence length", "token/seq")
        return compute.tokens_per_step(T, self._batch(n, T))

    def _batch(self, n: Quantity, T: Quantity) -> Quantity:
        if self.asked.global_batch is not None:
            if self.asked.grad_accum is not None:
                raise options.error("grad_accum", "is in --global-batch already; leave it out")
            return self._noted("global_batch", options.batch(self.asked.global_batch, T))
        b = self._whole(
            "micro_batch", self.asked.micro_batch, "b", "micro-batch of one GPU", "seq/GPU"
        )
        if self.asked.grad_accum is None:
            self.notes.append("no gradient accumulation (assumed): a step is one micro-step")
        micro_steps = 1 if self.asked.grad_accum is None else self.asked.grad_accum
        a = self._whole("grad_accum", micro_steps, "a", "gradient accumulation", "1/step")
        return compute.global_batch(b, a, n)

    def tokens(self) -> Throughput:
        D = self._take("tokens", self.asked.tokens, parsing.tokens, "D", "training tokens", "token")
        has = [option for option in ("time", "gpu_hours") if option in self.asked.given]
        if len(has) == 2:
            raise options.error("gpu_hours", "--time already says it; leave one out")
        if not has:
            raise options.error("tokens", "needs --time with --gpus, or --gpu-hours")
        if has == ["gpu_hours"]:
            if self.asked.gpus is not None:
                raise options.error("gpus", "is in --gpu-hours already; leave it out")
            h = self._take(
                "gpu_hours", self.asked.gpu_hours, parsing.per_second, "h", "GPU-hours", "GPU·hour"
            )
            return Throughput(compute.run_token_rate_per_gpu(D, h), h=h)
        t = self._take("time", self.asked.time, parsing.duration, "t", "training time", "s")
        n = self._gpus("--time is that of all GPUs")
        r1 = compute.token_rate_per_gpu(compute.token_rate(D, t), n)
        return Throughput(r1, h=compute.gpu_hours(n, t), t=t)

    def achieved(self) -> Throughput:
        if self.asked.gpus is not None:
            self._gpus("")
            self.notes.append("--achieved is the rate of one GPU, however many there are")
        label = "achieved throughput of one GPU"
        return Throughput(
            A=self._take(
                "achieved", self.asked.achieved, parsing.achieved, "A", label, "FLOP/s/GPU"
            )
        )

    def flops(self) -> Throughput:
        if self.asked.time is None:
            raise options.error("flops", "needs --time")
        F = self._take("flops", self.asked.flops, parsing.amount, "C", "model FLOP", "FLOP")
        t = self._take("time", self.asked.time, parsing.duration, "t", "time", "s")
        n = self._gpus("") if self.asked.gpus is not None else coefficient(1, "GPU")
        return Throughput(A=compute.achieved_raw(F, t, n), h=compute.gpu_hours(n, t), t=t)

    def _gpus(self, why: str) -> Quantity:
        if self.asked.gpus is None:
            raise NapkinError(f"mfu needs --gpus: {why}")
        return self._take("gpus", self.asked.gpus, parsing.gpus, "n", "GPUs", "GPU")

    def _whole(
        self, option: str, text: Text | None, symbol: str, label: str, unit: str
    ) -> Quantity:
        return self._take(option, text, parsing.whole, symbol, label, unit)

    def _take(
        self,
        option: str,
        text: Text | None,
        parse: Callable[[Any], float],
        symbol: str,
        label: str,
        unit: str,
    ) -> Quantity:
        return self._noted(option, options.quantity(option, text, parse, symbol, label, unit))

    def _noted(self, option: str, quantity: Quantity) -> Quantity:
        self.inputs[option] = quantity.value
        return quantity
