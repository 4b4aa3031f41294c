"""`napkin bench` on a machine without a GPU."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from napkin.bench import PRECISIONS, bandwidth, matmul, operators
from napkin.bench import device as devices
from napkin.bench.matmul import Measurement
from napkin.bench.nvml import State
from napkin.bench.operators import Shape
from napkin.bench.statistics import Rates
from napkin.errors import DeviceError
from napkin.questions.answer import Picture, Words
from napkin.questions.bench import doubts, measurement
from napkin.render import bars
from napkin.specs import measured
from napkin.specs.folders import measured_folder
from tests.running import answer, answers, napkin, process

no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")

HOT = "slowed by its power limit and its temperature"
QUICK = "--size 96 --seconds 0.02"


@no_gpu
def test_be_02_without_a_gpu_the_cpu_is_measured_and_named() -> None:
    screen = napkin(f"bench {QUICK}").out
    assert "CPU, no GPU found" in screen.splitlines()[0]
    if torch.version.cuda is None:
        assert f"no GPU was found: torch {torch.__version__} is built for the CPU only" in screen
    result = answer(f"bench --dtype fp32 {QUICK}")["result"]
    assert (result["device"], result["dtype"], result["shape"]) == ("cpu", "fp32", [96, 96, 96])
    assert result["device_name"] == devices.choose("cpu").name
    assert (result["promised"], result["ratio"]) == (None, None)
    rates = result["flops_per_second"]
    assert 0 < rates["min"] <= rates["median"] <= rates["max"]
    assert result["samples"] >= 10


def test_the_figure_is_the_flop_over_the_median_time() -> None:
    found = answer(f"bench --device cpu {QUICK}")
    steps = {step["symbol"]: step["value"] for step in found["derivation"]}
    assert steps["C"] == 2 * 96**3
    assert found["result"]["flops_per_second"]["median"] == steps["C"] / steps["t"]


@no_gpu
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_be_02_a_gpu_that_is_not_there_is_one_line_and_exit_1(device: str) -> None:
    ran = napkin(f"bench --device {device}")
    assert (ran.code, ran.out) == (1, "")
    if torch.version.cuda is None:
        assert ran.err == (
            f"Error: --device: {device} cannot be used: torch {torch.__version__} is built for "
            "the CPU only; --device cpu measures the CPU\n"
        )


def test_be_02_a_hidden_gpu_leaves_the_cpu() -> None:
    ran = process(f"bench {QUICK} --format json", env={"CUDA_VISIBLE_DEVICES": ""})
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b'"device": "cpu"' in ran.stdout


def test_be_02_a_size_that_does_not_fit_costs_no_other_its_figure() -> None:
    found = answers("bench --device cpu --size 96,1000000,64 --seconds 0.02")
    assert [each["result"]["shape"][0] for each in found] == [96, 64]
    (warning,) = found[0]["warnings"][:1]
    assert warning.startswith("skipped: --size: 1000000 in bf16 needs 6000.0 GB, ")
    assert "; try --size " in warning


def test_a_known_gpu_is_set_against_its_promised_peak() -> None:
    device = devices.Device("cuda:0", "NVIDIA H100 80GB HBM3")
    promised = measurement.promised(measurement.known(device), "bf16")
    assert promised is not None
    assert (promised.value, promised.source) == (989.4e12, "h100-sxm.yaml:16")


@pytest.mark.parametrize(
    "name", ["NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100", "NVIDIA A16", "Acme 9000"]
)
def test_an_unknown_gpu_has_no_promised_peak(name: str) -> None:
    assert measurement.known(devices.Device("cuda:0", name)) is None


def test_tf32_is_named_as_its_own_precision_and_is_no_cpu_s() -> None:
    ran = napkin("bench --device cpu --dtype tf32")
    assert (ran.code, ran.err) == (
        2,
        "Error: --dtype: bench measures fp64 fp32 fp16 bf16 int8 here, not tf32\n",
    )


def words(device: devices.Device, dtype: str, rate: float) -> Words:
    """What is said of a device that took this long, without one: times that are given."""
    shape = Shape(8192, 8192, 8192)
    rates = Rates(
        shape.flop / rate, rate, 0.9 * rate, 1.1 * rate, 100, 0.95 * rate, 1.05 * rate, rate
    )
    run = measurement.Run(device, 3.0, None, why_cpu=None, save=False)
    return measurement.answer([Measurement(shape, rates, 1.7e-3, "")], run, dtype, [], None).words


def test_a_gpu_s_figure_ends_with_the_line_that_uses_it() -> None:
    said = words(devices.Device("cuda:0", "NVIDIA A100-SXM4-40GB"), "fp16", 257e12)
    assert (said.headline, said.condition) == (
        "257 TFLOP/s",
        "fp16 8,192³ · 82.4 % of the promised 312 TFLOP/s · NVIDIA A100-SXM4-40GB",
    )
    assert said.notes[-1] == (
        "use it: napkin train-time --params 70e9 --tokens 15e12 --gpus 1024 "
        "--hardware a100-sxm-40gb --dtype fp16 --peak 257e12"
    )
    assert said.warnings == []
    line = said.notes[-1].removeprefix("use it: napkin ")
    assert answer(line)["inputs"]["peak"] == 257e12


def test_a_gpu_s_figure_stands_as_a_bar_beside_what_others_measured_and_what_is_promised() -> None:
    picture = words(devices.Device("cuda:0", "NVIDIA A100-SXM4-80GB"), "bf16", 156e12).picture
    assert isinstance(picture, Picture)
    assert list(bars.lines(picture)) == [
        "measured here   ██████████████                 156 TFLOP/s",
        "others measured ████████████████████████     271.2 TFLOP/s",
        "promised        ████████████████████████████   312 TFLOP/s",
    ]
    assert words(devices.Device("cuda:0", "Acme 9000"), "bf16", 156e12).picture is None


def test_be_01_a_figure_above_the_promised_peak_is_flagged() -> None:
    said = words(devices.Device("cuda:0", "NVIDIA H100 80GB HBM3"), "bf16", 2854e12)
    assert "288 % of the promised 989.4 TFLOP/s" in said.condition
    assert said.warnings == ["above the promised peak: is it the right row of the right device?"]


def test_a_device_of_two_in_a_package_is_set_against_its_half() -> None:
    said = words(devices.Device("cuda:0", "AMD Instinct MI250X"), "bf16", 150e12)
    assert "78.3 % of the promised 191.5 TFLOP/s" in said.condition
    assert said.notes[-1].endswith("--hardware mi250x --dtype bf16 --peak 300e12")


def test_a_gpu_without_a_hardware_file_is_measured_all_the_same() -> None:
    said = words(devices.Device("cuda:0", "Acme 9000"), "bf16", 150e12)
    assert said.condition == "bf16 8,192³ · share of the promised unknown · Acme 9000"
    assert said.notes[-1] == "no hardware file has a bf16 figure of Acme 9000"


def test_every_precision_and_every_size_has_its_answer() -> None:
    found = answers("bench --device cpu --dtype fp32,int8 --size 64,96 --seconds 0.02")
    assert [(each["result"]["dtype"], each["result"]["shape"][0]) for each in found] == [
        ("fp32", 64),
        ("fp32", 96),
        ("int8", 64),
        ("int8", 96),
    ]


def test_a_shape_of_any_sides_is_measured() -> None:
    found = answer("bench --device cpu --dtype fp32 --shape 64x96x128 --seconds 0.02")
    assert found["result"]["shape"] == [64, 96, 128]
    steps = {step["symbol"]: step["value"] for step in found["derivation"]}
    assert steps["C"] == 2 * 64 * 96 * 128


def test_what_was_asked_is_among_the_inputs() -> None:
    found = answer("bench --device cpu --size 96 --seconds 0.02 --warmup 10ms --no-save")
    assert (found["inputs"]["size"], found["inputs"]["warmup"]) == (96, 0.01)
    found = answer("bench --device cpu --shape 96x96x96 --seconds 0.02 --no-save")
    assert {"size", "warmup"}.isdisjoint(found["inputs"])


def test_the_precisions_that_bench_names_are_those_it_has() -> None:
    assert tuple(operators.OPERATORS) == PRECISIONS


CALLS = Rates(1.4e-3, 785e12, 700e12, 800e12, 2000, 770e12, 790e12, 784e12)
FELL = (
    "the rate fell by 3.1 % over the window, part by part: power or temperature; "
    "a longer --warmup shows where it settles"
)
SPREAD = "the middle half of the calls spreads over 7 % of the median: something disturbs it or its clock"


def test_a_falling_rate_and_a_wide_spread_are_said() -> None:
    assert doubts.of_calls(CALLS, is_gpu=True) == []
    assert doubts.of_calls(CALLS._replace(fell=0.02, spread=0.05), is_gpu=True) == []
    assert doubts.of_calls(CALLS._replace(fell=0.031), is_gpu=True) == [FELL]
    assert doubts.of_calls(CALLS._replace(spread=0.07), is_gpu=True) == [SPREAD]
    assert doubts.of_calls(CALLS._replace(spread=0.07), is_gpu=False) == []


@pytest.mark.parametrize(("unsteady", "said"), [("", [SPREAD]), ("rivals", ["rivals"])])
def test_a_figure_that_is_doubtful_already_is_not_called_so_twice(
    unsteady: str, said: list[str]
) -> None:
    gpu = devices.Device("cuda:0", "NVIDIA H100 80GB HBM3")
    run = measurement.Run(gpu, 3.0, None, why_cpu=None, save=False)
    measured = Measurement(Shape(8192, 8192, 8192), CALLS._replace(spread=0.07), 1.7e-3, unsteady)
    assert measurement.answer([measured], run, "bf16", [], None).warnings == said


def test_a_poor_share_lists_what_may_explain_it() -> None:
    large, skinny = Shape(8192, 8192, 8192), Shape(8192, 64, 8192)
    usual = State(1755.0, 300.0, 64.0, 0, 700.0, 0)
    poor = usual._replace(reasons=0x20, others=1, power_limit=350.0)
    assert doubts.of_share(0.3, skinny, poor, 700.0) == []
    assert doubts.of_share(0.29, large, None, None) == [
        "below 30% of the promised: nothing that bench looks at explains it"
    ]
    assert doubts.of_share(0.29, large, usual, 700.0) == doubts.of_share(0.29, large, None, None)
    assert doubts.of_share(0.29, skinny, poor, 700.0) == [
        "below 30% of the promised: slowed by its temperature; other processes on this GPU; "
        "a power limit of 350 W, its TDP is 700 W; a side of 64 in 8192x64x8192, which is small"
    ]


def test_a_slice_of_a_gpu_has_no_promised_peak_and_is_called_one() -> None:
    said = words(devices.Device("cuda:0", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"), "bf16", 90e12)
    assert "share of the promised unknown" in said.condition
    assert said.notes[-1] == (
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb is a MIG slice: no datasheet promises a slice's figure"
    )


def stand_in(of: dict[Shape, list[float]]) -> Callable[..., Measurement]:
    """A measure() that hands out these rates in turn: what is tested is who is asked, and when."""

    def measure(
        device: object, dtype: str, shape: Shape, seconds: float, *_: object
    ) -> Measurement:
        if not of[shape]:
            raise KeyboardInterrupt
        rate = of[shape].pop(0)
        time = shape.flop / rate
        return Measurement(shape, Rates(time, rate, rate, rate, 10, rate, rate, rate), 0.0, "")

    return measure


def test_the_winner_of_a_scan_is_measured_again_and_that_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, middle, large = matmul.SCAN_CPU
    monkeypatch.setattr(
        matmul, "measure", stand_in({small: [1e9], middle: [3e9, 2e9], large: [2.5e9]})
    )
    found = answers("bench --device cpu --scan")
    figures = {
        tuple(each["result"]["shape"]): each["result"]["flops_per_second"]["median"]
        for each in found
    }
    assert figures == pytest.approx({small: 1e9, middle: 2e9, large: 2.5e9})


def test_an_interrupted_run_shows_what_it_had_and_saves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shapes = {Shape(64, 64, 64): [1e9], Shape(96, 96, 96): []}
    monkeypatch.setattr(matmul, "measure", stand_in(shapes))
    ran = napkin("bench --device cpu --size 64,96 --format json")
    assert ran.code == 130
    (found,) = json.loads(ran.out)["answers"]
    assert found["result"]["shape"] == [64, 64, 64]
    assert found["result"]["saved_to"] is None
    assert ran.err == "warning: interrupted: nothing was saved\n"
    assert not Path(measured_folder()).exists()


ON_FIRE = DeviceError("this CPU: is on fire")


def on_fire(*_: object) -> NoReturn:
    raise ON_FIRE


def test_a_device_that_fails_costs_no_figure_that_was_measured_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = stand_in({Shape(64, 64, 64): [1e9]})

    def measure(device: object, dtype: str, shape: Shape, seconds: float, *_: object) -> object:
        return on_fire() if shape.m > 64 else usual(device, dtype, shape, seconds)

    monkeypatch.setattr(matmul, "measure", measure)
    ran = napkin("bench --device cpu --size 64,96 --format json")
    (found,) = json.loads(ran.out)["answers"]
    assert (ran.code, found["result"]["shape"]) == (1, [64, 64, 64])
    assert ran.err == "warning: this CPU: is on fire: nothing was saved\n"
    ran = napkin("bench --device cpu --size 96")
    assert (ran.code, ran.out, ran.err) == (1, "", "Error: this CPU: is on fire\n")


def test_a_memory_that_fails_costs_no_figure_of_the_matmul(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matmul, "measure", stand_in({Shape(64, 64, 64): [1e9]}))
    monkeypatch.setattr(bandwidth, "measure", on_fire)
    ran = napkin("bench --device cpu --size 64 --bandwidth")
    assert (ran.code, ran.out.split()[:2]) == (1, ["1", "GFLOP/s"])
    assert ran.err == "warning: this CPU: is on fire: nothing was saved\n"


@pytest.mark.parametrize("dtypes", ["fp32", "fp32,int8"])
def test_an_interrupted_or_failing_save_costs_no_figure(
    dtypes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(matmul, "measure", stand_in({Shape(64, 64, 64): [1e9, 2e9]}))
    monkeypatch.setattr(measured, "write", interrupted)
    ran = napkin(f"bench --device cpu --size 64 --dtype {dtypes}")
    assert (ran.code, ran.out.split()[:2]) == (130, ["1", "GFLOP/s"])
    assert ran.err == "warning: interrupted: nothing was saved\n"


def test_a_model_s_figures_outlive_the_precision_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = matmul.measure

    def measure(device: devices.Device, dtype: str, *rest: Any) -> object:
        return on_fire() if dtype == "fp64" else usual(device, dtype, *rest)

    monkeypatch.setattr(matmul, "measure", measure)
    line = "bench --device cpu --model linear:L=1,d=32 --seq-len 8 --seconds 0.001 --warmup 0.001s"
    ran = napkin(f"{line} --dtype fp8,fp32,fp64 --format json")
    (found,) = json.loads(ran.out)["answers"]
    assert (ran.code, found["result"]["dtype"]) == (1, "fp32")
    assert found["warnings"][0] == f"skipped: {NO_FP8}"
    on_fire_of = "--model: linear:L=1,d=32: this CPU: is on fire"
    assert ran.err == f"warning: {on_fire_of}: nothing was saved\n"


NO_FP8 = "--dtype: bench measures fp64 fp32 fp16 bf16 int8 here, not fp8"


def test_a_precision_that_the_device_lacks_costs_no_other_its_figure() -> None:
    found = answers(f"bench --device cpu --dtype fp8,bf16,tf32 {QUICK}")
    assert [each["result"]["dtype"] for each in found] == ["bf16"]
    assert found[0]["warnings"][:2] == [
        f"skipped: {NO_FP8}",
        f"skipped: {NO_FP8.replace('fp8', 'tf32')}",
    ]
    screen = " ".join(napkin(f"bench --device cpu --dtype fp8,bf16 {QUICK}").out.split())
    assert f"skipped: {NO_FP8}" in screen


def test_precisions_of_which_the_device_has_none_are_refused() -> None:
    ran = napkin("bench --device cpu --dtype fp8,tf32")
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {NO_FP8}\n")
    ran = napkin("bench --device cpu --dtype fp8,bf16 --size 1000000")
    assert ran.err.startswith("Error: --size: 1000000 in bf16 needs 6000.0 GB, ")


def test_an_interrupt_before_the_first_figure_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matmul, "measure", stand_in({Shape(64, 64, 64): []}))
    ran = napkin("bench --device cpu --size 64")
    assert (ran.code, ran.out) == (130, "")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--size 64 --scan", "--scan: other shapes are asked for already; leave one out"),
        ("--shape 4x5x6 --size 64", "--shape: other shapes are asked for already; leave one out"),
        ("--shape 4x5", "--shape: '4x5' is not MxNxK; write 8192x28672x8192"),
    ],
)
def test_shapes_are_asked_for_in_one_way(line: str, says: str) -> None:
    ran = napkin(f"bench --device cpu {line}")
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {says}\n")


def test_the_ridge_is_the_measured_rate_over_the_measured_bandwidth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bandwidth, "ARRAY_CPU", 2**24)
    found = answer(f"bench --device cpu --bandwidth --no-save {QUICK}")
    steps = {step["symbol"]: step["value"] for step in found["derivation"]}
    memory = found["result"]["bandwidth"]
    assert steps["BW"] == max(memory["copy"], memory["triad"]) == steps["Q"] / steps["t_mem"]
    assert memory["ridge"] == steps["I"] == steps["R"] / steps["BW"]
    assert (memory["promised"], memory["ridge_promised"]) == (None, None)


def test_a_known_gpu_s_ridge_stands_beside_the_promised_one() -> None:
    h200 = devices.Device("cuda:0", "NVIDIA H200")
    shape = Shape(8192, 8192, 8192)
    time = shape.flop / 790e12
    matmuls = Rates(time, 790e12, 780e12, 800e12, 2000, 785e12, 795e12, 789e12)
    moved = 2 * 2**30 / 4.3e12
    copy = Rates(moved, 4.3e12, 4.2e12, 4.4e12, 20, 4.25e12, 4.35e12, 4.3e12)
    triad = copy._replace(median=4.2e12)
    run = measurement.Run(h200, 3.0, None, why_cpu=None, save=False, bandwidth=True)
    run.memory = bandwidth.Bandwidth(copy, triad, 2**30, "")
    measured = Measurement(shape, matmuls, 1.7e-3, "")
    found = measurement.answer([measured], run, "bf16", [], None)
    assert found.result["bandwidth"] == {
        "copy": 4.3e12,
        "triad": 4.2e12,
        "promised": 4.8e12,
        "ridge": pytest.approx(183.7, rel=1e-3),
        "ridge_promised": pytest.approx(206.1, rel=1e-3),
    }
    assert "memory: copy 4.3 TB/s, triad 4.2 TB/s; 89.6 % of the promised 4.8 TB/s" in found.notes
    assert "work of fewer than 184 FLOP a byte waits for the memory (promised: 206)" in found.notes


def test_a_gpu_s_state_is_told_and_only_an_unusual_one_is_a_warning() -> None:
    gpu = devices.Device("cuda:0", "NVIDIA H200")
    run = measurement.Run(gpu, 3.0, None, why_cpu=None, save=False)
    shape = Shape(8192, 8192, 8192)
    r = 790e12
    rates = Rates(shape.flop / r, r, r, r, 2000, r, r, r)
    usual = State(1755.0, 690.5, 64.0, 0x4, 700.0, 0)
    for state, warnings in ((usual, []), (usual._replace(reasons=0x24), [HOT])):
        measured = Measurement(shape, rates, 1.7e-3, "", state)
        said = measurement.answer([measured], run, "bf16", [], None).words
        assert said.warnings == warnings
    slowed = "slowed by its power limit and its temperature"
    assert f"at 1,755 MHz, 690 of 700 W and 64 °C; {slowed}" in said.notes


def test_a_shared_gpu_s_figure_is_doubtful() -> None:
    usual = State(1755.0, 690.5, 64.0, 0x4, 700.0, 0)
    assert matmul._shared(None) == matmul._shared(usual) == ""
    assert matmul._shared(usual._replace(others=1)) == "1 other process had this GPU too"
    assert matmul._shared(usual._replace(others=2)) == "2 other processes had this GPU too"
