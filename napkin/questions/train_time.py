"""How long does a training run take, and what does it cost? Or, of a run whose time is known, the
GPUs, tokens, parameters, utilization or price that it takes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from napkin import units
from napkin.accounting import compute
from napkin.accounting.run import gpus_in_time
from napkin.quantity import Quantity, coefficient, define, derivation
from napkin.questions import unknown, workload
from napkin.questions.answer import Answer, Words, value_of
from napkin.questions.machines import machines
from napkin.questions.options import Text
from napkin.questions.peak import COLUMNS as PEAK
from napkin.questions.peak import PROMISED, Promise, promise
from napkin.questions.unknown import Run
from napkin.questions.workload import STATE, Workload
from napkin.record import Record
from napkin.specs.conventions import CONVENTIONS

# FLOP of known runs: GPT-3's table D.1 (2005.14165); GPT-4's is Epoch AI's estimate.
LANDMARKS = (("GPT-3's 3.14e23", 3.14e23), ("GPT-4's 2e25 (an estimate)", 2e25))

OTHER_SHARES = (0.4, 0.3)  # beside an assumed one: what published runs reach more often
# What is asked for -> the power of the MFU that it goes with, where one is assumed.
GOES_WITH = {"time": -1, "gpus": -1, "tokens": 1, "params": 1, "model": 0.5, "price": 1}
BY_TIME = ("time", "price")  # whose time follows from the rate of GPUs that are given
# and the symbols that answer it.
ANSWERS = {
    "time": ("t",),
    "gpus": ("n",),
    "tokens": ("D",),
    "params": ("N",),
    "model": ("N", "D"),
    "mfu": ("MFU",),
    "price": ("p",),
}
OF_GPUS = ("C", "P", "A", "h", "n_t", "n")  # of their working, what a person would write
FURTHER = {
    "MFU_run": "mfu_run",
    "steps": "steps",
    "D/N": "tokens_per_param",
    "power": "power_watts",
}
# Of csv: inputs, then the result.
COLUMNS = (
    *workload.COLUMNS,
    *("tokens", "epochs", "gpus", *PEAK, "mfu", "price"),
    *("compute_optimal", "flops_per_param", "time", "within", "node", "budget", "power", "pue"),
    *("energy", "achieved", "step_time", "tokens_per_step", "global_batch"),
    *("lost_time", "goodput"),
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
    *("asked", "mfu_run", "steps", "nodes", "tokens_per_param", "power_watts"),
)
COUNTED = "6ND: a matmul costs 2·m·n·p FLOP, once forward, twice backward; no attention"


class _Answered(Record):
    """One scenario: the run, and what is said beside it."""

    run: Run
    workload: Workload | None
    promised: Promise
    C_pfs: Quantity | None
    t_here: Quantity | None = None
    MFU_here: Quantity | None = None

    @property
    def found(self) -> Mapping[str, Quantity]:
        return self.run.found


def train_time(
    *,
    params: Text | None = None,
    tokens: Text | None = None,
    gpus: Text | None = None,
    time: Text | None = None,
    within: Text | None = None,
    gpu_hours: Text | None = None,
    active_params: Text | None = None,
    model: str | None = None,
    convention: str | None = None,
    seq_len: Text | None = None,
    epochs: Text | None = None,
    flops: Text | None = None,
    flops_per_param: Text | None = None,
    compute_optimal: bool = False,
    tokens_per_param: Text | None = None,
    node: Text | None = None,
    price: Text | None = None,
    budget: Text | None = None,
    power: Text | None = None,
    pue: Text | None = None,
    energy: Text | None = None,
    hardware: str | None = None,
    dtype: str | None = None,
    peak: Text = PROMISED,
    sparse: bool = False,
    mfu: Text | None = None,
    achieved: Text | None = None,
    tokens_per_second: Text | None = None,
    tokens_per_second_per_gpu: Text | None = None,
    steps: Text | None = None,
    step_time: Text | None = None,
    tokens_per_step: Text | None = None,
    global_batch: Text | None = None,
    lost_time: Text | None = None,
    goodput: Text | None = None,
) -> Answer:
    """Days of a run: C = 6·N·D over n · P · MFU; also GPU-hours, token rates, cost, energy.
    Where the time is given, whichever of the others is not. Where the shape of the model is known,
    C by any convention.

    Options as on the command line, as text or numbers. Raises NapkinError.
    """
    gpus, hardware = machines(gpus, hardware)
    asked = unknown.Settings(
        params=params,
        model=model,
        tokens=tokens,
        epochs=epochs,
        flops=flops,
        flops_per_param=flops_per_param,
        tokens_per_param=tokens_per_param,
        compute_optimal=compute_optimal,
        gpus=gpus,
        node=node,
        time=time,
        within=within,
        gpu_hours=gpu_hours,
        price=price,
        budget=budget,
        power=power,
        pue=pue,
        energy=energy,
        mfu=mfu,
        achieved=achieved,
        tokens_per_second=tokens_per_second,
        tokens_per_second_per_gpu=tokens_per_second_per_gpu,
        steps=steps,
        step_time=step_time,
        tokens_per_step=tokens_per_step,
        seq_len=seq_len,
        global_batch=global_batch,
        lost_time=lost_time,
        goodput=goodput,
    )
    unknown.required(asked)
    about = workload.optional(params, active_params, model, convention, seq_len, flops_per_param)
    promised = promise(hardware, dtype, peak, sparse)
    return _answer(_answered(unknown.find(asked, about, promised), about, promised))


def _answered(run: Run, about: Workload | None, promised: Promise) -> _Answered:
    found, here = run.found, promised.here
    C_pfs = compute.petaflop_s_days(found["C"]) if "C" in found else None
    if here is None or run.asked not in BY_TIME or run.rate != "MFU":
        return _Answered(run, about, promised, C_pfs)
    t_here = compute.time_at_measured(found["t"], promised.P, here)
    MFU_here = compute.mfu_at_measured(found["MFU"], promised.P, here)
    return _Answered(run, about, promised, C_pfs, t_here, MFU_here)


def _answer(one: _Answered) -> Answer:
    found, about, asked = one.found, one.workload, one.run.asked
    N = found.get("N") if about is None else about.N
    t, E = found.get("t"), found.get("energy", found.get("E_TDP"))
    said = dict(one.run.inputs)
    inputs = {
        **(workload.NONE if about is None else about.inputs),
        "tokens": found["D"].value if said.pop("tokens", None) is not None else None,
        **{option: said.pop(option, None) for option in ("epochs", "gpus")},
        **one.promised.inputs,
        "mfu": found["MFU"].value if one.run.rate == "MFU" else None,
        "price": said.pop("price", None),
        **{option: value for option, value in said.items() if option != "mfu"},
    }
    result: dict[str, Any] = {
        "flops": value_of(found.get("C")),
        "seconds": value_of(t),
        "days": None if t is None else t.value / units.DAY,
        "gpu_hours": value_of(found.get("h")),
        "pf_days": value_of(one.C_pfs),
        "params": value_of(N),
        "active_params": value_of(N if about is None else about.N_act),
        "tokens": value_of(found.get("D")),
        "gpus": value_of(found.get("n")),
        "mfu": value_of(found.get("MFU")),
        "tokens_per_second": value_of(found.get("r")),
        "tokens_per_second_per_gpu": value_of(found.get("r₁")),
        "min_gpus_for_states": value_of(one.run.n_min),
        "cost": value_of(found.get("cost")),
        "energy_kwh": None if E is None else E.value / 1000,
        "measured": _measured(one),
        "published": None,
    }
    if about is not None and about.model is not None:
        result["conventions"] = {
            name: each.value * found["D"].value for name, each in about.flop.items()
        }
    result |= _further(one)
    steps = tuple(found[symbol] for symbol in ANSWERS[asked])
    asides = (
        *(found.get(symbol) for symbol in ("h", "C")),
        *(one.C_pfs, found.get("r₁")),
        *(found.get(symbol) for symbol in ("cost", "energy", "E_TDP", "t", "MFU_run")),
        *(one.run.n_min, one.t_here, one.MFU_here),
    )
    derived = tuple(q for q in asides if q is not None)
    rows = tuple(q for q in derivation(*steps) if q.symbol in OF_GPUS) if asked == "gpus" else ()
    return Answer("train-time", inputs, result, partial(_words, one), steps, derived, COLUMNS, rows)


def _further(one: _Answered) -> dict[str, Any]:
    """The keys of what only some ask for."""
    found = one.found
    more: dict[str, Any] = {}
    if one.run.asked != "time":
        more["asked"] = one.run.asked
    if "cost" in found and "price" not in one.run.inputs:
        more["price"] = value_of(found.get("p"))
    if {"n", "n_node"} <= found.keys():
        more["nodes"] = found["n"].value // found["n_node"].value
    for symbol, key in FURTHER.items():
        if symbol in found:
            more[key] = found[symbol].value
    return more


def _measured(one: _Answered) -> dict[str, float] | None:
    if one.t_here is None or one.MFU_here is None:
        return None
    return {"days": one.t_here.value / units.DAY, "mfu_promised": one.MFU_here.value}


def _both(one: _Answered) -> list[str]:
    """Promised and measured side by side, where bench has a figure on file."""
    if one.t_here is None:
        return []
    t, MFU = one.found["t"], one.found["MFU"]
    promised = f"{t} at {MFU} of the promised {one.promised.P}"
    here = f"{one.t_here} at {MFU} of the {one.promised.here} measured here"
    return [f"{promised} · {here} ({one.MFU_here} MFU)"]


def _words(one: _Answered) -> Words:
    found, about, promised = one.found, one.workload, one.promised
    needs, enough = _needs(one)
    named = "" if about is None else about.named
    where = promised.accelerator.short_name
    if "n" in found and one.run.asked != "gpus":
        where = f"{found['n'].value:,} × {where}"
    beside = [_beside_known(found["C"])] if "C" in found else []
    kind = f" · {promised.kind}" if one.run.asked in ("time", "gpus", "mfu") else ""
    known_model = about is not None and about.model is not None
    counted = [] if known_model or about is None or about.k is not None else [COUNTED]
    return Words(
        _headline(one),
        f"{_under(one)} · {where}{kind}{named}",
        [
            *_both(one),
            *(beside if one.run.asked == "time" else []),
            *_totals(one),
            *_defaults(one),
            *([needs] if needs and enough else []),
            *promised.notes(),
            *([] if about is None else about.counted()),
            *_next(one),
        ],
        [
            *([needs] if needs and not enough else []),
            *([] if about is None else [*about.warnings, *about.leaves_out]),
            *_out_of_reach(one),
            *promised.warnings(),
            *_readings(one),
        ],
        settings=_at_other_shares(one),
        details=[
            *(beside if one.run.asked != "time" else []),
            *([] if one.C_pfs is None else [str(one.C_pfs)]),
            *counted,
        ],
        failure=_impossible(one),
    )


def _headline(one: _Answered) -> str:
    found = one.found
    if one.run.asked == "time":
        return units.long_time(found["t"].value)
    if one.run.asked == "model":
        return f"{units.count(found['N'].value)} on {found['D']}"
    answer = found[ANSWERS[one.run.asked][-1]]
    if one.run.asked != "mfu":
        return str(answer)
    return f"{answer} MFU" if answer.value <= 1 else f"{answer} MFU, more than the peak can do:"


def _under(one: _Answered) -> str:
    """What the headline holds under: the time or the GPU-hours, and the rate."""
    found, run = one.found, one.run
    rate = f"at {found[run.rate]}" if run.rate else ""
    if run.rate == "MFU":
        rate = f"at {found['MFU']} MFU{_assumed(run, 'MFU')}"
    if run.asked == "time":
        return f"if MFU is {found['MFU']}{_assumed(run, 'MFU')}" if run.rate == "MFU" else rate
    time = str(found["t"] if "t" in found else found["h"])
    if "t_max" in found and str(found["t_max"]) != time:
        number, _, unit = time.partition(" ")
        most = str(found["t_max"])
        time = f"{number if most.endswith(unit) else time} of {most}"
    budget = f"for {found['cost']} " if run.asked == "price" else ""
    return f"{budget}in {time} {rate}".rstrip()


def _assumed(run: Run, symbol: str) -> str:
    return " (assumed)" if symbol in run.assumed else ""


def _totals(one: _Answered) -> list[str]:
    """GPU-hours, token rates, cost, energy."""
    found = one.found
    sums = [str(found["h"])]
    if "n_node" in found and "n" in found:
        n, node = found["n"].value, found["n_node"].value
        sums.append(f"{n // node:,} nodes of {node:,}")
    if "r" in found:
        sums.append(f"{found['r']} ({units.figures(found['r₁'].value)} per GPU)")
    elif "r₁" in found:
        sums.append(f"{found['r₁']}")
    totals = [" · ".join(sums)]
    if "cost" in found and one.run.asked != "price":
        totals.append(f"{found['cost']} at {found['p']}")
    pue = f" and a PUE of {units.figures(found['PUE'].value)}" if "PUE" in found else ""
    if "energy" in found:
        power = f"{found['power']}{_assumed(one.run, 'power')}"
        totals.append(f"{found['energy']} at {power}{pue}")
    elif "E_TDP" in found:
        totals.append(f"{found['E_TDP']} at most, all GPUs at their TDP{pue}")
    return totals


def _defaults(one: _Answered) -> list[str]:
    """What else was taken, and how it is to be read."""
    found, notes = one.found, []
    if "MFU_run" in found:
        lost = units.humanize(1 - found["goodput"].value, "%")
        run = f"{found['MFU_run']} over the whole run, of which {lost} is lost"
        notes.append(f"MFU {found['MFU']} is that of the steps: {run}")
    if "D₁" in found and "tokens" not in one.run.inputs:
        notes.append(f"{units.figures(found['e'].value)} epochs of {found['D₁']}")
    if "D/N" in found:
        each = units.figures(found["D/N"].value)
        assumed = "" if "tokens_per_param" in one.run.inputs else " (assumed)"
        notes.append(f"compute-optimal at {each} tokens a parameter{assumed}")
    if "flops_per_param" in one.run.inputs and "MFU" in found:
        k, six = found["f/N"].value, compute.TRAINING.value
        MFU = units.humanize(found["MFU"].value * six / k, "%")
        notes.append(f"{units.figures(k)} FLOP a parameter and token (by 6, MFU is {MFU})")
    if "steps" in found and "K" in found:
        notes.append(f"{units.figures(found['steps'].value)} steps of {found['K'].value:,} tokens")
    return notes


def _needs(one: _Answered) -> tuple[str, bool]:
    """How many GPUs the state takes, and whether they are there."""
    run, n = one.run, one.found.get("n")
    if run.n_min is None or run.S is None:
        return "", True
    N = one.found["N"] if one.workload is None else one.workload.N
    gpus = "1 GPU" if run.n_min.value == 1 else f"{run.n_min.value:,} GPUs"
    state = f"{units.figures(STATE.value)} B × {units.count(N.value)} = {run.S}"
    enough = n is None or n.value >= run.n_min.value
    return f"states need at least {gpus}: {state} of training state", enough


def _readings(one: _Answered) -> list[str]:
    """Both, of a driver's name for half a package."""
    asked = one.run.asked
    if one.run.rate != "MFU" and asked != "mfu":
        return []
    return one.promised.readings(one.found[ANSWERS[asked][0]], -GOES_WITH.get(asked, -1))


