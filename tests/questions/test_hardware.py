"""`napkin hardware`: a file of one's own, this machine's GPU, the file as a start."""

import os
from pathlib import Path

import pytest

from napkin.specs import this_machine
from tests.running import ROOT, answer, answers, napkin

BAD = """name: x
peek: 3
peak:
  bf16: 5
  fp9: 1e14
  fp8: {dense: 2e14, sparse: 1e14}
memory: 1
memory: 2
tdp: 700
"""


def test_check_names_every_problem_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(BAD)
    ran = napkin(["hardware", "--check", str(path)])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.replace(str(path), "mine.yaml").splitlines() == [
        "Error: mine.yaml:2: unknown key 'peek'; did you mean 'peak'?",
        "Error: mine.yaml:4: peak.bf16: '5' is not plausible for a peak (1e11 to 1e17 FLOP/s); "
        "did you mean 5 TFLOP/s?",
        "Error: mine.yaml:5: peak: unknown key 'fp9'; did you mean 'fp8'?",
        "Error: mine.yaml:6: peak.fp8: dense is above sparse; are the two swapped?",
        "Error: mine.yaml:7: memory: '1' is not plausible for a device's memory "
        "(1 GB to 10 TB); did you mean 1GB?",
        "Error: mine.yaml:8: 'memory' is given twice",
        "Error: mine.yaml:9: tdp: '700' has no unit; write '700 W'",
    ]


def test_check_of_a_good_file_shows_it_and_what_may_be_a_slip(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: x\npeak: {bf16: {dense: 1e14, sparse: 1.4e14}}\nmemory: 80 GB\n")
    ran = napkin(["hardware", "--check", str(path)])
    assert ran.code == 0
    assert ran.out.startswith("x  mine · no problems found\n")
    assert ran.out.splitlines()[-3:] == [
        "warning: peak.bf16: sparse is 1.4 times dense; a note should say why",
        "warning: no source of peak: who says so?",
        "warning: no source of memory: who says so?",
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "hardware").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_file_passes_its_own_check(path: Path) -> None:
    ran = napkin(["hardware", "--check", str(path)])
    assert (ran.code, ran.err) == (0, "")
    assert "no source" not in ran.out


def test_a_file_comes_out_as_it_is_and_goes_in_again(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    assert napkin(f"hardware h100-sxm --output {mine}").code == 0
    assert mine.read_text("utf-8") == (ROOT / "hardware" / "h100-sxm.yaml").read_text("utf-8")
    assert answer(["hardware", str(mine)])["result"] == answer("hardware h100-sxm")["result"]
    assert napkin("hardware h100-sxm --format yaml").out == mine.read_text("utf-8")
    assert napkin("max-model --gpus 8 --format yaml").err == (
        "Error: --format: yaml is what `napkin hardware NAME` writes; write json\n"
    )


def driver(root: Path, *models: str) -> None:
    """The files that NVIDIA's driver shows, with these GPUs."""
    for number, model in enumerate(models):
        folder = root / f"proc/driver/nvidia/gpus/0000:{number:02x}:00.0"
        folder.mkdir(parents=True)
        text = f"Model: \t\t {model}\nIRQ:   \t\t 18\nGPU UUID: \t GPU-0\n"
        (folder / "information").write_text(text)


def test_here_is_the_gpu_that_the_driver_s_files_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_machine, "ROOT", tmp_path)
    driver(tmp_path, "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB")
    found = answer("train-time --params 7B --tokens 1T --gpus 8 --hardware here")
    assert found["inputs"]["hardware"] == "a100-sxm-40gb"
    file = tmp_path / "proc/driver/nvidia/gpus/0000:00:00.0/information"
    assert f"here is NVIDIA A100-SXM4-40GB ({file}), taken as a100-sxm-40gb" in found["notes"]


def test_here_finds_an_amd_gpu_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(this_machine, "ROOT", tmp_path)
    (tmp_path / "sys/class/drm/card1/device").mkdir(parents=True)
    (tmp_path / "sys/class/drm/card1/device/product_name").write_text("AMD Instinct MI300X\n")
    assert this_machine.device().name == "AMD Instinct MI300X"


@pytest.mark.parametrize(
    ("models", "says"),
    [
        (
            (),
            "no driver's file names a GPU here (looked for {root}/proc/driver/nvidia/gpus/*/information); write a name",
        ),
        (("NVIDIA A16",), "no hardware is called 'NVIDIA A16'; `napkin hardware` lists all"),
        (
            ("NVIDIA L4", "NVIDIA A10"),
            "there are several kinds of GPU here; write one: NVIDIA A10, NVIDIA L4",
        ),
    ],
)
def test_here_is_refused_where_it_is_not_one_known_gpu(
    models: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_machine, "ROOT", tmp_path)
    driver(tmp_path, *models)
    ran = napkin("mfu --achieved 1e14 --hardware here")
    assert (ran.code, ran.err) == (2, f"Error: --hardware: {says.format(root=tmp_path)}\n")


def test_nothing_is_taken_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(this_machine, "ROOT", tmp_path)
    driver(tmp_path, "NVIDIA A100-SXM4-40GB")
    assert answer("mfu --achieved 1e14")["inputs"]["hardware"] == "h100-sxm"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("h100 --check x.yaml", "--check: stands alone; leave the names and the other out"),
        ("h100 --lint x.yaml", "--lint: stands alone; leave the names and the other out"),
        (
            "--check x.yaml --lint x.yaml",
            "--lint: stands alone; leave the names and the other out",
        ),
        ("h100 --dtype bf16", "--dtype: goes with --lint: the precision of its bare numbers"),
    ],
)
def test_options_that_do_not_go_together_are_refused(line: str, says: str) -> None:
    ran = napkin(f"hardware {line}")
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {says}\n")


