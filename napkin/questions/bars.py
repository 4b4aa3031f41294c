"""Bars of letters on one scale: what looking shows better than reading."""

WIDTH = 28  # letters


def bar(amount: float, most: float, end: float | None = None) -> str:
    """As long as the amount is of the most; `|` where there is an end of what is to be had."""
    length = max(1, round(WIDTH * amount / most))
    line = f"{'█' * length:{WIDTH}}"
    if end is None:
        return line
    at = round(WIDTH * end / most)
    return f"{line[:at]}|{line[at:]}"
