"""The Python of `napkin explain` prints what it says."""

import contextlib
import io

import pytest
import torch

from napkin.specs import topics

SNIPPETS = {name: each for name, each in topics.topics().items() if each.snippet}


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_prints_what_it_says(name: str) -> None:
    printed = io.StringIO()
    torch.manual_seed(1)
    with contextlib.redirect_stdout(printed):
        exec(SNIPPETS[name].snippet, {"torch": torch})
    assert printed.getvalue().strip() == SNIPPETS[name].prints
