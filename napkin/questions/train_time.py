"""How long does a training run take, and what does it cost?"""

from functools import partial
from typing import NamedTuple

from napkin import parsing, units
from napkin.accounting import compute, memory
from napkin.quantity import Quantity, given
from napkin.questions import options, workload
from napkin.questions.answer import Answer, Words, value_of
from napkin.questions.examples import TRAIN_TIME
from napkin.questions.machines import machines
from napkin.questions.options import Text
from napkin.questions.peak import COLUMNS as PEAK
from napkin.questions.peak import (
    PROMISED,
    Promise,
    printed_memory,
    promise,
)
from napkin.questions.workload import Workload, bytes_per_param
from napkin.record import Record
from napkin.specs.accelerator import Figure
from napkin.specs.conventions import CONVENTIONS, SIX_N
from napkin.specs.optimizers import OPTIMIZERS, PRECISIONS

# FLOP of known runs: GPT-3's table D.1 (2005.14165); GPT-4's is Epoch AI's estimate.
LANDMARKS = (("GPT-3's 3.14e23", 3.14e23), ("GPT-4's 2e25 (an estimate)", 2e25))
ASSUMED_MFU = "50%"

OTHER_SHARES = (0.4, 0.3)  # beside an assumed one: what published runs reach more often
# Of csv: inputs, then the result.
COLUMNS = (
    *workload.COLUMNS,
    *("tokens", "epochs", "gpus", *PEAK, "mfu", "price"),
    *(
        "flops",
        "seconds",
        "days",
        "gpu_hours",
        "pf_days",
        "tokens_per_second",
        "tokens_per_second_per_gpu",
    ),
    *("min_gpus_for_states", "cost", "energy_kwh", "measured.days", "measured.mfu_promised"),
    *("published", *(f"conventions.{name}" for name in CONVENTIONS)),
)
COUNTED = "6ND: a matmul costs 2·m·n·p FLOP, once forward, twice backward; no attention"

# fp32 AdamW keeps as much; max-model shows the terms of every recipe.
STATE = bytes_per_param(PRECISIONS["mixed"], OPTIMIZERS["adamw"], "mixed precision AdamW")


class _Run(Record):
    """The inputs of one scenario."""

    workload: Workload
    D: Quantity
    epochs: Quantity | None
    n: Quantity
    MFU: Quantity
    promised: Promise
    price: Quantity | None
    assumed: bool  # MFU was not given


def train_time(
    *,
    params: Text | None = None,
    tokens: Text | None = None,
    gpus: Text | None = None,
    active_params: Text | None = None,
    model: str | None = None,
    convention: str | None = None,
    seq_len: Text | None = None,
    epochs: Text | None = None,
    hardware: str | None = None,
    dtype: str | None = None,
    peak: Text = PROMISED,
    sparse: bool = False,
    mfu: Text | None = None,
    price: Text | None = None,
) -> Answer:
    """Days of a run: C = 6·N·D over n · P · MFU; also GPU-hours, token rates, cost, energy.
    Where the shape of the model is known, C by any convention.

    Options as on the command line, as text or numbers. Raises NapkinError.
    """
    size = params if model is None else model
    options.required("train-time", TRAIN_TIME, params=size, tokens=tokens, gpus=gpus)
    if model is None and seq_len is not None:
        raise options.error("seq_len", "goes with --model")
    about = workload.read(params, active_params, model, convention, seq_len)
    gpus, hardware = machines(gpus, hardware)
    D, e = _tokens(tokens, epochs)
    run = _Run(
        workload=about,
        D=D,
        epochs=e,
        n=options.quantity("gpus", gpus, parsing.gpus, "n", "GPUs", "GPU"),
        MFU=options.quantity("mfu", mfu, parsing.fraction, "MFU", "utilization", "%", ASSUMED_MFU),
        promised=promise(hardware, dtype, peak, sparse),
        price=None
        if price is None
        else options.quantity("price", price, parsing.money, "p", "price", "USD/GPU/hour"),
        assumed=mfu is None,
    )
    return _answer(run)


def _tokens(tokens: Text | None, epochs: Text | None) -> tuple[Quantity, Quantity | None]:
    """D, the tokens trained on, and how many times each was seen."""
    if epochs is None:
        label = "training tokens"
        return options.quantity("tokens", tokens, parsing.tokens, "D", label, "token"), None
    D1 = options.quantity("tokens", tokens, parsing.tokens, "D₁", "tokens of one epoch", "token")
    e = options.quantity("epochs", epochs, parsing.factor, "e", "epochs", "1")
    return compute.tokens_of_epochs(D1, e), e


class _Figures(NamedTuple):
    """What follows from the inputs."""

    C: Quantity
    t: Quantity
    h: Quantity
    C_pfs: Quantity
    r: Quantity
    r1: Quantity
    S: Quantity
    n_min: Quantity
    cost: Quantity | None
    E: Quantity | None
    t_here: Quantity | None
    MFU_here: Quantity | None


def _figures(run: _Run) -> _Figures:
    C = _compute(run.workload, run.D)
    t = compute.training_time(C, compute.sustained_throughput(run.n, run.promised.P, run.MFU))
    h = compute.gpu_hours(run.n, t)
    r = compute.token_rate(run.D, t)
    S = memory.training_state(run.workload.N, STATE)
    P, here = run.promised.P, run.promised.here
    return _Figures(
        C=C,
        t=t,
        h=h,
        C_pfs=compute.petaflop_s_days(C),
        r=r,
        r1=compute.token_rate_per_gpu(r, run.n),
        S=S,
        n_min=memory.min_gpus(S, printed_memory(run.promised.accelerator)),
        cost=None if run.price is None else compute.cost(h, run.price),
        E=_energy(h, run.promised.accelerator.tdp),
        t_here=None if here is None else compute.time_at_measured(t, P, here),
        MFU_here=None if here is None else compute.mfu_at_measured(run.MFU, P, here),
    )


