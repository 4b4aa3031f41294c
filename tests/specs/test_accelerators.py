"""Finding an accelerator: exact names in any spelling, a user's own files first."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napkin import peak
from napkin.errors import NapkinError
from napkin.specs import accelerators, yaml_file
from tests.running import answer, napkin

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
    with pytest.raises(NapkinError, match="no hardware is called 'NVIDIA A16'"):
        peak("NVIDIA A16", "bf16")


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
            assert accelerators.alike(near) in map(accelerators.alike, found.names)


def test_a_broken_file_of_the_user_s_costs_nothing_but_itself() -> None:
    (own_folder() / "wrong.yaml").write_text("name: x\n")
    assert napkin("mfu --achieved 400TFLOP/s --hardware h100").code == 0
    ran = napkin("hardware")
    assert (ran.code, ran.out.count("h100-sxm")) == (0, 1)
    assert ran.err == f"warning: left out: {own_folder()}/wrong.yaml:1: missing peak, memory\n"
    assert napkin("hardware h100sxm").err.endswith("did you mean 'h100-sxm'?\n")
    assert napkin("hardware wrong").code == 2


def test_an_own_file_is_marked_in_the_list() -> None:
    (own_folder() / "h100-sxm.yaml").write_text(OWN)
    assert "h100-sxm (yours)" in napkin("hardware").out


@pytest.mark.parametrize("alias", ["h100", "H100", " h100 "])
def test_an_alias_says_which_variant_it_took_in_any_spelling(alias: str) -> None:
    found = answer(["mfu", "--achieved", "400TFLOP/s", "--hardware", alias])
    assert f"{alias.strip()} is taken as h100-sxm (NVIDIA H100 SXM)" in found["notes"]


def test_a_letter_that_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    path.write_text(OWN.replace("My card", r'"\e[31mRed\nCard"'))
    ran = napkin(["hardware", str(path)])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"Error: {path}:1: name: holds a character that cannot be shown\n"


def test_an_own_file_wins_under_every_name_of_the_shipped_one() -> None:
    (own_folder() / "h100-sxm.yaml").write_text(OWN)
    for name in ("h100-sxm", "h100", "NVIDIA H100 80GB HBM3"):
        assert accelerators.find(name).memory.value == 40e9


def test_a_name_of_two_own_files_is_refused_with_both() -> None:
    for file in ("one", "two"):
        (own_folder() / f"{file}.yaml").write_text(OWN + "aliases: [foo]\n")
    assert napkin("hardware foo").err == (
        "Error: 'foo' is a name of two of your files, one.yaml and two.yaml; keep one\n"
    )


def test_hidden_files_and_folders_are_passed_over_and_yml_is_not() -> None:
    (own_folder() / ".hidden.yaml").write_text("")
    (own_folder() / "mine.yml").write_text(OWN)
    ran = napkin("hardware")
    assert (ran.code, ran.err) == (0, "")
    assert "mine (yours)" in ran.out
    assert accelerators.find("mine").memory.value == 40e9


def test_a_shipped_file_s_name_with_its_suffix_is_told_to_leave_it_out() -> None:
    assert napkin("hardware h100-sxm.yaml").err == (
        "Error: h100-sxm.yaml: no such file; did you mean 'h100-sxm'?\n"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("100 TFLOP/s", "{dense: 624e12, sparse: 312e12}"),
            "2: peak.bf16: dense is above sparse; are the two swapped?",
        ),
        (
            ("40 GB\n", "40 GB\nmemory_visible: 80 GB\n"),
            "4: memory_visible: is far from memory; which of the two is right?",
        ),
        (
            ("40 GB\n", "40 GB\ntdp: 1e6 W\n"),
            "4: tdp: '1e6 W' is not plausible for a device's power (1 W to 100 kW)",
        ),
    ],
)
def test_figures_that_cannot_both_be_right_are_refused(
    change: tuple[str, str], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "card.yaml"
    path.write_text(OWN.replace(*change))
    assert napkin(["hardware", str(path)]).err == f"Error: {path}:{says}\n"


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("h100-sxm", 1),
        ("gb300", 1),
        ("h100", 1),
        ("a100", 1),
        ("NVIDIA H100 80GB HBM3", 1),
        ("TPU v5 lite", 1),
    ],
)
def test_one_answer_does_not_read_52_files(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    load = yaml_file.load

    def counting(path: Path, shown: str | None = None) -> yaml_file.Section:
        read.append(path.stem)
        return load(path, shown)

    monkeypatch.setattr(yaml_file, "load", counting)
    accelerators.shipped.cache_clear()
    accelerators._cached.cache_clear()
    accelerators.find(name)
    assert 1 <= len(read) <= most


def test_a_broken_file_of_one_s_own_is_not_passed_over_for_a_shipped_one() -> None:
    path = own_folder() / "mine.yaml"
    path.write_text("name: x\naliases: [h100]\npeak: {bf16: 5}\nmemory: 80 GB\n")
    ran = napkin("mfu --achieved 1e14 --hardware h100")
    assert (ran.code, ran.out) == (2, "")
    assert "mine.yaml:3: peak.bf16: '5' is not plausible for a peak" in ran.err


def test_a_driver_s_name_means_one_device_and_a_name_of_ours_the_package() -> None:
    assert peak("AMD Instinct MI250X", "bf16") == 191.5e12
    assert peak("mi250x", "bf16") == 383e12
