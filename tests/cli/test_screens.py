"""What a person sees: a usual question on a screen of 80 x 24, its answer in the first line."""

from collections import Counter

import pytest

from napkin.cli import options
from napkin.cli.commands import COMMANDS, WRITTEN
from tests.cli.test_streams import terminal
from tests.running import napkin

COLUMNS, LINES = 80, 24 - 1  # the prompt takes one
USUAL = (
    "train-time --params 70e9 --tokens 15e12 --gpus 1024",
    "train-time --model llama-3-8b --tokens 15T --gpus 1024 --price 2.50",
    "train-time --params 70e9 --tokens 15e12 --gpus 512,1024 --mfu 40%,50% --price 2.50",
    "train-time --params 70B --tokens 15T --within 30d --node 8",
    "train-time --params 70B --gpus 1024 --within 30d --price 2.50",
    "train-time --gpus 1024 --within 30d --compute-optimal",
    "train-time --params 405B --tokens 15.6T --gpu-hours 30.84M --gpus 16384",
    "train-time --params 70B --budget 2M --price 2.50",
    "max-model --gpus 8",
    "memory --model llama-3-8b --gpus 8 --micro-batch 1,2,4",
    "memory --model llama-3-8b --gpus 8",
    "memory --model llama-3-8b --gpus 8 --seq-len 8192",
    "memory --model llama-3-8b --gpus 8 --hardware rtx-4090",
    "memory --params 8B --gpus 8",
    "memory --inference --model llama-3-8b --context 8192 --batch 16",
    "mfu --params 7B --tokens-per-second 9600 --gpus 1",
    "mfu --model llama-3-70b --tokens-per-second-per-gpu 720 --seq-len 8192",
    "flops --model llama-3-8b",
    "models llama-3-8b",
    "hardware h100",
    "tensor 49152x12288 --dtype fp32",
    "dtypes",
    "dtypes bf16 --value 1e-8",
    "matmul 1024x51200 51200x51200 --time 0.03s",
    "data --tokens 1.4T --vocab 32000",
    "checkpoint llama-3-70b -g 2048 --bandwidth 1TB/s",
    "explain views",
)


@pytest.mark.parametrize("command", USUAL)
def test_a_usual_answer_fits_on_one_screen(command: str) -> None:
    lines = terminal(command, COLUMNS, NO_COLOR="1").splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    assert len(napkin(command).out.splitlines()) <= LINES


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("command", ["", *(f"{command} -h" for command in COMMANDS)])
def test_the_bare_command_and_each_short_help_fit_on_one_screen(command: str, columns: int) -> None:
    lines = terminal(command, columns).splitlines()
    assert len(lines) <= LINES + (columns == 60)
    assert max(map(len, lines)) <= columns
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_short_help_names_every_option(command: str) -> None:
    shown = napkin(f"{command} -h").out
    for name in (*COMMANDS[command].options, *WRITTEN):
        option = options.of(command, name)
        assert option.positional or f"--{name.replace('_', '-')}" in shown.split()


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", USUAL)
def test_nothing_is_wider_than_the_terminal_and_no_word_is_split(
    command: str, columns: int
) -> None:
    for shown in (command, f"{command} --explain"):
        screen = terminal(shown, columns, NO_COLOR="1")
        assert max(map(len, screen.splitlines())) <= columns
        if "no room for: " in screen or (columns == 60 and shown != command):
            continue
        # An address may be longer than a line.
        words = [word for word in napkin(shown).out.split() if len(word) <= columns]
        split = Counter(words) - Counter(screen.split())
        assert not {word for word in split if "─" not in word}


def test_columns_for_which_there_is_no_room_are_named() -> None:
    shown = terminal("dtypes", 60, NO_COLOR="1").splitlines()
    assert shown[0].split() == ["bits", "e/m", "max", "smallest"]
    assert "no room for: eps, used for" in shown
    assert "fp16         16    5/10        65504     5.96e-08" in shown


@pytest.mark.parametrize("command", USUAL)
def test_explain_shows_more_and_the_other_formats_hold_all_of_it(command: str) -> None:
    assert len(napkin(f"{command} --explain").out) > len(napkin(command).out)
    for format in ("json", "markdown", "csv"):
        plain = napkin(f"{command} --format {format}").out
        assert napkin(f"{command} --explain --format {format}").out == plain


@pytest.mark.parametrize(
    ("command", "figure", "style"),
    [
        ("memory --params 1B", "fits in", "\x1b[1m"),
        ("memory --params 70B", "DOES NOT FIT in", "\x1b[1;31m"),
    ],
)
def test_what_fails_is_bold_and_red_and_said_in_words(
    command: str, figure: str, style: str
) -> None:
    first = terminal(command, COLUMNS, FORCE_COLOR="1", TERM="xterm-256color").splitlines()[0]
    assert first.startswith(style)
    assert figure in first
