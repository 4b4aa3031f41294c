"""How large a model fits into this many GPUs?"""

from collections.abc import Sequence
from functools import partial

from napkin import parsing, units
from napkin.accounting import memory
from napkin.accounting.sums import total
from napkin.quantity import Quantity, define, given
from napkin.questions import options, workload
from napkin.questions.answer import Answer, Inputs, Words, value_of
from napkin.questions.capacity import Capacity, capacity_of
from napkin.questions.examples import MAX_MODEL
from napkin.questions.machines import machines
from napkin.questions.options import Text
from napkin.questions.peak import both_readings
from napkin.record import Record
from napkin.specs import optimizers, quantization
from napkin.specs.quantization import BITSANDBYTES

DEFAULT_PRECISION = "fp32"
DEFAULT_OPTIMIZER = "adamw"
FROZEN_PRECISION, USUAL_SHARE = "mixed", "1%"
MOMENTS = ("m", "v")
# Of csv: inputs, then the result.
COLUMNS = (
    *(
        "gpus",
        "hardware",
        "memory",
        "precision",
        "optimizer",
        "bytes_per_param",
        "adapters",
        "quantize",
    ),
    *("reserve", "params", "memory_bytes", "params_replicated"),
)


# Recipes that people ask for next.
OTHERS = (("bf16", "adamw"), ("mixed", "adam8bit"), ("fp32", "sgd"))


class _State(Record):
    """s in B/param and the recipe behind it."""

    s: Quantity
    recipe: str  # `fp32, adamw`
    inputs: Inputs
    notes: list[str]
    others: Sequence[tuple[str, Quantity]] = ()  # s of other recipes


def max_model(
    *,
    gpus: Text | None = None,
    hardware: str | None = None,
    memory: Text | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    bytes_per_param: Text | None = None,
    adapters: Text | None = None,
    quantize: str | None = None,
    reserve: Text | None = None,
) -> Answer:
    """The pooled bound: memory of all GPUs over the bytes of training state per parameter.

    Options as on the command line, as text or numbers. Raises NapkinError.
    """
    options.required("max-model", MAX_MODEL, gpus=gpus)
    gpus, hardware = machines(gpus, hardware)
    n = options.quantity("gpus", gpus, parsing.gpus, "n", "GPUs", "GPU")
    if adapters is not None or quantize is not None:
        if bytes_per_param is not None:
            raise options.error("bytes_per_param", "says the sum of all; leave it out")
        state = _frozen(precision, optimizer, adapters, quantize)
    else:
        state = _state(precision, optimizer, bytes_per_param)
    return _answer(n, state, capacity_of(hardware, memory, reserve))


def _state(precision: str | None, optimizer: str | None, bytes_per_param: Text | None) -> _State:
    if bytes_per_param is not None:
        for option, value in (("precision", precision), ("optimizer", optimizer)):
            if value is not None:
                raise options.error(option, "--bytes-per-param already says the sum; drop one")
        s = workload.sum_given(bytes_per_param)
        inputs: Inputs = {"precision": None, "optimizer": None, "bytes_per_param": s.value}
        return _State(s, f"{units.figures(s.value)} bytes a parameter", inputs, [])
    p_name, p = options.read(
        "precision", DEFAULT_PRECISION if precision is None else precision, optimizers.precision
    )
    o_name, o = options.read(
        "optimizer", DEFAULT_OPTIMIZER if optimizer is None else optimizer, optimizers.optimizer
    )
    s = workload.bytes_per_param(p, o, f"--precision {p_name} --optimizer {o_name}")
    notes = [o.note] if o.note else []
    notes += _other_recipe(p_name, s, o)
    inputs = {"precision": p_name, "optimizer": o_name, "bytes_per_param": s.value}
    others = [(" ".join(recipe), _bytes(*recipe)) for recipe in OTHERS]
    return _State(s, f"{p_name} {o_name}", inputs, notes, others)


