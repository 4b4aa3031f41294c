"""One JSON document: base units, no NaN, no escape codes."""

import json
from typing import Any, TextIO

from napkin import __version__
from napkin.questions.answer import Answer, Report
from napkin.render import plain

SCHEMA = 1


def write(report: Report, out: TextIO) -> None:
    document = text(report) + "\n"
    out.write(document if plain.speaks_utf8(out) else plain.json_text(document))


def text(report: Report) -> str:
    """The document of the contract."""
    document = {
        "napkin": __version__,
        "schema": SCHEMA,
        "question": report.question,
        "answers": [_answer(answer) for answer in report.answers],
    }
    return plain.json_printable(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "inputs": answer.inputs,
        "result": answer.result,
        "derivation": answer.derivation,
        "notes": answer.notes,
        "warnings": answer.warnings,
    }
