"""Every mistake gets one line on stderr that says what would be right, and costs nothing."""

from pathlib import Path

import pytest

from napkin.errors import first_line
from tests.running import data, napkin, process

ERRORS = data("errors.yaml")


@pytest.mark.parametrize("case", ERRORS, ids=[case["run"] for case in ERRORS])
def test_a_mistake_gets_one_line_that_says_what_is_right(case: dict[str, str]) -> None:
    ran = napkin(case["run"])
    assert (ran.code, ran.out, ran.err) == (2, "", case["says"])
    assert ran.err.count("\n") == 1


def test_a_misspelt_option_keeps_typer_s_hint_above_the_error() -> None:
    ran = napkin("train-time --prams 70e9")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1] == (
        "Error: No such option: --prams (Possible options: --active-params, --params, --peak)"
    )


def test_a_misspelt_command_is_named() -> None:
    ran = napkin("train-tme")
    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err.splitlines()[-1] == "Error: No such command 'train-tme'. Did you mean 'train-time'?"
    )


def test_a_mistake_leaves_the_output_file_as_it_was(tmp_path: Path) -> None:
    kept, new = tmp_path / "kept.json", tmp_path / "new.json"
    kept.write_text("precious")
    for path in (kept, new):
        assert napkin(f"max-model --gpus 0 --output {path}").code == 2
    assert kept.read_text() == "precious"
    assert not new.exists()


def test_user_text_is_printed_letter_by_letter(tmp_path: Path) -> None:
    assert napkin(["hardware", "[bold]x[/bold]\nline two"]).err == (
        "Error: [bold]x[/bold]\\nline two: no such file\n"
    )
    assert napkin(["hardware", "[bold]\nx"]).err == (
        "Error: no hardware is called '[bold]\\nx'; `napkin hardware` lists all\n"
    )
    file = tmp_path / "[red]card.yaml"
    file.write_text("name: '[bold]Card[/bold]'\npeak: {bf16: 1e14}\nmemory: 80e9\n")
    assert "[bold]Card[/bold]" in napkin(["hardware", str(file)]).out


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        ("CUDA error: out of memory\nCUDA kernel errors might be\n", "CUDA error: out of memory"),
        ("\nInvalid log settings: junk\nValid settings:", "Invalid log settings: junk"),
        ("Error for 'x':\n    TypeError: not a bool", "Error for 'x': TypeError: not a bool"),
        ("Loading:\n\n  libc.so:\n  no such file\nat 0x1", "Loading: libc.so: no such file"),
        ("", "RuntimeError"),
        (" \n ", "RuntimeError"),
        ("\x1b[31mred", "\\x1b[31mred"),
    ],
)
def test_of_a_library_s_page_the_reason_is_given(raised: str, reason: str) -> None:
    assert first_line(RuntimeError(raised)) == reason


def test_torch_s_own_reason_is_given() -> None:
    ran = process("bench --device cpu", env={"TORCH_LOGS": "junk"})
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert ran.stderr.startswith(
        b"Error: PyTorch is installed but cannot be imported: Invalid log settings: junk, must be "
    )
    assert ran.stderr.count(b"\n") == 1


def test_transformers_own_reason_is_given(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    sizes = '"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128'
    sizes += ', "vocab_size": 1000, "num_attention_heads": 4'
    path.write_text(f'{{"model_type": "llama", {sizes}, "use_cache": "x"}}')
    ran = napkin(["flops", "--model", str(path), "--check"])
    assert (ran.code, ran.out) == (2, "")
    assert "Field 'use_cache' expected bool, got str (value: 'x'); leave --check out" in ran.err
