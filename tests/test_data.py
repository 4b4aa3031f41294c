"""Every file of tests/data says where its values come from and what makes them again."""

import json
from pathlib import Path

import pytest

from tests.running import DATA, data

TABLES = sorted(DATA.glob("*.yaml"))


@pytest.mark.parametrize("path", [*TABLES, DATA / "configs.md"], ids=lambda p: p.name)
def test_a_file_says_where_its_values_come_from_and_what_makes_them_again(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    if path.suffix == ".yaml":
        lines = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    for word in ("From: ", "Again: "):
        assert [line for line in lines if line.startswith(word) and len(line) > len(word)], word


@pytest.mark.parametrize("name", ["published_memory.yaml", "published_throughput.yaml"])
def test_a_published_figure_names_its_own_source(name: str) -> None:
    assert all(len(row["source"].split()) > 1 for row in data(name))


@pytest.mark.parametrize("name", ["golden_memory.yaml", "golden_models.yaml"])
def test_a_golden_value_says_how_it_was_found(name: str) -> None:
    assert all(len(row["how"].split()) > 0 for row in data(name))


def test_every_config_is_a_model_s_own_fields() -> None:
    files = sorted((DATA / "configs").glob("*.json"))
    assert len(files) == 30
    assert all({"architectures", "model_type"} <= set(json.loads(f.read_text())) for f in files)
