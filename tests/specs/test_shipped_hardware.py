"""Every shipped hardware file against a second figure."""

import re

import pytest

from napkin.specs import accelerators
from napkin.specs.accelerator import Accelerator
from tests.running import data

SHIPPED = {each.key: each for each in accelerators.everything()}
SECOND = data("second_figures.yaml")

# Where the vendor's own pair is no factor of two; the file's notes say so.
NOT_HALF = {("l40s", "fp16"), ("l40s", "bf16")}

each_shipped = pytest.mark.parametrize("device", SHIPPED.values(), ids=SHIPPED)


def test_the_first_set_is_shipped() -> None:
    assert set(SHIPPED) == {
        *("h100-sxm", "h100-pcie", "h100-nvl", "h200-sxm", "b200"),
        *("a100-sxm-80gb", "a100-sxm-40gb", "a100-pcie-80gb", "rtx-4090", "l40s"),
    }


@each_shipped
def test_dense_is_half_of_sparse_unless_the_file_says_why_not(device: Accelerator) -> None:
    for dtype, peak in device.peak.items():
        if peak.sparse is None:
            continue
        if (device.key, dtype) in NOT_HALF:
            assert any("not a factor of two" in note for note in device.notes)
            assert peak.sparse.value == pytest.approx(2 * peak.dense.value, rel=0.02)
        else:
            # Datasheets round each of the two.
            assert peak.sparse.value == pytest.approx(2 * peak.dense.value, rel=1e-3)


@each_shipped
def test_the_memory_in_the_name_is_the_memory_in_the_file(device: Accelerator) -> None:
    for name in (device.key, device.name, *device.aliases):
        for size in re.findall(r"(\d+) ?gb", name.casefold()):
            assert device.memory.value == int(size) * 1e9


@each_shipped
def test_the_driver_s_memory_is_near_the_label_read_either_way(device: Accelerator) -> None:
    assert device.memory_visible is not None
    label = device.memory.value / 1e9
    assert 0.93 * label * 2**30 <= device.memory_visible.value <= label * 2**30
    for total in device.memory_torch:
        assert 0.98 * device.memory_visible.value <= total.value <= device.memory_visible.value


@each_shipped
def test_bf16_runs_as_fast_as_fp16(device: Accelerator) -> None:
    assert device.peak["bf16"].dense.value == device.peak["fp16"].dense.value


@each_shipped
def test_every_figure_has_a_source(device: Accelerator) -> None:
    assert {"peak", "memory", "tdp", "device_names"} <= set(device.sources)
    assert all(texts for texts in device.sources.values())


@pytest.mark.parametrize("key", SECOND)
def test_the_peak_is_units_times_clock(key: str) -> None:
    second = SECOND[key]
    arithmetic = second["units"] * second["flop_per_clock"] * second["ghz"] * 1e9
    within = second.get("within", 1e-3)
    assert SHIPPED[key].peak["bf16"].dense.value == pytest.approx(arithmetic, rel=within)


def test_no_name_belongs_to_two_files() -> None:
    owners: dict[str, set[str]] = {}
    for device in SHIPPED.values():
        for name in device.names:
            owners.setdefault(accelerators._alike(name), set()).add(device.key)
    assert {name: keys for name, keys in owners.items() if len(keys) > 1} == {}
