"""Builds a config's own model on the meta device, where nothing has a value, and counts it.

FlopCounterMode has blind spots; each is met where it lies, and named there.
"""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import transformers as typed_in_part
from torch.utils.flop_counter import FlopCounterMode

from napkin.errors import NapkinError, first_line
from napkin.specs import quantization
from napkin.specs.architectures import classes

transformers: Any = typed_in_part


class Count(NamedTuple):
    """Parameters, and FLOP of one sequence forward and backward."""

    params: int
    forward: int
    backward: int


def count(kind: str, fields: Mapping[str, Any], tokens: int) -> Count:
    """Of the model that a config describes, on one sequence of that many tokens.

    Raises NapkinError where transformers cannot build or run it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _count(built_on_meta(kind, fields), tokens)
    except Exception as error:  # building a model can raise anything
        said = f"--check: transformers {transformers.__version__} cannot build or run it"
        raise NapkinError(f"{said}: {first_line(error)}; leave --check out") from None


def count_stack(layers: int, width: int, samples: int) -> Count:
    """Of a stack of square matrices and a head of one output, on as many samples."""
    matrices = [torch.nn.Linear(width, width, bias=False, device="meta") for _ in range(layers)]
    head = torch.nn.Linear(width, 1, bias=False, device="meta")
    model = torch.nn.Sequential(*matrices, head)
    params = sum(each.numel() for each in model.parameters())
    x = torch.empty(samples, width, device="meta")
    with FlopCounterMode(display=False) as forward:
        y = model(x)
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    return Count(params, forward.get_total_flops(), backward.get_total_flops())


def parameters(kind: str, fields: Mapping[str, Any]) -> int:
    """Of the model that a config describes."""
    return sum(each.numel() for each in built_on_meta(kind, fields).parameters())


def built_on_meta(kind: str, fields: Mapping[str, Any]) -> Any:
    """The model of the very class that a config names, without values."""
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        unasked = ("model_type", quantization.FIELD)
        known = {name: value for name, value in fields.items() if name not in unasked}
        described = transformers.AutoConfig.for_model(kind, **known)
        # What would change how it runs, not what it counts.
        described.use_cache, described.return_dict = True, True
        described.gradient_checkpointing = False
        described.pad_token_id = None  # the default may lie outside a small vocabulary
        # Fused experts are no operator that the counter knows; a batched matmul of as many is.
        described._experts_implementation = "batched_mm"
        with torch.device("meta"):
            # Fused attention counts nothing on a CPU and is refused by models with sinks or caps.
            of_class = getattr(transformers, classes.built(kind, fields))
            return of_class._from_config(described, attn_implementation="eager")
    finally:
        transformers.logging.set_verbosity(verbosity)


def _count(model: Any, tokens: int) -> Count:
    params = sum(each.numel() for each in model.parameters())
    ids = torch.zeros(1, tokens, dtype=torch.long, device="meta")
    # One counter each: what a checkpoint computes again would show in the backward pass.
    with FlopCounterMode(display=False) as forward:
        found = model(input_ids=ids)
    output = found.logits if "logits" in found else found.last_hidden_state
    with FlopCounterMode(display=False) as backward:
        output.sum().backward()
    return Count(params, forward.get_total_flops(), backward.get_total_flops())
