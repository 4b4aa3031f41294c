"""`napkin bench` on a machine without a GPU."""

import pytest
import torch

from napkin.bench import device as devices
from napkin.questions import bench as question
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
    assert (result["promised"], result["ratio"], result["saved_to"]) == (None, None, None)
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
    assert warning.endswith("; try --size 500000")


def test_a_known_gpu_is_set_against_its_promised_peak() -> None:
    promised = question._promised(devices.Device("cuda:0", "NVIDIA H100 80GB HBM3"), "bf16")
    assert promised is not None
    assert (promised.value, promised.source) == (989.4e12, "h100-sxm.yaml:16")


@pytest.mark.parametrize(
    "name", ["NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100", "NVIDIA A10", "Acme 9000"]
)
def test_an_unknown_gpu_has_no_promised_peak(name: str) -> None:
    assert question._promised(devices.Device("cuda:0", name), "bf16") is None


def test_tf32_is_named_as_its_own_precision_and_is_no_cpu_s() -> None:
    ran = napkin("bench --device cpu --dtype tf32")
    assert (ran.code, ran.err) == (
        2,
        "Error: --dtype: bench measures fp64 fp32 fp16 bf16 here, not tf32\n",
    )
