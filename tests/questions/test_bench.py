"""`napkin bench` on a machine without a GPU."""

import pytest
import torch

from napkin.bench import device as devices
from napkin.bench.matmul import Measurement
from napkin.bench.statistics import Rates
from napkin.questions import bench as question
from napkin.questions.answer import Words
from tests.running import answer, answers, napkin, process

no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")

QUICK = "--size 96 --seconds 0.02"


@no_gpu
def test_be_02_without_a_gpu_the_cpu_is_measured_and_named() -> None:
    screen = napkin(f"bench {QUICK}").out
    assert "CPU, no GPU found" in screen.splitlines()[0]
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
    assert steps["F"] == 2 * 96**3
    assert found["result"]["flops_per_second"]["median"] == steps["F"] / steps["t"]


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
    promised = question._promised(question._known(device), "bf16")
    assert promised is not None
    assert (promised.value, promised.source) == (989.4e12, "h100-sxm.yaml:16")


@pytest.mark.parametrize(
    "name", ["NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100", "NVIDIA A16", "Acme 9000"]
)
def test_an_unknown_gpu_has_no_promised_peak(name: str) -> None:
    assert question._known(devices.Device("cuda:0", name)) is None


def test_tf32_is_named_as_its_own_precision_and_is_no_cpu_s() -> None:
    ran = napkin("bench --device cpu --dtype tf32")
    assert (ran.code, ran.err) == (
        2,
        "Error: --dtype: bench measures fp64 fp32 fp16 bf16 here, not tf32\n",
    )


def words(device: devices.Device, dtype: str, rate: float) -> Words:
    """What is said of a device that took this long, without one: times that are given."""
    size = 8192
    time = 2 * size**3 / rate
    measured = Measurement(size, Rates(time, rate, 0.9 * rate, 1.1 * rate, 100), 1.7e-3, "")
    return question._answer(measured, device, dtype, {}, [], False).words


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
