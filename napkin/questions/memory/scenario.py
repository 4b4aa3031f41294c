"""What `memory` is asked: the model or its parameters, the layout, and what was assumed."""

from functools import cache
from math import lcm

from napkin import parsing
from napkin.accounting import adapters, stages, step
from napkin.accounting.activations import short_windows, usual_attention
from napkin.accounting.errors import Unmeasured
from napkin.accounting.layout import UNDIVIDED, Degrees, Layout, Tuning
from napkin.accounting.notation import PLAIN, TRACED, Notation, as_input
from napkin.accounting.parameters import parameters
from napkin.accounting.step import Step
from napkin.errors import NapkinError, quoted
from napkin.quantity import Quantity
from napkin.quantity import given as input_of
from napkin.questions import options, workload
from napkin.questions.answer import Inputs
from napkin.questions.capacity import TIGHT, Capacity, capacity_of
from napkin.questions.examples import MEMORY
from napkin.questions.machines import machines
from napkin.questions.options import Text
from napkin.record import Record
from napkin.specs import models, optimizers, quantization
from napkin.specs.model import LANGUAGE, Model, Stack
from napkin.specs.optimizers import Precision
from napkin.specs.quantization import BITSANDBYTES, Quantization

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
DIVIDING = ("tp", "pp", "cp")
OF_A_SHAPE = ("ep", "sequence_parallel", "virtual_stages", "imbalance")
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


class Settings(options.Settings):
    """What `memory` takes."""

    params: Text | None = None
    model: str | None = None
    gpus: Text | None = None
    hardware: str | None = None
    memory: Text | None = None
    precision: str | None = None
    optimizer: str | None = None
    bytes_per_param: Text | None = None
    lora_rank: Text | None = None
    lora_targets: str | None = None
    quantize: str | None = None
    zero: Text | None = None
    tp: Text | None = None
    pp: Text | None = None
    cp: Text | None = None
    ep: Text | None = None
    sequence_parallel: bool = False
    virtual_stages: Text | None = None
    imbalance: Text | None = None
    micro_batch: Text | None = None
    seq_len: Text | None = None
    grad_accum: Text | None = None
    recompute: str | None = None
    attention: str | None = None
    norm: str | None = None
    step: str | None = None
    chunked_loss: bool = False
    bucket_view: bool = False
    activations: str | None = None
    fit: str | None = None
    inference: bool = False
    context: Text | None = None
    batch: Text | None = None
    double_quant: bool = False


