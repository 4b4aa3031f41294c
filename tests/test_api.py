"""Answers in Python: they write themselves, and mistakes are named as Python names things."""

import re
from pathlib import Path

import pytest

import napkin
from napkin.specs.folders import model_names
from tests.running import ROOT, answer
from tests.running import napkin as typed

ROWS = re.findall(r"^\| ([a-z-]+) \| (`.*) \|$", (ROOT / "README.md").read_text("utf-8"), re.M)
KEYS = {name: re.findall(r"`(\w+)`", re.sub(r"\(.*?\)|;.*", "", keys)) for name, keys in ROWS}
ASKED = {
    "train-time": "train-time --params 70e9 --tokens 15e12 --gpus 1024",
    "max-model": "max-model --gpus 8",
    "mfu": "mfu --params 7B --tokens-per-second 9600 --gpus 1",
    "memory": "memory --model llama-3-8b --gpus 8",
    "flops": "flops --model llama-3-8b",
    "models": "models llama-3-8b",
    "hardware": "hardware h100",
    "tensor": "tensor 4x8",
    "matmul": "matmul 4x8 8x4",
    "dtypes": "dtypes bf16",
    "data": "data --tokens 1T --vocab 32000",
    "checkpoint": "checkpoint gpt2",
    "explain": "explain six",
}


def test_readme_lists_the_keys_that_answers_have() -> None:
    assert set(KEYS) >= set(ASKED)
    for name, command in ASKED.items():
        assert KEYS[name] == list(answer(command)["result"])


def test_an_answer_prints_as_on_the_command_line_and_shows_as_markdown() -> None:
    one = napkin.memory("gpt2", gpus=8)
    assert f"{one}\n" == typed("memory --model gpt2 --gpus 8").out
    assert one._repr_markdown_() == typed("memory --model gpt2 --gpus 8 -f markdown").out
    assert repr(one).startswith("<memory: ")
    assert "\n" not in repr(one)


def test_what_is_printed_has_no_escape_codes_and_holds_the_warnings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "napkin" / "hardware").mkdir(parents=True)
    (tmp_path / "napkin" / "hardware" / "mine.yaml").write_text("name: mine")
    listed = str(napkin.hardware())
    assert "\x1b" not in listed
    assert listed.splitlines()[-1].startswith("warning: left out: ")


def test_what_is_known_is_a_list_of_answers() -> None:
    assert len(napkin.models()) >= 30
    (one,) = napkin.models("llama-3-8b")
    assert one.result["params"] == 8_030_261_248
    assert f"{napkin.hardware()}\n" == typed("hardware").out
    assert [each.inputs["hardware"] for each in napkin.hardware("h100", "b200")] == [
        "h100-sxm",
        "b200",
    ]


@pytest.mark.parametrize(
    ("question", "options", "error"),
    [
        (
            "train_time",
            {"params": "8"},
            "train-time needs tokens and gpus, as in: napkin.train_time(",
        ),
        ("max_model", {"gpus": 1.5}, "gpus: '1.5' is not a whole number; write 1 or 2"),
        ("memory", {"params": 1e9, "micro_batch": 2}, "micro_batch: goes with model: params shows"),
        (
            "mfu",
            {"params": 7e9, "tokens_per_second": 1e4},
            "mfu needs gpus: tokens_per_second counts all GPUs; or use tokens_per_second_per_gpu",
        ),
        ("max_model", {}, 'max-model needs gpus, as in: napkin.max_model(gpus="8")'),
        ("memory", {"params": 1e9, "precision": "--gpus"}, "precision: '--gpus' is no recipe"),
    ],
)
def test_a_mistake_names_the_parameter(
    question: str, options: dict[str, object], error: str
) -> None:
    with pytest.raises(napkin.NapkinError) as raised:
        getattr(napkin, question)(**options)
    assert str(raised.value).startswith(error)


@pytest.mark.parametrize("model", model_names())
def test_what_is_alive_is_named_by_symbols_of_the_derivation(model: str) -> None:
    try:
        found = napkin.memory(model, gpus=8)
    except napkin.NapkinError as error:
        assert "never measured" in str(error) or "korthikanti" in str(error)
        found = napkin.memory(model, gpus=8, activations="korthikanti")
    sizes = {step["symbol"]: step["value"] for step in found.derivation}
    for phase in found.result["phases"]:
        assert sum(phase["alive"].values()) == pytest.approx(phase["bytes"])
        assert all(sizes[symbol] == bytes for symbol, bytes in phase["alive"].items())
