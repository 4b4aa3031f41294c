"""What model FLOP utilization does a run reach?"""

from collections.abc import Sequence
from functools import partial

from napkin import units
from napkin.accounting import compute
from napkin.accounting.run import LOST, SPEED, solve
from napkin.errors import NapkinError
from napkin.quantity import Quantity, given
from napkin.questions import options, throughput, workload
from napkin.questions.answer import Answer, Inputs, Words, value_of
from napkin.questions.examples import MFU as MFU_EXAMPLE
from napkin.questions.machines import machines
from napkin.questions.options import Text
from napkin.questions.peak import COLUMNS as PEAK
from napkin.questions.peak import (
    MEASURED,
    PROMISED,
    Promise,
    promise,
)
from napkin.questions.quantities import goodput as read_goodput
from napkin.questions.throughput import Throughput
from napkin.questions.workload import Workload
from napkin.record import Record
from napkin.specs.conventions import CONVENTIONS, SIX_N

NO_ADAPTERS: Inputs = {"lora_rank": None, "lora_targets": None}
# CS336 lecture 2: 50 % is good, 5 % is poor.
GOOD = 0.5
LOW, HIGH = 0.15, 0.7  # between which most runs are
VERDICTS = (
    (GOOD, "good: 50 % and more is what to aim for"),
    (0.3, "fair: 50 % is good, 5 % is poor"),
    (0.05 + 1e-9, "low: 50 % is good, 5 % is poor"),
    (0.0, "poor: 50 % is good; something other than matmuls takes the time"),
)
# Of csv: inputs, then the result.
COLUMNS = (
    *dict.fromkeys((*workload.COLUMNS, *throughput.COLUMNS)),
    *(*PEAK, "recompute", "frozen_base", "lora_rank", "lora_targets"),
    *("flops_per_param", "lost_time", "goodput"),
    *("mfu", *(f"conventions.{name}" for name in CONVENTIONS), "hfu", "mfu_measured"),
    *("flops_per_token", "flops_per_second_per_gpu", "seconds", "mfu_run"),
)
# What to ask of each option where the MFU is impossible.
DOUBTS = {
    "global_batch": "sequences, not tokens?",
    "micro_batch": "sequences of one GPU?",
    "grad_accum": "micro-steps?",
    "seq_len": "tokens?",
    "tokens_per_step": "of all GPUs together?",
    "step_time": "of an optimizer step?",
    "tokens_per_second": "of all GPUs together?",
    "tokens_per_second_per_gpu": "of one GPU?",
    "tokens": "of the whole run?",
    "time": "of the whole run?",
    "gpu_hours": "of the whole run?",
    "flops": "of all GPUs together?",
    "achieved": "of one GPU?",
    "gpus": "all that took part?",
    "active_params": "a mixture of experts?",
    "frozen_base": "LoRA?",
    "dtype": "an fp8 run?",
}


