"""-h: a command and its options on one screen, a line each; --help has all of it."""

import re
from shutil import get_terminal_size
from textwrap import wrap

from napkin.cli import options
from napkin.cli.commands import COMMANDS, WRITTEN
from napkin.cli.options import Option

COLUMNS, LINES, ROWS = 80, 22, 15
FLAGS = 27  # letters


def screen(command: str) -> str:
    """What -h prints."""
    entry, columns = COMMANDS[command], min(COLUMNS, get_terminal_size().columns)
    names = sorted((*entry.options, *WRITTEN), key=lambda name: _rank(options.of(command, name)))
    lines = [*_wrapped(f"napkin {command}: {entry.line}", columns), f"  {entry.examples[0]}", ""]
    for shown in range(min(ROWS, len(names)), 0, -1):
        rows = [_row(name, options.of(command, name), columns) for name in names[:shown]]
        rest = " ".join(map(_flag, names[shown:]))
        more = _wrapped(f"more: {rest}" if rest else "", columns)
        if len(lines) + len(rows) + len(more) + 2 <= LINES:
            break
    return "\n".join([*lines, *rows, "", *more, "in full: --help"])


def _rank(option: Option) -> int:
    """Inputs before what is assumed, what few need last."""
    if option.positional:
        return 0
    return {
        None: 1,
        options.EXPERT: 3,
        options.DETAIL: 3,
        options.SERVING: 3,
        options.OUTPUT: 4,
    }.get(option.panel, 2)


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
