"""What `memory` is asked: the model or its parameters, the layout, and what was assumed."""

from typing import Any, NamedTuple

from napkin import parsing
from napkin.accounting import step
from napkin.accounting.activations import Unmeasured, short_windows, usual_attention
from napkin.accounting.layout import Layout
from napkin.accounting.notation import PLAIN, TRACED, Notation, told
from napkin.accounting.parameters import parameters
from napkin.accounting.step import Step
from napkin.errors import NapkinError
from napkin.quantity import Quantity
from napkin.questions import options, workload
from napkin.questions.answer import Inputs
from napkin.questions.capacity import TIGHT, Capacity, capacity_of
from napkin.questions.examples import MEMORY
from napkin.specs import models, optimizers
from napkin.specs.model import LANGUAGE, Model, Stack

DEFAULT_PRECISION, DEFAULT_OPTIMIZER = "mixed", "adamw"
STEPS = ("foreach", "fused", "loop")
ATTENTION = ("flash", "sdpa", "eager")
NORMS = ("upcast", "fused")
FORMULAS = ("measured", "korthikanti")
STAGES = ("0", "1", "2", "3")
OF_A_MODEL = (
    *("micro_batch", "seq_len", "grad_accum", "recompute", "attention", "norm", "step"),
    *("chunked_loss", "bucket_view", "activations"),
)
OF_A_TRANSFORMER = ("recompute", "attention", "norm", "chunked_loss", "activations")

# Of layers whose window is no longer than the sequence.
WINDOWED = {
    "sdpa": [
        "under a window sdpa keeps keys and values for every query head, and a mask a layer; "
        "FlashAttention 2 does not (--attention flash)"
    ],
    "flash": [
        "under a window this is FlashAttention 2; PyTorch's sdpa keeps more (--attention sdpa)"
    ],
}

Given = dict[str, Any]


class Scenario(NamedTuple):
    """One scenario."""

    about: Model | Stack | None
    N: Quantity
    setup: Layout
    capacity: Capacity
    precision: str
    optimizer: str
    gpus: int
    inputs: Inputs

    def step(self, notation: Notation = TRACED) -> Step:
        """What follows from it. Raises NapkinError."""
        source = f"--precision {self.precision} --optimizer {self.optimizer}"
        N = self.N if notation is TRACED else notation.known(self.N)
        try:
            return step.step(self.about, N, self.setup, source, notation)
        except Unmeasured as error:
            raise options.error(error.setting, str(error)) from None

    def on(self, gpus: int, zero: int) -> "Scenario":
        """The same on other GPUs."""
        setup = self.setup._replace(ranks=gpus * self.capacity.devices, zero=zero)
        return self._replace(setup=setup, gpus=gpus, inputs=self.inputs | {"gpus": gpus})

    def on_devices(self, devices: int) -> "Scenario":
        """The same on so many devices of torch, whatever packages they are in."""
        zero = self.setup.zero if devices > 1 else 0
        return self._replace(setup=self.setup._replace(ranks=devices, zero=zero))

    @property
    def fits(self) -> bool:
        """Tightly too."""
        return self.capacity.holds(self.step(PLAIN).peak.bytes)

    @property
    def tightly(self) -> str:
        """What to add to a word that it fits."""
        return ", tightly" if self.capacity.verdict(self.step(PLAIN).peak.bytes) == TIGHT else ""

    def changed(self, name: str, value: Any) -> "Scenario":
        """The same with another micro-batch or sequence length."""
        setup = self.setup._replace(**{name: value})
        return self._replace(setup=setup, inputs=self.inputs | {name: value})


def read(given: Given) -> Scenario:
    """Raises NapkinError."""
    about, N = model(given)
    if about is None:
        for option in OF_A_MODEL:
            if option in given:
                raise options.error(option, "goes with --model: --params shows the states alone")
    if isinstance(about, Stack):
        for option in OF_A_TRANSFORMER:
            if option in given:
                raise options.error(option, f"does nothing to {about.name}: it is matrices alone")
    if isinstance(about, Model) and about.head is not LANGUAGE and "chunked_loss" in given:
        raise options.error("chunked_loss", f"does nothing to {about.name}: it has no logits of V")
    gpus = options.read("gpus", given.get("gpus", 1), parsing.whole)
    precision, p = options.read(
        "precision", given.get("precision", DEFAULT_PRECISION), optimizers.precision
    )
    optimizer, o = options.read(
        "optimizer", given.get("optimizer", DEFAULT_OPTIMIZER), optimizers.optimizer
    )
    where = capacity_of(given.get("hardware"), given.get("memory"), None)
    ranks = gpus * where.devices
    of_model = _of_model(about, given, o, precision)
    setup = Layout(p, o, ranks, _zero(given, ranks), **of_model)
    inputs = {
        "params": N.value,
        "model": None if about is None else about.name,
        "gpus": gpus,
        "hardware": where.hardware,
        "precision": precision,
        "optimizer": optimizer,
        "zero": setup.zero,
        **_settings(setup, about is not None),
    }
    return Scenario(about, N, setup, where, precision, optimizer, gpus, inputs)


