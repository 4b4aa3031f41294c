"""Every shipped hardware file against a second figure."""

import re

import pytest

from napkin.specs import accelerators
from napkin.specs.accelerator import Accelerator
from tests.running import answer, data

SHIPPED = {each.key: each for each in accelerators.everything()}
SECOND = data("second_figures.yaml")

# Where the vendor's own pair is no factor of two, and the words of the file that say so.
NOT_HALF = {
    ("l40s", "fp16"): "not a factor of two",
    ("l40s", "bf16"): "not a factor of two",
    ("b300", "fp4"): "EXCEPT fp4",
    ("gb300", "fp4"): "fp4",
}

# What no source gives: the file leaves it out.
NOT_SEEN = [
    "v100-sxm2-16gb",
    "v100-sxm2-32gb",
    "v100-pcie-16gb",
    "v100-pcie-32gb",
    "v100s-pcie",
    "a100-pcie-40gb",
    "a30",
    "l40",
    "rtx-pro-6000",
    "mi250x",
    "mi250",
    "mi325x",
    "mi350x",
    "tpu-v4",
    "tpu-v5e",
    "tpu-v5p",
    "tpu-v6e",
    "tpu-7x",
    "gaudi2",
    "gaudi3",
    "trainium1",
    "trainium2",
    "trainium3",
]

each_shipped = pytest.mark.parametrize("device", SHIPPED.values(), ids=SHIPPED)


# Of vendors who print GiB, or mean it; each file says how that is known.
IN_GIB = {
    "tpu-v4": 32,
    "tpu-v5e": 16,
    "tpu-v5p": 95,
    "tpu-v6e": 32,
    "tpu-7x": 192,
    "trainium1": 32,
    "trainium2": 96,
    "trainium3": 144,
}
# What JAX's tpu_info.py (04c63627) counts on a chip, in bytes.
JAX = {"tpu-v4": 34.4e9, "tpu-v5e": 17.2e9, "tpu-v5p": 103e9, "tpu-v6e": 34.4e9}

NAMES = [
    "v100-sxm2-16gb",
    "v100-sxm2-32gb",
    "v100-pcie-16gb",
    "v100-pcie-32gb",
    "v100s-pcie",
    "t4",
    "a100-sxm-80gb",
    "a100-sxm-40gb",
    "a100-pcie-80gb",
    "a100-pcie-40gb",
    "a800-sxm",
    "a30",
    "a10",
    "a10g",
    "a40",
    "rtx-a6000",
    "rtx-3090",
    "rtx-4090",
    "l4",
    "l40",
    "l40s",
    "h100-sxm",
    "h100-pcie",
    "h100-nvl",
    "h200-sxm",
    "h200-nvl",
    "h800-sxm",
    "h20",
    "gh200-96gb",
    "gh200-144gb",
    "b200",
    "gb200",
    "b300",
    "gb300",
    "rtx-5090",
    "rtx-pro-6000",
    "mi250x",
    "mi250",
    "mi300x",
    "mi325x",
    "mi350x",
    "mi355x",
    "tpu-v4",
    "tpu-v5e",
    "tpu-v5p",
    "tpu-v6e",
    "tpu-7x",
    "gaudi2",
    "gaudi3",
    "trainium1",
    "trainium2",
    "trainium3",
]

ALIASES = {
    "h100": "h100-sxm",
    "h200": "h200-sxm",
    "h800": "h800-sxm",
    "a100": "a100-sxm-80gb",
    "a100-80gb": "a100-sxm-80gb",
    "a100-40gb": "a100-sxm-40gb",
    "gh200": "gh200-96gb",
    "rtx4090": "rtx-4090",
    "rtx3090": "rtx-3090",
    "rtx5090": "rtx-5090",
}


def test_all_52_are_there_under_the_contract_s_names() -> None:
    assert sorted(SHIPPED) == sorted(NAMES)
    assert {alias: device.key for device in SHIPPED.values() for alias in device.aliases} == ALIASES


@pytest.mark.parametrize(
    ("key", "lacks"),
    [
        ("h800-sxm", ("fp8",)),
        ("a800-sxm", ("fp64", "fp32", "tf32", "int8")),
        ("a30", ("fp64", "fp32", "tf32", "int4")),
    ],
)
def test_a_precision_that_the_silicon_has_and_no_source_gives_is_named(
    key: str, lacks: tuple[str, ...]
) -> None:
    device = SHIPPED[key]
    assert set(lacks).isdisjoint(device.peak)
    assert any(", ".join(lacks) in note and "not sourced" in note for note in device.notes)


