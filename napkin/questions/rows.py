"""Scenarios as one table: a row for each, of what differs between them and what was asked for."""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import repeat
from typing import Any

from napkin import units
from napkin.quantity import derivation
from napkin.questions import options
from napkin.questions.answer import Answer, Table, Together, Words, bar
from napkin.record import Record

BAR = 14  # letters
FEW = 4  # rows of which the bars show the best at a glance
TOGETHER = "[x×*]"  # of --gpus 8xH100

# What an input is said in where a bare number would not do.
UNITS = {
    "mfu": "%",
    "reserve": "%",
    "price": "USD",
    "memory": "B",
    "bandwidth": "B/s",
    "time": "s",
    "step_time": "s",
    "restart": "s",
    "flops": "FLOP",
    "peak": "FLOP/s/GPU",
    "achieved": "FLOP/s/GPU",
}
# Numbers that are assumed where nobody gave them; others follow from what was given.
USUAL = ("seq_len", "micro_batch", "grad_accum", "batch", "zero", "mtbf", "restart")


class Column(Record):
    """A figure of a question's result, and how a row says it."""

    title: str
    key: str  # dotted where it is nested
    unit: str = ""  # none: a count, or a word
    scale: float = 1  # of the result's unit
    counts: bool = True  # no word

    def of(self, result: dict[str, Any]) -> Any:
        """None where the answer has none."""
        found: Any = result
        for part in self.key.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        return found * self.scale if isinstance(found, (int, float)) else found

    def text(self, result: dict[str, Any]) -> str:
        return _text(self.of(result), self.unit)


class States(Column):
    """Whether the states of training fit on the GPUs that there are."""

    def text(self, result: dict[str, Any]) -> str:
        least, gpus = self.of(result), result["gpus"]
        return "fit" if least is None or gpus >= least else f"need {least:,} GPUs"


class Computed(Column):
    """FLOP of a token, with what is recomputed or left out where that was asked for."""

    def of(self, result: dict[str, Any]) -> Any:
        computed = super().of(result)
        return result["training_per_token"]["exact_full"] if computed is None else computed


# Of each question the figures of a row, the one that is drawn first.
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "train-time": (
        Column("time", "seconds", "s"),
        Column("GPU-hours", "gpu_hours"),
        Column("cost", "cost", "USD"),
        States("states", "min_gpus_for_states", counts=False),
        Column("as measured", "measured.days", "s", units.DAY),
        Column("energy", "energy_kwh", "W·hour", 1000),
    ),
    "max-model": (
        Column("parameters", "params"),
        Column("B/param", "bytes_per_param"),
        Column("pooled", "memory_bytes", "B"),
        Column("one GPU alone", "params_replicated"),
    ),
    "mfu": (
        Column("MFU", "mfu", "%"),
        Column("HFU", "hfu", "%"),
        Column("of measured", "mfu_measured", "%"),
        Column("achieved", "flops_per_second_per_gpu", "FLOP/s/GPU"),
        Column("tokens/s/GPU", "tokens_per_second_per_gpu"),
    ),
    "memory": (
        Column("peak", "per_gpu_bytes.peak", "B"),
        Column("of", "capacity_bytes", "B"),
        Column("verdict", "verdict", counts=False),
        Column("activations", "per_gpu_bytes.activations", "B"),
    ),
    "flops": (
        Computed("a token", "computed_per_token", "FLOP"),
        Column("a step", "per_step", "FLOP"),
        Column("a run", "per_run", "FLOP"),
    ),
    "tensor": (Column("bytes", "bytes", "B"), Column("elements", "elements")),
    "matmul": (
        Column("time", "seconds", "s"),
        Column("bound by", "bound", counts=False),
        Column("intensity", "intensity", "FLOP/B"),
        Column("MFU", "mfu", "%"),
    ),
    "data": (Column("bytes", "bytes", "B"),),
    "checkpoint": (
        Column("bytes", "bytes", "B"),
        Column("weights", "weights_bytes", "B"),
        Column("to write", "seconds", "s"),
        Column("a save every", "interval_seconds", "s"),
        Column("lost", "lost.sum", "%"),
    ),
}
END = {"memory": "capacity_bytes"}  # where a bar's scale ends


def together(
    answers: Sequence[Answer],
    differing: Sequence[str],
    given: Mapping[str, Any],
    left_out: Sequence[str],
) -> Together:
    """`differing` are the inputs that tell them apart; `given` are the options as they were."""
    results = [answer.result for answer in answers]
    known = COLUMNS[answers[0].question]
    columns = [each for each in known if any(each.of(result) is not None for result in results)]
    names = _names(answers[0], differing, given, {column.key for column in columns})
    inputs = {_title(name): _inputs(name, answers) for name in names}
    labels = [" · ".join(map(" ".join, zip(inputs, row, strict=True))) for row in _rows(inputs)]
    words = Words(
        _range(results, columns[0]),
        _how_many(results),
        [*_best(answers[0].question, results, labels), *left_out],
        _warnings(answers, labels),
        settings=_the_same(answers[0], names, given),
    )
    figures = {each.title: [each.text(result) for result in results] for each in columns}
    drawn = {"": _bars(answers, columns[0])}
    first = columns[0].title
    shown = {**inputs, first: figures[first], **(drawn if any(drawn[""]) else {}), **figures}
    right = [_title(name) for name in names if not isinstance(answers[0].inputs[name], str)]
    right += [each.title for each in columns if each.unit or each.counts]
    return Together(words, Table(tuple(shown), _rows(shown), frozenset(right)), labels, left_out)


