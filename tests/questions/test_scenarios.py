"""Lists: every combination answered, the first list slowest, in every calculator and format alike."""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import napkin
from napkin.cli import options
from napkin.cli.commands import COMMANDS
from napkin.errors import NapkinError
from napkin.parsing import items
from napkin.questions.lists import LISTS
from napkin.specs.folders import shipped_folder
from tests.cli.test_options import completed
from tests.running import answer, answers
from tests.running import napkin as typed

RUN = "train-time --params 70B --tokens 15T"
# A question that each list can be put to, without the option itself.
ASKED = {
    "train-time": "train-time --params 70B --tokens 15T --gpus 8 --seq-len 4096",
    "max-model": "max-model --gpus 8",
    "mfu": "mfu --params 7B --gpus 8 --seq-len 1024 --micro-batch 2 --step-time 10s",
    "memory": "memory --model qwen3-0.6b --gpus 8",
    "flops": "flops --model gpt2",
    "tensor": "tensor 4x8",
    "matmul": "matmul 4x8 8x4",
    "data": "data --tokens 1T --vocab 32000",
    "checkpoint": "checkpoint --params 7B --bandwidth 1GB/s --gpus 8",
}
TWO = {
    "params": ("7B", "13B"),
    "tokens": ("1T", "15T"),
    "gpus": ("16", "1024"),
    "hardware": ("h100-sxm", "a100-sxm-80gb"),
    "mfu": ("40%", "0.5"),
    "dtype": ("bf16", "fp32"),
    "seq_len": ("512", "1024"),
    "micro_batch": ("1", "4"),
    "zero": ("1", "3"),
    "optimizer": ("adamw", "sgd"),
    "precision": ("mixed", "bf16"),
    "recompute": ("none", "full"),
}
EVERY = [(command, option) for command in ASKED for option in options.lists(command)]


def without(command: str, option: str) -> list[str]:
    """The command's question, to which that option can be added."""
    words = ASKED[command].split()
    instead = {
        ("train-time", "seq_len"): [
            "train-time",
            "--model",
            "gpt2",
            "--tokens",
            "1T",
            "--gpus",
            "8",
        ],
        ("memory", "params"): ["memory", "--gpus", "8"],
        ("mfu", "tokens"): ["mfu", "--params", "7B", "--gpus", "8", "--time", "30d"],
    }
    if (command, option) in instead:
        return instead[command, option]
    if command == "train-time":
        words = [word for word in words if word not in ("--seq-len", "4096")]
    flag = f"--{option.replace('_', '-')}"
    if flag in words:
        at = words.index(flag)
        del words[at : at + 2]
    return words


def test_every_list_of_the_issue_is_one_somewhere() -> None:
    assert {option for _, option in EVERY} == set(LISTS) == set(TWO)
    assert all("hardware" in COMMANDS[c].options for c, option in EVERY if option == "hardware")


@pytest.mark.parametrize(("command", "option"), EVERY)
def test_a_list_gives_each_answer_as_if_it_were_asked_for_alone(command: str, option: str) -> None:
    flag, values = f"--{option.replace('_', '-')}", TWO[option]
    asked = without(command, option)
    together = answers([*asked, flag, ",".join(values)])
    assert together == [answer([*asked, flag, value]) for value in values]
    screen = typed([*asked, flag, ",".join(values)]).out
    assert option.replace("_", "-") in screen.splitlines()[3 if screen.splitlines()[1] else 2]


def test_the_first_list_that_was_typed_is_the_slowest() -> None:
    for first, second in (("gpus", "mfu"), ("mfu", "gpus")):
        values = {"gpus": "256,512", "mfu": "40%,50%"}
        found = answers(f"{RUN} --{first} {values[first]} --{second} {values[second]}")
        expected = [
            {"gpus": gpus, "mfu": mfu} for gpus in (256, 512) for mfu in (0.4, 0.5)
        ]  # fmt: skip
        expected.sort(key=lambda each: each[first])
        assert [{key: each["inputs"][key] for key in ("gpus", "mfu")} for each in found] == expected


def test_python_and_the_command_line_give_one_document() -> None:
    found = napkin.train_time(params="70B", tokens=15e12, gpus=[256, 512], mfu=("40%", 0.5))
    lined = f"{RUN} --gpus 256,512 --mfu 40%,0.5"
    assert json.loads(found.to_json()) == json.loads(typed(f"{lined} -f json").out)
    assert str(found) + "\n" == typed(lined).out
    assert found.to_markdown() == typed(f"{lined} -f markdown").out
    assert [each.result["gpus"] for each in found] == [256, 256, 512, 512]
    # A list of one is a list.
    assert len(napkin.max_model(gpus=[8])) == 1
    assert len(napkin.tensor("4x8", dtype=["bf16", "fp32"])) == 2


