"""The table as a picture: the same screen, without the fonts that Rich would fetch."""

import re
from io import StringIO
from typing import TextIO

from rich.console import Console

from napkin.questions.answer import Report
from napkin.render import plain
from napkin.render.console import HEIGHT
from napkin.render.table import screen

WIDTH = 100


def write(report: Report, out: TextIO) -> None:
    on = Console(
        file=StringIO(),
        record=True,
        width=WIDTH,
        height=HEIGHT,
        force_terminal=True,
        color_system="truecolor",
        markup=False,
        emoji=False,
        highlight=False,
    )
    screen(report, on)
    svg = on.export_svg(title=f"napkin {report.question}")
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*", "", svg)
    out.write(svg if plain.speaks_utf8(out) else plain.xml_text(svg))