def _names(
    answer: Answer, differing: Sequence[str], given: Mapping[str, Any], figures: Collection[str]
) -> list[str]:
    """The inputs of a row: none that is a figure of it anyway, and what --fit has found."""
    names = [name for name in differing if name not in figures or name in given]
    sought = str(given.get("fit")).strip().casefold().replace("-", "_")
    return [*names, sought] if sought in answer.inputs and sought not in names else names


def _rows(columns: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    return list(zip(*columns.values(), strict=True))


def _title(name: str) -> str:
    return name.replace("_", "-")


def _text(value: Any, unit: str = "") -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return units.humanize(value, unit) if unit else units.count(value)
    if isinstance(value, list):
        return " ".join(value)
    return "-" if value is None else str(value)


def _inputs(name: str, answers: Sequence[Answer]) -> list[str]:
    """Of each scenario; in full where two would read alike."""
    values = [answer.inputs.get(name) for answer in answers]
    texts = {value: _text(value, UNITS.get(name, "")) for value in values}
    if len(set(texts.values())) < len(texts):
        texts = {value: str(value) for value in values}
    return [texts[value] for value in values]


def _bars(answers: Sequence[Answer], column: Column) -> list[str]:
    """The figure drawn, where it differs; nothing where some scenario has none."""
    amounts = [column.of(answer.result) for answer in answers]
    end = END.get(answers[0].question)
    ends = [None if end is None else answer.result[end] for answer in answers]
    if None in amounts or len(set(amounts)) == 1:
        return [""] * len(answers)
    most = max(*amounts, *(each for each in ends if each is not None))
    return [bar(*each, BAR) for each in zip(amounts, repeat(most), ends, strict=False)]


def _range(results: Sequence[dict[str, Any]], column: Column) -> str:
    amounts = [amount for amount in map(column.of, results) if amount is not None]
    least, most = (_text(each, column.unit) for each in (min(amounts), max(amounts)))
    return least if least == most else f"{least} to {most}"


def _how_many(results: Sequence[dict[str, Any]]) -> str:
    fit = [fits for fits in map(_fits, results) if fits is not None]
    many = "1 scenario" if len(results) == 1 else f"{len(results):,} scenarios"
    what = "fit" if "fits" in results[0] else "hold the states of training"
    if not fit or len(results) == 1:
        return many
    return f"{many}, {'all' if all(fit) else f'{sum(fit):,} of them'} {what}"


def _fits(result: dict[str, Any]) -> bool | None:
    """Whether all, or the states of training at least, find room; None where that is not asked."""
    if "fits" in result:
        return bool(result["fits"])
    least = result.get("min_gpus_for_states")
    return None if least is None else bool(result["gpus"] >= least)


def _best(question: str, results: Sequence[dict[str, Any]], labels: Sequence[str]) -> list[str]:
    """What so many bars do not say at a glance, of those that find room."""
    if len(results) <= FEW:
        return []
    ways = {
        "train-time": (("fastest", "seconds", 1), ("cheapest", "cost", 1)),
        "matmul": (("fastest", "seconds", 1),),
        "max-model": (("largest", "params", -1),),
    }
    room = [number for number, result in enumerate(results) if _fits(result) is not False]
    best: dict[str, list[str]] = {}
    for word, key, sign in ways.get(question, ()):
        amounts = {number: sign * results[number][key] for number in room if results[number][key]}
        if amounts:
            best.setdefault(labels[min(amounts, key=amounts.__getitem__)], []).append(word)
    where = " (where the states find room)" if len(room) < len(results) else ""
    return [f"{' and '.join(words)}: {label}{where}" for label, words in best.items()]


def _warnings(answers: Sequence[Answer], labels: Sequence[str]) -> list[str]:
    """Those that differ in their figures alone as one."""
    alike: dict[str, list[tuple[int, str]]] = {}
    for number, answer in enumerate(answers):
        for warning in answer.words.warnings:
            alike.setdefault(re.sub(r"[\d.,]+", "0", warning), []).append((number, warning))
    said = []
    for found in alike.values():
        number, warning = found[0]
        everywhere = len(found) == len(answers) and len({text for _, text in found}) == 1
        others = f" (and {len(found) - 1:,} like it)" if len(found) > 1 else ""
        said.append(warning if everywhere else f"{labels[number]}: {warning}{others}")
    return said


def _the_same(answer: Answer, names: Sequence[str], given: Mapping[str, Any]) -> str:
    """What holds for all: inputs as they were given, then what was assumed."""
    first = answer.inputs
    rest = {
        name: f"{_title(name)} {_text(value, UNITS.get(name, ''))}"
        for name, value in first.items()
        if name not in names and value is not None and value is not False
    }
    if first.get("active_params") == first.get("params"):
        rest.pop("active_params", None)
    assumed = [name for name in rest if name not in given and _is_assumed(name, answer, given)]
    said = [text for name, text in rest.items() if name not in assumed]
    if assumed:
        said.append(f"{', '.join(rest[name] for name in assumed)} (assumed)")
    return " · ".join(said)


def _is_assumed(name: str, answer: Answer, given: Mapping[str, Any]) -> bool:
    """A word that nobody gave, or a number whose source says so."""
    if isinstance(answer.inputs[name], str):
        in_gpus = name == "hardware" and re.search(TOGETHER, str(given.get("gpus")))
        return name != "model" and not in_gpus
    if name in USUAL:
        return True
    source = f"{options.flag(name)} (assumed)"
    return any(q.source == source for q in derivation(*answer.steps, *answer.asides))