def mfu(
    *,
    params: Text | None = None,
    active_params: Text | None = None,
    model: str | None = None,
    convention: str | None = None,
    gpus: Text | None = None,
    tokens_per_second: Text | None = None,
    tokens_per_second_per_gpu: Text | None = None,
    step_time: Text | None = None,
    tokens_per_step: Text | None = None,
    seq_len: Text | None = None,
    global_batch: Text | None = None,
    micro_batch: Text | None = None,
    grad_accum: Text | None = None,
    tokens: Text | None = None,
    time: Text | None = None,
    gpu_hours: Text | None = None,
    achieved: Text | None = None,
    flops: Text | None = None,
    recompute: str | None = None,
    frozen_base: bool = False,
    lora_rank: Text | None = None,
    lora_targets: str | None = None,
    flops_per_param: Text | None = None,
    steps: Text | None = None,
    lost_time: Text | None = None,
    goodput: Text | None = None,
    hardware: str | None = None,
    dtype: str | None = None,
    peak: Text = PROMISED,
    sparse: bool = False,
) -> Answer:
    """The model's FLOP/s over the promised peak (PaLM 2204.02311, appendix B).

    The rate comes from one of: tokens per second, a step's time, a whole run, a log's
    FLOP/s, or raw FLOP and time. Options as text or numbers. Raises NapkinError.
    """
    gpus, hardware = machines(gpus, hardware)
    about = workload.optional(params, active_params, model, convention, seq_len, flops_per_param)
    T = None if about is None else about.T
    asked = throughput.Settings(
        gpus=gpus,
        tokens_per_second=tokens_per_second,
        tokens_per_second_per_gpu=tokens_per_second_per_gpu,
        step_time=step_time,
        tokens_per_step=tokens_per_step,
        seq_len=seq_len if T is None else None,
        global_batch=global_batch,
        micro_batch=micro_batch,
        grad_accum=grad_accum,
        steps=steps,
        tokens=tokens,
        time=time,
        gpu_hours=gpu_hours,
        achieved=achieved,
        flops=flops,
    )
    measured = throughput.read(asked, T)
    lost, share = read_goodput(lost_time, goodput)
    measured = measured.replace(
        known={**measured.known, **lost}, inputs={**measured.inputs, **share}
    )
    counted = _model(measured, about, frozen_base, flops_per_param is not None)
    if lora_rank is not None:
        counted = _of_adapters(counted, lora_rank, lora_targets)
    elif lora_targets is not None:
        raise options.error("lora_targets", "goes with --lora-rank")
    again = (
        None if recompute is None else options.choice("recompute", recompute, workload.RECOMPUTE)
    )
    chosen = promise(hardware, dtype, peak, sparse)
    if peak == MEASURED:
        # An MFU is over the promised peak, whatever was measured; the measured one has its row.
        chosen = promise(hardware, dtype, PROMISED, sparse)
        chosen.inputs["peak"] = MEASURED
    return _answer(measured, counted, again, chosen)


class _Model(Record):
    """f in FLOP/token, None where the rate is in FLOP/s already and no parameters are given."""

    f: Quantity | None
    about: Workload | None
    frozen_base: bool
    counts: bool  # whether the MFU rests on f: a log's FLOP are counted already
    adapters: Inputs = NO_ADAPTERS
    notes: Sequence[str] = ()

    @property
    def trains_adapters(self) -> bool:
        return self.adapters["lora_rank"] is not None

    @property
    def inputs(self) -> Inputs:
        if self.about is None:
            return {"params": None, "active_params": None, "model": None, "convention": None}
        return self.about.inputs


def _model(
    measured: Throughput, about: Workload | None, frozen_base: bool, flops_per_param: bool
) -> _Model:
    counts = not measured.counted
    if flops_per_param and not counts:
        raise options.error("flops_per_param", "does nothing here: the FLOP are counted already")
    if options.switch("frozen_base", frozen_base) and not counts:
        raise options.error("frozen_base", "does nothing here: the FLOP are counted already")
    if about is None:
        if counts:
            raise NapkinError(f"mfu needs --params or --model, as in: {MFU_EXAMPLE}")
        return _Model(None, None, False, False)
    if frozen_base:
        if about.convention != SIX_N:
            raise options.error("frozen_base", "counts 4N; leave --convention out")
        if about.k is not None:
            raise options.error("frozen_base", "counts 4N; leave --flops-per-param out")
        return _Model(compute.flop_per_token(about.N_act, compute.FROZEN_BASE), about, True, counts)
    return _Model(about.f, about, False, counts)


def _of_adapters(model: _Model, rank: Text, targets: str | None) -> _Model:
    """The same, a frozen model's adapters trained: every matmul and attention that there is."""
    about = model.about
    if not model.counts:
        raise options.error("lora_rank", "does nothing here: the FLOP are counted already")
    if model.frozen_base:
        raise options.error("frozen_base", "--lora-rank counts it, adapters too; leave one out")
    if about is None or about.model is None:
        raise options.error("lora_rank", "needs the model's shape: give --model")
    if about.convention != SIX_N:
        raise options.error("convention", "counts training all of it; leave it out")
    from napkin.accounting.flop_per_token import attention
    from napkin.questions.adapted import through  # few runs are of adapters

    T = given("T", "sequence length", about.inputs["seq_len"], "token/seq", "--seq-len")
    found, inputs = through(about.model, attention(about.model, T), rank, targets)
    return model.replace(f=found.f, adapters=inputs, notes=found.notes)