def _settings(setup: Layout, of_model: bool) -> Given:
    """Those that only a model has, null without one."""
    settings = {
        "micro_batch": setup.micro_batch,
        "seq_len": setup.seq_len,
        "grad_accum": setup.grad_accum,
        "recompute": setup.recompute,
        "attention": setup.attention,
        "norm": setup.norm,
        "step": setup.step,
        "chunked_loss": setup.chunked_loss,
        "bucket_view": setup.bucket_view,
        "activations": setup.formula,
    }
    return settings if of_model else dict.fromkeys(settings)


def model(given: Given) -> tuple[Model | Stack | None, Quantity]:
    """The model, or its parameters alone."""
    params, name = given.get("params"), given.get("model")
    if name is None and params is None:
        raise NapkinError(f"memory needs --model or --params, as in: {MEMORY}")
    if name is None:
        return None, options.quantity("params", params, parsing.count, "N", "parameters", "param")
    if params is not None:
        raise options.error("params", "--model says it already; leave one out")
    found = options.read("model", str(name), models.find)
    return found, told(parameters(found).N, found.name)


def _zero(given: Given, ranks: int) -> int:
    """Everything sharded where there are several to share it."""
    if "zero" not in given:
        return 3 if ranks > 1 else 0
    return int(options.choice("zero", str(given["zero"]), STAGES))


def _of_model(
    about: Model | Stack | None, given: Given, optimizer: optimizers.Optimizer, precision: str
) -> Given:
    """The settings that only a model has."""
    if about is None:
        return {}
    tokens, _, _ = workload.sequence(about, given.get("seq_len"))
    accumulated = options.read("grad_accum", given.get("grad_accum", 1), parsing.whole)
    step = options.choice("step", given.get("step", "foreach"), STEPS)
    if step == "fused" and not optimizer.fused:
        raise options.error(
            "step", "torch has no fused step of this optimizer; write foreach or loop"
        )
    return {
        "micro_batch": options.read("micro_batch", given.get("micro_batch", 1), parsing.whole),
        "seq_len": 1 if isinstance(about, Stack) and "seq_len" not in given else tokens,
        "grad_accum": accumulated,
        "step": step,
        "bucket_view": options.switch("bucket_view", given.get("bucket_view", False)),
        **_how(about, given, tokens, precision),
    }


def _how(about: Model | Stack, given: Given, tokens: int, precision: str) -> Given:
    """How the layers are written."""

    def one(option: str, known: tuple[str, ...]) -> str:
        return options.choice(option, given.get(option, known[0]), known)

    formula = one("activations", FORMULAS)
    usual = usual_attention(about, tokens) if formula == "measured" else "flash"
    return {
        "attention": options.choice("attention", given.get("attention", usual), ATTENTION),
        "norm": one("norm", NORMS),
        "recompute": one("recompute", workload.RECOMPUTE),
        "chunked_loss": options.switch("chunked_loss", given.get("chunked_loss", False)),
        "formula": formula,
        "autocast": precision == "amp",
    }


def _loss(about: Model) -> str:
    if about.head is None:
        return "no loss"
    return "log-softmax in fp32" + (" of one token a sequence" if about.head.pooled else "")


def assumed(about: Model | Stack, setup: Layout) -> list[str]:
    """Every setting that moves the answer, given or not."""
    rows = f"micro-batch {setup.micro_batch:,} × {setup.seq_len:,} tokens"
    accumulation = "gradients accumulate" if setup.grad_accum > 1 else "gradients set to None"
    ends = f"{setup.step} step, {accumulation}"
    if isinstance(about, Stack):
        return [f"{rows}; {ends}"]
    loss = "chunked loss (no logits kept)" if setup.chunked_loss else _loss(about)
    norms = "fused norms" if setup.norm == "fused" else "norms in fp32"
    again = "no recomputation" if setup.recompute == "none" else f"{setup.recompute} recomputation"
    size = 2 if setup.autocast else setup.precision.weights
    found = [
        f"{size} bytes a value, B × T = {setup.micro_batch * setup.seq_len:,} tokens",
        f"{rows}, {again}, {setup.attention} attention, {loss}",
    ]
    if setup.formula == "measured":
        found[1] += f", {norms}, no dropout"
    if setup.recompute == "selective" and setup.attention != "eager":
        kernel = f"{setup.attention} attention"
        found.append(f"{kernel} keeps no scores: selective recomputation changes nothing")
    if setup.formula == "measured" and short_windows(about, setup.seq_len):
        found += WINDOWED.get(setup.attention, [])
    if about.quantization is not None:
        method = about.quantization.method
        found.append(f"quantization_config ({method}) is not used: --precision says how they train")
    return [*found, f"{ends}, no KV cache, logits not held"]