def test_a_mistake_names_the_parameter_and_the_scenario() -> None:
    with pytest.raises(NapkinError) as raised:
        napkin.train_time(
            params="7B", tokens="1T", gpus=[8, 16], hardware=["h100", "a100"], dtype="fp8"
        )
    assert str(raised.value) == (
        "dtype: a100-sxm-80gb has no fp8 figure; it has fp64 fp32 tf32 fp16 bf16 int8 int4 "
        "(the scenario gpus 8 hardware a100)"
    )
    for value, problem in (
        ([], "gpus: is an empty list; write a value"),
        ([8, "8"], "gpus: '8' stands there twice; write it once"),
        ("1,024", "gpus: '1,024' could hold thousands, and a comma separates scenarios; "),
        (range(1, 200_000), "199,999 scenarios are too many at once; 100,000 are the most"),
    ):
        with pytest.raises(NapkinError) as raised:
            napkin.max_model(gpus=value)
        assert str(raised.value).startswith(problem)


def test_every_format_has_a_row_for_each_scenario() -> None:
    asked = f"{RUN} --gpus 256,512,1024"
    rows = list(csv.DictReader(StringIO(typed(f"{asked} -f csv").out)))
    assert [row["gpus"] for row in rows] == ["256", "512", "1024"]
    assert list(rows[0]) == list(
        csv.DictReader(StringIO(typed(f"{RUN} -g 8 -f csv").out)).fieldnames or ()
    )
    markdown = typed(f"{asked} -f markdown").out
    assert markdown.count("\n### gpus ") == markdown.count("| `t` | training time |") == 3
    assert typed(f"{asked} -f svg").out.startswith("<svg")
    screen = typed(asked).out.splitlines()
    assert [line.split()[0] for line in screen[5:8]] == ["256", "512", "1,024"]
    assert "training time" not in typed(asked).out
    assert typed(f"{asked} --explain").out.count("training time") == 3


def test_the_longest_bar_is_the_most() -> None:
    rows = typed(f"{RUN} --gpus 256,512,1024").out.splitlines()[5:8]
    assert [row.count("█") for row in rows] == [14, 7, 4]


def test_what_is_assumed_for_all_is_called_so_and_what_was_given_is_not() -> None:
    line = typed(f"{RUN} --gpus 256,512 --dtype fp8").out.splitlines()[1]
    given, _, assumed = line.rpartition(" · ")
    assert "params 70B · tokens 15T · dtype fp8" in given
    assert assumed == "convention six_n, hardware h100-sxm, peak promised, mfu 50 % (assumed)"
    named = typed(f"{RUN} --gpus 8xA100,16xA100").out.splitlines()[1]
    assert "hardware a100-sxm-80gb · " in named


def test_a_zero_that_was_given_is_said() -> None:
    line = typed("memory --params 1B --gpus 8,16 --zero 0").out.splitlines()[1]
    assert " · zero 0 · " in line
    assert "tp" not in line.split()


def test_what_fit_finds_has_its_column() -> None:
    screen = typed("memory --model llama-3-8b --fit micro-batch --gpus 8,16").out.splitlines()
    assert screen[3].split()[:2] == ["gpus", "micro-batch"]
    assert "micro-batch" not in screen[1]


def test_values_that_read_alike_are_written_in_full() -> None:
    screen = typed("max-model --gpus 8 --hardware h100,a100,h200").out.splitlines()
    assert [line.split()[0] for line in screen[5:8]] == ["h100-sxm", "a100-sxm-80gb", "h200-sxm"]
    found = str(napkin.train_time(params=[70_000_000_001, 70_000_000_002], tokens=1e12, gpus=8))
    assert "70000000001" in found


def test_a_warning_of_several_scenarios_is_one_line() -> None:
    ran = typed(f"{RUN} --gpus 2,4,1024")
    warnings = [line for line in ran.out.splitlines() if line.startswith("warning: ")]
    assert warnings == [
        "warning: gpus 2: states need at least 14 GPUs: 16 B × 70B = 1.12 TB of training state "
        "(and 1 like it)"
    ]
    lines = typed(f"{RUN} --gpus 2,4,1024 -f csv").err.splitlines()
    assert [line.partition(": states")[0] for line in lines] == [
        "warning: gpus 2",
        "warning: gpus 4",
    ]


def test_memory_ends_with_3_where_some_scenario_does_not_fit() -> None:
    asked = "memory --params 8B --exit-code --gpus"
    assert typed(f"{asked} 8,16").code == 0
    assert typed(f"{asked} 1,8").code == 3
    assert "1 of them fit" in typed(f"{asked} 1,8").out


# --hardware all


