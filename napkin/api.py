"""The questions as Python functions, whose answers can write themselves.

napkin.train_time(params="70B", tokens=15e12, gpus=1024).result["days"]
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from napkin.questions import answer
from napkin.questions.answer import Report
from napkin.questions.flops import flops as _flops
from napkin.questions.max_model import max_model as _max_model
from napkin.questions.memory import memory as _memory
from napkin.questions.mfu import mfu as _mfu
from napkin.questions.train_time import train_time as _train_time

Options = ParamSpec("Options")


class Answer(answer.Answer):
    """An answer with `result`, `derivation`, `notes` and `warnings`, and two ways to write it."""

    def to_json(self) -> str:
        """The document that `--format json` prints."""
        from napkin.render import json

        return json.text(Report(self.question, [self]))

    def to_markdown(self) -> str:
        """What `--format markdown` prints."""
        from napkin.render import markdown

        return markdown.text(Report(self.question, [self]))


def _writing_itself(
    question: Callable[Options, answer.Answer | Report],
) -> Callable[Options, Answer]:
    @wraps(question)
    def ask(*args: Options.args, **options: Options.kwargs) -> Answer:
        a = question(*args, **options)
        if isinstance(a, Report):
            (a,) = a.answers
        return Answer(a.question, a.inputs, a.result, a.say, a.steps, a.asides, a.napkin, a.summary)

    return ask


train_time = _writing_itself(_train_time)
max_model = _writing_itself(_max_model)
memory = _writing_itself(_memory)
mfu = _writing_itself(_mfu)
flops = _writing_itself(_flops)
