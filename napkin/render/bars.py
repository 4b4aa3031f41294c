"""A picture in letters, for a terminal and for Markdown."""

from collections.abc import Iterator

from napkin.questions.answer import Bar, Picture

WIDTH = 28  # letters


def lines(picture: Picture) -> Iterator[str]:
    """A bar a line on one scale; `|` is the end of what there is."""
    names = max(len(bar.name) for bar in picture.bars)
    figures = max(len(bar.figure) for bar in picture.bars)
    for bar in picture.bars:
        letters = _letters(bar, picture)
        yield f"{bar.name:{names}} {letters} {bar.figure:>{figures}}{bar.remark}"


def _letters(bar: Bar, picture: Picture) -> str:
    length = max(1, round(WIDTH * bar.amount / picture.most))
    line = f"{'█' * length:{WIDTH}}"
    if picture.end is None:
        return line
    at = round(WIDTH * picture.end / picture.most)
    return f"{line[:at]}|{line[at:]}"