def _hfu(
    MFU: Quantity, recompute: str | None, model: _Model, r1: Quantity | None, P: Quantity
) -> Quantity | None:
    if recompute in (None, "none"):
        return None
    about = model.about
    if model.trains_adapters:
        raise options.error("recompute", "is not counted with --lora-rank yet; leave it out")
    if recompute == "full" and (about is None or about.model is None or model.frozen_base):
        return compute.hfu(MFU, model.frozen_base)
    if about is None or about.model is None or model.f is None or r1 is None:
        raise options.error("recompute", f"{recompute} needs the model's shape: give --model")
    if recompute not in about.again:
        raise options.error("recompute", f"{about.model.name} has no attention to recompute")
    return compute.hfu_of(model.f, about.again[recompute], r1, P)


def _answer(
    measured: Throughput, model: _Model, recompute: str | None, promised: Promise
) -> Answer:
    f = model.f
    found = solve({**measured.known, **({} if f is None else {"f": f}), "P": promised.P}, SPEED)
    if "goodput" in found:
        found = solve(found, LOST)
    A, MFU, MFU_run = found["A"], found["MFU"], found.get("MFU_run")
    r1, h, t = (found.get(symbol) for symbol in ("r₁", "h", "t"))
    here = None if promised.here is None else compute.mfu_of_measured(A, promised.here)
    HFU = _hfu(MFU, recompute, model, r1, promised.P)
    hfu = MFU.value if recompute == "none" else value_of(HFU)
    inputs = {
        **model.inputs,
        **measured.inputs,
        **promised.inputs,
        "recompute": recompute,
        "frozen_base": model.frozen_base,
        **model.adapters,
    }
    result = {
        "mfu": MFU.value,
        "conventions": _by_convention(MFU, model),
        "hfu": hfu,
        "mfu_measured": value_of(here),
        "flops_per_token": value_of(f),
        "flops_per_second_per_gpu": A.value,
        "tokens_per_second_per_gpu": value_of(r1),
        "gpu_hours": value_of(h),
        "seconds": value_of(t),
    }
    if "MFU_run" in found:
        result["mfu_run"] = found["MFU_run"].value
    if model.about is not None and model.about.k is not None:
        inputs["flops_per_param"] = model.about.k.value
    words = partial(_words, MFU, MFU_run, HFU, here, A, model, measured, promised)
    steps = tuple(q for q in (MFU, here, HFU) if q is not None)
    asides = tuple(q for q in (r1, h, t, MFU_run) if q is not None)
    rows = tuple(q for q in (f if model.counts else None, A, promised.P, *steps) if q is not None)
    return Answer("mfu", inputs, result, words, steps, asides, COLUMNS, rows)


def _by_convention(MFU: Quantity, model: _Model) -> dict[str, float | None]:
    """The same throughput as every convention would put it; null where it cannot be told."""
    found: dict[str, float | None] = dict.fromkeys(CONVENTIONS)
    if model.trains_adapters:  # which no convention counts
        return found
    if model.counts and model.f is not None and model.about is not None:
        counted = {} if model.frozen_base else model.about.flop
        for name, f in counted.items():
            found[name] = MFU.value * (f.value / model.f.value)
        if not counted and model.frozen_base:
            found[SIX_N] = MFU.value
        elif not counted:
            six = compute.flop_per_token(model.about.N_act)
            found[SIX_N] = MFU.value * (six.value / model.f.value)
    return found


def _suspects(measured: Throughput, model: _Model, promised: Promise) -> str:
    """More than the peak can do: the options that may be why, those first that were given."""
    options_of_f = ("active_params", "frozen_base") if model.counts else ()
    is_stated = promised.inputs["peak"] not in (PROMISED, MEASURED)
    options_of_P = ("peak",) if is_stated else ("dtype", "hardware")
    asked = [option for option in DOUBTS if option in measured.given]
    *most, last = (
        f"{options.flag(option)} ({DOUBTS[option]})" if option in DOUBTS else options.flag(option)
        for option in (*asked, *options_of_f, *options_of_P)
    )
    return f"more than the peak can do: look at {', '.join(most)} and {last}"


