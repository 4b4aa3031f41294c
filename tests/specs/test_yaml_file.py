"""Hardware files as people write them, and what each mistake says."""

from pathlib import Path

import pytest
import yaml

from napkin.errors import NapkinError
from napkin.specs import accelerators, yaml_file

GOOD = "name: My card\npeak:\n  bf16: 312 TFLOP/s\nmemory: 80 GB\n"

BAD = {
    "": "card.yaml: the file is empty",
    "- a\n": "card.yaml:1: is not a mapping of keys to values",
    "name: [\n": ("card.yaml:2: not valid YAML: did not find expected node content"),
    "name: x\nmemory: 80 GB\n": "card.yaml:1: missing peak",
    "name: x\n": "card.yaml:1: missing peak, memory",
    GOOD + "memroy: 80 GB\n": "card.yaml:5: unknown key 'memroy'; did you mean 'memory'?",
    GOOD + "memory: 40 GB\n": "card.yaml:5: 'memory' is given twice",
    GOOD + "? [a]\n: b\n": "card.yaml:5: a key must be a word",
    GOOD.replace("  bf16", "  bf16: 1e14\n  bf16"): "card.yaml:4: peak: 'bf16' is given twice",
    GOOD.replace("bf16:", "bfl6:"): "card.yaml:3: peak: unknown key 'bfl6'; did you mean 'bf16'?",
    GOOD.replace(
        "312 TFLOP/s", "yes"
    ): "card.yaml:3: peak.bf16: 'yes' is not a number; write 989.4e12 or '989.4 TFLOP/s'",
    GOOD.replace("312 TFLOP/s", ""): "card.yaml:3: peak.bf16: is empty",
    GOOD.replace("312 TFLOP/s", "312"): (
        "card.yaml:3: peak.bf16: '312' is not plausible for a peak (1e11 to 1e17 FLOP/s); "
        "did you mean 312 TFLOP/s?"
    ),
    GOOD.replace("312 TFLOP/s", "[1e14]"): "card.yaml:3: peak.bf16: is not a single value",
    GOOD.replace("312 TFLOP/s", "{sparse: 1e14}"): "card.yaml:3: peak.bf16: missing dense",
    GOOD.replace("312 TFLOP/s", "1e14\n  fp8: 2e14\n  fp8_e4m3: 2e14"): (
        "card.yaml:5: peak.fp8_e4m3: fp8 is given under two names"
    ),
    GOOD.replace("80 GB", "80"): (
        "card.yaml:4: memory: '80' is not plausible for a device's memory (1 GB to 10 TB); "
        "did you mean 80GB?"
    ),
    GOOD.replace("80 GB", "1,024 GB"): (
        "card.yaml:4: memory: '1,024 GB' has a comma; write one number: 80GB, 80GiB or 80e9"
    ),
    GOOD + "tdp: 700\n": "card.yaml:5: tdp: '700' has no unit; write '700 W'",
    GOOD + "tdp: &w 700 W\n": "card.yaml:5: anchors and aliases are not read; write the value out",
    GOOD + "sources: {paek: x}\n": "card.yaml:5: sources: unknown key 'paek'; did you mean 'peak'?",
    GOOD.replace("peak:\n  bf16: 312 TFLOP/s", "peak: 312 TFLOP/s"): (
        "card.yaml:2: peak: is not a mapping of keys to values"
    ),
    GOOD.replace("peak:\n  bf16: 312 TFLOP/s", "peak: {}"): (
        "card.yaml:2: peak: is empty; write bf16: 312 TFLOP/s"
    ),
}


def refused(path: Path) -> str:
    with pytest.raises(NapkinError) as caught:
        accelerators.find(str(path))
    return str(caught.value).replace(str(path), path.name)


@pytest.mark.parametrize("text", BAD, ids=[message.partition(": ")[2] for message in BAD.values()])
def test_a_mistake_in_a_file_is_named_with_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    path.write_text(text)
    assert refused(path) == BAD[text]


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    path.write_bytes(b"name: \xff\xfe")
    assert refused(path) == "card.yaml: is not UTF-8 text"
    path.write_bytes(b"#" * 1_000_001)
    assert refused(path) == "card.yaml: is larger than 1 MB, which no hardware file is"
    assert refused(tmp_path / "folder.yaml") == "folder.yaml: no such file"
    (tmp_path / "folder.yaml").mkdir()
    assert refused(tmp_path / "folder.yaml") == "folder.yaml: is not a file"
    path.write_bytes(b"name: a\x00b")
    assert "not valid YAML" in refused(path)


@pytest.mark.parametrize("brackets", ["[", "{a: ", "- "])
def test_a_file_of_brackets_ends_in_one_line(brackets: str, tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    path.write_text(brackets * 100_000)
    assert "not valid YAML" in refused(path)


def test_the_loader_in_python_ends_in_one_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_file, "Loader", yaml.SafeLoader)
    path = tmp_path / "card.yaml"
    path.write_text("name: " + "[" * 500 + "]" * 500)
    assert refused(path) == "card.yaml: not valid YAML: nested too deeply"


def test_ym_01_numbers_that_yaml_reads_as_text_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a100.yaml"
    path.write_text(
        "name: a100\nmemory: 80e9\npeak:\n  bf16: 312e12\n  fp8: 989.4e12\n"
        "  tf32: 1.56e+14\n  fp32: 19_500_000_000_000\n"
    )
    found = accelerators.find(str(path))
    assert {dtype: peak.dense.value for dtype, peak in found.peak.items()} == {
        "bf16": 312e12,
        "fp8": 989.4e12,
        "tf32": 1.56e14,
        "fp32": 1.95e13,
    }
    assert found.peak["tf32"].dense.source == f"{path}:6"
    assert found.memory.value == 80e9


def test_ym_03_words_that_yaml_takes_for_booleans_and_numbers_stay_words(tmp_path: Path) -> None:
    path = tmp_path / "4090.yaml"
    path.write_text("name: no\nvendor: off\ndevice_names: [4090, yes]\n" + GOOD.split("\n", 1)[1])
    found = accelerators.find(str(path))
    assert (found.name, found.vendor, found.device_names) == ("no", "off", ("4090", "yes"))


def test_ym_04_units_are_read_and_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    for written, value in {"80 GiB": 85_899_345_920, "80 GB": 80e9, "80.0e+9": 80e9}.items():
        path.write_text(GOOD.replace("80 GB", written))
        assert accelerators.find(str(path)).memory.value == value
