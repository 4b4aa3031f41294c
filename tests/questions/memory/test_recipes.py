"""README's table of recipes holds the bytes that the recipes have."""

import re

import pytest

from napkin.specs.optimizers import OPTIMIZERS, PRECISIONS, terms
from tests.running import ROOT

ROW = re.compile(r"^\| `([\w-]+)` \| (\d+) \+ (\d+) \+ (\d+) \+ (\d+) = (\d+) \|", re.M)
ROWS = {name: [*map(int, bytes)] for name, *bytes in ROW.findall((ROOT / "README.md").read_text())}


def test_every_recipe_has_its_row() -> None:
    assert set(ROWS) == set(PRECISIONS)


@pytest.mark.parametrize("name", PRECISIONS)
def test_its_bytes_are_those_that_answers_count(name: str) -> None:
    kinds = {term.symbol: term.bytes for term in terms(PRECISIONS[name], OPTIMIZERS["adamw"])}
    moments = kinds["m"] + kinds["v"]
    held = [kinds["weights"], kinds["gradients"], kinds.get("master", 0), moments]
    assert ROWS[name] == [*held, sum(held)]
