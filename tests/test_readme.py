"""What README shows is what napkin does."""

import doctest
import re

import pytest
import torch

from tests import readme
from tests.running import napkin

TEXT = readme.README.read_text("utf-8")
COMMANDS = [command for block in readme.blocks(TEXT) for command in block]


def same_on_any_machine(line: str) -> str:
    """A measurement's line less what another machine would measure."""
    line = line.rsplit(" · ", 1)[0]  # the device's name
    line = re.sub(r"\d[\d,.]*(e[-+]?\d+)?", "#", line)
    line = re.sub(r"[kMGTP]?FLOP", "FLOP", line)
    line = re.sub("─+", "─", line)
    return " ".join(re.sub(r"# (µs|ms|s)$", "# s", line).split())


def measured(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("warning")]
    return [same_on_any_machine(line) for line in lines]


@pytest.mark.parametrize("command", COMMANDS, ids=[command.line for command in COMMANDS])
def test_a_console_block_shows_what_the_command_prints(command: readme.Command) -> None:
    shown, printed = command.output.rstrip(), readme.output(command.line).rstrip()
    if not command.line.startswith("napkin bench"):
        assert printed == shown
        return
    if torch.cuda.is_available():
        pytest.skip("README shows a machine without a GPU")
    assert measured(shown) == measured(printed)


def test_tables_are_what_make_readme_writes() -> None:
    assert readme.with_tables(TEXT) == TEXT


LECTURE = re.findall(r"^\| [^|]+ \| `napkin ([^`]+)` \| `([^`]+)` \|$", TEXT, re.MULTILINE)


@pytest.mark.parametrize(("command", "comes_to"), LECTURE)
def test_a_line_of_the_lecture_comes_to_what_is_shown(command: str, comes_to: str) -> None:
    assert comes_to in napkin(command).out


def test_the_lecture_has_all_its_lines() -> None:
    assert len(LECTURE) >= 23


def test_the_python_lines_give_what_they_show() -> None:
    test = doctest.DocTestParser().get_doctest(TEXT, {}, "README.md", None, 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.attempted > 5
    assert result.failed == 0


def test_the_first_three_lines_of_the_card_are_there() -> None:
    for line in (
        "napkin train-time --params 70e9 --tokens 15e12 --gpus 1024",
        "napkin max-model --gpus 8",
        "napkin bench --dtype bf16",
    ):
        assert line in TEXT
