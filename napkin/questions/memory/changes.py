"""What would make it fit, or make room: other settings, each answered by the same question."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from napkin import units
from napkin.accounting.notation import PLAIN
from napkin.errors import NapkinError
from napkin.questions.capacity import Capacity
from napkin.questions.machines import as_many
from napkin.questions.memory import scenario
from napkin.questions.memory.scenario import Scenario, Settings
from napkin.questions.options import flag
from napkin.record import Record
from napkin.specs.model import Model

SHOWN = 3
ON_A_LINE = 80  # letters
WIDTH = 37  # letters of the options, if not more
# What a change costs, cheapest first: nothing but other code, time, what is trained, machines.
CODE, TIME, NUMBERS, DIVIDED, BATCH, LENGTH, ADAPTERS, MACHINES = range(8)
EXACT = "exact_full"
USUAL_RANK = "16"
A_NODE = 8  # GPUs with fast links between all of them

Options = Mapping[str, str | bool]


class Change(Record):
    """Other settings, what they cost, and the peak in B that they lead to."""

    options: Options
    price: str
    rank: int
    more_flop: float = 0.0  # a share of the FLOP of training
    peak: float = 0.0

    @property
    def typed(self) -> str:
        """As options to copy."""
        return " ".join(
            flag(name) if value is True else f"{flag(name)} {value}"
            for name, value in self.options.items()
        )

    def with_(self, other: "Change") -> "Change":
        return Change(
            {**self.options, **other.options},
            ", ".join(dict.fromkeys(each.price for each in (self, other) if each.rank > CODE))
            or self.price,
            max(self.rank, other.rank),
            self.more_flop + other.more_flop,
        )


def lines(settings: Settings, at: Scenario, now: float) -> list[str]:
    """What fits where this, now at its peak in B, does not, or what is nearest; where it fits,
    what makes most room."""
    # What frees nothing alone may do beside another: activations, where the step holds most.
    every = list(_tried(settings, _singles(settings, at), now))
    singles = [each for each in every if each.peak < now]
    capacity = at.capacity
    if capacity.holds(now):
        free = [each for each in singles if each.rank < DIVIDED]
        return _written("less: ", sorted(free, key=lambda each: each.peak), capacity)
    fitting = _cheapest(singles, capacity)
    if len(fitting) < SHOWN:
        too_large = [each for each in every if not capacity.holds(each.peak)]
        pairs = [a.with_(b) for a, b in combinations(too_large, 2) if _differ(a, b)]
        tried = list(_tried(settings, pairs, now))
        whole = [each for each in tried if each.rank < ADAPTERS]
        if whole and not any(each.rank < ADAPTERS for each in _cheapest(tried, capacity)):
            best = min(whole, key=lambda each: each.peak)
            thirds = [best.with_(each) for each in too_large if _differ(best, each)]
            tried += _tried(settings, thirds, now)
        fitting = sorted([*fitting, *_cheapest(tried, capacity)], key=_price)
        singles += tried
    if fitting:
        return _written("try:  ", fitting, capacity)
    nearest = sorted(singles, key=lambda each: each.peak)[: SHOWN - 1]
    return [*_written("near: ", nearest, capacity), *_fewest(at)]


def _fewest(at: Scenario) -> list[str]:
    """How to ask for more GPUs."""
    return [f"how many GPUs it takes: --fit gpus{' instead of --gpus' * (at.gpus > 1)}"]


def _singles(settings: Settings, at: Scenario) -> Iterator[Change]:
    """One setting changed."""
    setup, model = at.setup, at.about
    if isinstance(model, Model):
        yield Change({"chunked_loss": True}, "a loss in chunks", CODE)
        yield Change({"norm": "fused"}, "fused norms", CODE)
        yield from _recomputing(model, setup.seq_len, setup.recompute)
    if setup.ranks > 1:
        for stage in range(setup.zero + 1, 4):
            price = "1.5 x the traffic" if stage == 3 else "no more traffic"  # 1910.02054, 7
            yield Change({"zero": str(stage)}, price, TIME if stage == 3 else CODE)
    yield from _dividing(at)
    if at.optimizer == "adamw":
        yield Change({"optimizer": "adam8bit"}, "8-bit moments", NUMBERS)
    if isinstance(model, Model) and setup.tuning is None:
        yield Change({"lora_rank": USUAL_RANK}, "adapters", ADAPTERS)
        quantised: Options = {"lora_rank": USUAL_RANK, "quantize": "nf4"}
        yield Change(quantised, "adapters", ADAPTERS)
    elif setup.tuning is not None and setup.tuning.stored is None:
        yield Change({"quantize": "nf4"}, "4 bits", NUMBERS)
    if at.precision != "bf16":
        yield Change({"precision": "bf16"}, "bf16 states", NUMBERS)
    if model is not None:
        for sequences in sorted({setup.micro_batch // 2, 1} - {0, setup.micro_batch}):
            yield Change({"micro_batch": str(sequences)}, "a smaller micro-batch", BATCH)
        if setup.seq_len > 1:
            yield Change({"seq_len": str(setup.seq_len // 2)}, "half the context", LENGTH)
    if setup.zero or setup.ranks == 1:
        yield Change({"gpus": as_many(settings.gpus, 2 * at.gpus)}, "twice as many", MACHINES)


def _dividing(at: Scenario) -> Iterator[Change]:
    """The model over twice as many of the same GPUs."""
    degrees, model = at.setup.degrees, at.about
    if degrees.tp > 1 and isinstance(model, Model) and not degrees.sequence_parallel:
        yield Change({"sequence_parallel": True}, "no more traffic", CODE)
    if at.setup.ranks % (2 * degrees.cp) or not isinstance(model, Model):
        return
    if degrees.tp < A_NODE:
        tensor: Options = {"tp": str(2 * degrees.tp), "sequence_parallel": True}
        yield Change(tensor, "traffic in every layer", DIVIDED)
    yield Change({"cp": str(2 * degrees.cp)}, "keys and values passed on", DIVIDED)


def _recomputing(model: Model, seq_len: int, now: str) -> Iterator[Change]:
    """The forward pass again, or its attention; its price is FLOP."""
    from napkin.accounting.flop_per_token import of_model  # which the answer itself goes without

    totals = of_model(model, seq_len, "--seq-len")
    for how, again in totals.again.items():
        if now == "none" or (now, how) == ("selective", "full"):
            more = again.value / totals.flop[EXACT].value
            price = f"+{more:.0%} FLOP".replace("%", " %")
            yield Change({"recompute": how}, price, TIME, more)


def _tried(settings: Settings, changes: Iterable[Change], now: float) -> Iterator[Change]:
    """Those that the question takes and that need no more, with their peaks."""
    for change in changes:
        try:
            at = scenario.read(settings.replace(**change.options))
            peak = at.step(PLAIN).peak.bytes
        except NapkinError:
            continue
        if peak <= now:
            yield change.replace(peak=peak)


def _differ(a: Change, b: Change) -> bool:
    return not set(a.options) & set(b.options)


def _cheapest(changes: Sequence[Change], capacity: Capacity) -> list[Change]:
    """Of those that fit."""
    return sorted([each for each in changes if capacity.holds(each.peak)], key=_price)


def _price(change: Change) -> tuple[int, float, float]:
    return change.rank, change.more_flop, change.peak


def _written(head: str, changes: Sequence[Change], capacity: Capacity) -> list[str]:
    rows, width = [], max([WIDTH, *(len(each.typed) for each in changes[:SHOWN])])
    for change in changes[:SHOWN]:
        short = change.peak - capacity.limit.bytes
        price = change.price if short <= 0 else f"{units.humanize(short, 'B')} short"
        size = units.humanize(change.peak, "B")
        row = f"{head}{change.typed:{width}} {size:>9}  "
        if len(row) + len(price) > ON_A_LINE:  # the options say the rest
            price = price.partition(",")[0]
        rows.append(f"{row}{price}".rstrip())
        head = " " * len(head)
    return rows