def with_figure(dtype: str) -> list[str]:
    """As the shipped files say, read without napkin."""
    files = sorted(shipped_folder().glob("*.yaml"))
    return [path.stem for path in files if dtype in yaml.safe_load(path.read_text("utf-8"))["peak"]]


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp4"])
def test_all_accelerators_are_those_that_have_the_precision(dtype: str) -> None:
    ran = typed(f"{RUN} --gpus 64 --hardware all --dtype {dtype}")
    found = answers(f"{RUN} --gpus 64 --hardware all --dtype {dtype}")
    has = with_figure(dtype)
    assert [each["inputs"]["hardware"] for each in found] == has
    (line,) = [line for line in ran.out.splitlines() if line.startswith(f"no {dtype} figure")]
    named = line.removeprefix(f"no {dtype} figure, left out: ").split(", ")
    assert sorted(named + has) == sorted(path.stem for path in shipped_folder().glob("*.yaml"))
    quickest = min(found, key=lambda each: each["result"]["days"])["inputs"]["hardware"]
    assert f"fastest: hardware {quickest}" in ran.out
    # Where there is no line for it, on stderr.
    assert line in typed(f"{RUN} --gpus 64 --hardware all --dtype {dtype} -f json").err


def test_fastest_and_cheapest_are_of_those_that_hold_the_states() -> None:
    asked = f"{RUN} --gpus 8 --hardware all --price 2"
    room = [each for each in answers(asked) if each["result"]["min_gpus_for_states"] <= 8]
    quickest = min(room, key=lambda each: each["result"]["days"])["inputs"]["hardware"]
    out = typed(asked).out
    assert f"fastest and cheapest: hardware {quickest} (where the states find room)" in out
    assert f", {len(room)} of them hold the states of training" in out.splitlines()[0]


def test_all_has_the_user_s_own_files_in_it_and_names_those_that_are_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "napkin" / "hardware"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("name: Mine\npeak: {bf16: 1e14}\nmemory: 80e9\n")
    (folder / "broken.yaml").write_text("name: mine")
    ran = typed("max-model --gpus 8 --hardware all")
    assert "\nmine " in ran.out
    assert f"left out: {folder}/broken.yaml" in ran.out


def test_a_figure_that_none_was_measured_of_is_left_out_too() -> None:
    ran = typed(f"{RUN} --gpus 8 --hardware all --peak measured")
    assert (ran.code, ran.err) == (
        2,
        "Error: --hardware: no accelerator has a measured bf16 figure\n",
    )


# What a comma may be


def test_a_file_or_a_shape_may_hold_a_comma(tmp_path: Path) -> None:
    card = tmp_path / "my,card.yaml"
    card.write_text("name: Card\npeak: {bf16: 1e14}\nmemory: 80e9\n")
    assert answer(["max-model", "--gpus", "8", "--hardware", str(card)])["result"]["params"] == 40e9
    assert answer("flops --model llama:L=2,d=64,H=4,kv=2,ff=96,V=100")["inputs"]["seq_len"] == 4096


@pytest.mark.parametrize(
    "text",
    [
        *("1,024", "1,536", "2,048", "2,560", "3,072", "4,096", "6,144", "8,192", "10,000"),
        *("16,384", "24,576", "25,000", "32,768", "65,536", "100,000", "131,072", "262,144"),
        *("524,288", "1,048,576", "10,485,760", "70,000,000,000", "1,400B", "1,500.5", "0256,512"),
        *("1,536,2,048", "512,1,536", "1,536xH100", "1, 024"),
    ],
)
def test_what_could_hold_thousands_is_no_list(text: str) -> None:
    with pytest.raises(NapkinError, match="could hold thousands"):
        items(text)


@pytest.mark.parametrize(
    "text",
    [
        *("256,512", "256,512,1024", "512,1024", "1,2,4,8", "8,16,32", "8,64,512", "8,128"),
        *("64,128,256", "1e3,2e3", "7B,13B,70B", "8xA100,16xH100", "0,1,2,3", "0.4,0.5", "1, 536"),
        *("40%,50%", "96, 192", "bf16,fp8", "100,200,300", "1_024,2_048"),
    ],
)
def test_a_list_is_its_items(text: str) -> None:
    assert items(text) == [part.strip() for part in text.split(",")]


@settings(max_examples=500, deadline=None)
@given(st.integers(1000, 10**12))
def test_a_number_with_its_thousands_is_refused_or_rises_in_plain_steps(number: int) -> None:
    groups = [int(group) for group in f"{number:,}".split(",")]
    try:
        found = items(f"{number:,}")
    except NapkinError:
        return
    assert found == [str(group) for group in groups]
    assert groups == sorted(set(groups))
    assert groups[0] >= 100 or all(group.bit_count() == 1 for group in groups)


def test_the_shell_completes_the_last_item_of_a_list() -> None:
    assert completed("napkin", "memory", "--zero", "1,") == ["1,0", "1,1", "1,2", "1,3"]
    assert completed("napkin", "max-model", "--hardware", "h100-sxm,h200-s") == [
        "h100-sxm,h200-sxm"
    ]
    assert completed("napkin", "max-model", "--hardware", "al") == ["all"]


def test_an_array_of_numbers_is_no_list_that_is_guessed_at() -> None:
    wrong: Any = {8, 16}
    with pytest.raises(NapkinError, match=r"gpus: '\{8, 16\}' is not a number"):
        napkin.max_model(gpus=wrong)
