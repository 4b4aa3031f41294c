"""The question turned round: the largest micro-batch, sequence or model, the fewest GPUs."""

from collections.abc import Callable
from functools import partial

from napkin import parsing, units
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
        return _gpus(at, asked.zero is not None)
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


def _gpus(asked: Scenario, stage_given: bool) -> Answer:
    """As many as it takes, everything sharded unless --zero says otherwise."""

    def on(gpus: int) -> Scenario:
        zero = asked.setup.zero if stage_given else 3 if gpus > 1 else 0
        return asked.on(gpus, zero)

    if on(1).fits:
        return answered(on(1), f"1 GPU is enough{on(1).tightly}: ")
    too_few = largest(lambda gpus: not on(gpus).fits)
    if too_few >= MOST:
        return answered(on(MANY), f"no number of GPUs is enough, {MANY:,} neither: ")
    at = on(too_few + 1)
    return answered(at, f"{too_few + 1:,} GPUs are the fewest that it fits{at.tightly}: ")


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
