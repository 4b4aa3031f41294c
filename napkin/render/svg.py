"""The table as a picture: the same screen, without the fonts that Rich would fetch."""

import re
from io import StringIO
from typing import TextIO

from rich.console import Console

from napkin.questions.answer import Report
from napkin.render import plain, table
from napkin.render.console import HEIGHT, console

LONGEST = 100  # cells of a line; a longer one is folded, a table never


def write(report: Report, out: TextIO) -> None:
    on = Console(
        file=StringIO(),
        record=True,
        width=table.width(report, console(StringIO()), LONGEST),
        height=HEIGHT,
        force_terminal=True,
        color_system="truecolor",
        markup=False,
        emoji=False,
        highlight=False,
    )
    table.screen(report, on)
    svg = on.export_svg(title=f"napkin {report.question}")
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*", "", svg)
    out.write(svg if plain.speaks_utf8(out) else plain.xml_text(svg))
