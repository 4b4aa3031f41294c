"""What does a training step keep on one GPU, phase by phase, and does it fit?"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from napkin import parsing, units
from napkin.accounting import memory as formulas
from napkin.errors import NapkinError
from napkin.quantity import Quantity
from napkin.questions import memory_options, options
from napkin.questions import step as steps
from napkin.questions.answer import Answer, Inputs, Report, Words, value_of
from napkin.questions.options import Text
from napkin.questions.room import Room
from napkin.questions.step import Phase, Setup, Step
from napkin.specs.model import Model, Stack

PEAKS = {
    "states": "states alone",
    "start": "peak, before the step",
    "forward": "peak, at the end of the forward pass",
    "loss": "peak, in the backward pass of the loss",
    "backward": "peak, in the backward pass of the layers",
    "step": "peak, in the optimizer's step",
}
DOES_NOT_FIT = 3  # the exit code, where a script asks for one
BAR = 24  # letters
BESIDE_A_SUM = ("params", "model", "gpus", "hardware", "memory", "bytes_per_param", "exit_code")
NOT_COUNTED = "not counted: CUDA's context (0.5 to 1.5 GB), workspaces, fragmentation"


@dataclass(frozen=True, slots=True)
class Asked:
    """The settings, and the model or its parameters."""

    about: Model | Stack | None
    N: Quantity
    setup: Setup
    room: Room
    recipe: str  # `mixed adamw`
    gpus: int
    inputs: Inputs

    def step(self) -> Step:
        """What follows from it. Raises NapkinError."""
        precision, optimizer = self.recipe.split()
        source = f"--precision {precision} --optimizer {optimizer}"
        if self.about is None:
            return steps.states(self.N, self.setup, source)
        if isinstance(self.about, Stack):
            return steps.of_stack(self.about, self.N, self.setup, source)
        return steps.of_transformer(self.about, self.N, self.setup, source)

    def on(self, gpus: int, zero: int) -> "Asked":
        """The same on other GPUs."""
        setup = replace(self.setup, ranks=gpus, zero=zero)
        return replace(self, setup=setup, gpus=gpus, inputs=self.inputs | {"gpus": gpus})

    def changed(self, name: str, value: Any) -> "Asked":
        """The same with another micro-batch or sequence length."""
        setup = replace(self.setup, **{name: value})
        return replace(self, setup=setup, inputs=self.inputs | {name: value})


def memory(
    *,
    params: Text | None = None,
    model: str | None = None,
    gpus: Text | None = None,
    hardware: str | None = None,
    memory: Text | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    bytes_per_param: Text | None = None,
    zero: Text | None = None,
    micro_batch: Text | None = None,
    seq_len: Text | None = None,
    grad_accum: Text | None = None,
    recompute: str | None = None,
    attention: str | None = None,
    norm: str | None = None,
    step: str | None = None,
    chunked_loss: bool = False,
    bucket_view: bool = False,
    activations: str | None = None,
    fit: str | None = None,
    exit_code: bool = False,
    inference: bool = False,
    context: Text | None = None,
    batch: Text | None = None,
) -> Report:
    """Bytes of one GPU by kind and by phase of a training step, against what it has.

    Options as on the command line, as text or numbers. Raises NapkinError.
    """
    given = {name: value for name, value in locals().items() if value not in (None, False)}
    options.switch("exit_code", exit_code)
    answer = _answer(given)
    fits = bool(answer.result["fits"])
    return Report("memory", [answer], exit_code=DOES_NOT_FIT if exit_code and not fits else 0)


def _answer(given: dict[str, Any]) -> Answer:
    if given.pop("inference", False):
        from napkin.questions.inference import inference

        return inference(given)
    for option in ("context", "batch"):
        if option in given:
            raise options.error(option, "goes with --inference")
    if "fit" in given:
        from napkin.questions.fit import fitted

        return fitted(given)
    if "bytes_per_param" in given:
        return _by_sum(given)
    return answered(memory_options.read(given))


def answered(asked: Asked, headline: str = "") -> Answer:
    """The answer to these settings; `headline` in front of it where it answers --fit."""
    step = asked.step()
    peak = step.peak
    total = formulas.alive(PEAKS[peak.name], peak.alive)
    capacity = asked.room.capacity
    result = {
        "per_gpu_bytes": {**_by_kind(step), "peak": total.value},
        "peak_phase": peak.name,
        "phases": [_phase(each) for each in step.phases],
        "capacity_bytes": capacity.value,
        "fits": total.value <= capacity.value,
    }
    words = partial(_words, asked, step, total, headline)
    kinds = (*step.states, step.activations, step.loss, step.buffers, step.buckets)
    asides = tuple(each for each in kinds if each is not None)
    return Answer("memory", asked.inputs, result, words, (total,), asides)


def _by_kind(step: Step) -> dict[str, float | None]:
    without_model = step.activations is None
    held = [each.value for each in (step.buffers, step.buckets) if each is not None]
    return {
        "weights": step.weights.value,
        "master_weights": 0 if step.master is None else step.master.value,
        "gradients": step.gradients.value,
        "optimizer": 0 if step.optimizer is None else step.optimizer.value,
        "activations": value_of(step.activations),
        "loss": None if without_model else 0 if step.loss is None else step.loss.value,
        "temporaries": sum(held),
    }


def _phase(phase: Phase) -> dict[str, Any]:
    alive = {each.label: each.value for each in phase.alive}
    return {"phase": phase.name, "bytes": phase.bytes, "alive": alive}


def _words(asked: Asked, step: Step, total: Quantity, headline: str) -> Words:
    peak = step.peak
    what = PEAKS[peak.name]
    of = units.count(asked.N.value) if asked.about is None else asked.about.name
    zero = f", ZeRO-{asked.setup.zero}" if asked.setup.ranks > 1 else ""
    where = f"on each of {asked.gpus:,} × {asked.room.said}{zero}"
    condition = f"{what} · {of}, {asked.recipe} · {where}"
    notes, warnings = fits_in(asked.room, total.value)
    if asked.about is not None:
        notes += _bars(step, asked.room.capacity.value)
    else:
        notes.append("states alone: --model shows activations and the phases of a step too")
    notes += _others(asked)
    if asked.about is not None:
        notes += [*memory_options.assumed(asked.setup), NOT_COUNTED, *step.notes]
        notes += [*asked.about.notes]
    notes += asked.room.notes
    said = units.gb_and_gib(total.value)
    return Words(f"{headline}{said}", condition, notes, warnings)


def fits_in(room: Room, peak: float) -> tuple[list[str], list[str]]:
    """Against the figure on the box, and against the driver's."""
    capacities = [("printed", room.capacity.value)]
    if room.visible is not None:
        capacities.append(("the driver reports", room.visible.value))
    notes, warnings = [], []
    for name, capacity in capacities:
        has = f"{name} {units.gb_and_gib(capacity)}"
        if peak <= capacity:
            notes.append(f"fits: {has}, {units.humanize(capacity - peak, 'B')} to spare")
        else:
            warnings.append(f"does not fit: {has}, {units.humanize(peak - capacity, 'B')} short")
    return notes, warnings