def _words(
    MFU: Quantity,
    MFU_run: Quantity | None,
    HFU: Quantity | None,
    here: Quantity | None,
    A: Quantity,
    model: _Model,
    measured: Throughput,
    promised: Promise,
) -> Words:
    notes, warnings = [], promised.warnings()
    warnings += promised.readings(MFU)
    if model.about is not None:
        by_6N = model.counts and not model.trains_adapters
        warnings += [*model.about.warnings, *(model.about.leaves_out if by_6N else [])]
    if MFU.value > 1:
        warnings.insert(0, _suspects(measured, model, promised))
    elif HFU is not None and HFU.value > 1:
        warnings.insert(0, f"HFU {HFU} is {_suspects(measured, model, promised)}")
    else:
        notes.append(next(said for least, said in VERDICTS if MFU.value >= least))
    if here is not None:
        notes.append(f"{here} of the {promised.here} measured here, {MFU} of {promised.P}")
    if HFU is not None:
        notes.append(f"HFU {HFU} counts what is computed again; MFU stays {MFU}")
    if model.frozen_base:
        notes.append("4N: a frozen base has no weight gradients; adapters are not counted")
    elif model.trains_adapters:
        notes += model.notes
    elif model.counts and model.about is not None and model.about.k is None and model.about.model:
        notes += model.about.counted(MFU.value)
    elif model.counts and model.about is not None and model.about.k is not None:
        by_six = units.humanize(_by_convention(MFU, model)[SIX_N] or 0, "%")
        notes.append(f"{model.about.each} as --flops-per-param says; by 6N, MFU is {by_six}")
    elif model.counts:
        notes.append("6N counts every weight once per token, and no attention")
    else:
        notes.append("the FLOP are as given, by whichever convention they were counted")
    of = " · over the whole run" if measured.of_run else ""
    if MFU_run is not None:
        of = " · in the steps"
        notes.append(f"{MFU_run} over the whole run, lost time counted; {MFU} is that of the steps")
    headline = f"{MFU} MFU"
    if promised.inputs["peak"] == MEASURED:
        headline = f"{here} of the measured peak, {headline}"
    counted = _how_counted(model)
    device = promised.accelerator.short_name
    notes += [*measured.notes, *promised.notes(A.value)]
    if MFU.value < GOOD:
        notes += _to_gain(MFU, model, measured)
    return Words(headline, f"of {device} · {promised.kind}{counted}{of}", notes, warnings)


def _to_gain(MFU: Quantity, model: _Model, measured: Throughput) -> list[str]:
    """What a good utilization would save, and how to find out what keeps it low."""
    saved = 1 - MFU.value / GOOD
    about = None if model.about is None else model.about.model
    name = " --model NAME" if about is None else f" --model {about.name}"
    return [
        *_of_one_gpu(MFU, measured),
        f"at {GOOD:.0%} the same tokens would take {saved:.0%} less time".replace("%", " %"),
        f"why: napkin bench{name} (your shapes' roof) · --recompute full (HFU)",
        f"     napkin memory{name} --fit micro-batch",
    ]


def _of_one_gpu(MFU: Quantity, measured: Throughput) -> list[str]:
    """A log's rate is often that of one GPU: said where that would be a usual share."""
    gpus = measured.inputs.get("gpus", 1)
    alone = MFU.value * gpus
    if "tokens_per_second" not in measured.given or MFU.value > LOW or not LOW < alone < HIGH:
        return []
    share = units.humanize(alone, "%")
    return [f"if that is the rate of one GPU: --tokens-per-second-per-gpu, {share}"]


def _how_counted(model: _Model) -> str:
    if not model.counts or model.about is None:
        return ""
    if model.frozen_base:
        return " · 4N"
    if model.trains_adapters:
        return f"{model.about.named}, adapters"
    return model.about.named or f" · {model.about.each}"
