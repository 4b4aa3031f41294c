"""Why is it so? The reasons, in plain words, with one number that napkin computes."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

from napkin.errors import NapkinError, quoted, suggestion
from napkin.questions.answer import Answer, Report, Table, Words
from napkin.questions.options import flag
from napkin.specs import topics
from napkin.specs.topics import Topic

# Options that a command takes by their place.
BY_PLACE = ("names", "name", "shapes")
COLUMNS = ("topic", "title", "text", "command", "headline", "reference")


def explain(*, topic: str | None = None) -> Report:
    """Every topic, or the one asked for. Raises NapkinError."""
    known = topics.topics()
    if topic is None:
        rows = [(name, each.title) for name, each in known.items()]
        listed = [_answer(name, each) for name, each in known.items()]
        return Report(
            "explain", listed, Table(("", "why"), rows, frozenset(), "napkin explain TOPIC")
        )
    name = topic.strip().casefold().replace("_", "-").replace(" ", "-")
    if name not in known:
        near = suggestion(name, known) or f"; write one of {' '.join(known)}"
        raise NapkinError(f"{quoted(topic)} is no topic{near}")
    return Report("explain", [_answer(name, known[name])])


def _answer(name: str, topic: Topic) -> Answer:
    ((question, asked),) = topic.ask.items()
    found = getattr(import_module(f"napkin.questions.{question}"), question)(**asked)
    answer: Answer = found.answers[0] if isinstance(found, Report) else found
    command = _typed(question, asked)
    headline = f"{answer.words.headline}  {answer.words.condition}".rstrip()
    result = {
        "title": topic.title,
        "text": " ".join(topic.text.split()),
        "command": command,
        "headline": headline,
        "reference": topic.reference,
    }
    words = partial(_words, name, topic, command, headline)
    return Answer("explain", {"topic": name}, result, words, (), answer.steps, COLUMNS)


def _typed(question: str, asked: Mapping[str, Any]) -> str:
    """The question as the command line takes it."""
    words = ["napkin", question.replace("_", "-")]
    for option, value in asked.items():
        if option in BY_PLACE:
            words += [value] if isinstance(value, str) else value
        elif value is True:
            words.append(flag(option))
        else:
            words += [flag(option), str(value)]
    return " ".join(words)


def _words(name: str, topic: Topic, command: str, headline: str) -> Words:
    lines = topic.text.splitlines()
    if topic.snippet:
        lines += [*(f"  {line}" for line in topic.snippet.splitlines()), f"  # {topic.prints}"]
    lines += ["", f"$ {command}", headline, topic.reference]
    return Words(name, topic.title, lines)
