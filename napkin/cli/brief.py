"""-h: a command and its options on one screen, a line each; --help has all of it."""

import re
from shutil import get_terminal_size
from textwrap import wrap

from napkin.cli import options
from napkin.cli.commands import COMMANDS, WRITTEN
from napkin.cli.options import Option

COLUMNS, ROWS, LINES = 80, 15, 23
FLAGS = 27  # letters
SEVERAL = ",.."  # after what stands for a value
LISTED = f"COUNT{SEVERAL} takes a list: 8,16"

LATER = (
    *(options.TUNING, options.DIVIDED, options.DETAIL),
    *(options.EXPERT, options.SERVING),
)


def screen(command: str) -> str:
    """What -h prints."""
    entry, columns = COMMANDS[command], min(COLUMNS, get_terminal_size().columns)
    names = sorted((*entry.options, *WRITTEN), key=lambda name: _rank(options.of(command, name)))
    head = [*_wrapped(f"napkin {command}: {entry.line}", columns), f"  {entry.examples[0]}", ""]
    several = options.lists(command)
    end = f"in full: --help{' · ' + LISTED if several else ''}"
    for rows in range(ROWS, 0, -1):
        shown, rest = names[:rows], names[rows:]
        lines = [*head, *(_row_of(command, name, name in several, columns) for name in shown)]
        more = "more: " + " ".join(map(_flag, rest)) if rest else ""
        lines += ["", *_wrapped(more, columns), end]
        if len(lines) <= LINES:
            break
    return "\n".join(lines)


def _row_of(command: str, name: str, takes_several: bool, columns: int) -> str:
    option = options.of(command, name)
    if takes_several:
        option = option.replace(metavar=option.metavar + SEVERAL)
    return _row(name, option, columns)


def _rank(option: Option) -> int:
    """Inputs before what is assumed, what few need last."""
    if option.positional:
        return 0
    if option.panel in (
        options.TUNING,
        options.DIVIDED,
        options.DETAIL,
        options.EXPERT,
        options.SERVING,
    ):
        return 3
    return {None: 1, options.OUTPUT: 4}.get(option.panel, 2)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _row(name: str, option: Option, columns: int) -> str:
    flags = option.metavar if option.positional else _flag(name)
    if not option.positional:
        flags = f"{option.short + ', ' if option.short else '    '}{flags} {option.metavar}"
    room = columns - max(FLAGS, len(flags.rstrip())) - 1
    return f"{flags.rstrip():{FLAGS}} {_clause(option.brief or option.help, room)}".rstrip()


def _clause(text: str, room: int) -> str:
    """As many of its clauses as there is room for: no word is cut."""
    ends = [end.start() for end in re.finditer(r"[:;.,](?= |$)| \(|$", text)]
    clauses = [text[:end] for end in ends if end <= room]
    whole = [clause for clause in clauses if clause.count("(") == clause.count(")")]
    return whole[-1].rstrip(".") if whole else ""


def _wrapped(text: str, columns: int) -> list[str]:
    """No name is split."""
    return wrap(text, columns, break_long_words=False, break_on_hyphens=False)
