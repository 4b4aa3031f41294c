"""How long does a training run take, and what does it cost?"""

from collections.abc import Mapping
from functools import partial

from napkin import parsing, units
from napkin.accounting import compute, memory
from napkin.accounting.run import RUN, solve
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
    """One scenario: its inputs, and all that follows from them."""

    workload: Workload
    found: Mapping[str, Quantity]  # by symbol
    promised: Promise
    assumed: bool  # MFU was not given
    C_pfs: Quantity
    S: Quantity
    n_min: Quantity
    t_here: Quantity | None = None
    MFU_here: Quantity | None = None


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
    known = {**_work(about), **_tokens(tokens, epochs)}
    known["n"] = options.quantity("gpus", gpus, parsing.gpus, "n", "GPUs", "GPU")
    known["MFU"] = options.quantity(
        "mfu", mfu, parsing.fraction, "MFU", "utilization", "%", ASSUMED_MFU
    )
    promised = promise(hardware, dtype, peak, sparse)
    known["P"] = promised.P
    if price is not None:
        known["p"] = options.quantity("price", price, parsing.money, "p", "price", "USD/GPU/hour")
    tdp = promised.accelerator.tdp
    if tdp is not None:
        known["TDP"] = given("TDP", "TDP of one GPU", tdp.value, "W/GPU", tdp.source)
    return _answer(_run(about, known, promised, assumed=mfu is None))


def _work(about: Workload) -> dict[str, Quantity]:
    """What a token costs."""
    if about.convention == SIX_N:
        return {"k": compute.TRAINING, "N": about.N_act}
    return {"f": about.f}


def _tokens(tokens: Text | None, epochs: Text | None) -> dict[str, Quantity]:
    """The tokens trained on, or those of an epoch and how many times each is seen."""
    if epochs is None:
        label = "training tokens"
        return {"D": options.quantity("tokens", tokens, parsing.tokens, "D", label, "token")}
    D1 = options.quantity("tokens", tokens, parsing.tokens, "D₁", "tokens of one epoch", "token")
    return {"D₁": D1, "e": options.quantity("epochs", epochs, parsing.factor, "e", "epochs", "1")}


def _run(about: Workload, known: Mapping[str, Quantity], promised: Promise, assumed: bool) -> _Run:
    found = solve(known, RUN)
    S = memory.training_state(about.N, STATE)
    P, here = promised.P, promised.here
    return _Run(
        workload=about,
        found=found,
        promised=promised,
        assumed=assumed,
        C_pfs=compute.petaflop_s_days(found["C"]),
        S=S,
        n_min=memory.min_gpus(S, printed_memory(promised.accelerator)),
        t_here=None if here is None else compute.time_at_measured(found["t"], P, here),
        MFU_here=None if here is None else compute.mfu_at_measured(found["MFU"], P, here),
    )


def _answer(run: _Run) -> Answer:
    found = run.found
    cost, E = found.get("cost"), found.get("E_TDP")
    inputs = {
        **run.workload.inputs,
        "tokens": found["D"].value,
        "epochs": value_of(found.get("e")),
        "gpus": found["n"].value,
        **run.promised.inputs,
        "mfu": found["MFU"].value,
        "price": value_of(found.get("p")),
    }
    result = {
        "flops": found["C"].value,
        "seconds": found["t"].value,
        "days": found["t"].value / units.DAY,
        "gpu_hours": found["h"].value,
        "pf_days": run.C_pfs.value,
        "params": run.workload.N.value,
        "active_params": run.workload.N_act.value,
        "tokens": found["D"].value,
        "gpus": found["n"].value,
        "mfu": found["MFU"].value,
        "tokens_per_second": found["r"].value,
        "tokens_per_second_per_gpu": found["r₁"].value,
        "min_gpus_for_states": run.n_min.value,
        "cost": value_of(cost),
        "energy_kwh": None if E is None else E.value / 1000,
        "measured": _measured(run),
        "published": None,
    }
    if run.workload.model is not None:
        result["conventions"] = {
            name: each.value * found["D"].value for name, each in run.workload.flop.items()
        }
    derived = (found["h"], run.C_pfs, found["r₁"], cost, E, run.n_min, run.t_here, run.MFU_here)
    asides = tuple(q for q in derived if q is not None)
    return Answer(
        "train-time", inputs, result, partial(_words, run), (found["t"],), asides, COLUMNS
    )


