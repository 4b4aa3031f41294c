"""Finding an accelerator: exact names in any spelling, a user's own files first."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napkin import peak
from napkin.errors import NapkinError
from napkin.specs import accelerators
from tests.running import answer

OWN = "name: My card\npeak: {bf16: 100 TFLOP/s}\nmemory: 40 GB\n"


def own_folder() -> Path:
    folder = Path(os.environ["XDG_CONFIG_HOME"], "napkin", "hardware")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "h100-sxm",
        "H100-SXM",
        "h100 sxm",
        "h100_sxm",
        " H100  SXM ",
        "h100",
        "nvidia h100 80gb hbm3",
    ],
)
def test_case_blanks_and_dashes_do_not_matter(name: str) -> None:
    assert accelerators.find(name).key == "h100-sxm"


def test_a_user_s_own_file_wins_and_says_so() -> None:
    (own_folder() / "h100-sxm.yaml").write_text(OWN)
    found = answer("train-time --params 70e9 --tokens 15e12 --gpus 1024")
    assert found["inputs"]["hardware"] == "h100-sxm"
    peaks = [step for step in found["derivation"] if step["symbol"] == "P"]
    assert [step["value"] for step in peaks] == [100e12]
    assert peaks[0]["source"] == f"{own_folder() / 'h100-sxm.yaml'}:2"
    assert f"My card is your own file: {own_folder() / 'h100-sxm.yaml'}" in found["notes"]


def test_a_user_s_own_file_answers_to_its_aliases_and_device_names() -> None:
    (own_folder() / "mine.yaml").write_text(OWN + "aliases: [box]\ndevice_names: [Acme 9000]\n")
    assert {accelerators.find(name).key for name in ("mine", "box", "ACME 9000")} == {"mine"}
    assert "mine" in [each.key for each in accelerators.everything()]


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    path.write_text(OWN)
    assert accelerators.find(str(path)).memory.value == 40e9
    path.write_text(OWN.replace("40 GB", "141 GB"))
    assert accelerators.find(str(path)).memory.value == 141e9


def test_peak_gives_training_code_the_dense_figure() -> None:
    assert peak("NVIDIA H100 80GB HBM3", "bf16") == 989.4e12
    assert peak("NVIDIA H100 80GB HBM3", "torch.bfloat16", sparse=True) == 1978.9e12
    assert peak("h100-pcie", "float8_e4m3fn") == 1513e12


def test_peak_has_no_fallback() -> None:
    with pytest.raises(NapkinError, match="no hardware is called 'NVIDIA A10'"):
        peak("NVIDIA A10", "bf16")


NAMES = [name for each in accelerators.everything() for name in each.names]


@given(st.sampled_from(NAMES), st.data())
def test_a_name_with_a_letter_more_or_less_finds_nothing_or_itself(
    name: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abcxyz019"))
    for near in (name[:at] + name[at + 1 :], name[:at] + letter + name[at:], f"{name} {letter}"):
        try:
            found = accelerators.find(near)
        except NapkinError as error:
            assert str(error).isprintable()
        else:
            assert accelerators._alike(near) in map(accelerators._alike, found.names)
