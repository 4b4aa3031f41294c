"""A header and one row per answer, in the columns of its question, dotted where nested."""

import csv
import json
from typing import Any, TextIO

from napkin.errors import printable
from napkin.questions.answer import Report
from napkin.render import plain


def write(report: Report, out: TextIO) -> None:
    rows = [answer.inputs | answer.result for answer in report.answers]
    if not rows:
        return
    columns = report.answers[0].columns or tuple(rows[0])
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(printable, columns))
    writer.writerows([_cell(_at(row, column)) for column in columns] for row in rows)


def _at(values: Any, column: str) -> Any:
    """By key; of records, such as phases, the one that begins with it. None where there is none."""
    for key in column.split("."):
        if isinstance(values, list):
            values = {next(iter(record.values())): record for record in values}
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return plain.json_printable(json.dumps(value, ensure_ascii=False)) if value else ""
    if isinstance(value, bool):
        return str(value).lower()
    return printable(value) if isinstance(value, str) else value
