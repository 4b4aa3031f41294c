"""The consoles that tables are printed on: colour, width and what a pipe gets."""

import os
from typing import TextIO

from rich.console import Console

# Wide enough that nothing of ours is folded: a pipe has no width.
UNBOUNDED = 4000
HEIGHT = 25


def console(out: TextIO, forced: bool | None = None) -> Console:
    """NO_COLOR means no escape codes at all; FORCE_COLOR colours a pipe and never cuts it, unless
    `forced` says what it says."""
    terminal = out.isatty()
    if forced is None:
        forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    colour = not os.environ.get("NO_COLOR") and (terminal or forced)
    return Console(
        file=out,
        force_terminal=colour,
        color_system="auto" if colour else None,
        width=None if terminal else UNBOUNDED,
        # Without a height Rich asks TERM, and a dumb one is 80 columns wide to it.
        height=None if terminal else HEIGHT,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
