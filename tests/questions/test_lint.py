"""Other people's tables, judged: each public tool's mistake by its name."""

import json
from pathlib import Path
from typing import Any

import pytest

from napkin import NapkinError, peak
from napkin.questions.lint import judge
from tests.running import answers, data, napkin

OTHERS = data("others.yaml")
IDS = [f"{row['tool']} {row['device']} {row['dtype']} {row['theirs']}" for row in OTHERS]


@pytest.mark.parametrize("row", OTHERS, ids=IDS)
def test_a_public_tool_s_figure_gets_its_mistake_s_name(row: dict[str, Any]) -> None:
    assert judge(row["device"], row["dtype"], row["theirs"] * 1e12).kind == row["verdict"]


@pytest.mark.parametrize("row", OTHERS, ids=IDS)
def test_our_own_answer_for_the_same_string_is_the_right_one(row: dict[str, Any]) -> None:
    if row["ours"] is None:
        with pytest.raises(NapkinError):
            peak(row["device"], row["dtype"])
    else:
        assert peak(row["device"], row["dtype"]) == pytest.approx(row["ours"] * 1e12, rel=1e-9)


def test_a_figure_of_one_of_two_devices_is_called_so() -> None:
    verdict = judge("AMD Instinct MI250X", "bf16", 191.5e12)
    assert (verdict.kind, verdict.said) == (
        "device-of-package",
        "one of the 2 devices of a package",
    )


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