def _measured(run: _Run) -> dict[str, float] | None:
    if run.t_here is None or run.MFU_here is None:
        return None
    return {"days": run.t_here.value / units.DAY, "mfu_promised": run.MFU_here.value}


def _both(run: _Run) -> list[str]:
    """Promised and measured side by side, where bench has a figure on file."""
    if run.t_here is None:
        return []
    t, MFU = run.found["t"], run.found["MFU"]
    promised = f"{t} at {MFU} of the promised {run.promised.P}"
    here = f"{run.t_here} at {MFU} of the {run.promised.here} measured here"
    return [f"{promised} · {here} ({run.MFU_here} MFU)"]


def _words(run: _Run) -> Words:
    found = run.found
    assumed = " (assumed)" if run.assumed else ""
    device = f"{found['n'].value:,} × {run.promised.accelerator.short_name}"
    rates = f"{found['r']} ({units.figures(found['r₁'].value)} per GPU)"
    totals = [f"{found['h']} · {rates}"]
    if "cost" in found:
        totals.append(f"{found['cost']} at {found['p']}")
    if "E_TDP" in found:
        totals.append(f"{found['E_TDP']} at most, all GPUs at their TDP")
    size = units.count(run.workload.N.value)
    gpus = "1 GPU" if run.n_min.value == 1 else f"{run.n_min.value:,} GPUs"
    state = f"{units.figures(STATE.value)} B × {size} = {run.S}"
    needs = f"states need at least {gpus}: {state} of training state"
    enough = found["n"].value >= run.n_min.value
    return Words(
        units.long_time(found["t"].value),
        f"if MFU is {found['MFU']}{assumed} · {device} · {run.promised.kind}{run.workload.named}",
        [
            *_both(run),
            _beside_known(found["C"]),
            *totals,
            *([needs] if enough else []),
            *run.promised.notes(),
            *(run.workload.counted()),
            *_next(run),
        ],
        [
            *([] if enough else [needs]),
            *run.workload.warnings,
            *run.workload.leaves_out,
            *_out_of_reach(run),
            *run.promised.warnings(),
            *run.promised.readings(found["t"]),
        ],
        settings=_at_other_shares(run),
        details=[str(run.C_pfs), *([] if run.workload.model else [COUNTED])],
    )


def _out_of_reach(run: _Run) -> list[str]:
    """More than a matmul alone was seen to reach, which a whole run is not."""
    seen = run.promised.accelerator.reported.get(run.promised.dtype)
    if seen is None or run.promised.stated or run.promised.inputs["sparse"]:
        return []
    most = seen.value / run.promised.P.value
    MFU = run.found["MFU"]
    if MFU.value <= most:
        return []
    share = units.humanize(most, "%")
    return [f"{MFU} is out of reach: large matmuls alone reached {share} of this peak"]


def _beside_known(C: Quantity) -> str:
    """C beside totals that people know."""
    times = (f"{units.figures(C.value / total, 3)} × {whose}" for whose, total in LANDMARKS)
    return f"C is {', '.join(times)}"


def _at_other_shares(run: _Run) -> str:
    """The same run where its utilization was assumed, and is less."""
    if not run.assumed:
        return ""
    whole = run.found["t"].value * run.found["MFU"].value
    times = (units.long_time(whole / share) for share in OTHER_SHARES)
    return " · ".join(
        f"{time} at {share:.0%}".replace("%", " %")
        for time, share in zip(times, OTHER_SHARES, strict=True)
    )


def _next(run: _Run) -> list[str]:
    """What to ask next."""
    ways = [
        "" if "cost" in run.found else "cost: --price 2.50",
        "your MFU: napkin mfu" if run.assumed else "",
        "" if run.workload.model is not None else "your model: --model",
    ]
    return [" · ".join(filter(None, ways))] if any(ways) else []
