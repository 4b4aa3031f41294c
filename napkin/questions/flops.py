"""What does a token, a step or a run of this very model cost in FLOP?"""

from collections.abc import Mapping
from functools import partial
from math import ceil

from napkin import parsing, units
from napkin.accounting import flop_per_token, run
from napkin.accounting.flop_per_token import AttentionCost, Pass, attention, training
from napkin.accounting.parameters import Parameters, parameters
from napkin.errors import NapkinError
from napkin.quantity import Quantity, derivation, given, in_symbols
from napkin.questions import adapted, counting, options, workload
from napkin.questions import models as known
from napkin.questions.answer import Answer, Inputs, Table, Words
from napkin.questions.examples import FLOPS
from napkin.questions.options import Text
from napkin.specs import models
from napkin.specs.conventions import CONVENTIONS, dashed
from napkin.specs.model import Model, Stack

EXACT = "exact_full"
# Of csv: inputs, then the result.
COLUMNS = (
    *("model", "seq_len", "global_batch", "tokens", "recompute", "lora_rank", "lora_targets"),
    *("params", "active_params", "matmul_params", "forward_per_token", "backward_per_token"),
    *(f"training_per_token.{name}" for name in CONVENTIONS),
    *("recomputed_per_token", "adapter_params", "computed_per_token", "per_step", "per_run"),
    *("counted.params", "counted.forward", "counted.backward"),
)
SHARES = (0.1, 0.5)  # of attention in all FLOP


def flops(
    model: str | None = None,
    *,
    seq_len: Text | None = None,
    global_batch: Text | None = None,
    tokens: Text | None = None,
    recompute: str | None = None,
    lora_rank: Text | None = None,
    lora_targets: str | None = None,
    check: bool = False,
) -> Answer:
    """Parameters, and FLOP per token forward, backward and in training by every convention.

    Options as on the command line, as text or numbers. Raises NapkinError.
    """
    if model is None:
        raise NapkinError(f"flops needs --model, as in: {FLOPS}")
    shape = options.read("model", str(model), models.find)
    length, source, warnings = workload.sequence(shape, seq_len)
    T = given("T", "sequence length", length, "token/seq", source)
    parts, cost = parameters(shape), attention(shape, T)
    through, inputs = _through(shape, cost, recompute, lora_rank, lora_targets)
    totals, of = _totals(through.f, T, global_batch, tokens)
    by_name = training(shape, parts, cost)
    result = {
        "params": parts.N.value,
        "active_params": parts.N_act.value,
        "matmul_params": parts.N_mm.value,
        "forward_per_token": through.forward.value,
        "backward_per_token": through.backward.value,
        "training_per_token": {name: _whole(f.value) for name, f in by_name.items()},
        **_asked_for(through),
        **{name: total.value for name, total in totals.items()},
    }
    lengths = _lengths(parts, cost)
    notes = [*through.notes, *shape.notes]
    if options.switch("check", check):
        if through.again is not None or through.adapters is not None:
            raise options.error("check", "counts the plain model; leave the other options out")
        found = counting.checked(shape, length, result)
        result["counted"] = found.counted
        notes, warnings = [*notes, *found.notes], [*warnings, *found.warnings]
    words = partial(_words, shape, parts, T, through, by_name, lengths, totals, notes, warnings)
    steps = (*(totals.values() or (through.f,)),)
    asides = (parts.N, parts.N_act, *by_name.values(), *lengths)
    inputs = {"model": shape.name, "seq_len": length, **of, **inputs}
    summary = _table(through.f)
    return Answer("flops", inputs, result, words, steps, asides, COLUMNS, summary=summary)


def _through(
    shape: Model | Stack,
    cost: AttentionCost,
    recompute: str | None,
    lora_rank: Text | None,
    lora_targets: str | None,
) -> tuple[Pass, Inputs]:
    """The way that the options choose, and they themselves."""
    again = (
        "none" if recompute is None else options.choice("recompute", recompute, workload.RECOMPUTE)
    )
    if lora_rank is None:
        if lora_targets is not None:
            raise options.error("lora_targets", "goes with --lora-rank")
        if again == "none":
            through = flop_per_token.plain(shape, cost)
        else:

            def recomputing(how: str) -> Pass:
                return flop_per_token.recomputing(shape, cost, how)

            through = options.read("recompute", again, recomputing)
        return through, {"recompute": again, "lora_rank": None, "lora_targets": None}
    if again != "none":
        raise options.error("recompute", "is not counted with --lora-rank yet; leave it out")
    through, inputs = adapted.through(shape, cost, lora_rank, lora_targets)
    return through, {"recompute": again, **inputs}


