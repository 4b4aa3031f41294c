"""What is known about models: the list, or one with its parameters by part."""

from functools import partial

from napkin import units
from napkin.questions.answer import Answer, Report, Table, Words
from napkin.questions.shape.parts import Counted, counted
from napkin.specs import models as known
from napkin.specs.folders import model_names
from napkin.specs.model import Model, Stack

COLUMNS = ("", "params", "active", "L", "d", "H/K", "V", "T")


def models(*, name: str | None = None) -> Report:
    """Every shipped model, or the one asked for: a name, a config.json, a folder or a shape.

    Raises NapkinError.
    """
    if name is not None:
        return Report("models", [_answer(known.find(name))])
    found = [known.find(each) for each in model_names()]
    rows = [_row(each) for each in found if isinstance(each, Model)]
    caption = "K: key-value heads; T: longest sequence; `napkin models NAME` shows every part"
    table = Table(COLUMNS, rows, frozenset(COLUMNS[1:]), caption)
    return Report("models", [_answer(each) for each in found], table)


def _row(model: Model) -> tuple[str, ...]:
    parts = counted(model)
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
    parts = counted(model)
    result = {
        "params": parts.N.value,
        "active_params": parts.N_act.value,
        "matmul_params": parts.N_mm.value,
        "parts": parts.parts,
    }
    steps = (parts.N,) if parts.N_act is parts.N else (parts.N, parts.N_act)
    words = partial(_words, model, parts)
    return Answer("models", {"model": model.name}, result, words, (*steps, parts.N_mm))


def windows_of(model: Model) -> list[str]:
    """How far the layers see that do not see all."""
    return [
        f"{layers} of {model.layers} layers see {tokens:,} tokens back"
        for tokens, layers in model.windows
    ]


def _words(model: Model | Stack, parts: Counted) -> Words:
    active = "" if parts.N_act is parts.N else f", {units.count(parts.N_act.value)} active"
    shares = [
        f"{name} {units.count(size)} ({size / parts.N.value:.1%})"
        for name, size in sorted(parts.parts.items(), key=lambda part: -part[1])
    ]
    notes = [" · ".join(shares)]
    if isinstance(model, Stack):
        return Words(str(parts.N), f"{model.name}", [*notes, *model.notes])
    notes += windows_of(model)
    hub = known.hub_names(model)
    if hub:
        notes.append(f"on the Hugging Face hub: {', '.join(hub)}")
    said = f"{model.name} · {model.architecture}"
    return Words(f"{parts.N}{active}", said, [*notes, *model.notes])
