"""A header and one row per answer: inputs, then result; what is nested gets dotted names."""

import csv
import json
from collections.abc import Iterator
from typing import Any, TextIO

from napkin.errors import printable
from napkin.questions.answer import Answer, Report
from napkin.render import plain


def write(report: Report, out: TextIO) -> None:
    rows = [dict(_flat(answer)) for answer in report.answers]
    header = list(dict.fromkeys(name for row in rows for name in row))
    if not rows:
        return
    writer = csv.DictWriter(out, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _flat(answer: Answer) -> Iterator[tuple[str, Any]]:
    for name, value in (answer.inputs | answer.result).items():
        yield from _cells(name, value)


def _cells(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _cells(f"{name}.{printable(key)}", inner)
    elif isinstance(value, (list, dict)):
        yield name, plain.json_printable(json.dumps(value, ensure_ascii=False)) if value else ""
    elif isinstance(value, bool):
        yield name, str(value).lower()
    elif isinstance(value, str):
        yield name, printable(value)
    else:
        yield name, value
