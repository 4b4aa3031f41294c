"""The questions as Python functions, whose answers can write themselves.

napkin.train_time(params="70B", tokens=15e12, gpus=1024).result["days"]
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property, wraps
from inspect import signature
from typing import Any, ParamSpec, Protocol, cast, overload

from napkin.errors import NapkinError, printable
from napkin.questions import answer, scenarios
from napkin.questions.answer import Report
from napkin.questions.checkpoint import checkpoint as _checkpoint
from napkin.questions.data import data as _data
from napkin.questions.flops import flops as _flops
from napkin.questions.max_model import max_model as _max_model
from napkin.questions.memory import memory as _memory
from napkin.questions.mfu import mfu as _mfu
from napkin.questions.train_time import train_time as _train_time

Options = ParamSpec("Options")
QUOTED_OR_FLAG = re.compile(r"""'[^']*'|"[^"]*"|(?<![\w-])--(?P<flag>[a-z][a-z-]*)""")
COMMAND = re.compile(r"napkin [a-z]")  # from here on a line is typed as it stands


class _Written:
    """What can write itself: as JSON, as Markdown, and as the table by print."""

    def _report(self) -> Report:
        raise NotImplementedError

    def to_json(self) -> str:
        """The document that `--format json` prints."""
        from napkin.render import json

        return json.text(self._report())

    def to_markdown(self) -> str:
        """What `--format markdown` prints."""
        from napkin.render import markdown

        return markdown.text(self._report())

    def __str__(self) -> str:
        from napkin.render import table

        report = self._report()
        warnings = (f"warning: {printable(warning)}\n" for warning in report.warnings)
        return (table.text(report) + "".join(warnings)).rstrip("\n")

    def _repr_markdown_(self) -> str:  # what a notebook shows
        return self.to_markdown()


class Answer(_Written, answer.Answer):
    """An answer with `result`, `derivation`, `notes` and `warnings`."""

    def _report(self) -> Report:
        return Report(self.question, [self])


class Answers(_Written):
    """Several answers, of a list of what is known."""

    def __init__(self, report: Report) -> None:
        self.report = report

    @cached_property
    def answers(self) -> list[Answer]:
        """One by one."""
        return [_of_python(each) for each in self.report.answers]

    def _report(self) -> Report:
        return self.report

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.report.answers)

    def __repr__(self) -> str:
        return f"<{self.report.question}: {len(self)} answers>"


def _of_python(a: answer.Answer) -> Answer:
    return Answer(
        a.question, a.inputs, a.result, a.say, a.steps, a.asides, a.columns, a.napkin, a.summary
    )


class _Question(Protocol[Options]):
    """A function of one scenario, which answers for several where options are lists."""

    @overload
    def __call__(self, *args: Options.args, **options: Options.kwargs) -> Answer: ...

    @overload
    def __call__(self, *args: Any, **options: Any) -> Answers: ...


def _writing_itself(
    question: Callable[Options, answer.Answer | Report],
) -> _Question[Options]:
    name = question.__name__

    @wraps(question)
    def ask(*args: Any, **options: Any) -> Any:
        try:
            a = scenarios.asked(name, question, options, *args)
        except NapkinError as error:
            raise _in_python(error) from error.__cause__
        if not isinstance(a, Report):
            return _of_python(a)
        return Answers(a) if a.say is not None else _of_python(*a.answers)

    return cast(_Question[Options], ask)


def _in_python(error: NapkinError) -> NapkinError:
    """Options by the names of the parameters, an example as a call; what is quoted, and what only
    a shell can do, stays as it stands."""

    def named(match: re.Match[str]) -> str:
        name = (match["flag"] or "").replace("-", "_")
        return name if name in _parameters() else match[0]

    def line(text: str) -> str:
        example = COMMAND.search(text)
        end = len(text) if example is None else example.start()
        return QUOTED_OR_FLAG.sub(named, text[:end]) + _call(text[end:])

    return error.with_lines(*map(line, error.lines))


def _call(command: str) -> str:
    """`napkin max-model --gpus 8` as napkin.max_model(gpus="8"); another command as it is."""
    question, *words = command.split()[1:] or [""]
    options, values = words[::2], words[1::2]
    names = [option.removeprefix("--").replace("-", "_") for option in options]
    if not names or len(names) != len(values) or not _parameters().issuperset(names):
        return command
    arguments = (f'{name}="{value}"' for name, value in zip(names, values, strict=True))
    return f"napkin.{question.replace('-', '_')}({', '.join(arguments)})"


@cache
def _parameters() -> frozenset[str]:
    """Of all questions."""
    questions = (_train_time, _max_model, _memory, _mfu, _flops, _data, _checkpoint)
    return frozenset(name for each in questions for name in signature(each).parameters)


train_time = _writing_itself(_train_time)
max_model = _writing_itself(_max_model)
mfu = _writing_itself(_mfu)
memory = _writing_itself(_memory)
flops = _writing_itself(_flops)
data = _writing_itself(_data)
checkpoint = _writing_itself(_checkpoint)


def tensor(*shapes: str, **options: Any) -> Answer:
    """Elements and bytes of `49152x12288`, of several together. Raises NapkinError."""
    from napkin.questions.tensor import tensor as question

    found: Answer = _writing_itself(question)(shapes=shapes, **options)
    return found


def matmul(*shapes: str, **options: Any) -> Answer:
    """FLOP, bytes and roofline of `1024x4096` times `4096x4096`. Raises NapkinError."""
    from napkin.questions.matmul import matmul as question

    found: Answer = _writing_itself(question)(shapes=shapes, **options)
    return found


def dtypes(name: str | None = None, **options: Any) -> Answers:
    """Every number format, or the one of that name. Raises NapkinError."""
    from napkin.questions.dtypes import dtypes as question

    return Answers(question(name=name, **options))


def explain(topic: str | None = None) -> Answers:
    """Every topic, or that one. Raises NapkinError."""
    from napkin.questions.explain import explain as question

    return Answers(question(topic=topic))


def models(name: str | None = None, **options: Any) -> Answers:
    """Every shipped model, or the one of that name, file or shape. Raises NapkinError."""
    from napkin.questions.models import models as question

    return Answers(question(name=name, **options))


def hardware(*names: str) -> Answers:
    """Every accelerator, or those asked for. Raises NapkinError."""
    from napkin.questions.hardware import hardware as question

    return Answers(question(names=names))
