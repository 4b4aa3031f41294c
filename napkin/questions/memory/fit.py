"""The question turned round: the largest micro-batch, sequence or model, the fewest GPUs."""

from collections.abc import Callable
from functools import partial

from napkin import parsing, units
from napkin.errors import NapkinError
from napkin.questions import options
from napkin.questions.answer import Answer
from napkin.questions.memory import scenario
from napkin.questions.memory.answering import answered
from napkin.questions.memory.scenario import Scenario, Settings
from napkin.specs.model import Stack

WAYS = ("micro-batch", "seq-len", "params", "gpus")
OF_SERVING = "batch"
MOST = 2**40  # of anything that is searched
MANY = 2**16  # GPUs, where more change nothing
RECOMPUTE = {"recompute": "full"}


def fitted(asked: Settings) -> Answer:
    """The answer at the setting that fits. Raises NapkinError where nothing is asked for."""
    if str(asked.fit).strip().casefold() == OF_SERVING:
        raise options.error("fit", "batch goes with --inference; write micro-batch")
    way = options.choice("fit", asked.fit, WAYS)
    asked.refuse(("bytes_per_param",), "goes without --fit; write --precision, --optimizer")
    asked.refuse((way.replace("-", "_"),), "--fit asks for it; leave one out")
    if way == "params":
        return _params(asked)
    at = scenario.read(asked)
    if way == "gpus":
        return _gpus(at, asked)
    if at.about is None:
        raise options.error("fit", f"{way} needs --model")
    if way == "micro-batch":
        return _largest(way, at.with_micro_batch)
    if isinstance(at.about, Stack):
        raise options.error("fit", f"{at.about.name} knows no sequences; write micro-batch")
    return _largest(way, at.with_seq_len)


def _largest(way: str, at: Callable[[int], Scenario]) -> Answer:
    most = largest(lambda value: at(value).fits)
    if most == 0:
        return answered(at(1), f"no {way} fits, not even 1: ")
    return answered(at(most), f"{way} {most:,} is the largest that fits{at(most).tightly}: ")


def _params(asked: Settings) -> Answer:
    if asked.model is not None:
        raise options.error("fit", "params goes without --model: its size is what is asked for")
    smallest = scenario.read(asked.replace(params=parsing.FEWEST))
    at = partial(smallest.with_params, source="--fit")
    most = largest(lambda N: at(N).fits, most=2**60)
    if most >= 2**60:
        raise options.error("gpus", "more than any model fills; write fewer")
    return answered(
        at(most), f"{units.count(most)} parameters are the most that fit{at(most).tightly}: "
    )


def _gpus(at: Scenario, asked: Settings) -> Answer:
    """As many as it takes, everything sharded unless --zero says otherwise."""
    fewest = _fewest(at, asked)
    if fewest is None:
        many = on(MANY * at.gpus, at, asked)
        return answered(many, f"no number of GPUs is enough{_enough(at, asked)}: ")
    there = on(fewest, at, asked)
    if fewest == 1:
        return answered(there, f"1 GPU is enough{there.tightly}: ")
    return answered(there, f"{fewest:,} GPUs are the fewest that it fits{there.tightly}: ")


def on(gpus: int, at: Scenario, asked: Settings) -> Scenario:
    """The same on so many."""
    alone = at.setup.degrees.of_a_replica
    shared = at.setup.zero if asked.zero is not None else 3 if gpus > alone else 0
    return at.on(gpus, shared)


def _fewest(at: Scenario, asked: Settings) -> int | None:
    """A multiple of those that hold the model once."""
    once = at.gpus

    def is_too_few(times: int) -> bool:
        return not on(times * once, at, asked).fits

    too_few = largest(is_too_few) if is_too_few(1) else 0
    return None if too_few >= MOST else (too_few + 1) * once


def _enough(at: Scenario, asked: Settings) -> str:
    """What else would have to change, and how many it would be then."""
    for change in (RECOMPUTE, {**RECOMPUTE, "chunked_loss": True}):
        try:
            changed = asked.replace(**change)
            fewest = _fewest(scenario.read(changed), changed)
        except NapkinError:
            continue
        if fewest is not None:
            typed = " --chunked-loss" if len(change) > 1 else ""
            return f", but {fewest:,} are with --recompute full{typed}"
    return f", {MANY:,} neither"


def largest(holds: Callable[[int], bool], most: int = MOST) -> int:
    """The largest whole number from 1 on for which it holds, 0 for none, `most` for all."""
    if not holds(1):
        return 0
    low, high = 1, 2
    while high < most and holds(high):
        low, high = high, high * 2
    if high >= most:
        return most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
