"""What is known about models: the list, or one with its parameters by part."""

from collections.abc import Sequence
from functools import partial

from napkin import units
from napkin.accounting.layer import Row
from napkin.accounting.layer import rows as operations_of
from napkin.accounting.operations import Kernels
from napkin.accounting.parameters import PARTS, Parameters, parameters
from napkin.errors import NapkinError, quoted
from napkin.quantity import in_symbols
from napkin.questions import options
from napkin.questions.answer import Answer, Report, Table, Words
from napkin.questions.examples import MODELS
from napkin.questions.workload import sequence
from napkin.specs import models as known
from napkin.specs import names
from napkin.specs.folders import model_names
from napkin.specs.model import Model, Stack

VALUE_BYTES = 2  # bf16
# Of csv: inputs, then the result.
COLUMNS = (
    *("model", "params", "active_params", "matmul_params"),
    *(f"parts.{name}" for name in PARTS),
    "layer",
)
LISTED = ("", "params", "active", "L", "d", "H/kv", "V", "T")


def models(*, name: str | None = None, layer: bool = False) -> Report:
    """Every shipped model, or the one asked for: a name, a config.json, a folder or a shape;
    with `layer`, the operations that a layer of it is.

    Raises NapkinError.
    """
    if options.switch("layer", layer):
        return _layer(name)
    if name is None:
        return _list(model_names())
    try:
        return Report("models", [_answer(known.find(name))])
    except NapkinError:
        several = names.holding(name, model_names())
        if not several:
            raise
    return _list(several, f"names with {quoted(name)}; ")


def _list(shipped: Sequence[str], which: str = "") -> Report:
    """A line each."""
    all_of = [known.find(each) for each in shipped]
    rows = [_row(each) for each in all_of if isinstance(each, Model)]
    caption = "kv: key-value heads; T: longest sequence; `napkin models NAME` shows every part"
    table = Table(LISTED, rows, frozenset(LISTED[1:]), which + caption)
    return Report("models", [_answer(each) for each in all_of], table)


def _layer(name: str | None) -> Report:
    """What a newcomer reads to see how a model is counted."""
    if name is None:
        raise options.error("layer", f"goes with a model, as in: {MODELS} --layer")
    model = known.find(name)
    if isinstance(model, Stack):
        raise options.error("layer", f"{model.name} is square matrices alone")
    tokens, _, _ = sequence(model, None)
    # transformers has no other attention with sinks.
    attention = "eager" if model.attention.sinks else "flash"
    kernels = Kernels(attention=attention)
    operations = list(operations_of(model, tokens, VALUE_BYTES, kernels))
    whole = _sum(operations)
    answer = _answer(model)
    answer.result["layer"] = [row._asdict() for row in operations]
    kinds = f"one of {model.moe_layers} with experts" if model.dense_layers else ""
    of = kinds if model.moe_layers and kinds else f"one layer of {model.layers}"
    answer.words = Words(
        f"{units.count(whole.parameters)} parameters",
        f"{of} · {model.name}, a sequence of {tokens:,} tokens in bf16, {attention} attention",
    )
    caption = "FLOP: of one token, forward; kept: bytes of one token, for the backward pass"
    columns = ("operation", "shape", "parameters", "FLOP", "kept")
    rows = [_operation(row) for row in (*operations, whole)]
    table = Table(columns, rows, frozenset(columns[1:]), caption)
    return Report("models", [answer.replace(summary=table)])


def _sum(rows: list[Row]) -> Row:
    parameters, flop, kept = (
        sum(column) for column in zip(*(row[2:] for row in rows), strict=True)
    )
    return Row("sum", (), parameters, flop, kept)


def _operation(row: Row) -> tuple[str, ...]:
    shape = " × ".join(f"{size:,}" for size in row.shape)
    return (row.name, shape, *(f"{count:,}" if count else "" for count in row[2:]))


def _row(model: Model) -> tuple[str, ...]:
    parts = parameters(model)
    active = "" if parts.N_act is parts.N else units.count(parts.N_act.value)
    return (
        model.name,
        units.count(parts.N.value),
        active,
        str(model.layers),
        str(model.d_model),
        _heads(model),
        str(model.vocab),
        "" if model.longest is None else str(model.longest),
    )


def _heads(model: Model) -> str:
    a = model.attention
    return f"{a.heads}/{a.kv_heads}" if a.latent is None else f"{a.heads} MLA"


def _answer(model: Model | Stack) -> Answer:
    parts = parameters(model)
    result = {
        "params": parts.N.value,
        "active_params": parts.N_act.value,
        "matmul_params": parts.N_mm.value,
        "parts": parts.parts,
    }
    steps = (parts.N,) if parts.N_act is parts.N else (parts.N, parts.N_act)
    words = partial(_words, model, parts)
    inputs, summary = {"model": model.name}, _table(model)
    return Answer(
        "models", inputs, result, words, (*steps, parts.N_mm), (), COLUMNS, summary=summary
    )


def windows_of(model: Model) -> list[str]:
    """How far the layers see that do not see all."""
    return [
        f"{layers} of {model.layers} layers see {tokens:,} tokens back"
        for tokens, layers in model.windows
    ]


def _table(model: Model | Stack) -> Table:
    """A row for each part: of one layer (of experts, of one), of all, and its share."""
    parts = parameters(model)
    rows = [
        (
            part.name,
            in_symbols(part.one),
            units.count(part.one.value),
            units.count(parts.parts[part.name]),
            f"{parts.parts[part.name] / parts.N.value:.1%}".replace("%", " %"),
        )
        for part in parts.rows
    ]
    columns = ("", "working", "one", "all", "share")
    return Table(columns, rows, frozenset(columns[2:]))


def _shape(model: Model) -> str:
    """`L 32 · d 4096 · H 32 (8 kv) × 128 · F 14336 · V 128256 · T 8192`."""
    a = model.attention
    kv = f" ({a.kv_heads} kv)" if a.latent is None and a.kv_heads != a.heads else ""
    experts = model.experts
    sizes = (
        f"L {model.layers}",
        f"d {model.d_model}",
        f"H {a.heads}{kv} × {a.qk}",
        f"F {model.mlp.width}" if model.mlp else "",
        f"E {experts.count}, {experts.active} taken, of {experts.width}" if experts else "",
        f"V {model.vocab}",
        f"T {model.longest}" if model.longest else "",
    )
    return " · ".join(filter(None, sizes))


def _words(model: Model | Stack, parts: Parameters) -> Words:
    active = "" if parts.N_act is parts.N else f", {units.count(parts.N_act.value)} active"
    multiplied = f"a token multiplies {units.count(parts.N_mm.value)} of them"
    if isinstance(model, Stack):
        return Words(str(parts.N), f"{model.name}", [multiplied, *model.notes])
    notes = [multiplied, *windows_of(model)]
    hub = known.hub_names(model)
    if hub:
        notes.append(f"on the Hugging Face hub: {hub[0]}")
    details = [f"on the hub too: {name}" for name in hub[1:]]
    about = f"{model.name} · {model.architecture}"
    notes += [*model.notes, "every step: --explain · operation by operation: --layer"]
    return Words(f"{parts.N}{active}", about, notes, settings=_shape(model), details=details)
