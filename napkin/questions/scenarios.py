"""Several scenarios at once: options that are lists, and an answer for each of their combinations.

Command line and Python ask through here. What the rows of a table are is in `rows`.
"""

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from math import prod
from typing import Any

from napkin import parsing
from napkin.errors import Lacking, NapkinError, quoted
from napkin.questions import options
from napkin.questions.answer import Answer, Report, Together
from napkin.questions.lists import ALL, CALCULATORS, LISTS

MOST = 100_000  # 6 kB each

Ask = Callable[..., Answer | Report]


def asked(question: str, ask: Ask, given: Mapping[str, Any], *args: Any) -> Answer | Report:
    """The question's answer; where options are lists an answer for each scenario, the first of
    them slowest. Raises NapkinError."""
    lists: dict[str, Sequence[Any]] = {}
    if question in CALCULATORS:
        for option, value in given.items():
            items = _items(option, value) if option in LISTS else None
            if items is not None:
                lists[option] = items
    if not lists:
        return ask(*args, **given)
    return _each(ask, args, given, lists)


def _items(option: str, value: Any) -> Sequence[Any] | None:
    """What it lists; None where it is one value."""
    if isinstance(value, str):
        if option == "hardware" and value.strip().casefold() == ALL:
            return (ALL,)
        # A file that is there is a file, whatever its name.
        if "," not in value or (option == "hardware" and os.path.exists(value)):
            return None
        items: Sequence[Any] = options.read(option, value, parsing.items)
    elif isinstance(value, (list, tuple, range)):
        items = value
    else:
        return None
    if not items:
        raise options.error(option, "is an empty list; write a value")
    seen = set()
    for item in items:
        alike = str(item).strip().casefold()
        if alike in seen:
            raise options.error(option, f"{quoted(item)} stands there twice; write it once")
        if alike == ALL and option == "hardware":
            raise options.error(option, f"{ALL} stands alone: it has every accelerator in it")
        seen.add(alike)
    return items


def _each(
    ask: Ask, args: Sequence[Any], given: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]
) -> Report:
    everything = lists.get("hardware") == (ALL,)
    names, left_out = _all_hardware() if everything else ([], [])
    if everything:
        lists = {**lists, "hardware": names}
    many = prod(map(len, lists.values()))
    if many > MOST:
        raise NapkinError(f"{many:,} scenarios are too many at once; {MOST:,} are the most")
    answers, scenarios, exit_code = list[Answer](), list[Mapping[str, Any]](), 0
    lacking: dict[str, list[str]] = {}
    with _nothing_collected():
        for values in product(*lists.values()):
            scenario = dict(zip(lists, values, strict=True))
            try:
                found = ask(*args, **{**given, **scenario})
            except Lacking as error:
                if not everything:
                    raise _in(scenario, error, given) from None
                lacking.setdefault(error.what, []).append(scenario["hardware"])
                continue
            except NapkinError as error:
                raise _in(scenario, error, given) from None
            if isinstance(found, Report):
                exit_code = max(exit_code, found.exit_code)
                (found,) = found.answers
            answers.append(found)
            scenarios.append(scenario)
    if not answers:
        raise options.error("hardware", f"no accelerator has a {' or '.join(lacking)}")
    differing = _differing(lists, answers)
    _refuse_twins(answers, scenarios, differing)
    for what, without in lacking.items():
        left_out.append(f"no {what}, left out: {', '.join(dict.fromkeys(without))}")
    say = partial(_together, answers, differing, given, left_out)
    return Report(answers[0].question, answers, exit_code=exit_code, say=say)


def _all_hardware() -> tuple[list[str], list[str]]:
    """Every name, and what is wrong with the user's own files that have none."""
    from napkin.specs import accelerators  # where all are asked for

    found, broken = accelerators.everything_and_broken()
    return [each.key for each in found], [f"left out: {error}" for error in broken]


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Answers that are kept leave nothing to collect, and looking for it doubles their time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _in(scenario: Mapping[str, Any], error: NapkinError, given: Mapping[str, Any]) -> NapkinError:
    """The mistake with its scenario, where it does not quote what is wrong by itself."""
    flag = str(error).partition(":")[0]
    option = flag.removeprefix("--").replace("-", "_")
    value = {**given, **scenario}.get(option)
    if not flag.startswith("--") or quoted(value) in str(error):
        return error
    first, *rest = error.lines
    return error.with_lines(f"{first} (the scenario {typed(scenario)})", *rest)


def typed(scenario: Mapping[str, Any]) -> str:
    """`--gpus 256 --mfu 40%`."""
    return " ".join(f"{options.flag(option)} {value}" for option, value in scenario.items())


def _differing(lists: Mapping[str, Sequence[Any]], answers: Sequence[Answer]) -> list[str]:
    """The inputs that tell the scenarios apart: those that were listed, then what follows."""
    first = answers[0].inputs
    others: dict[str, None] = {}
    for answer in answers:
        for name, value in answer.inputs.items():
            if value != first.get(name):
                others[name] = None
    listed = [name for name in lists if name in others or (name in first and len(answers) == 1)]
    return list(dict.fromkeys((*listed, *(name for name in first if name in others))))


def _refuse_twins(
    answers: Sequence[Answer], scenarios: Sequence[Mapping[str, Any]], differing: Sequence[str]
) -> None:
    """Raises NapkinError where two scenarios are one: by two names of a thing, or by an option
    that another one stands in for."""
    seen: dict[tuple[str, ...], int] = {}
    for number, answer in enumerate(answers):
        figures = tuple(str(answer.inputs.get(name)) for name in differing)
        if figures in seen:
            twins = typed(scenarios[seen[figures]]), typed(scenarios[number])
            raise NapkinError(f"{' and '.join(twins)} are one scenario; leave one of them out")
        seen[figures] = number


def _together(
    answers: Sequence[Answer],
    differing: Sequence[str],
    given: Mapping[str, Any],
    left_out: Sequence[str],
) -> Together:
    from napkin.questions import rows  # where they are shown

    return rows.together(answers, differing, given, left_out)