def _frozen(
    precision: str | None, optimizer: str | None, adapters: Text | None, quantize: str | None
) -> _State:
    """A frozen model, quantised or not, and adapters that are trained."""
    p_name, p = options.read("precision", precision, optimizers.precision, FROZEN_PRECISION)
    if p_name not in optimizers.ADAPTERS:
        known = ", ".join(optimizers.ADAPTERS)
        raise options.error("precision", f"{p_name} is no recipe of adapters; write one of {known}")
    o_name, o = options.read("optimizer", optimizer, optimizers.optimizer, DEFAULT_OPTIMIZER)
    label = "adapters, of the model"
    share = options.quantity(
        "adapters", adapters, parsing.fraction, "a_lora", label, "%", USUAL_SHARE
    )
    stored, w, source = f"{8 * p.weights} bits", float(p.weights), f"--precision {p_name}"
    if quantize is not None:
        stored = options.choice("quantize", quantize, BITSANDBYTES)
        how = quantization.asked(stored, double=stored == "nf4")
        w, source = how.bits / 8, "--quantize"
    w_0 = given("w_0", "bytes of a frozen weight", w, "B/param", source)
    terms = optimizers.terms(optimizers.ADAPTERS[p_name], o)
    each = [given(*term, "B/param", f"--precision {p_name} --optimizer {o_name}") for term in terms]
    on_gpu = [q for q in each if not (o.paged and q.symbol in MOMENTS)]
    s_lora = define("s_lora", "state of an adapter's parameter", total(on_gpu), "B/param")
    s = memory.adapted(w_0, share, s_lora)
    inputs: Inputs = {
        "precision": p_name,
        "optimizer": o_name,
        "bytes_per_param": s.value,
        "adapters": share.value,
        "quantize": None if quantize is None else stored,
    }
    notes = [f"frozen in {stored}, every weight of it; adapters of {share} are trained"]
    notes += ["table, head and norms stay in 16 bits: napkin memory --model counts them"] * (
        quantize is not None
    )
    recipe = f"{p_name} {o_name}, adapters"
    return _State(s, recipe, inputs, [*notes, *([o.note] if o.note else [])])


def _bytes(precision: str, optimizer: str) -> Quantity:
    p, o = optimizers.PRECISIONS[precision], optimizers.OPTIMIZERS[optimizer]
    return workload.bytes_per_param(p, o, f"--precision {precision} --optimizer {optimizer}")


def _other_recipe(name: str, s: Quantity, o: optimizers.Optimizer) -> list[str]:
    """What people expect to halve the state and does not."""
    other = "mixed" if name == "fp32" else "fp32" if name == "mixed" else None
    if other is None:
        return []
    terms = [units.figures(t.bytes) for t in optimizers.terms(optimizers.PRECISIONS[other], o)]
    total = workload.bytes_per_param(optimizers.PRECISIONS[other], o, "").value
    says = f"keeps {units.figures(total)} bytes {{}} ({'+'.join(terms)})"
    if other == "fp32":
        return [f"fp32 {says.format('too' if total == s.value else 'a parameter')}"]
    if total != s.value:
        return [f"mixed precision {says.format('a parameter')}"]
    return [f"mixed precision {says.format('too')}: it saves activations and time"]


def _answer(n: Quantity, state: _State, of: Capacity) -> Answer:
    M1 = of.usable(of.printed)
    M = memory.pooled(n, M1)
    N = memory.largest_model(M, state.s)
    N1 = memory.largest_replicated(M1, state.s)
    inputs = {
        "gpus": n.value,
        "hardware": of.hardware,
        "memory": of.printed.value,
        "adapters": None,
        "quantize": None,
        **state.inputs,
        "reserve": value_of(of.reserve),
    }
    result = {
        "params": int(N.value),
        "bytes_per_param": state.s.value,
        "memory_bytes": M.value,
        "params_replicated": int(N1.value),
    }
    words = partial(_words, n, state, of, M, N, N1)
    rows = (state.s, M, N)
    return Answer("max-model", inputs, result, words, (N,), (N1,), COLUMNS, rows)


def _words(
    n: Quantity, state: _State, of: Capacity, M: Quantity, N: Quantity, N1: Quantity
) -> Words:
    rest = "no activations, nothing else" if of.reserve is None else "the rest in the reserve"
    notes = [
        f"the pooled bound: all state sharded over all GPUs, {rest}",
        f"one GPU alone, unsharded, holds {units.count(N1.value)}; "
        f"all {n.value:,} pool {units.gb_and_gib(M.value)}",
    ]
    others = [f"{name} {units.count(memory.largest_model(M, s).value)}" for name, s in state.others]
    if of.visible is not None:
        pool = memory.pooled(n, of.usable(of.visible))
        most = units.count(memory.largest_model(pool, state.s).value)
        notes.append(f"by the driver's own {units.gb_and_gib(of.visible.value)} a GPU: {most}")
    return Words(
        str(N),
        f"at most, on {n.value:,} × {of.name} · {state.recipe}",
        [
            *notes,
            *([f"other recipes: {' · '.join(others)}"] if others else []),
            *state.notes,
            *of.notes,
            f"with activations: napkin memory --gpus {n.value} --model ...",
        ],
        both_readings(of.wanted, of.devices_meant, N, N.value / of.devices_meant),
    )
