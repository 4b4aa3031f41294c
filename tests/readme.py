"""README's console blocks: run them, compare them, and (`make readme`) write them anew."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests import peaks

README = Path(__file__).parents[1] / "README.md"
TABLES = {"peaks": peaks.table}
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)


class Command(NamedTuple):
    """One `$ ...` line of a block and what stands under it."""

    line: str
    output: str


def blocks(text: str) -> Iterator[list[Command]]:
    """The commands of each console block."""
    for block in BLOCK.findall(text):
        yield [
            Command(line, output)
            for line, _, output in (part.partition("\n") for part in block.split("$ ")[1:])
        ]


def output(line: str) -> str:
    """What the command prints, errors too, as in a terminal."""
    name, *rest = shlex.split(line)
    assert name == "napkin", f"README's console blocks run napkin, not {name}"
    ran = subprocess.run(
        [sys.executable, "-m", "napkin", *rest],
        cwd=README.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return ran.stdout.decode()


def rewritten(text: str) -> str:
    """The text with every block's output made anew."""

    def anew(block: re.Match[str]) -> str:
        lines = [part.partition("\n")[0] for part in block[1].split("$ ")[1:]]
        return "\n".join(f"$ {line}\n{output(line)}" for line in lines)

    return BLOCK.sub(anew, text)


def with_tables(text: str) -> str:
    """The text with what is between a table's marks made anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: written by make readme -->\n", f"<!-- {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        with TemporaryDirectory() as folder:
            text = f"{before}{begin}\n{table(Path(folder))}\n\n{end}{after}"
    return text


if __name__ == "__main__":
    README.write_text(with_tables(rewritten(README.read_text("utf-8"))), "utf-8")
