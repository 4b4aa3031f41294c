"""One micro-batch laid out on one GPU, and what its model keeps, in numbers."""

from typing import Any, cast

from napkin.accounting import activations
from napkin.accounting.activations import Kept
from napkin.accounting.layout import Layout
from napkin.accounting.notation import PLAIN
from napkin.quantity import Quantity
from napkin.specs.model import Model
from napkin.specs.optimizers import OPTIMIZERS, PRECISIONS


def layout(B: int, T: int, s: int, **settings: Any) -> Layout:
    """Of values of s bytes."""
    precision = "amp" if settings.get("autocast") else {2: "bf16", 4: "fp32"}[s]
    return Layout(PRECISIONS[precision], OPTIMIZERS["adamw"], 1, 0, B, T, **settings)


def kept(model: Model, B: int, T: int, s: int, **settings: Any) -> Kept:
    """What a layer keeps, and what is outside the layers."""
    tokens = cast(Quantity, B), cast(Quantity, T)
    return activations.of_model(model, *tokens, layout(B, T, s, **settings), PLAIN)


def of_layer(kept: Kept, full: bool = False) -> int:
    """Bytes of one layer; of one that is computed again where `full`."""
    return cast(int, kept.block if full else sum(cast(Any, kept.layer).values()))


def total(model: Model, T: int, kept: Kept, full: bool = False) -> int:
    """Bytes of all layers, and of what is outside them."""
    windowed = 0
    if kept.window is not None and not full:
        windowed = activations.short_windows(model, T) * cast(int, kept.window)
    rest = sum(cast(Any, kept.rest).values())
    if full:
        return model.layers * of_layer(kept, full) + cast(int, rest)
    common, dense, sparse = (sum(cast(Any, kind)) for kind in kept.kinds)
    in_layers = model.layers * common + model.dense_layers * dense + model.moe_layers * sparse
    return cast(int, in_layers + windowed + rest)
