"""The table as a picture: the same screen, without the fonts that Rich would fetch."""

import re
from io import StringIO
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console

from napkin.questions.answer import Report
from napkin.render import plain, table
from napkin.render.console import HEIGHT

WIDEST = 100  # letters; longer notes are folded


def write(report: Report, out: TextIO) -> None:
    plain_text = StringIO()
    table.write(report, plain_text)
    content = max(map(cell_len, plain_text.getvalue().splitlines()), default=WIDEST)
    on = Console(
        file=StringIO(),
        record=True,
        width=min(content, WIDEST),
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
