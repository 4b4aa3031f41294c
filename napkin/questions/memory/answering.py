"""One scenario of `memory` as an answer: by kind, phase by phase, against what the GPU has."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from napkin import units
from napkin.accounting import memory as formulas
from napkin.accounting.notation import PLAIN
from napkin.accounting.step import Phase, Step
from napkin.quantity import Quantity
from napkin.questions.answer import Answer, Words, value_of
from napkin.questions.capacity import DOES_NOT_FIT, FITS, Capacity
from napkin.questions.memory import scenario
from napkin.questions.memory.scenario import Scenario
from napkin.questions.peak import both_readings
from napkin.questions.workload import too_long

PEAKS = {
    "states": "states alone",
    "start": "peak, before the step",
    "forward": "peak, at the end of the forward pass",
    "loss": "peak, in the backward pass of the loss",
    "backward": "peak, in the backward pass of the layers",
    "step": "peak, in the optimizer's step",
}
KINDS = (
    *("weights", "master_weights", "gradients", "optimizer"),
    *("activations", "loss", "temporaries"),
)
BAR = 20  # letters
NOT_COUNTED = "workspaces, fragmentation"


def answered(asked: Scenario, headline: str = "") -> Answer:
    """The answer to these settings; `headline` in front of it where it answers --fit."""
    step = asked.step()
    peak = step.peak
    total = formulas.peak(PEAKS[peak.name], peak.alive)
    result = result_of(asked.capacity, total.value, peak.name, _by_kind(step), step.phases)
    words = partial(_words, asked, step, total, headline)
    # All that the bars name has its row.
    named = {each.symbol: each for phase in step.phases for each in phase.alive}
    kinds = (*step.states.all, step.activations, step.loss, *step.temporaries)
    asides = tuple(each for each in kinds if each is not None)
    return Answer("memory", asked.inputs, result, words, (*named.values(), total), asides)


def result_of(
    capacity: Capacity,
    peak: float,
    peak_phase: str,
    kinds: Mapping[str, float | None],
    phases: Sequence[Phase] = (),
) -> dict[str, Any]:
    """The keys of every answer about memory; null is what is not known by kind."""
    return {
        "per_gpu_bytes": {**dict.fromkeys(KINDS), **kinds, "peak": peak},
        "peak_phase": peak_phase,
        "phases": [_phase(each) for each in phases],
        "capacity_bytes": capacity.limit.bytes,
        "verdict": capacity.verdict(peak),
        "fits": capacity.holds(peak),
    }


def _by_kind(step: Step) -> dict[str, float | None]:
    held, without_model = step.states, step.activations is None
    return {
        "weights": held.weights.value,
        "master_weights": 0 if held.master is None else held.master.value,
        "gradients": held.gradients.value,
        "optimizer": 0 if held.optimizer is None else held.optimizer.value,
        "activations": value_of(step.activations),
        "loss": None if without_model else 0 if step.loss is None else step.loss.value,
        "temporaries": sum(each.value for each in step.temporaries),
    }


def _phase(phase: Phase) -> dict[str, Any]:
    alive = {each.label: each.value for each in phase.alive}
    return {"phase": phase.name, "bytes": phase.bytes, "alive": alive}


def _words(asked: Scenario, step: Step, total: Quantity, headline: str) -> Words:
    peak = step.peak
    what = PEAKS[peak.name]
    of = units.count(asked.N.value) if asked.about is None else asked.about.name
    zero = f", ZeRO-{asked.setup.zero}" if asked.setup.ranks > 1 else ""
    where = f"on each of {on_how_many(asked.gpus, asked.capacity)}{zero}"
    condition = f"{what} · {of}, {asked.precision} {asked.optimizer} · {where}"
    notes, warnings = fits_in(asked.capacity, total.value)
    warnings += _both_readings(asked, total)
    if asked.about is not None:
        warnings += too_long(asked.about, asked.setup.seq_len)
        notes += _bars(step, asked.capacity.limit.bytes)
    else:
        notes.append("states alone: --model shows activations and the phases of a step too")
    notes += _others(asked)
    if asked.about is not None:
        notes += [
            *scenario.assumed(asked.about, asked.setup),
            _not_counted(asked.capacity),
            *step.notes,
        ]
        notes += [*asked.about.notes]
    if asked.setup.optimizer.note:
        notes.append(asked.setup.optimizer.note)
    notes += asked.capacity.notes
    said = units.gb_and_gib(total.value)
    return Words(f"{headline}{said}", condition, notes, warnings)


def _both_readings(asked: Scenario, total: Quantity) -> list[str]:
    """Where the name of the hardware is what a driver calls each device of a package."""
    capacity = asked.capacity
    if capacity.devices_meant == 1:
        return []
    alone = asked.on_devices(asked.gpus).step(PLAIN).peak.bytes
    return both_readings(capacity.wanted, capacity.devices_meant, total, alone)


def _not_counted(capacity: Capacity) -> str:
    """A memory that is given holds the context too."""
    context = "CUDA's context (0.5 to 1.5 GB), " if capacity.hardware is None else ""
    return f"not counted: {context}{NOT_COUNTED}"


def on_how_many(gpus: int, capacity: Capacity) -> str:
    """`8 × H100 SXM`; of packages of several devices, those: `16 devices of 8 × MI250X`."""
    said = f"{gpus:,} × {capacity.said}"
    return said if capacity.devices == 1 else f"{gpus * capacity.devices:,} devices of {said}"


def fits_in(capacity: Capacity, peak: float) -> tuple[list[str], list[str]]:
    """The verdict, as a note or as a warning."""
    verdict, limit = capacity.verdict(peak), capacity.limit
    difference = units.humanize(abs(limit.bytes - peak), "B")
    of = f"{units.gb_and_gib(limit.bytes)}: {limit.said}"
    if verdict == DOES_NOT_FIT:
        return [], [f"{verdict}: {difference} short of {of}"]
    said = f"{verdict}: {difference} to spare of {of}"
    if verdict == FITS:
        return [said], []
    return [], [f"{said}; fragmentation may end it"]


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


def _others(asked: Scenario) -> list[str]:
    """What plain data parallel, or sharding, would need."""
    setup = asked.setup
    if setup.ranks == 1:
        return ["plain data parallel needs the same on every GPU, however many there are"]
    if setup.zero:
        plain = asked.on(asked.gpus, 0).step(PLAIN).peak.bytes
        return [f"plain data parallel (--zero 0) would need {units.gb_and_gib(plain)} a GPU"]
    needs = units.gb_and_gib(asked.on(asked.gpus, 3).step(PLAIN).peak.bytes)
    return [f"plain data parallel: all GPUs hold the same; --zero 3 would need {needs}"]
