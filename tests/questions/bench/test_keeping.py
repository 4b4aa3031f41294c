"""What bench measured, kept and shown beside what was promised."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from napkin import NapkinError, train_time
from napkin.bench import device as devices
from napkin.bench.matmul import Measurement
from napkin.bench.nvml import State
from napkin.bench.operators import Shape
from napkin.bench.ranks import Member
from napkin.bench.statistics import Rates
from napkin.questions.bench import keeping, measurement
from napkin.specs import accelerators, measured
from napkin.specs.folders import measured_folder
from tests.running import answer, answers, napkin

H100 = "NVIDIA H100 80GB HBM3"
QUESTION = "train-time --params 70e9 --tokens 15e12 --gpus 1024"


def save(device: str = H100, dtype: str = "bf16", rate: float = 770e12, **other: Any) -> Path:
    record = {"type": "cuda", "rate": rate, "shape": "8192x8192x8192", "torch": "2.13.0"}
    return measured.write(device, dtype, record | other)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_promised_and_measured_stand_side_by_side_unasked() -> None:
    path = save()
    found = answer(QUESTION)
    assert found["result"]["days"] == pytest.approx(143.94, rel=1e-4)
    assert found["result"]["measured"] == {
        "days": pytest.approx(143.94114 * 989.4 / 770, rel=1e-6),
        "mfu_promised": pytest.approx(0.5 * 770 / 989.4, rel=1e-9),
    }
    assert found["notes"][0] == (
        "143.9 days at 50 % of the promised 989.4 TFLOP/s/GPU · 185 days at 50 % of the "
        "770 TFLOP/s/GPU measured here (38.9 % MFU)"
    )
    day = measured.read(path).date[:10]
    assert f"measured here: 770 TFLOP/s in 8192x8192x8192 on {day}; {path}" in found["notes"]
    rows = {step["symbol"]: step for step in found["derivation"]}
    assert rows["P_here"]["source"] == f"{path.name}:5"


def test_a_matmul_is_set_against_both_too() -> None:
    save()
    found = answer("matmul 8192x8192 8192x8192 --time 1.5ms")
    flop = 2 * 8192**3
    rows = {step["symbol"]: step["value"] for step in found["derivation"]}
    assert rows["t_here"] == pytest.approx(flop / 770e12)
    assert rows["MFU_here"] == pytest.approx(flop / 1.5e-3 / 770e12)
    assert "1.428 ms at the 770 TFLOP/s/GPU measured here" in found["notes"]
    assert "95.2 % of what was measured here" in found["notes"]


def test_a_figure_on_file_may_be_read_by_whom_the_umask_lets() -> None:
    usual = os.umask(0o022)
    try:
        path = save()
    finally:
        os.umask(usual)
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(measured_folder()) == [path.name]


def test_without_a_figure_nothing_is_shown() -> None:
    found = answer(QUESTION)
    assert found["result"]["measured"] is None
    assert not any("measured here" in note for note in found["notes"])


def test_the_measured_figure_answers_where_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    path = save()
    asked = answer(f"{QUESTION} --peak measured")
    assert asked["result"]["days"] == pytest.approx(185, rel=1e-3)
    assert asked["inputs"]["peak"] == "measured"
    (peak,) = (step for step in asked["derivation"] if step["symbol"] == "P")
    assert (peak["value"], peak["source"]) == (770e12, f"{path.name}:5")
    monkeypatch.setenv("NAPKIN_PEAK", "measured")
    assert answer(QUESTION)["result"] == asked["result"]


def test_an_mfu_stays_over_the_promised_peak() -> None:
    save()
    command = "mfu --params 7e9 --tokens-per-second 9600 --gpus 1"
    for peak in ("promised", "measured"):
        result = answer(f"{command} --peak {peak}")["result"]
        assert result["mfu"] == pytest.approx(403.2 / 989.4, rel=1e-9)
        assert result["mfu_measured"] == pytest.approx(403.2 / 770, rel=1e-9)
    assert napkin(f"{command} --peak measured").out.startswith(
        "52.4 % of the measured peak, 40.8 % MFU"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"device": "NVIDIA H100 PCIe"},
        {"dtype": "fp16"},
        {"type": "cpu"},
        {"power_limit": "500 W"},
        {"device": f"{H100} MIG 1g.10gb"},
    ],
)
def test_a_figure_stands_for_its_own_device_precision_and_power_only(other: dict[str, Any]) -> None:
    save(**other)
    assert answer(QUESTION)["result"]["measured"] is None
    ran = napkin(f"{QUESTION} --peak measured")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "Error: --peak: no measured bf16 figure of h100-sxm is on file; on that device, "
        "napkin bench --dtype bf16 measures one\n"
    )


def test_the_full_power_limit_is_the_card_s_own() -> None:
    save(power_limit="700.0 W")
    assert answer(QUESTION)["result"]["measured"] is not None


def test_a_sparse_answer_has_no_measured_twin() -> None:
    save()
    assert answer(f"{QUESTION} --sparse")["result"]["measured"] is None
    assert napkin(f"{QUESTION} --sparse --peak measured").err == (
        "Error: --sparse: no sparse figure is ever measured; leave it out\n"
    )


def test_an_old_figure_is_used_and_called_old() -> None:
    path = save()
    edit(path, measured.read(path).date[:4], "2020")
    (note,) = (n for n in answer(QUESTION)["notes"] if n.startswith("measured here"))
    assert "days old" in note


def test_a_figure_above_the_promised_peak_is_used_and_doubted() -> None:
    save(rate=7e15)
    (note,) = (n for n in answer(QUESTION)["notes"] if n.startswith("measured here"))
    assert note.endswith("; it is above the promised peak, so one of the two is wrong")


def test_a_figure_of_another_method_is_called_so() -> None:
    edit(save(), 'method: "1"', 'method: "9"')
    (note,) = (n for n in answer(QUESTION)["notes"] if n.startswith("measured here"))
    assert note.endswith("it was measured by method 9; bench now has 1")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("rate: ", "rata: "), "unknown key 'rata'; did you mean 'rate'?"),
        (('"770', '"x770'), "rate: 'x770000000000000.0' is not a number; write 400TFLOP/s"),
    ],
)
def test_a_broken_figure_is_a_warning_and_costs_no_answer(
    change: tuple[str, str], says: str
) -> None:
    path = save()
    edit(path, *change)
    found = answer(QUESTION)
    assert found["result"]["days"] == pytest.approx(143.94, rel=1e-4)
    assert found["warnings"] == [f"a measured figure cannot be read: {path.name}:5: {says}"]
    ran = napkin(f"{QUESTION} --peak measured")
    assert (ran.code, ran.err) == (2, f"Error: --peak: {path.name}:5: {says}\n")


def test_hardware_shows_what_was_measured_here() -> None:
    save()
    save(dtype="fp16", rate=760e12)
    assert answer("hardware h100-sxm")["result"]["measured"] == {"fp16": 760e12, "bf16": 770e12}
    assert "bf16, measured here" in napkin("hardware h100-sxm").out
    assert answer("hardware h100-pcie")["result"]["measured"] == {}


def test_a_package_has_the_rate_of_its_devices() -> None:
    save("AMD Instinct MI250X", rate=150e12)
    found = answer(f"{QUESTION} --hardware mi250x --peak measured")
    (peak,) = (step for step in found["derivation"] if step["symbol"] == "P")
    assert peak["value"] == 300e12


def test_bench_keeps_its_figure_as_the_cpu_s_and_no_gpu_takes_it() -> None:
    result = answer("bench --device cpu --size 256 --seconds 0.05")["result"]
    if result["saved_to"] is None:
        pytest.skip("something else kept this machine busy, so nothing was kept")
    kept = measured.read(Path(result["saved_to"]))
    assert (kept.type, kept.device, kept.dtype) == ("cpu", result["device_name"], "bf16")
    assert kept.rate == result["flops_per_second"]["median"]
    assert answer(QUESTION)["result"]["measured"] is None


def test_bench_keeps_nothing_where_it_is_told_so() -> None:
    result = answer("bench --device cpu --size 64 --seconds 0.01 --no-save")["result"]
    assert result["saved_to"] is None
    assert not os.path.exists(measured_folder())


ON_H100 = measurement.Run(devices.Device("cuda:0", H100), 3.0, None, why_cpu=None, save=True)


@pytest.mark.parametrize("asked", [{"shaped": True}, {"sized": True}])
def test_a_size_of_one_s_own_replaces_no_higher_figure(asked: dict[str, Any]) -> None:
    path = save()
    good = of_h100("")
    poor = good._replace(rates=good.rates._replace(median=700e12))
    own = replace(ON_H100, **asked)
    better = "of other shapes is higher; a run without --size and --shape replaces it"
    said = f"not saved: the figure in {path} {better}"
    assert keeping.saved([poor], own, "bf16") == (None, said)
    assert said in measurement.answer([poor], own, "bf16", [], None, said).notes
    assert measured.read(path).rate == 770e12
    assert keeping.saved([good], own, "bf16") == (path, "")
    assert keeping.saved([poor], ON_H100, "bf16") == (path, "")
    assert measured.read(path).rate == 700e12
    path.unlink()
    assert keeping.saved([poor], own, "bf16") == (path, "")


def test_of_several_ranks_the_slowest_one_s_figure_is_kept_and_called_so() -> None:
    slow = of_h100("")._replace(rates=of_h100("").rates._replace(median=700e12))
    members = [Member(n, "node7", devices.Device(f"cuda:{n}", H100)) for n in range(2)]
    run = replace(ON_H100, members=members)
    path, _ = keeping.saved([of_h100(""), slow], run, "bf16")
    assert path is not None
    assert measured.read(path).rate == 700e12
    assert {'ranks: "2"', 'slowest_rank: "1"'} <= set(path.read_text("utf-8").splitlines())
    path.unlink()
    assert keeping.saved([of_h100("others"), slow], run, "bf16") == (None, "")


def of_h100(unsteady: str) -> Measurement:
    rates = Rates(1.4e-3, 785e12, 700e12, 800e12, 2000, 770e12, 790e12, 784e12)
    return Measurement(Shape(8192, 8192, 8192), rates, 1.7e-3, unsteady)


def test_a_doubtful_figure_never_replaces_a_good_one() -> None:
    path = save()
    assert keeping.saved([of_h100("other processes")], ON_H100, "bf16") == (None, "")
    assert measured.read(path).rate == 770e12
    assert keeping.saved([of_h100("")], ON_H100, "bf16") == (path, "")
    assert measured.read(path).rate == 785e12
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    good = of_h100("")
    scattered = good._replace(rates=good.rates._replace(spread=0.06, median=700e12))
    said = f"not saved: the figure in {path} is higher, and this one is scattered"
    assert keeping.saved([scattered], ON_H100, "bf16") == (None, said)
    path.unlink()
    assert keeping.saved([scattered], ON_H100, "bf16") == (path, "")


def saved_in(state: State) -> Path:
    measured_then = of_h100("")._replace(state=state)
    path, _ = keeping.saved([measured_then], ON_H100, "bf16")
    assert path is not None
    return path


def test_the_state_that_a_figure_was_measured_in_is_kept_and_read_again() -> None:
    state = State(1755.0, 690.5, 64.0, 0x4, 700.0, 0)
    path = saved_in(state)
    assert measured.read(path).power_limit == 700
    lines = path.read_text("utf-8").splitlines()
    assert {
        'clock: "1755 MHz"',
        'power: "690.5 W"',
        'temperature: "64 °C"',
        'slowed_by: "its power limit"',
    } <= set(lines)
    assert answer(QUESTION)["result"]["measured"] is not None


def test_a_state_in_which_nothing_slowed_it_is_read_again() -> None:
    state = State(1755.0, 690.5, 64.0, 0, 500.0, 0)
    path = saved_in(state)
    assert measured.read(path).power_limit == 500
    assert answer(QUESTION)["result"]["measured"] is None  # not the card's own power limit


def test_bench_ends_with_the_first_question_anew() -> None:
    saved, _ = keeping.saved([of_h100("")], ON_H100, "bf16")
    said = measurement.answer([of_h100("")], ON_H100, "bf16", [], saved).words
    assert said.notes[-3:] == [
        "the first question anew: napkin train-time --params 70e9 --tokens 15e12 --gpus 1024 "
        "--hardware h100-sxm --dtype bf16",
        "143.9 days at 50 % of the promised 989.4 TFLOP/s/GPU · 181.4 days at 50 % of the "
        "785 TFLOP/s/GPU measured here (39.7 % MFU)",
        f"saved to {saved}",
    ]


def test_a_figure_that_cannot_be_saved_is_shown_all_the_same() -> None:
    name = devices.choose("cpu").name
    path = measured.path_of(name, "bf16")
    path.mkdir(parents=True)
    ran = napkin("bench --device cpu --size 512 --seconds 0.2 --format json")
    assert ran.code == 0
    (found,) = json.loads(ran.out)["answers"]
    assert found["result"]["saved_to"] is None
    if not found["warnings"]:  # else it was not to be saved anyhow
        assert ran.err == (
            f"warning: nothing was saved: {path}: cannot be written: Is a directory\n"
        )
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(NapkinError, match=r"bf16\.yaml: cannot be written: Not a directory$"):
        save()


def test_a_figure_is_read_anew_when_it_changes() -> None:
    save(rate=700e12)
    first = train_time(params="70B", tokens="15T", gpus=1024, peak="measured").result["days"]
    path = save(rate=350e12)
    os.utime(path, ns=(1, 1))
    second = train_time(params="70B", tokens="15T", gpus=1024, peak="measured").result["days"]
    assert second == pytest.approx(2 * first)
    assert accelerators.find("h100").key == "h100-sxm"


def test_the_figures_on_file_are_listed() -> None:
    assert (
        napkin("bench --list").out.rstrip().endswith(f"nothing is on file in {measured_folder()}")
    )
    path = save()
    save("Acme 9000", "fp16", 123.4e12)
    screen = napkin("bench --list").out.splitlines()
    assert screen[0].split() == ["device", "precision", "TFLOP/s", "shape", "date"]
    assert [line.split()[:2] for line in screen[2:4]] == [["Acme", "9000"], ["NVIDIA", "H100"]]
    found = answers("bench --list")
    assert [each["result"]["flops_per_second"] for each in found] == [123.4e12, 770e12]
    assert found[1]["result"]["file"] == str(path)


def test_the_list_measures_nothing_and_takes_no_other_option() -> None:
    ran = napkin("bench --list --size 64")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "Error: --list: measures nothing; leave the other options out\n"


def test_a_file_under_another_s_name_is_not_read() -> None:
    path = save()
    path.rename(path.with_name(path.name.replace("bf16", "fp8")))
    assert napkin("bench --list").err == (
        "warning: nvidia-h100-80gb-hbm3--fp8.yaml:3: dtype: is not the precision and device "
        "that the file is named for\n"
    )


def test_a_broken_figure_costs_the_list_no_other() -> None:
    edit(save(), "rate: ", "rata: ")
    measured.path_of("gone", "bf16").symlink_to("/nowhere")
    save(dtype="fp16")
    ran = napkin("bench --list")
    assert ran.code == 0
    assert "fp16" in ran.out
    assert "unknown key 'rata'; did you mean 'rate'?" in ran.out + ran.err
