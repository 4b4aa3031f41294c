"""The question turned round: the largest micro-batch, sequence or model, the fewest GPUs."""

from collections.abc import Callable
from typing import Any

from napkin import parsing, units
from napkin.quantity import given as input_of
from napkin.questions import options
from napkin.questions.answer import Answer
from napkin.questions.memory import scenario
from napkin.questions.memory.answering import answered
from napkin.questions.memory.scenario import Scenario
from napkin.specs.model import Stack

WAYS = ("micro-batch", "seq-len", "params", "gpus")
MOST = 2**40  # of anything that is searched
MANY = 2**16  # GPUs, where more change nothing


def fitted(given: dict[str, Any]) -> Answer:
    """The answer at the setting that fits. Raises NapkinError where nothing is asked for."""
    way = options.choice("fit", given.pop("fit"), WAYS)
    option = way.replace("-", "_")
    if "bytes_per_param" in given:
        raise options.error("bytes_per_param", "goes without --fit; write --precision, --optimizer")
    if option in given:
        raise options.error(option, "--fit asks for it; leave one out")
    if option == "params":
        return _params(given)
    asked = scenario.read(given)
    if option == "gpus":
        return _gpus(asked, "zero" in given)
    if asked.about is None:
        raise options.error("fit", f"{way} needs --model")
    if option == "seq_len" and isinstance(asked.about, Stack):
        raise options.error("fit", f"{asked.about.name} knows no sequences; write micro-batch")
    most = largest(lambda value: asked.changed(option, value).fits)
    if most == 0:
        return answered(asked.changed(option, 1), f"no {way} fits, not even 1: ")
    at = asked.changed(option, most)
    return answered(at, f"{way} {most:,} is the largest that fits{at.tightly}: ")


def _params(given: dict[str, Any]) -> Answer:
    if "model" in given:
        raise options.error("fit", "params goes without --model: its size is what is asked for")
    asked = scenario.read({**given, "params": parsing.FEWEST})

    def with_params(N: int) -> Scenario:
        of = input_of("N", "parameters", N, "param", "--fit")
        return asked._replace(N=of, inputs=asked.inputs | {"params": N})

    most = largest(lambda N: with_params(N).fits, most=2**60)
    if most >= 2**60:
        raise options.error("gpus", "more than any model fills; write fewer")
    at = with_params(most)
    return answered(at, f"{units.count(most)} parameters are the most that fit{at.tightly}: ")


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
