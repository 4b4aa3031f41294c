"""The table of training state, checked by stepping real torch optimizers."""

import pytest
import torch

from napkin.errors import NapkinError
from napkin.specs import optimizers
from tests.running import answer

SIZE = 4096  # elements: one scalar step count is then a thousandth of a byte a parameter

STEPPED = {
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "momentum": lambda p: torch.optim.SGD(p, momentum=0.9),
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "muon": lambda p: torch.optim.Muon(p),
}


@pytest.mark.parametrize("name", STEPPED)
@pytest.mark.parametrize(("recipe", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_the_moments_are_those_of_the_real_optimizer(
    name: str, recipe: str, dtype: torch.dtype
) -> None:
    weight = torch.nn.Parameter(torch.randn(64, 64).to(dtype))
    optimizer = STEPPED[name]([weight])  # type: ignore[operator]
    torch.autograd.backward(weight.square().sum())
    optimizer.step()
    state = sum(
        value.numel() * value.element_size()
        for value in optimizer.state[weight].values()
        if torch.is_tensor(value) and value.numel() > 1
    )
    terms = optimizers.terms(optimizers.PRECISIONS[recipe], optimizers.OPTIMIZERS[name])
    kept = sum(t.bytes for t in terms if t.symbol not in ("weights", "gradients", "master"))
    assert state / SIZE == kept


@pytest.mark.parametrize(
    ("precision", "optimizer", "bytes_per_param"),
    [
        ("fp32", "adamw", 16),
        ("mixed", "adamw", 16),
        ("mixed-fp32-grads", "adamw", 18),
        ("amp", "adamw", 16),
        ("bf16", "adamw", 8),
        ("bf16-fp32-moments", "adamw", 12),
        ("bf16", "adam8bit", 6.03125),
        ("mixed", "adam8bit", 10.03125),
        ("fp32", "adam8bit", 10.03125),
        ("fp32", "sgd", 8),
        ("fp32", "momentum", 12),
        ("fp32", "adagrad", 12),
        ("fp32", "rmsprop", 12),
        ("fp32", "lion", 12),
        ("fp32", "muon", 12),
        ("bf16", "sgd", 4),
    ],
)
def test_a_recipe_sums_to_what_papers_print(
    precision: str, optimizer: str, bytes_per_param: float
) -> None:
    found = answer(f"max-model --gpus 1 --precision {precision} --optimizer {optimizer}")
    assert found["result"]["bytes_per_param"] == bytes_per_param


def test_names_are_found_in_any_spelling() -> None:
    assert optimizers.precision("Mixed_FP32_grads")[0] == "mixed-fp32-grads"
    with pytest.raises(NapkinError, match="is no optimizer that napkin knows"):
        optimizers.optimizer("zebra")
