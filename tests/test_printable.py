"""Whatever stands in a file or in its name: no control character but a line's end is written,
and each format stays what it is."""

import csv
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.running import DATA, Ran, napkin

ESCAPES = ["\x1b[31m", "\x1b]0;title\x07", "\x1b", "\x9b2J", "\b", "\r", "\n", "\t", "\x0b", "\x0c"]
BREAKS = [
    "\x1c",
    "\x7f",
    "\x85",
    "\xa0",
    "\xad",
    "\u2028",
    "\u202e",
    "\ufeff",
    "\ufffe",
    "\U000e0001",
]
MARKUP = [
    "|",
    "`",
    "``",
    "\\",
    "\\|",
    "*",
    "_",
    "[red]",
    "<b>",
    "&",
    "&#27;",
    "]]>",
    '"',
    "'",
    ",",
    ";",
]
OUTSIDE = st.lists(
    st.sampled_from(ESCAPES)
    | st.sampled_from(BREAKS)
    | st.sampled_from(MARKUP)
    | st.text(max_size=3),
    min_size=1,
    max_size=6,
).map("".join)
# A name holds neither of these two; what is not UTF-8 in it comes as a surrogate.
NAMES = (OUTSIDE | st.just("\udcff\x1b")).map(
    lambda text: "x" + re.sub("[/\0\ud800-\udbff]|[\udc00-\udc7f]", "", text)[:40]
)
FORMATS = ("table", "json", "markdown", "csv", "svg")
CARD = "name: {}\npeak: {{bf16: 100 TFLOP/s}}\nmemory: 40 GB\n"

many = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check(line: list[str]) -> Ran:
    """Runs it and looks at all that was written."""
    ran = napkin(line)
    assert ran.code in (0, 2), ran
    for stream in (ran.out, ran.err):
        assert {c for c in stream if not c.isprintable()} <= {"\n"}, repr(stream)
    starts = ("Error: ", "warning: ", "Usage: ", "Try ")
    assert all(each.startswith(starts) for each in ran.err.splitlines() if each), ran.err
    return ran


def check_formats(line: list[str], *others: str) -> None:
    for format in (*FORMATS, *others):
        ran = check([*line, "--format", format])
        if ran.code == 0:
            globals().get(f"check_{format}", len)(ran.out)


def check_json(out: str) -> None:
    json.loads(out, parse_constant=pytest.fail)


def check_csv(out: str) -> None:
    rows = list(csv.reader(io.StringIO(out), strict=True))
    assert len({len(row) for row in rows}) <= 1
    assert len(rows) == len(out.splitlines())


def check_svg(out: str) -> None:
    ElementTree.fromstring(out)


def check_markdown(out: str) -> None:
    for table in re.findall(r"(?m)(?:^\|.*\n)+", out):
        # A bar that stands behind an odd number of backslashes is a letter.
        cells = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()]
        assert len(set(cells)) == 1, table


@contextmanager
def written(name: str, text: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        yield path


@many
@given(NAMES)
def test_the_name_of_a_hardware_file(name: str) -> None:
    with written(f"{name}.yaml", CARD.format("Card")) as path:
        file = str(path)
        check_formats(["hardware", file], "yaml")
        check_formats(["hardware", file, "h100-sxm"])
        check_formats(["max-model", "--gpus", "8", "--hardware", file])
        check(["hardware", "--check", file])


@many
@given(NAMES)
def test_the_name_of_an_own_hardware_file_or_of_a_broken_one(name: str) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"], "napkin", "hardware")
    folder.mkdir(parents=True, exist_ok=True)
    own, broken = folder / f"{name}.yaml", folder / f"{name}-broken.yaml"
    own.write_text(CARD.format("Card"))
    broken.write_text("name: no peak\n")
    try:
        check_formats(["hardware"])
        check(["hardware", f"{name} no"])
    finally:
        own.unlink()
        broken.unlink()


@many
@given(OUTSIDE, OUTSIDE)
def test_what_stands_in_a_hardware_file(value: str, key: str) -> None:
    quoted = json.dumps(value)
    text = CARD.format(quoted) + f"# {value}\n{json.dumps(key)}: {quoted}\n"
    for content in (CARD.format(quoted), CARD.format(f"Card # {value}"), text):
        with written("card.yaml", content) as path:
            check_formats(["hardware", str(path)], "yaml")
            check(["hardware", "--check", str(path)])


@many
@given(OUTSIDE, OUTSIDE)
def test_what_stands_in_a_table_to_lint(name: str, precision: str) -> None:
    rows = {name: "100 TFLOP/s", f"{name}2": {precision: 100}}
    for suffix, text in (
        ("json", json.dumps(rows)),
        ("yaml", json.dumps({name: "100 TFLOP/s"})),
        ("csv", f"{name},100\nh100-sxm,1\n"),
        ("csv", f"device,{precision}\n{name},100\n"),
    ):
        with written(f"{name}.{suffix}".replace("/", "").replace("\0", "")[-40:], text) as path:
            check_formats(["hardware", "--lint", str(path)])


CONFIG = json.loads((DATA / "configs" / "llama-3.2-1b.json").read_text("utf-8"))


@many
@given(NAMES, OUTSIDE, st.sampled_from([*sorted(CONFIG), "quantization_config", "text_config"]))
def test_the_name_and_the_fields_of_a_model(name: str, value: str, field: str) -> None:
    changes: list[dict[str, Any]] = [{}, {field: value}, {value: value}, {field: {value: [value]}}]
    for change in changes:
        with written(f"{name}/config.json", json.dumps(CONFIG | change)) as path:
            check_formats(["models", str(path.parent)])
            check_formats(["flops", "--model", str(path)])
            check(["memory", "--model", str(path.parent), "--format", "markdown"])


@many
@given(OUTSIDE, st.sampled_from(["--hardware", "--model", "--dtype", "--format", "--output", "-x"]))
def test_what_is_typed(text: str, option: str) -> None:
    typed = f"/nowhere/{text}" if option == "--output" else text
    check(["train-time", "--params", "7B", "--tokens", "1T", "--gpus", "8", option, typed])
    check([text])


def test_a_word_of_a_config_that_transformers_refuses() -> None:
    with written("config.json", json.dumps(CONFIG | {"dtype": "\x1b[31mred\nline"})) as path:
        ran = check(["flops", "--model", str(path), "--check"])
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_a_bar_in_a_file_s_name_stays_in_its_cell() -> None:
    with written("a|b.yaml", CARD.format("Card")) as path:
        out = napkin(["hardware", str(path), "h100-sxm", "--format", "markdown"]).out
    assert out.splitlines()[:2] == ["|  | a\\|b (yours) | h100-sxm |", "| --- | ---: | ---: |"]


def test_json_keeps_what_others_show_escaped() -> None:
    with written("a\x9b\x1b.yaml", CARD.format("Card")) as path:
        document = json.loads(napkin(["hardware", str(path), "--format", "json"]).out)
        shown = napkin(["hardware", str(path), "--format", "csv"]).out
    assert document["answers"][0]["inputs"]["hardware"] == "a\x9b\x1b"
    assert "a\\x9b\\x1b," in shown


def test_completion_leaves_out_what_cannot_be_typed() -> None:
    from napkin.cli.options import OPTIONS, completing

    folder = Path(os.environ["XDG_CONFIG_HOME"], "napkin", "hardware")
    folder.mkdir(parents=True)
    for name in ("mine-\x1b[31m", "mine-too"):
        (folder / f"{name}.yaml").write_text(CARD.format("Card"))
    complete = completing(OPTIONS["hardware"])
    assert complete is not None
    assert complete("mine") == ["mine-too"]
