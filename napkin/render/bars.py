"""A picture in letters, for a terminal and for Markdown."""

from collections.abc import Iterator

from napkin.questions.answer import Picture, bar


def lines(picture: Picture) -> Iterator[str]:
    """A bar a line on one scale; `|` is the end of what there is."""
    names = max(len(each.name) for each in picture.bars)
    figures = max(len(each.figure) for each in picture.bars)
    for each in picture.bars:
        letters = bar(each.amount, picture.most, picture.end)
        yield f"{each.name:{names}} {letters} {each.figure:>{figures}}{each.remark}"
