"""A picture drawn: bars of stacked parts on one scale, and the line where it ends."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

from napkin.errors import printable
from napkin.questions.answer import Bar, Picture

# Okabe and Ito's colours and a few more: told apart on the dark ground, by the colour-blind too.
COLOURS = (
    *("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442"),
    *("#3F7FDF", "#D55E00", "#9ACD32", "#B39DDB", "#A1887F", "#B8B8B8", "#FFB3BA"),
)
GROUND, LETTERS, END = "#292929", "#c5c8c6", "#FF6B6B"  # the first two are the table's
SIZE, WIDE = 18, 11  # of a letter
ROW, THICK, MARGIN = 36, 24, 20


def height(picture: Picture, width: float) -> float:
    """Units that the picture takes, where it is so wide."""
    legend = _legend(picture, width)
    return 3 * MARGIN + ROW * (1 + len(picture.bars)) + ROW * (1 + legend[-1][1] if legend else 0)


def drawn(picture: Picture, width: float) -> Iterator[str]:
    """The elements of an SVG, from the left upper corner."""
    left = 2 * MARGIN + WIDE * max(len(bar.name) for bar in picture.bars)
    right = MARGIN + WIDE * max(len(bar.figure + bar.remark) for bar in picture.bars)
    unit = (width - left - right - MARGIN) / picture.most
    colours = _colours(picture)
    yield (
        f'<rect x="1" y="1" width="{width - 2:g}" height="{height(picture, width) - 2:g}" '
        f'rx="8" fill="{GROUND}" stroke="rgba(255,255,255,0.35)"/>'
    )
    top = MARGIN + ROW
    for number, bar in enumerate(picture.bars):
        y = top + number * ROW
        yield from _bar(bar, left, y, unit, colours)
        yield _text(bar.figure + bar.remark, width - right + MARGIN / 2, y + SIZE)
    bottom = top + ROW * len(picture.bars)
    if picture.end is not None:
        yield from _end(picture, left + unit * picture.end, bottom, left)
    for name, line, at in _legend(picture, width):
        y = bottom + MARGIN + line * ROW
        yield f'<rect x="{at}" y="{y}" width="16" height="16" fill="{colours[name]}"/>'
        yield _text(name, at + 24, y + 14)


def _bar(bar: Bar, left: float, y: float, unit: float, colours: dict[str, str]) -> Iterator[str]:
    yield _text(bar.name, MARGIN, y + SIZE)
    x = left
    for name, amount in bar.parts:
        yield (
            f'<rect x="{x:.1f}" y="{y}" width="{unit * amount:.1f}" height="{THICK}" '
            f'fill="{colours[name]}"><title>{escape(printable(name))}</title></rect>'
        )
        x += unit * amount


def _end(picture: Picture, x: float, bottom: float, left: float) -> Iterator[str]:
    yield (
        f'<line x1="{x:.1f}" y1="{MARGIN + ROW - 8}" x2="{x:.1f}" y2="{bottom}" '
        f'stroke="{END}" stroke-width="3" stroke-dasharray="8 4"/>'
    )
    before = x - WIDE * len(picture.end_is) > left
    yield _text(picture.end_is, x, MARGIN + SIZE, anchor="end" if before else "start")


def _colours(picture: Picture) -> dict[str, str]:
    names = _names(picture)
    return {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}


def _names(picture: Picture) -> list[str]:
    """Of all parts, in the order in which they come to be."""
    return list(dict.fromkeys(name for bar in picture.bars for name, _ in bar.parts))


def _legend(picture: Picture, width: float) -> list[tuple[str, int, float]]:
    """Each part with its line and place in it."""
    if all(len(bar.parts) == 1 for bar in picture.bars):
        return []  # the bars have their names
    line, at, places = 0, float(MARGIN), []
    for name in _names(picture):
        wide = 24 + WIDE * (len(name) + 2)
        if at + wide > width and at > MARGIN:
            line, at = line + 1, float(MARGIN)
        places.append((name, line, at))
        at += wide
    return places


def _text(words: str, x: float, y: float, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{LETTERS}" font-size="{SIZE}" '
        f'font-family="monospace" text-anchor="{anchor}" xml:space="preserve">'
        f"{escape(printable(words))}</text>"
    )
