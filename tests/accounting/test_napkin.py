"""The peak as a person would write it adds up to the peak that was computed."""

from itertools import product

import pytest

from napkin.accounting.napkin import ROWS, working
from napkin.quantity import in_numbers, in_symbols
from napkin.questions.memory import scenario
from napkin.questions.memory.scenario import Settings

MODELS = ("llama-3-8b", "gpt2", "mixtral-8x7b", "gemma-2-9b", "linear:L=4,d=256")
RECIPES = ("mixed", "fp32", "bf16", "amp", "mixed-fp32-grads")


@pytest.mark.parametrize(("model", "zero"), [*product(MODELS, range(4))])
def test_the_terms_of_every_layout_add_up_to_its_peak(model: str, zero: int) -> None:
    for precision, gpus, micro_batch in product(RECIPES, (1, 8), (1, 16)):
        if precision == "amp" and not model.startswith("llama"):
            continue  # measured for llama's layers alone
        asked = scenario.read(
            Settings(
                model=model, gpus=gpus, zero=zero, precision=precision, micro_batch=micro_batch
            )
        )
        step = asked.step()
        s, *terms = working(step, asked.setup)
        assert terms[-1].value == pytest.approx(step.peak.bytes, rel=1e-12)
        assert s.value == sum(term.value for term in step.states.terms.values())
        assert len(terms) <= ROWS + 3


def test_sixteen_bytes_are_written_out() -> None:
    asked = scenario.read(Settings(params="8B", gpus=8))
    s, S = working(asked.step(), asked.setup)
    assert (in_symbols(s), in_numbers(s)) == (
        "weights + gradients + master + m + v",
        "2 + 2 + 4 + 4 + 4",
    )
    assert (in_symbols(S), str(s), str(S)) == ("s × N / n_dp", "16 B/param", "16 GB")