def _compute(about: Workload, D: Quantity) -> Quantity:
    if about.convention == SIX_N:
        return compute.training_compute(about.N_act, D)
    return compute.training_compute_of(about.f, D)


def _energy(h: Quantity, tdp: Figure | None) -> Quantity | None:
    if tdp is None:
        return None
    return compute.energy(h, given("TDP", "TDP of one GPU", tdp.value, "W/GPU", tdp.source))


def _answer(run: _Run) -> Answer:
    f = _figures(run)
    inputs = {
        **run.workload.inputs,
        "tokens": run.D.value,
        "epochs": value_of(run.epochs),
        "gpus": run.n.value,
        **run.promised.inputs,
        "mfu": run.MFU.value,
        "price": value_of(run.price),
    }
    result = {
        "flops": f.C.value,
        "seconds": f.t.value,
        "days": f.t.value / units.DAY,
        "gpu_hours": f.h.value,
        "pf_days": f.C_pfs.value,
        "params": run.workload.N.value,
        "active_params": run.workload.N_act.value,
        "tokens": run.D.value,
        "gpus": run.n.value,
        "mfu": run.MFU.value,
        "tokens_per_second": f.r.value,
        "tokens_per_second_per_gpu": f.r1.value,
        "min_gpus_for_states": f.n_min.value,
        "cost": value_of(f.cost),
        "energy_kwh": None if f.E is None else f.E.value / 1000,
        "measured": _measured(f),
        "published": None,
    }
    if run.workload.model is not None:
        result["conventions"] = {
            name: each.value * run.D.value for name, each in run.workload.flop.items()
        }
    derived = (f.h, f.C_pfs, f.r1, f.cost, f.E, f.n_min, f.t_here, f.MFU_here)
    asides = tuple(q for q in derived if q is not None)
    return Answer("train-time", inputs, result, partial(_words, run, f), (f.t,), asides, COLUMNS)


def _measured(f: _Figures) -> dict[str, float] | None:
    if f.t_here is None or f.MFU_here is None:
        return None
    return {"days": f.t_here.value / units.DAY, "mfu_promised": f.MFU_here.value}


def _both(run: _Run, f: _Figures) -> list[str]:
    """Promised and measured side by side, where bench has a figure on file."""
    if f.t_here is None:
        return []
    promised = f"{f.t} at {run.MFU} of the promised {run.promised.P}"
    here = f"{f.t_here} at {run.MFU} of the {run.promised.here} measured here"
    return [f"{promised} · {here} ({f.MFU_here} MFU)"]


def _words(run: _Run, f: _Figures) -> Words:
    assumed = " (assumed)" if run.assumed else ""
    device = f"{run.n.value:,} × {run.promised.accelerator.short_name}"
    rates = f"{f.r} ({units.figures(f.r1.value)} per GPU)"
    totals = [f"{f.h} · {rates}"]
    if f.cost is not None:
        totals.append(f"{f.cost} at {run.price}")
    if f.E is not None:
        totals.append(f"{f.E} at most, all GPUs at their TDP")
    size = units.count(run.workload.N.value)
    gpus = "1 GPU" if f.n_min.value == 1 else f"{f.n_min.value:,} GPUs"
    state = f"{units.figures(STATE.value)} B × {size} = {f.S}"
    needs = f"states need at least {gpus}: {state} of training state"
    enough = run.n.value >= f.n_min.value
    return Words(
        units.long_time(f.t.value),
        f"if MFU is {run.MFU}{assumed} · {device} · {run.promised.kind}{run.workload.named}",
        [
            *_both(run, f),
            _beside_known(f.C),
            *totals,
            *([needs] if enough else []),
            *run.promised.notes(),
            *(run.workload.counted()),
            *_next(run, f),
        ],
        [
            *([] if enough else [needs]),
            *run.workload.warnings,
            *run.workload.leaves_out,
            *_out_of_reach(run),
            *run.promised.warnings(),
            *run.promised.readings(f.t),
        ],
        settings=_at_other_shares(run, f),
        details=[str(f.C_pfs), *([] if run.workload.model else [COUNTED])],
    )


def _out_of_reach(run: _Run) -> list[str]:
    """More than a matmul alone was seen to reach, which a whole run is not."""
    seen = run.promised.accelerator.reported.get(run.promised.dtype)
    if seen is None or run.promised.stated or run.promised.inputs["sparse"]:
        return []
    most = seen.value / run.promised.P.value
    if run.MFU.value <= most:
        return []
    share = units.humanize(most, "%")
    return [f"{run.MFU} is out of reach: large matmuls alone reached {share} of this peak"]


def _beside_known(C: Quantity) -> str:
    """C beside totals that people know."""
    times = (f"{units.figures(C.value / total, 3)} × {whose}" for whose, total in LANDMARKS)
    return f"C is {', '.join(times)}"


def _at_other_shares(run: _Run, f: _Figures) -> str:
    """The same run where its utilization was assumed, and is less."""
    if not run.assumed:
        return ""
    times = (units.long_time(f.t.value * run.MFU.value / share) for share in OTHER_SHARES)
    return " · ".join(
        f"{time} at {share:.0%}".replace("%", " %")
        for time, share in zip(times, OTHER_SHARES, strict=True)
    )


def _next(run: _Run, f: _Figures) -> list[str]:
    """What to ask next."""
    ways = [
        "" if f.cost is not None else "cost: --price 2.50",
        "your MFU: napkin mfu" if run.assumed else "",
        "" if run.workload.model is not None else "your model: --model",
    ]
    return [" · ".join(filter(None, ways))] if any(ways) else []
