"""Other people's tables, judged: each public tool's mistake by its name."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from napkin import NapkinError, peak
from napkin.questions.lint import judge
from napkin.specs import accelerators
from tests.running import answers, data, napkin

OTHERS = data("others.yaml")
KNOWN = accelerators.everything()
IDS = [f"{row['tool']} {row['device']} {row['dtype']} {row['theirs']}" for row in OTHERS]


@pytest.mark.parametrize("row", OTHERS, ids=IDS)
def test_a_public_tool_s_figure_gets_its_mistake_s_name(row: dict[str, Any]) -> None:
    assert judge(row["device"], row["dtype"], row["theirs"] * 1e12, KNOWN).kind == row["verdict"]


@pytest.mark.parametrize("row", OTHERS, ids=IDS)
def test_our_own_answer_for_the_same_string_is_the_right_one(row: dict[str, Any]) -> None:
    if row["ours"] is None:
        with pytest.raises(NapkinError):
            peak(row["device"], row["dtype"])
    else:
        assert peak(row["device"], row["dtype"]) == pytest.approx(row["ours"] * 1e12, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "tera", "kind"),
    [
        ("AMD Instinct MI250X", 383, "package"),
        ("AMD Instinct MI250X", 191.5, "agrees"),
        ("mi250x", 383, "agrees"),
        ("mi250x", 191.5, "device-of-package"),
    ],
)
def test_a_driver_s_name_means_one_device_and_ours_the_package(
    name: str, tera: float, kind: str
) -> None:
    assert judge(name, "bf16", tera * 1e12, KNOWN).kind == kind


THEIRS = {"NVIDIA L40S": 312e12, "h100": {"bf16": 1979, "fp8": "1978.9 TFLOP/s"}, "Acme": 5e13}
VERDICTS = ["other-device", "sparse", "agrees", "unknown"]


@pytest.mark.parametrize("suffix", ["json", "yaml", "csv"])
def test_a_table_is_read_in_three_forms(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"theirs.{suffix}"
    if suffix == "csv":
        path.write_text(
            "device,bf16,fp8\nNVIDIA L40S,312e12,\nh100,1979,1978.9 TFLOP/s\nAcme,5e13,\n"
        )
    else:
        path.write_text(json.dumps(THEIRS))
    found = answers(["hardware", "--lint", str(path)])
    assert [each["result"]["verdict"] for each in found] == VERDICTS
    assert found[1]["inputs"]["flops_per_second"] == 1979e12
    assert found[1]["result"]["ratio"] == pytest.approx(2.0, rel=1e-3)


def test_a_row_s_line_is_shown_with_its_verdict(tmp_path: Path) -> None:
    path = tmp_path / "theirs.yaml"
    path.write_text("NVIDIA H100 PCIe: 989\nNVIDIA A10G: 70\n")
    lines = napkin(["hardware", "--lint", str(path)]).out.splitlines()
    assert lines[0].split() == ["device", "precision", "theirs", "ours", "verdict"]
    assert lines[2].endswith("989   756.5   another form factor: the figure of h100-sxm")
    assert lines[3].split() == ["NVIDIA", "A10G", "bf16", "70", "70", "agrees"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "t.yaml",
            "a: 5 zebras\n",
            "1: a: 'zebras' in '5 zebras' is not a unit here; write 989.4e12 or '989.4 TFLOP/s'",
        ),
        ("t.csv", "a,5e12\nb,x\n", "2: 'x' is not a number; write 989.4e12 or '989.4 TFLOP/s'"),
        ("t.json", "[1, 2]", "1: is not a mapping of keys to values"),
        ("t.yaml", "a: {fp9: 1e14}\n", "1: a.fp9: 'fp9' is not a precision; did you mean 'fp8'?"),
        ("t.csv", "", " has no row of device and FLOP/s; write one as `h100-sxm,989.4`"),
        ("t.csv", "d,bf16\n", " has no row of device and FLOP/s; write one as `h100-sxm,989.4`"),
        ("t.json", "{}", " has no row of device and FLOP/s; write one as `h100-sxm: 989.4`"),
        ("t.yaml", "x: {}\n", " has no row of device and FLOP/s; write one as `h100-sxm: 989.4`"),
        ("t.csv", "peak\n989\n", "1: has one column; write device,FLOP/s"),
        ("t.csv", "d,bf16,tdp\n", "1: column 'tdp' names no precision; leave it out"),
        ("t.csv", "NVIDIA L4,121,72\n", "1: has 3 cells, not 2"),
        ("t.csv", "a,1\nNVIDIA L4,121\nNVIDIA L4,60\n", "3: 'NVIDIA L4' is given twice for bf16"),
        (
            "t.csv",
            f'a,"{"x" * 140_000}"\n',
            " not valid CSV: field larger than field limit (131072)",
        ),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(
    name: str, text: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    ran = napkin(["hardware", "--lint", str(path)])
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: --lint: {path}:{says}\n")


def test_precisions_are_chosen_with_dtype(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Tesla T4,65\n")
    (found,) = answers(["hardware", "--lint", str(path), "--dtype", "fp16"])
    assert found["result"]["verdict"] == "agrees"


@pytest.mark.parametrize(
    "text",
    [
        "device,fp8_tflops\nh100,1978.9\n",
        "device,precision,rate\nh100,fp8,1978.9\n",
        "GPU,dtype,TFLOP/s\nh100,FP8,1978.9 TFLOP/s\n",
        "device;fp8_pflops\nh100;1.9789\n",
        "device\tfp8 (GFLOP/s)\nh100\t1978900\n",
        "device,fp8 FLOP/s\nh100,1978.9e12\n",
    ],
)
def test_a_header_says_which_precision(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.CSV"
    path.write_text(text)
    (found,) = answers(["hardware", "--lint", str(path)])
    assert (found["inputs"]["dtype"], found["result"]["verdict"]) == ("fp8", "agrees")


def test_a_judged_table_has_no_hardware_file_to_write(tmp_path: Path) -> None:
    path, kept = tmp_path / "t.csv", tmp_path / "kept.yaml"
    path.write_text("h100,989\n")
    kept.write_text("name: x\n")
    ran = napkin(["hardware", "--lint", str(path), "--output", str(kept)])
    assert (ran.code, ran.err) == (
        2,
        "Error: --format: yaml is what `napkin hardware NAME` writes; write json\n",
    )
    assert kept.read_text() == "name: x\n"


def test_a_name_with_control_characters_is_not_printed_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"bad\x1b[31mred,5e12\n")
    assert "\x1b" not in napkin(["hardware", "--lint", str(path)]).out


def test_a_figure_of_one_s_own_file_is_called_so(tmp_path: Path) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"], "napkin", "hardware")
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("name: Mine\npeak: {bf16: 1e14}\nmemory: 40 GB\n")
    path = tmp_path / "t.yaml"
    path.write_text("mine: 100\n")
    (found,) = answers(["hardware", "--lint", str(path)])
    assert found["result"]["said"] == "agrees (ours is your own file's)"


def test_a_long_table_looks_at_the_names_of_all_hardware_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, looked, alike = tmp_path / "t.csv", [], accelerators.alike
    path.write_text("".join(f"NVIDIA H{n}X,989\n" for n in range(1000)))

    def counted(name: str) -> str:
        looked.append(name)
        return alike(name)

    monkeypatch.setattr(accelerators, "alike", counted)
    rows = answers(["hardware", "--lint", str(path)])
    assert [row["result"]["verdict"] for row in rows] == ["unknown"] * 1000
    assert len(looked) < 10_000
