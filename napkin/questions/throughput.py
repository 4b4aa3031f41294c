"""The ways to say how fast a run goes, each into tokens per second and GPU or FLOP per second."""

from collections.abc import Mapping, Sequence
from typing import Any

from napkin import parsing
from napkin.accounting import compute
from napkin.errors import NapkinError
from napkin.quantity import Quantity, coefficient
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.examples import MFU
from napkin.questions.options import flag
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

Given = dict[str, Any]


class Throughput(Record):
    """r₁ in token/s/GPU, or A in FLOP/s/GPU where the rate is in FLOP/s already."""

    r1: Quantity | None = None
    A: Quantity | None = None
    given: tuple[str, ...] = ()  # the options that say it
    inputs: Mapping[str, Any] = NOTHING
    notes: Sequence[str] = ()


def read(settings: Given, T: Quantity | None = None) -> Throughput:
    """The one way that the settings take; T where --seq-len is read already, for the model.

    Raises NapkinError for none, two, or leftovers.
    """
    asked = {option: text for option, text in settings.items() if text is not None}
    chosen = [way for way in WAYS if way in asked]
    if len(chosen) != 1:
        raise NapkinError(_not_one(chosen))
    way = chosen[0]
    for option in asked:
        if option != way and option not in WAYS[way]:
            raise options.error(option, f"does nothing beside {flag(way)}; leave it out")
    reader = _Reader(dict(asked), T)
    found: Throughput = getattr(reader, way)()
    return found.replace(given=tuple(asked), inputs=reader.inputs, notes=reader.notes)


def _not_one(chosen: list[str]) -> str:
    if chosen:
        return f"{' and '.join(map(flag, chosen))} say the same thing twice; leave one out"
    return f"mfu needs a rate, one of {', '.join(map(flag, WAYS))}, as in: {MFU}"


class _Reader:
    """One method per way; each option that is read becomes an input of the answer."""

    def __init__(self, asked: Given, T: Quantity | None) -> None:
        self.asked, self.T = asked, T
        self.inputs: Inputs = {}
        self.notes: list[str] = []

    def tokens_per_second(self) -> Throughput:
        label = "tokens per second, all GPUs"
        rate = self._take("tokens_per_second", parsing.tokens_per_second, "r", label, "token/s")
        return Throughput(
            compute.token_rate_per_gpu(
                rate,
                self._gpus(
                    "--tokens-per-second counts all GPUs; or use --tokens-per-second-per-gpu"
                ),
            )
        )

    def tokens_per_second_per_gpu(self) -> Throughput:
        if "gpus" in self.asked:
            self._gpus("")
        label = "tokens per second and GPU"
        parse = parsing.tokens_per_second_per_gpu
        return Throughput(
            self._take("tokens_per_second_per_gpu", parse, "r₁", label, "token/s/GPU")
        )

    def step_time(self) -> Throughput:
        t = self._take("step_time", parsing.duration, "t_step", "optimizer step time", "s/step")
        n = self._gpus("--step-time is the step of all GPUs")
        r = compute.step_token_rate(self._tokens_per_step(n), t)
        return Throughput(compute.token_rate_per_gpu(r, n))

    def _tokens_per_step(self, n: Quantity) -> Quantity:
        direct = "tokens_per_step" in self.asked
        counted = [o for o in ("seq_len", "global_batch", "micro_batch") if o in self.asked]
        if direct:
            for option in ("seq_len", "global_batch", "micro_batch", "grad_accum"):
                if option in self.asked:
                    raise options.error(option, "does nothing beside --tokens-per-step")
            label = "tokens per optimizer step"
            return self._take("tokens_per_step", parsing.tokens_per_step, "K", label, "token/step")
        if {"global_batch", "micro_batch"} <= set(counted):
            raise options.error("micro_batch", "--global-batch already says it; leave one out")
        has_length = "seq_len" in counted or self.T is not None
        if not has_length or not {"global_batch", "micro_batch"} & set(counted):
            raise options.error(
                "step_time",
                "needs --tokens-per-step, or --seq-len with --global-batch, "
                "or --seq-len with --micro-batch (and --grad-accum)",
            )
        T = self.T
        if T is None:
            T = self._whole("seq_len", "T", "sequence length", "token/seq")
        return compute.tokens_per_step(T, self._batch(n, T))

    def _batch(self, n: Quantity, T: Quantity) -> Quantity:
        if "global_batch" in self.asked:
            if "grad_accum" in self.asked:
                raise options.error("grad_accum", "is in --global-batch already; leave it out")
            return self._noted("global_batch", options.batch(self.asked["global_batch"], T))
        b = self._whole("micro_batch", "b", "micro-batch of one GPU", "seq/GPU")
        if "grad_accum" not in self.asked:
            self.asked["grad_accum"] = 1
            self.notes.append("no gradient accumulation (assumed): a step is one micro-step")
        a = self._whole("grad_accum", "a", "gradient accumulation", "1/step")
        return compute.global_batch(b, a, n)

    def tokens(self) -> Throughput:
        D = self._take("tokens", parsing.tokens, "D", "training tokens", "token")
        has = [o for o in ("time", "gpu_hours") if o in self.asked]
        if len(has) == 2:
            raise options.error("gpu_hours", "--time already says it; leave one out")
        if not has:
            raise options.error("tokens", "needs --time with --gpus, or --gpu-hours")
        if has == ["gpu_hours"]:
            if "gpus" in self.asked:
                raise options.error("gpus", "is in --gpu-hours already; leave it out")
            h = self._take("gpu_hours", parsing.per_second, "h", "GPU-hours", "GPU·hour")
            return Throughput(compute.run_token_rate_per_gpu(D, h))
        t = self._take("time", parsing.duration, "t", "training time", "s")
        r = compute.token_rate(D, t)
        return Throughput(compute.token_rate_per_gpu(r, self._gpus("--time is that of all GPUs")))

    def achieved(self) -> Throughput:
        if "gpus" in self.asked:
            self._gpus("")
            self.notes.append("--achieved is the rate of one GPU, however many there are")
        label = "achieved throughput of one GPU"
        return Throughput(A=self._take("achieved", parsing.achieved, "A", label, "FLOP/s/GPU"))

    def flops(self) -> Throughput:
        if "time" not in self.asked:
            raise options.error("flops", "needs --time")
        F = self._take("flops", parsing.amount, "C", "model FLOP", "FLOP")
        t = self._take("time", parsing.duration, "t", "time", "s")
        n = self._gpus("") if "gpus" in self.asked else coefficient(1, "GPU")
        return Throughput(A=compute.achieved_raw(F, t, n))

    def _gpus(self, why: str) -> Quantity:
        if "gpus" not in self.asked:
            raise NapkinError(f"mfu needs --gpus: {why}")
        return self._whole("gpus", "n", "GPUs", "GPU")

    def _whole(self, option: str, symbol: str, label: str, unit: str) -> Quantity:
        return self._take(option, parsing.whole, symbol, label, unit)

    def _take(self, option: str, parse: Any, symbol: str, label: str, unit: str) -> Quantity:
        found = options.quantity(option, self.asked[option], parse, symbol, label, unit)
        return self._noted(option, found)

    def _noted(self, option: str, found: Quantity) -> Quantity:
        self.inputs[option] = found.value
        return found