def _totals(
    f: Quantity, T: Quantity, global_batch: Text | None, tokens: Text | None
) -> tuple[dict[str, Quantity], Inputs]:
    """FLOP of a step and of a run, where they are asked for."""
    found: dict[str, Quantity] = {}
    inputs: Inputs = {"global_batch": None, "tokens": None}
    if global_batch is not None:
        G = options.batch(global_batch, T)
        found["per_step"], inputs["global_batch"] = flop_per_token.of_batch(f, T, G), G.value
    if tokens is not None:
        D = options.quantity("tokens", tokens, parsing.tokens, "D", "training tokens", "token")
        found["per_run"], inputs["tokens"] = run.solve({"f": f, "D": D}, run.RUN)["C"], D.value
    return found, inputs


def _asked_for(through: Pass) -> dict[str, float]:
    """What recomputation and adapters add to the result."""
    found = {}
    if through.again is not None:
        found = {"recomputed_per_token": through.again.value}
    if through.adapters is not None:
        found = {"adapter_params": through.adapters.value}
    return found | {"computed_per_token": through.f.value} if found else {}


def _whole(value: float) -> float:
    """An int where it is one, as the other counts are."""
    return int(value) if float(value).is_integer() else value


def _lengths(parts: Parameters, cost: AttentionCost) -> list[Quantity]:
    """From which sequence length attention is a tenth, and half."""
    if cost.width is None:
        return []
    return [
        flop_per_token.attention_share(f"T_{share:.0%}".rstrip("%"), share, parts.N_mm, cost.width)
        for share in SHARES
    ]


def _words(
    model: Model | Stack,
    parts: Parameters,
    T: Quantity,
    through: Pass,
    by_name: dict[str, Quantity],
    lengths: list[Quantity],
    totals: dict[str, Quantity],
    said: list[str],
    warnings: list[str],
) -> Words:
    size_said = units.count(parts.N.value)
    if parts.N_act is not parts.N:
        size_said += f", {units.count(parts.N_act.value)} active"
    condition = f"to train {model.name} ({size_said})"
    if isinstance(model, Model):
        assumed = " (assumed)" if T.source.endswith("(assumed)") else ""
        condition += f" on sequences of {T.value:,}{assumed}"
        said = [*known.windows_of(model), *said]
    notes = ["by convention, and as a share of exact-full:", *_alike(by_name)]
    if lengths:
        tenth, half = (units.count(ceil(q.value)) for q in lengths)
        notes.append(f"attention is 10 % of all FLOP from {tenth} tokens, half of them from {half}")
    notes += said
    details = [f"{dashed(name)} = {CONVENTIONS[name]}" for name in by_name]
    headline = " · ".join(map(str, (through.f, *totals.values())))
    return Words(headline, condition, notes, warnings, details=details)


def _alike(by_name: Mapping[str, Quantity]) -> list[str]:
    """The conventions, those that read alike on one line."""
    names: dict[str, list[str]] = {}
    for name, f in by_name.items():
        share = f"{f.value / by_name[EXACT].value:.1%}".replace("%", " %")
        figures = f"{units.humanize(f.value, 'FLOP'):>11}  {share:>7}"
        names.setdefault(figures, []).append(dashed(name))
    return [f"{', '.join(alike):24}  {figures}" for figures, alike in names.items()]


def _table(f: Quantity) -> Table:
    """What a token costs, part by part."""
    rows = [
        (
            q.label,
            in_symbols(q),
            units.humanize(q.value, "FLOP"),
            f"{q.value / f.value:.1%}".replace("%", " %"),
        )
        for q in derivation(f)
        if q.args and q.unit == f.unit
    ]
    columns = ("", "working", "per token", "share")
    caption = "2 = 1 multiply + 1 add of a weight; backward: gradients of both factors"
    return Table(columns, rows, frozenset(columns[2:]), caption)
