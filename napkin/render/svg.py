"""The table as a picture: the same screen, without the fonts that Rich would fetch, and what is
bars of letters there drawn beneath."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import TextIO

from rich.console import Console

from napkin.questions.answer import Picture, Report, Roofline
from napkin.render import picture, plain, table
from napkin.render.console import HEIGHT, console

LONGEST = 100  # cells of a line; a longer one is folded, a table never
VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


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
    table.screen(report, on, letters=False)
    svg = on.export_svg(title=f"napkin {report.question}")
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*", "", svg)
    listed = report.table or report.together
    pictures = [] if listed else [answer.words.picture for answer in report.answers]
    svg = _beneath(svg, [each for each in pictures if each is not None])
    out.write(svg if plain.speaks_utf8(out) else plain.xml_text(svg))


def _beneath(svg: str, pictures: list[Picture | Roofline]) -> str:
    """The SVG, longer by the pictures."""
    view = VIEW.search(svg)
    if view is None or not pictures:
        return svg
    width, top = map(float, view.groups())
    heights = [picture.height(each, width) for each in pictures]

    def elements() -> Iterator[str]:
        at = top
        for each, height in zip(pictures, heights, strict=True):
            yield f'<g transform="translate(0,{at:g})">'
            yield from picture.drawn(each, width)
            yield "</g>"
            at += height

    longer = VIEW.sub(f'viewBox="0 0 {width:g} {top + sum(heights):g}"', svg, count=1)
    head, end, tail = longer.rpartition("</svg>")
    return "\n".join([head, *elements(), end + tail])
