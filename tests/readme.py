"""README's console blocks: run them, compare them, and (`make readme`) write them anew."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

README = Path(__file__).parents[1] / "README.md"
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


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text("utf-8")), "utf-8")
