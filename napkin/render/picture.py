"""A picture drawn: bars of stacked parts on one scale, and the line where it ends."""

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from napkin import units
from napkin.errors import printable
from napkin.questions.answer import Bar, Picture, Roofline

# Okabe and Ito's colours and a few more: told apart on the dark ground, by the colour-blind too.
COLOURS = (
    *("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442"),
    *("#3F7FDF", "#D55E00", "#9ACD32", "#B39DDB", "#A1887F", "#B8B8B8", "#FFB3BA"),
)
GROUND, LETTERS, END = "#292929", "#c5c8c6", "#FF6B6B"  # the first two are the table's
SIZE, WIDE = 18, 11  # of a letter
ROW, THICK, MARGIN = 36, 24, 20
HIGH = 0.45  # of a roofline's width


def height(picture: Picture | Roofline, width: float) -> float:
    """Units that the picture takes, where it is so wide."""
    if isinstance(picture, Roofline):
        return width * HIGH
    legend = _legend(picture, width)
    return 3 * MARGIN + ROW * (1 + len(picture.bars)) + ROW * (1 + legend[-1][1] if legend else 0)


def drawn(picture: Picture | Roofline, width: float) -> Iterator[str]:
    """The elements of an SVG, from the left upper corner."""
    yield (
        f'<rect x="1" y="1" width="{width - 2:g}" height="{height(picture, width) - 2:g}" '
        f'rx="8" fill="{GROUND}" stroke="rgba(255,255,255,0.35)"/>'
    )
    yield from _roofline(picture, width) if isinstance(picture, Roofline) else _bars(picture, width)


def _bars(picture: Picture, width: float) -> Iterator[str]:
    left = 2 * MARGIN + WIDE * max(len(bar.name) for bar in picture.bars)
    right = MARGIN + WIDE * max(len(bar.figure + bar.remark) for bar in picture.bars)
    unit = (width - left - right - MARGIN) / picture.most
    colours = _colours(picture)
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
    yield _dashed(x, MARGIN + ROW - 8, bottom)
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


def _roofline(roof: Roofline, width: float) -> Iterator[str]:
    """Both axes in powers of ten, so that the memory's line is straight."""
    left, right = 6.0 * MARGIN, width - 2 * MARGIN
    top, bottom = 3.0 * MARGIN, height(roof, width) - 3 * MARGIN
    low = min(roof.intensity, roof.ridge) / 10
    high = max(roof.intensity, roof.ridge) * 10
    slope = roof.peak / roof.ridge

    def x(intensity: float) -> float:
        return left + (right - left) * math.log(intensity / low) / math.log(high / low)

    def y(rate: float) -> float:
        return top + (bottom - top) * math.log(roof.peak / rate) / math.log(roof.ridge / low)

    line = f"{x(low):.1f},{y(slope * low):.1f} {x(roof.ridge):.1f},{top:g} {right:g},{top:g}"
    yield f'<polyline points="{line}" fill="none" stroke="{COLOURS[0]}" stroke-width="3"/>'
    yield (
        f'<polyline points="{left:g},{top:g} {left:g},{bottom:g} {right:g},{bottom:g}" '
        f'fill="none" stroke="{LETTERS}"/>'
    )
    yield _text(f"{units.humanize(roof.peak, 'FLOP/s')}", left, top - 10)
    yield _text("FLOP/B", right, bottom + 40, anchor="end")
    yield _dashed(x(roof.ridge), top, bottom)
    yield _text(f"ridge point {units.figures(roof.ridge)}", x(roof.ridge), bottom + 20)
    for number, (name, rate) in enumerate(roof.points, 1):
        at = x(roof.intensity), min(bottom, y(rate))
        yield f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="7" fill="{COLOURS[number]}"/>'
        label = f"{name}: {units.humanize(rate, 'FLOP/s')}"
        before = at[0] > (left + right) / 2
        yield _text(
            label, at[0] + (-12 if before else 12), at[1] + 28, "end" if before else "start"
        )
    yield _text(f"{units.figures(roof.intensity)}", x(roof.intensity), bottom + 40)


def _dashed(x: float, top: float, bottom: float) -> str:
    return (
        f'<line x1="{x:.1f}" y1="{top:g}" x2="{x:.1f}" y2="{bottom:g}" '
        f'stroke="{END}" stroke-width="3" stroke-dasharray="8 4"/>'
    )


def _text(words: str, x: float, y: float, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{LETTERS}" font-size="{SIZE}" '
        f'font-family="monospace" text-anchor="{anchor}" xml:space="preserve">'
        f"{escape(printable(words))}</text>"
    )
