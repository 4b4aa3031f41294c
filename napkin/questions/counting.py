"""Computed beside counted: the very model built with transformers, its matmuls counted by torch."""

from typing import Any, NamedTuple

from napkin import checking
from napkin.specs.model import Model, Stack


class Check(NamedTuple):
    """What was counted on one sequence, and what to say of it."""

    counted: dict[str, int]
    notes: list[str]
    warnings: list[str]


def checked(model: Model | Stack, tokens: int, result: dict[str, Any]) -> Check:
    """Raises NapkinError where the libraries are missing or cannot build the model."""
    checking.require()
    from napkin.checking import count

    if isinstance(model, Stack):
        found = count.count_stack(model.layers, model.d_model, tokens)
    else:
        found = count.count(model.architecture, model.fields, tokens)
    computed = {
        "params": result["params"],
        "forward": result["forward_per_token"] * tokens,
        "backward": result["backward_per_token"] * tokens,
    }
    notes, warnings = [], []
    for name, counted in found._asdict().items():
        unit = "parameters" if name == "params" else f"FLOP {name}, one sequence"
        difference = computed[name] - counted
        said = f"{counted:,} {unit}: counted"
        if difference:
            warnings.append(f"{said}, {computed[name]:,} computed: {difference:+,}")
        else:
            notes.append(f"{said} and computed, difference 0")
    return Check(found._asdict(), notes, warnings)
