"""Copy and triad, for real, on the CPU."""

from statistics import median

import pytest
import torch

from napkin.bench import bandwidth, device
from napkin.errors import DeviceError

CPU = device.Device("cpu", "this CPU")
SMALL = 2**24


@pytest.fixture(autouse=True)
def _small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "ARRAY_CPU", SMALL)


def test_copy_counts_two_arrays_and_triad_three() -> None:
    found = bandwidth.measure(CPU, 0.02, 0.0)
    assert found.array == SMALL
    assert found.copy.median * found.copy.time == pytest.approx(2 * SMALL)
    assert found.triad.median * found.triad.time == pytest.approx(3 * SMALL)
    name, arrays, rates = found.best
    assert rates.median == max(found.copy.median, found.triad.median)
    assert rates.median * rates.time == pytest.approx(arrays * SMALL)
    assert name == {2: "copy", 3: "triad"}[arrays]


@pytest.mark.usefixtures("_one_thread")
def test_four_times_the_bytes_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    def time(array: int) -> float:
        monkeypatch.setattr(bandwidth, "ARRAY_CPU", array)
        return bandwidth.measure(CPU, 0.03, 0.0).copy.time

    assert median(time(4 * SMALL) / time(SMALL) for _ in range(5)) > 1.5


def test_a_wrong_result_gives_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "add", lambda a, b, alpha, out: out.copy_(a))
    with pytest.raises(DeviceError, match=r"^this CPU: triad is wrong; no figure is given$"):
        bandwidth.measure(CPU, 0.01, 0.0)


def test_arrays_shrink_to_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "free_bytes", lambda _: 2**26)
    assert bandwidth.array_bytes(CPU) == 2**23
    monkeypatch.setattr(bandwidth, "free_bytes", lambda _: 0)
    assert bandwidth.array_bytes(CPU) == 2**22
    monkeypatch.setattr(bandwidth, "free_bytes", lambda _: None)
    assert bandwidth.array_bytes(CPU) == SMALL


def test_arrays_that_a_cache_may_hold_are_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_last_cache", lambda _: 32 * 2**20)
    assert bandwidth._in_a_cache(CPU, 2**27) == ""
    assert bandwidth._in_a_cache(CPU, 2**26) == (
        "the arrays are 67 MB and the last cache is 34 MB: part of the bandwidth may be the cache's"
    )