class Scenario(Record):
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
        degrees = self.setup.degrees
        try:
            if degrees is UNDIVIDED:
                return step.step(self.about, N, self.setup, source, notation)
            if isinstance(self.about, Model):
                return stages.fullest(self.about, self.setup, source, notation)
            N = stages.of_one_rank(N, degrees, notation)
            return step.step(None, N, self.setup, source, notation)
        except Unmeasured as error:
            raise options.error(error.setting, str(error)) from None

    def on(self, gpus: int, zero: int) -> "Scenario":
        """The same on other GPUs."""
        setup = self.setup.replace(ranks=self._sharing(gpus * self.capacity.devices), zero=zero)
        return self.replace(setup=setup, gpus=gpus, inputs=self.inputs | {"gpus": gpus})

    def on_devices(self, devices: int) -> "Scenario":
        """The same on so many devices of torch, whatever packages they are in."""
        ranks = self._sharing(devices)
        zero = self.setup.zero if ranks > 1 else 0
        return self.replace(setup=self.setup.replace(ranks=ranks, zero=zero))

    def _sharing(self, devices: int) -> int:
        """The ranks that tensor and pipeline parallelism leave."""
        degrees = self.setup.degrees
        return max(devices // (degrees.tp * degrees.pp), 1)

    @property
    def fits(self) -> bool:
        """Tightly too."""
        return self.capacity.holds(self.step(PLAIN).peak.bytes)

    @property
    def tightly(self) -> str:
        """What to add to a word that it fits."""
        return ", tightly" if self.capacity.verdict(self.step(PLAIN).peak.bytes) == TIGHT else ""

    def with_micro_batch(self, sequences: int) -> "Scenario":
        """The same but for that."""
        setup = self.setup.replace(micro_batch=sequences)
        return self.replace(setup=setup, inputs=self.inputs | {"micro_batch": sequences})

    def with_seq_len(self, tokens: int) -> "Scenario":
        """The same but for that."""
        setup = self.setup.replace(seq_len=tokens)
        return self.replace(setup=setup, inputs=self.inputs | {"seq_len": tokens})

    def with_params(self, params: int, source: str) -> "Scenario":
        """The same but for that."""
        N = input_of("N", "parameters", params, "param", source)
        return self.replace(N=N, inputs=self.inputs | {"params": params})


def read(asked: Settings) -> Scenario:
    """Raises NapkinError."""
    about, N = model(asked)
    _refuse_what_it_lacks(about, asked)
    count, hardware = machines(asked.gpus, asked.hardware)
    degrees = _degrees(about, asked)
    fewest = lcm(degrees.of_a_replica, degrees.tp * degrees.pp * degrees.ep)
    gpus = options.read("gpus", count, parsing.gpus, fewest)
    precision, p = options.read(
        "precision", asked.precision, optimizers.precision, DEFAULT_PRECISION
    )
    optimizer, o = options.read(
        "optimizer", asked.optimizer, optimizers.optimizer, DEFAULT_OPTIMIZER
    )
    where = capacity_of(hardware, asked.memory, None)
    if gpus * where.devices % fewest:
        raise options.error("gpus", _not_whole(gpus * where.devices, degrees, fewest))
    ranks = gpus * where.devices // (degrees.tp * degrees.pp)
    tuning, p = _tuning(about, asked, precision, p)
    setup = Layout(p, o, ranks, _zero(asked.zero, ranks), degrees=degrees, tuning=tuning)
    if about is not None:
        setup = _laid_out(about, asked, setup, precision == "amp")
    inputs = {
        "params": N.value,
        "model": None if about is None else about.name,
        "gpus": gpus,
        "hardware": where.hardware,
        "precision": precision,
        "optimizer": optimizer,
        **_inputs_of_tuning(tuning),
        "zero": setup.zero,
        **_inputs_of(degrees),
        **_of_a_model(setup, about is not None),
    }
    return Scenario(about, N, setup, where, precision, optimizer, gpus, inputs)


def _tuning(
    about: Model | Stack | None, asked: Settings, precision: str, p: Precision
) -> tuple[Tuning | None, Precision]:
    """Adapters on a frozen model, where they are asked for, and the precision of what is
    trained."""
    if asked.lora_rank is None:
        asked.refuse(("lora_targets",), "goes with --lora-rank")
        problem = "goes with --lora-rank: what is quantised is frozen; to serve, --inference"
        asked.refuse(("quantize",), problem)
        return None, p
    if not isinstance(about, Model):
        raise options.error("lora_rank", "needs the --model of a transformer")
    if precision not in optimizers.ADAPTERS:
        known = ", ".join(optimizers.ADAPTERS)
        problem = f"{precision} is no recipe of adapters on a frozen model; write one of {known}"
        raise options.error("precision", problem)
    rank = options.read("lora_rank", asked.lora_rank, parsing.whole)
    if rank > about.d_model:
        raise options.error("lora_rank", f"{rank:,} is more than d_model, {about.d_model:,}")
    stored = None
    if asked.quantize is not None:
        name = options.choice("quantize", asked.quantize, BITSANDBYTES)
        stored = _stored(name)
    words = adapters.targets("all" if asked.lora_targets is None else asked.lora_targets)
    return Tuning(rank, words, p, stored), optimizers.ADAPTERS[precision]


@cache
def _stored(name: str) -> Quantization:
    """nf4's scales are quantised too, as in QLoRA (2305.14314, section 3)."""
    return quantization.asked(name, double=name == "nf4")


def _inputs_of_tuning(tuning: Tuning | None) -> Inputs:
    if tuning is None:
        return {"lora_rank": None, "lora_targets": None, "quantize": None}
    stored = None if tuning.stored is None else tuning.stored.precision
    named = " ".join(tuning.targets) or "all"
    return {"lora_rank": tuning.rank, "lora_targets": named, "quantize": stored}


def _degrees(about: Model | Stack | None, asked: Settings) -> Degrees:
    if isinstance(about, Stack):
        problem = f"is not counted of {about.name}"
        asked.refuse((*DIVIDING, *OF_A_SHAPE), problem)
    if about is None:
        asked.refuse(OF_A_SHAPE, "goes with --model: --params knows no layers")
    tp, pp, cp, ep = (
        options.read(name, getattr(asked, name), parsing.whole, 1) for name in (*DIVIDING, "ep")
    )
    if tp == 1:
        asked.refuse(("sequence_parallel",), "divides what --tp leaves whole; write --tp too")
    if pp == 1:
        asked.refuse(("virtual_stages",), "goes with --pp: several stages of a rank")
    if ep == 1:
        asked.refuse(("imbalance",), "goes with --ep: how much more the fullest rank is sent")
    if tp == pp == cp == ep == 1:
        return UNDIVIDED
    return Degrees(
        tp,
        pp,
        cp,
        ep,
        options.switch("sequence_parallel", asked.sequence_parallel),
        options.read("virtual_stages", asked.virtual_stages, parsing.whole, 1),
        options.read("imbalance", asked.imbalance, _imbalance, 1.0),
    )


def _imbalance(text: Text) -> float:
    """Rows of the fullest rank over the mean."""
    times = parsing.number(text)
    if times < 1:
        raise NapkinError(f"{quoted(text)} is less than the mean; 1.2 is a fifth more")
    return times


def _not_whole(devices: int, degrees: Degrees, fewest: int) -> str:
    """Why so many are no whole number of replicas."""
    ways = [(name, getattr(degrees, name)) for name in (*DIVIDING, "ep")]
    typed = " ".join(f"--{name} {count}" for name, count in ways if count > 1)
    return f"{devices:,} are not divided by {typed}; write a multiple of {fewest:,}"


def _inputs_of(degrees: Degrees) -> Inputs:
    """Null where nothing is divided."""
    names = (*DIVIDING, *OF_A_SHAPE)
    if degrees is UNDIVIDED:
        return dict.fromkeys(names)
    return {name: getattr(degrees, name) for name in names}


def _refuse_what_it_lacks(about: Model | Stack | None, asked: Settings) -> None:
    """Settings that change nothing of it."""
    if about is None:
        asked.refuse(OF_A_MODEL, "goes with --model: --params shows the states alone")
    if isinstance(about, Stack):
        problem = f"does nothing to {about.name}: it is matrices alone"
        asked.refuse(OF_A_TRANSFORMER, problem)
    if isinstance(about, Model) and about.head is not LANGUAGE:
        asked.refuse(("chunked_loss",), f"does nothing to {about.name}: it has no logits of V")


def _of_a_model(setup: Layout, known: bool) -> Inputs:
    """The inputs that only a model has, null without one."""
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
    return settings if known else dict.fromkeys(settings)


def model(asked: Settings) -> tuple[Model | Stack | None, Quantity]:
    """The model, or its parameters alone."""
    if asked.model is None and asked.params is None:
        raise NapkinError(f"memory needs --model or --params, as in: {MEMORY}")
    if asked.model is None:
        label = "parameters"
        return None, options.quantity("params", asked.params, parsing.count, "N", label, "param")
    if asked.params is not None:
        raise options.error("params", "--model says it already; leave one out")
    about = options.read("model", str(asked.model), models.find)
    return about, as_input(parameters(about).N, about.name)


def _zero(stage: Text | None, ranks: int) -> int:
    """Everything sharded where there are several to share it."""
    text = None if stage is None else str(stage)
    return int(options.choice("zero", text, STAGES, "3" if ranks > 1 else "0"))


def _laid_out(about: Model | Stack, asked: Settings, setup: Layout, autocast: bool) -> Layout:
    """With the settings that only a model has."""
    tokens, _, _ = workload.sequence(about, asked.seq_len)
    step = options.choice("step", asked.step, STEPS)
    if step == "fused" and not setup.optimizer.fused:
        raise options.error(
            "step", "torch has no fused step of this optimizer; write foreach or loop"
        )
    formula = options.choice("activations", asked.activations, FORMULAS)
    usual = usual_attention(about, tokens) if formula == "measured" else "flash"
    degrees = setup.degrees
    return Layout(
        precision=setup.precision,
        optimizer=setup.optimizer,
        ranks=setup.ranks,
        zero=setup.zero,
        micro_batch=options.read("micro_batch", asked.micro_batch, parsing.whole, 1),
        seq_len=1 if isinstance(about, Stack) and asked.seq_len is None else tokens,
        grad_accum=options.read("grad_accum", asked.grad_accum, parsing.whole, degrees.pp),
        degrees=degrees,
        tuning=setup.tuning,
        step=step,
        bucket_view=options.switch("bucket_view", asked.bucket_view),
        attention=options.choice("attention", asked.attention, ATTENTION, usual),
        norm=options.choice("norm", asked.norm, NORMS),
        recompute=options.choice("recompute", asked.recompute, workload.RECOMPUTE),
        chunked_loss=options.switch("chunked_loss", asked.chunked_loss),
        formula=formula,
        autocast=autocast,
    )


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