def test_check_says_which_shipped_card_a_file_of_one_s_own_would_hide(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: x\naliases: [H100]\npeak: {bf16: 1e14}\nmemory: 80 GB\n")
    assert napkin(["hardware", "--check", str(path)]).out.splitlines()[-1] == (
        "warning: H100 is a name of the shipped h100-sxm: in your folder, yours wins"
    )


@pytest.mark.parametrize(
    "line",
    [
        "train-time --params 7B --tokens 1T --gpus 8 --hardware mi250x",
        "max-model --gpus 8 --hardware mi250x",
        "mfu --achieved 1e14 --hardware mi250x",
    ],
)
def test_a_package_of_several_devices_says_that_it_is_counted_as_one(line: str) -> None:
    assert "figures and --gpus count packages: one is 2 devices of torch or JAX" in (
        " ".join(answer(line)["notes"])
    )


def test_a_column_of_one_s_own_is_marked(tmp_path: Path) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"], "napkin", "hardware")
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("name: x\npeak: {bf16: 1e14}\nmemory: 80 GB\n")
    assert "mine (yours)" in napkin("hardware mine h100-sxm").out.splitlines()[0]


def test_pk_05_a_file_of_one_s_own_counts_packages_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "tpu-v3.yaml"
    path.write_text(
        "name: TPU v3\npeak: {bf16: 123 TFLOP/s}\nmemory: 32 GB\ndevices_per_package: 2\n"
    )
    line = f"mfu --params 1e9 --tokens-per-second 48987 --hardware {path}"
    found = answer(f"{line} --gpus 4")
    assert found["result"]["mfu"] == pytest.approx(0.597, rel=1e-3)
    assert "one is 2 devices of torch or JAX" in " ".join(found["notes"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("h100-sxm", "80 GB (74.51 GiB)"),
        ("h200-sxm", "141 GB (131.3 GiB)"),
        ("mi300x", "192 GB (178.8 GiB)"),
    ],
)
def test_me_08_memory_has_both_its_labels(name: str, said: str) -> None:
    (row,) = (
        line for line in napkin(f"hardware {name}").out.splitlines() if "memory, printed" in line
    )
    assert said in row


def test_a_word_that_stands_in_several_names_lists_those() -> None:
    listed = [each["inputs"]["hardware"] for each in answers("hardware tpu")]
    assert listed == ["tpu-7x", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e"]
    assert "names with 'tpu'" in napkin("hardware tpu").out
    assert napkin("max-model --gpus 8 --hardware tpu").code == 2
    # One name alone may be another than was meant.
    assert napkin("hardware mi300").err.startswith("Error: no hardware is called 'mi300'; known of")
