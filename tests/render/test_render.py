"""One answer, each renderer's whole text."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from napkin.quantity import coefficient, define, given
from napkin.questions.answer import Answer, Report, Words
from napkin.render import json, markdown, svg, table
from tests.running import answer, napkin

SVG = "{http://www.w3.org/2000/svg}"


def report() -> Report:
    """A small answer with one of everything."""
    N = given("N", "parameters", 70_000_000_000, "param", "--params")
    m = given("M₁", "memory [of] one GPU", 80_000_000_000, "B", "card.yaml:4")
    s = coefficient(16, "B/param", "16 = 4 + 4 + 8")
    need = define("n", "GPUs | needed", s * N / m, "1")
    answer = Answer(
        "example",
        {"params": 70_000_000_000, "sparse": False},
        {"gpus": need.value, "peak": {"bf16": {"dense": 1e14}}, "names": ["a", "b"], "none": None},
        lambda: Words("14 GPUs", "if all [is] sharded (assumed)", ["a *note*"], ["a warning"]),
        (need,),
    )
    return Report("example", [answer])


def written(module: object) -> str:
    out = io.StringIO()
    module.write(report(), out)  # type: ignore[attr-defined]
    return out.getvalue()


def test_the_table_shows_the_working_under_the_headline() -> None:
    assert written(table) == (
        "14 GPUs  if all [is] sharded (assumed)\n"
        "\n"
        "M₁   memory [of] one GPU   card.yaml:4        80 GB\n"
        "n    GPUs | needed         16 × N / M₁           14\n"
        "       16 = 4 + 4 + 8      16 × 70e9 / 80e9\n"
        "\n"
        "a *note*\n"
        "warning: a warning\n"
    )


def test_json_is_the_contract_s_document() -> None:
    assert '"question": "example"' in written(json)
    assert written(json).endswith("}\n")


def test_markdown_escapes_what_it_would_read_as_markup() -> None:
    assert written(markdown) == (
        "**14 GPUs** if all \\[is\\] sharded (assumed)\n"
        "\n"
        "|  |  | formula | numbers | value | source |\n"
        "| --- | --- | --- | --- | ---: | --- |\n"
        "| `N` | parameters |  |  | 70B parameters | --params |\n"
        "| `M₁` | memory \\[of\\] one GPU |  |  | 80 GB | card.yaml:4 |\n"
        "| `n` | GPUs \\| needed | 16 × N / M₁ | 16 × 70e9 / 80e9 | 14 |  |\n"
        "\n"
        "- a \\*note\\*\n"
        "- **Warning:** a warning\n"
    )


def test_svg_is_the_same_each_time_and_fetches_nothing() -> None:
    picture = written(svg)
    assert picture == written(svg)
    assert picture.startswith("<svg")
    assert "@font-face" not in picture
    assert "url(http" not in picture


def test_svg_is_as_wide_as_its_widest_row() -> None:
    """A letter is 12.2 units wide; a cell that is folded would stand in two lines of text."""
    wide = napkin("hardware h100-sxm a100-sxm-80gb mi300x b200 -f svg").out
    assert wide.count("a100-sxm-80gb") == 1
    assert "NVIDIA&#160;A100-SXM4-80GB" in wide
    widths = re.findall(r'viewBox="0 0 (\d+)', wide + napkin("max-model --gpus 8 -f svg").out)
    assert int(widths[0]) > 100 * 12.2 > int(widths[1])


@pytest.mark.parametrize(
    ("suffix", "start"),
    [
        (".txt", "40B parameters"),
        (".json", "{"),
        (".md", "**40B parameters**"),
        (".csv", "gpus,hardware,memory"),
        (".svg", "<svg"),
    ],
)
def test_the_suffix_of_the_output_chooses_the_format(
    suffix: str, start: str, tmp_path: Path
) -> None:
    path = tmp_path / f"answer{suffix}"
    path.write_text("what was there before, and longer than nothing" * 100)
    ran = napkin(f"max-model --gpus 8 --output {path}")
    format = {".txt": "table", ".md": "markdown"}.get(suffix, suffix[1:])
    assert (ran.code, ran.out, ran.err) == (0, "", f"wrote {path} ({format})\n")
    assert path.read_text("utf-8").startswith(start)
    assert "before" not in path.read_text("utf-8")


def test_the_format_asked_for_wins_over_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    assert napkin(f"max-model --gpus 8 --format json -o {path}").code == 0
    assert path.read_text("utf-8").startswith("{")


def test_an_alias_shows_its_card_and_names_the_others() -> None:
    one = napkin("hardware a100").out
    assert one.startswith("NVIDIA A100 SXM 80GB  a100-sxm-80gb, a100, a100-80gb")
    others = "a100-pcie-40gb a100-pcie-80gb a100-sxm-40gb"
    assert f"\na100 is taken as a100-sxm-80gb; others: {others}\n" in one
    assert "taken as" not in napkin("hardware a100-sxm-80gb").out


def test_hardware_is_a_list_one_in_full_or_several_side_by_side() -> None:
    listed = napkin("hardware").out
    assert "h100-sxm          989.4   1978.9      80 GB   74.51     3.35    700 W\n" in listed
    assert "trainium2           667     1299   103.1 GB      96      2.9        -\n" in listed
    one = napkin("hardware h100-sxm").out
    row = next(line for line in one.splitlines() if line.startswith("bf16 "))
    assert row.split() == ["bf16", "989.4", "1978.9", "16"]
    source = "source of peak: https://glennklockwood.com/garden/processors/h100"
    assert source not in one
    assert source in napkin("hardware h100-sxm --sources").out
    assert napkin("hardware h100 --sources").out == napkin("hardware h100 --explain").out
    several = napkin("hardware h100-sxm h100-pcie").out
    assert several.splitlines()[0].split() == ["h100-sxm", "h100-pcie"]
    assert "| name |" in napkin("hardware --format markdown").out


def test_the_picture_of_memory_is_drawn_to_scale_against_the_capacity() -> None:
    command = "memory --model gpt2 --memory 2GB --micro-batch 4"
    result = answer(command)["result"]
    svg = ElementTree.fromstring(napkin(f"{command} -f svg").out)
    texts = ["".join(text.itertext()).replace("\xa0", " ") for text in svg.iter(f"{SVG}text")]
    assert not any("█" in text for text in texts)
    parts = [rect for rect in svg.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    rows: dict[str, float] = {}
    for rect in parts:
        rows[rect.attrib["y"]] = rows.get(rect.attrib["y"], 0) + float(rect.attrib["width"])
    left = min(float(rect.attrib["x"]) for rect in parts)
    line = next(svg.iter(f"{SVG}line"))
    unit = (float(line.attrib["x1"]) - left) / result["capacity_bytes"]
    inside = [each["bytes"] for each in result["phases"][1:-1]]
    assert list(rows.values()) == pytest.approx([unit * each for each in inside], abs=1)
    assert float(line.attrib["x1"]) < max(float(rect.attrib["x"]) for rect in parts)


def test_the_roofline_of_a_matmul_is_drawn_with_what_it_reached() -> None:
    command = "matmul 1x8192 8192x8192 --time 50us"
    found = answer(command)
    svg = ElementTree.fromstring(napkin(f"{command} -f svg").out)
    roof, axes = svg.iter(f"{SVG}polyline")
    points = [tuple(map(float, pair.split(","))) for pair in roof.attrib["points"].split()]
    assert points[0][1] > points[1][1] == points[2][1]  # the slope, then the peak
    *_window, best, took = svg.iter(f"{SVG}circle")
    assert best.attrib["cx"] == took.attrib["cx"]
    assert float(best.attrib["cx"]) < points[1][0]  # left of the ridge point: bound by the memory
    assert float(best.attrib["cy"]) < float(took.attrib["cy"])
    assert found["result"]["bound"] == "memory"
    texts = {"".join(text.itertext()) for text in svg.iter(f"{SVG}text")}
    assert {"ridge point 295.3", "989.4 TFLOP/s", "at best: 3.349 TFLOP/s"} <= texts
    assert len(axes.attrib["points"].split()) == 3