def _impossible(one: _Answered) -> str:
    """An MFU that no run has."""
    found = one.found
    if one.run.asked != "mfu" or found["MFU"].value <= 1:
        return ""
    least = units.humanize(found["h"].value * found["MFU"].value, "GPU·hour")
    return f"at 100 % MFU it takes {least}, and there are {found['h']}"


def _out_of_reach(one: _Answered) -> list[str]:
    """More than a matmul alone was seen to reach, which a whole run is not."""
    promised, MFU = one.promised, one.found.get("MFU")
    seen = promised.accelerator.reported.get(promised.dtype)
    if MFU is not None and MFU.value > 1:
        return [] if _impossible(one) else [f"{MFU} MFU is more than the peak can do"]
    if MFU is None or seen is None or promised.stated or promised.inputs["sparse"]:
        return []
    most = seen.value / promised.P.value
    if MFU.value <= most:
        return []
    share = units.humanize(most, "%")
    return [f"{MFU} is out of reach: large matmuls alone reached {share} of this peak"]


def _beside_known(C: Quantity) -> str:
    """C beside totals that people know."""
    times = (f"{units.figures(C.value / total, 3)} × {whose}" for whose, total in LANDMARKS)
    return f"C is {', '.join(times)}"


def _at_other_shares(one: _Answered) -> str:
    """The same run where its utilization was assumed, and is less."""
    if "MFU" not in one.run.assumed:
        return ""
    return " · ".join(
        f"{_scaled(one, share / one.found['MFU'].value)} at {share:.0%}".replace("%", " %")
        for share in OTHER_SHARES
    )


def _scaled(one: _Answered, times: float) -> str:
    """The answer at so many times the utilization."""
    found, asked = one.found, one.run.asked
    by = times ** GOES_WITH[asked]
    if asked == "time":
        return units.long_time(found["t"].value * by)
    if asked == "gpus":
        h = define("h", "", found["h"] * coefficient(by), "GPU·hour")
        return str(gpus_in_time(h, found["t_max"], one.run.n_min, found.get("n_node")))
    *size, tokens = (found[symbol] for symbol in ANSWERS[asked])
    sizes = "".join(f"{units.count(N.value * by)} on " for N in size)
    return sizes + units.humanize(tokens.value * by, tokens.unit)


def _next(one: _Answered) -> list[str]:
    """What to ask next."""
    about = one.workload
    ways = [
        "" if "cost" in one.found else "cost: --price 2.50",
        "your MFU: napkin mfu" if "MFU" in one.run.assumed else "",
        "" if about is None or about.model is not None else "your model: --model",
    ]
    return [" · ".join(filter(None, ways))] if any(ways) else []