@each_shipped
def test_dense_is_half_of_sparse_unless_the_file_says_why_not(device: Accelerator) -> None:
    for dtype, peak in device.peak.items():
        if peak.sparse is None:
            continue
        reason = NOT_HALF.get((device.key, dtype))
        half = pytest.approx(2 * peak.dense.value, rel=2.5e-3)  # each of the two is rounded
        assert (peak.sparse.value == half) == (reason is None)
        assert reason is None or any(reason in note for note in device.notes)


@each_shipped
def test_the_memory_in_the_name_is_the_memory_in_the_file(device: Accelerator) -> None:
    # The number in a GH200's device name is the memory of its CPU.
    driver = () if device.key.startswith("gh200") else device.device_names
    for name in (device.key, device.name, *device.aliases, *driver):
        for size in re.findall(r"(\d+) ?gb", name.casefold()):
            assert device.memory.value == int(size) * 1e9


@each_shipped
def test_memory_is_in_the_unit_that_its_vendor_means(device: Accelerator) -> None:
    unit = 2**30 if device.key in IN_GIB else 1e9
    assert device.memory.value % unit == 0
    assert device.memory.value == IN_GIB.get(device.key, device.memory.value / unit) * unit


@pytest.mark.parametrize("key", JAX)
def test_a_tpu_s_memory_is_what_jax_counts(key: str) -> None:
    assert SHIPPED[key].memory.value == pytest.approx(JAX[key], rel=0.01)


def test_max_model_on_16_trainium2_counts_their_gib() -> None:
    found = answer("max-model --gpus 16 --hardware trainium2")
    assert found["result"]["params"] == 16 * 96 * 2**30 // 16


@each_shipped
def test_the_driver_s_memory_is_near_the_label_read_either_way(device: Accelerator) -> None:
    assert (device.memory_visible is None) == (device.key in NOT_SEEN)
    if device.memory_visible is None:
        return
    label = device.memory.value / 1e9
    assert 0.93 * label * 2**30 <= device.memory_visible.value <= label * 2**30
    for total in device.memory_torch:
        assert 0.98 * device.memory_visible.value <= total.value <= device.memory_visible.value


@each_shipped
def test_bf16_runs_as_fast_as_fp16_where_there_are_both(device: Accelerator) -> None:
    if {"bf16", "fp16"} <= set(device.peak):
        assert device.peak["bf16"].dense.value == device.peak["fp16"].dense.value


@each_shipped
def test_amd_s_int8_runs_as_fast_as_its_fp8(device: Accelerator) -> None:
    if device.vendor == "AMD" and "fp8" in device.peak:
        int8 = device.peak.get("int8", device.peak["fp8"])
        assert int8.dense.value == device.peak["fp8"].dense.value


@each_shipped
def test_every_figure_has_a_source(device: Accelerator) -> None:
    needed = {"peak", "memory"}
    needed |= {"tdp"} if device.tdp else set()
    needed |= {"interconnect"} if device.interconnect else set()
    needed |= {"device_names"} if device.device_names else set()
    needed |= {"reported"} if device.reported else set()
    needed |= {"released"} if device.released else set()
    assert needed == set(device.sources)
    assert all(texts for texts in device.sources.values())


@pytest.mark.parametrize("key", SECOND)
def test_the_peak_is_units_times_clock(key: str) -> None:
    second = SECOND[key]
    arithmetic = second["units"] * second["flop_per_clock"] * second["ghz"] * 1e9
    within = second.get("within", 1e-3)
    peak = SHIPPED[key].peak[second.get("dtype", "bf16")]
    assert peak.dense.value == pytest.approx(arithmetic, rel=within)


@each_shipped
def test_what_others_measured_is_below_the_peak(device: Accelerator) -> None:
    for dtype, figure in device.reported.items():
        assert 0.5 < figure.value / device.peak[dtype].dense.value < 1


def test_one_direction_is_half_of_both() -> None:
    for device in SHIPPED.values():
        link = device.interconnect
        if link and link.bidirectional and link.unidirectional:
            assert link.bidirectional.value == 2 * link.unidirectional.value


def test_no_name_belongs_to_two_files() -> None:
    owners: dict[str, set[str]] = {}
    for device in SHIPPED.values():
        for name in device.names:
            owners.setdefault(accelerators.alike(name), set()).add(device.key)
    assert {name: keys for name, keys in owners.items() if len(keys) > 1} == {}
