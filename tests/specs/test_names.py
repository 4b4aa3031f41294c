"""What is suggested for a name that is not known: never another chip, family or generation."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from napkin.questions.lint import judge
from napkin.specs import accelerators, models, names
from napkin.specs.folders import model_names

KNOWN = accelerators.everything()
HARDWARE = [name for each in KNOWN for name in each.names]


def family_of(*keys: str) -> str:
    shown = ", ".join(f"{each.key} ({each.name})" for each in KNOWN if each.key in keys)
    return f"; known of its family: {shown}; for another, give a hardware file"


ALL = "; `napkin hardware` lists all"
H100 = family_of("h100-nvl", "h100-pcie", "h100-sxm")
V100 = ("v100-pcie-16gb", "v100-pcie-32gb", "v100-sxm2-16gb", "v100-sxm2-32gb", "v100s-pcie")

NOT_KNOWN = {
    # What strangers wrote and were shown another chip for.
    "H100-SXM5-80GB": H100,
    "B200 SXM": family_of("b200"),
    "v100-sxm": family_of(*V100),
    "A5000": ALL,
    "gb10": ALL,
    # Another chip, one letter or one digit away.
    "mi300a": family_of("mi300x"),
    "b300x": family_of("b300"),
    "L40G": family_of("l40", "l40s"),
    "h1000": ALL,
    "hh100": ALL,
    "TPU v3": ALL,
    "Tesla P100": ALL,
    "NVIDIA RTX 6000 Ada Generation": ALL,
    "NVIDIA A100 SXM5": family_of(
        "a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm-40gb", "a100-sxm-80gb"
    ),
    "GB200 NVL72": family_of("gb200"),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": family_of("rtx-pro-6000"),
    # The same name, joined in another way or with a slip in a long word.
    "h100sxm": "; did you mean 'h100-sxm'?",
    "tpuv4": "; did you mean 'tpu-v4'?",
    "gaudi-3": "; did you mean 'gaudi3'?",
    "tranium2": "; did you mean 'trainium2'?",
    "NVIDIA H100 80 GB HBM3": "; did you mean 'NVIDIA H100 80GB HBM3'?",
    "trainium": family_of("trainium1", "trainium2", "trainium3"),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_a_chip_that_is_not_known_is_shown_itself_its_family_or_none(name: str) -> None:
    said = f"no hardware is called {name!r}{NOT_KNOWN[name]}"
    assert accelerators.not_found(name, KNOWN) == said


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_a_judged_table_says_the_same_of_it(name: str) -> None:
    said = f"no hardware is called {name!r}{NOT_KNOWN[name]}"
    verdict = judge(name, "bf16", 1e15, KNOWN)
    assert (verdict.kind, verdict.reason) == ("unknown", said)


LLAMA_3 = "llama-3-70b, llama-3-8b, llama-3.1-405b, llama-3.1-70b, llama-3.1-8b, llama-3.2-1b, "
LLAMA_3 += "llama-3.2-3b"
ALL_MODELS = "; `napkin models` lists all, or give a config.json"

NO_MODEL = {
    "llama3": f"'llama3' is no exact name; write one of: {LLAMA_3}",
    "gpt-3": "'gpt-3' is no exact name; write gpt3-175b",
    "gpt-2": "'gpt-2' is no exact name; write gpt2",
    "mist": "'mist' is no exact name; write mistral-7b",
    "lama-3-8b": "no model is called 'lama-3-8b'; did you mean 'llama-3-8b'?",
    "llama-3-8b-instruct": "no model is called 'llama-3-8b-instruct'; known of its family: "
    f"{LLAMA_3}; for another, give a config.json",
    "llama-4": f"no model is called 'llama-4'{ALL_MODELS}",
    "gpt-4": f"no model is called 'gpt-4'{ALL_MODELS}",
    "mixtral-7b": f"no model is called 'mixtral-7b'{ALL_MODELS}",
    "codellama-7b": f"no model is called 'codellama-7b'{ALL_MODELS}",
}


@pytest.mark.parametrize("name", NO_MODEL)
def test_a_model_that_is_not_known_is_shown_its_family_or_none(name: str) -> None:
    assert models.not_found(name) == NO_MODEL[name]


def digits(name: str) -> list[str]:
    return re.findall(r"\d+", name)


@st.composite
def nearly(draw: st.DrawFn, known: list[str]) -> str:
    """A known name with a few letters changed, left out or put in."""
    name = draw(st.sampled_from(known))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(name)))
        left_out = draw(st.integers(0, 1))
        name = name[:at] + draw(st.text("abhlsvxz0123459 -.", max_size=1)) + name[at + left_out :]
    return name


def suggested(said: str) -> Iterator[str]:
    yield from re.findall(r"did you mean '(.*)'\?", said)


@given(nearly(HARDWARE))
def test_a_suggested_chip_agrees_in_every_digit(name: str) -> None:
    assume(accelerators.lookup(name) is None)
    for other in suggested(accelerators.not_found(name, KNOWN)):
        assert digits(other) == digits(name)


@given(nearly(model_names()))
def test_a_suggested_model_agrees_in_every_digit(name: str) -> None:
    assume(models.shipped(models.alike(name)) is None)
    for other in suggested(models.not_found(name)):
        assert digits(other) == digits(name)


@pytest.mark.parametrize("name", [each.key for each in KNOWN] + model_names())
def test_a_known_name_without_its_dashes_is_found_again(name: str) -> None:
    known = [each.key for each in KNOWN] if name in HARDWARE else model_names()
    joined = re.sub(r"(?<=[a-z])-|-(?=[a-z])", "", name)  # not between two numbers
    assert names.hint(joined, known, {}, "") == f"; did you mean {name!r}?"