def _bars(step: Step, capacity: float) -> list[str]:
    """The phases of the step, each as long as what is alive in it."""
    most = max(step.peak.bytes, capacity)
    lines = []
    for phase in step.phases:
        bar = "█" * max(1, round(BAR * phase.bytes / most))
        alive = " + ".join(each.symbol for each in phase.alive)
        size = units.humanize(phase.bytes, "B")
        mark = " < peak" if phase is step.peak else ""
        lines.append(f"{phase.name:9} {phase.flop:3} {bar:{BAR}} {size:>9}  {alive}{mark}")
    return lines


def _others(asked: Asked) -> list[str]:
    """What plain data parallel, or sharding, would need."""
    setup = asked.setup
    if setup.ranks == 1:
        return ["plain data parallel needs the same on every GPU, however many there are"]
    if setup.zero:
        plain = asked.on(setup.ranks, 0).step().peak.bytes
        return [f"plain data parallel (--zero 0) would need {units.gb_and_gib(plain)} a GPU"]
    needs = units.gb_and_gib(asked.on(setup.ranks, 3).step().peak.bytes)
    return [f"plain data parallel: all GPUs hold the same; --zero 3 would need {needs}"]


def _by_sum(given: dict[str, Any]) -> Answer:
    """N times the bytes a parameter that are given: no kinds, no phases."""
    for option in given:
        if option not in BESIDE_A_SUM:
            raise options.error(option, "--bytes-per-param already says the sum; leave one out")
    asked = memory_options.read({k: v for k, v in given.items() if k != "bytes_per_param"})
    s = options.quantity(
        "bytes_per_param",
        given["bytes_per_param"],
        parsing.bytes_per_param,
        "s",
        "training state per parameter",
        "B/param",
    )
    ranks = steps.shared_by(asked.gpus)
    total = formulas.copies("peak", "training state", [s], asked.N, ranks)
    capacity = asked.room.capacity.value
    kinds = ("weights", "master_weights", "gradients", "optimizer", "activations", "loss")
    result = {
        "per_gpu_bytes": {**dict.fromkeys((*kinds, "temporaries")), "peak": total.value},
        "peak_phase": "states",
        "phases": [],
        "capacity_bytes": capacity,
        "fits": total.value <= capacity,
    }
    inputs = asked.inputs | {"bytes_per_param": s.value, "precision": None, "optimizer": None}
    each = f"{units.figures(s.value)} bytes a parameter"
    where = f"on each of {asked.gpus:,} × {asked.room.said}"
    condition = f"{each} × {units.count(asked.N.value)}, all sharded · {where}"
    notes, warnings = fits_in(asked.room, total.value)
    words = Words(units.gb_and_gib(total.value), condition, [*notes, *asked.room.notes], warnings)
    return Answer("memory", inputs, result, lambda: words, (total,))


def no_answer(problem: str) -> NapkinError:
    """For --fit, where nothing fits."""
    return options.error("fit", problem)
