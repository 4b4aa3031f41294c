"""One scenario of `memory` as an answer: by kind, phase by phase, against what the GPU has."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from napkin import units
from napkin.accounting import memory as formulas
from napkin.accounting.layout import UNDIVIDED
from napkin.accounting.napkin import working
from napkin.accounting.notation import PLAIN
from napkin.accounting.operations import FP32
from napkin.accounting.quantised import quantised
from napkin.accounting.step import Phase, Step
from napkin.quantity import Quantity
from napkin.questions.answer import Answer, Bar, Picture, Words, value_of
from napkin.questions.capacity import DOES_NOT_FIT, FITS, TIGHT, Capacity
from napkin.questions.memory import scenario
from napkin.questions.memory.scenario import Scenario, Settings
from napkin.questions.peak import both_readings
from napkin.questions.workload import too_long
from napkin.specs.model import Model, Stack

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
PHASES = ("states", "start", "forward", "loss", "backward", "step", "zero_grad")
SERVED = "kv_cache"  # a kind that only serving has
# Of csv, of training, --fit and serving alike: inputs, then the result.
COLUMNS = (
    *("params", "model", "gpus", "hardware", "precision", "optimizer", "bytes_per_param", "zero"),
    *("lora_rank", "lora_targets", "quantize"),
    *("tp", "pp", "cp", "ep", "sequence_parallel", "virtual_stages", "imbalance"),
    *("micro_batch", "seq_len", "grad_accum", "recompute", "attention", "norm", "step"),
    *("chunked_loss", "bucket_view", "activations", "double_quant", "context", "batch"),
    *(f"per_gpu_bytes.{kind}" for kind in (*KINDS, SERVED, "peak")),
    *("adapter_params", "host_bytes", "peak_phase"),
    *(f"phases.{phase}.bytes" for phase in PHASES),
    *("capacity_bytes", "verdict", "fits"),
)
AUTOCAST = "amp casts each weight and keeps it; FSDP's own policy does not: --precision mixed"
SEEN = 0.01  # of the scale: what is less is drawn together


def answered(asked: Scenario, headline: str = "", settings: Settings | None = None) -> Answer:
    """The answer to these settings; `headline` in front of it where it answers --fit.

    `settings` are those that were given, where changes to them are to be shown.
    """
    step = asked.step()
    peak = step.peak
    total = formulas.peak(PEAKS[peak.name], peak.alive)
    result = result_of(asked.capacity, total.value, peak.name, _by_kind(step), step.phases)
    result["adapter_params"] = None if asked.setup.tuning is None else step.params.N.value
    result["host_bytes"] = 0 if step.states.paged is None else step.states.paged.value
    words = partial(_words, asked, step, total, headline, settings)
    # All that the bars name has its row.
    named = {each.symbol: each for phase in step.phases for each in phase.alive}
    kinds = (*step.states.all, step.states.paged, step.activations, step.loss, *step.temporaries)
    asides = tuple(each for each in kinds if each is not None)
    rows, steps = working(step, asked.setup), (*named.values(), total)
    return Answer("memory", asked.inputs, result, words, steps, asides, COLUMNS, rows)


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
        "weights": sum(q.value for q in (held.weights, held.frozen) if q is not None),
        "master_weights": 0 if held.master is None else held.master.value,
        "gradients": held.gradients.value,
        "optimizer": 0 if held.optimizer is None else held.optimizer.value,
        "activations": value_of(step.activations),
        "loss": None if without_model else 0 if step.loss is None else step.loss.value,
        "temporaries": sum(each.value for each in step.temporaries),
    }


def _phase(phase: Phase) -> dict[str, Any]:
    alive = {each.symbol: each.value for each in phase.alive}
    return {"phase": phase.name, "bytes": phase.bytes, "alive": alive}


def _words(
    asked: Scenario, step: Step, total: Quantity, headline: str, settings: Settings | None
) -> Words:
    of = units.count(asked.N.value) if asked.about is None else asked.about.name
    verdict, failure, warnings = fits_in(asked.capacity, total.value)
    warnings += _both_readings(asked, total)
    notes = ["states alone: --model shows activations and the phases of a step too"]
    tuned, of_adapters = _adapted(asked, step)
    divided = [*tuned, *_divided(asked, step)]
    details = [*verdict, *of_adapters, *_others(asked)]
    if asked.about is not None:
        warnings += too_long(asked.about, asked.setup.seq_len)
        notes = []
        details += [*scenario.assumed(asked.about, asked.setup), *step.notes]
    notes = [*divided, *notes]
    if settings is not None:
        from napkin.questions.memory import changes  # loaded where the words are read

        notes += changes.lines(settings, asked, step.peak.bytes)
    is_tight = asked.capacity.verdict(total.value) == TIGHT
    if asked.about is not None and not (is_tight and asked.capacity.hardware):
        notes.append(_not_counted(asked.capacity))
    if asked.about is not None:
        notes += asked.about.notes
    if asked.setup.optimizer.note:
        (notes if asked.setup.optimizer.hidden_only else details).append(asked.setup.optimizer.note)
    if step.states.paged is not None:
        notes.append(f"in the host's memory, paged: {step.states.paged} of moments a GPU")
    if asked.precision == "amp" and asked.setup.zero == 3 and asked.setup.ranks > 1:
        notes.append(AUTOCAST)
    return Words(
        f"{headline}{verdict_of(asked.capacity, total.value)}",
        f"{of} · {on_how_many(asked.gpus, asked.capacity)}",
        notes,
        warnings,
        settings=_settings(asked, step, settings),
        details=[*details, *asked.capacity.notes],
        failure=failure,
        picture=None if asked.about is None else _picture(step, asked.capacity),
    )


def _settings(asked: Scenario, step: Step, given: Settings | None) -> str:
    """What moves the answer most."""
    setup = asked.setup
    words = [f"{asked.precision} {asked.optimizer}", f"ZeRO-{setup.zero}" * (setup.ranks > 1)]
    if isinstance(asked.about, Stack):
        words.append(f"{setup.micro_batch * setup.seq_len:,} samples")
    elif asked.about is not None:
        assumed = " (assumed)" if given is not None and given.seq_len is None else ""
        words.append(f"{setup.micro_batch:,} × {setup.seq_len:,} tokens{assumed}")
        words.append(f"{setup.recompute} recomputation" * (setup.recompute != "none"))
    else:
        words.append(PEAKS[step.peak.name])
    words.append(room_of(asked.capacity, step.peak.bytes))
    return " · ".join(filter(None, words))


def _adapted(asked: Scenario, step: Step) -> tuple[list[str], list[str]]:
    """What is trained, what is frozen and in how many bits; and what of it few need."""
    tuning, about = asked.setup.tuning, asked.about
    if tuning is None or not isinstance(about, Model):
        return [], []
    which = ", ".join(tuning.targets) or "every linear layer of the blocks"
    line = f"LoRA: {step.params.N} of rank {tuning.rank}"
    more = [f"adapters stand beside {which}"]
    if tuning.stored is not None:
        N_q, bits = quantised(about, tuning.stored), units.figures(tuning.stored.bits)
        rest = asked.N.value - N_q
        stored = f"{units.count(N_q)} in {tuning.stored.precision} ({bits} bits)"
        line += f" · {stored}, {units.count(rest)} in {8 * tuning.base.weights}"
        experts = ", and experts, which bitsandbytes leaves as they are" * (about.moe_layers > 0)
        more.append(f"not quantised are table, head and norms{experts}")
        if tuning.base.weights < FP32:
            cast = units.humanize(rest * (FP32 - tuning.base.weights), "B")
            more.append(f"prepare_model_for_kbit_training casts them to fp32: {cast} more")
    if asked.setup.precision.weights > tuning.base.weights:
        more.append("adapters in fp32, as peft casts them; --precision bf16 leaves them in bf16")
    return [line], more


def _divided(asked: Scenario, step: Step) -> list[str]:
    """How the model lies on the GPUs, and which of them is counted."""
    setup, degrees = asked.setup, asked.setup.degrees
    if degrees is UNDIVIDED:
        return []
    dp = setup.ranks // degrees.cp
    ways = {"tp": degrees.tp, "pp": degrees.pp, "cp": degrees.cp, "dp": dp}
    product = " × ".join(f"{name} {n:,}" for name, n in ways.items() if n > 1 or name == "dp")
    parts = [f"{setup.world:,} = {product}"]
    if degrees.ep > 1:
        even = "evenly" if degrees.imbalance == 1 else f"{degrees.imbalance:g} times the mean"
        parts.append(f"experts over {degrees.ep:,} of them, sent rows {even}")
    if degrees.sequence_parallel:
        parts.append("sequence parallel")
    lines = [", ".join(parts)]
    if step.stage:
        flying = f"{units.figures(step.in_flight)} micro-batches in flight"
        lines.append(f"{step.stage}; {flying}")
    return lines


def verdict_of(capacity: Capacity, peak: float) -> str:
    """`49.79 GB (46.37 GiB) fits in 83.48 GB`."""
    verdict, room = capacity.verdict(peak), units.humanize(capacity.limit.bytes, "B")
    words = {FITS: "fits in", DOES_NOT_FIT: "DOES NOT FIT in"}.get(verdict, "is tight in")
    return f"{units.gb_and_gib(peak)} {words} {room}"


def room_of(capacity: Capacity, peak: float) -> str:
    """`33.68 GB to spare`."""
    left = capacity.limit.bytes - peak
    return f"{units.humanize(abs(left), 'B')} {'short' if left < 0 else 'to spare'}"


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
    return f"not counted: {context}workspaces, fragmentation"


def on_how_many(gpus: int, capacity: Capacity) -> str:
    """`8 × H100 SXM`; of packages of several devices, those: `16 devices of 8 × MI250X`."""
    said = f"{gpus:,} × {capacity.name}"
    return said if capacity.devices == 1 else f"{gpus * capacity.devices:,} devices of {said}"


def fits_in(capacity: Capacity, peak: float) -> tuple[list[str], str, list[str]]:
    """The verdict: as a note, as a failure, or as a warning."""
    verdict, limit = capacity.verdict(peak), capacity.limit
    of = f"{units.gb_and_gib(limit.bytes)}: {limit.source}"
    words = f"{verdict}: {room_of(capacity, peak)} of {of}"
    if verdict == DOES_NOT_FIT:
        return [], words, []
    if verdict == FITS:
        return [words], "", []
    # The terminal has a line for it; where the limit comes from, the whole working says.
    room = f"{room_of(capacity, peak)} of {units.humanize(limit.bytes, 'B')}"
    return [of], "", [f"{verdict}: {room}; fragmentation may end it"]


def _picture(step: Step, capacity: Capacity) -> Picture:
    """What is alive in each phase of the step, against what there is."""
    limit = capacity.limit.bytes
    seen = SEEN * max(limit, step.peak.bytes)
    bars = [
        Bar(
            f"{phase.name:9} {phase.flop:2}",
            units.humanize(phase.bytes, "B"),
            _parts(phase, seen),
            " < peak" if phase is step.peak else "",
        )
        for phase in step.phases[1:-1]  # before and after it, the state alone is there
    ]
    return Picture(bars, limit, f"{units.humanize(limit, 'B')} of {capacity.name}")


def _parts(phase: Phase, seen: float) -> tuple[tuple[str, float], ...]:
    large = [each for each in phase.alive if each.value >= seen]
    rest = phase.bytes - sum(each.value for each in large)
    named = [(f"{each.symbol} {each.label}", each.value) for each in large]
    return (*named, ("smaller ones", rest)) if rest else tuple(named)


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
