"""Rates of given times: no clock, no device."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napkin.bench.statistics import rates

TIMES = st.lists(st.floats(1e-7, 1e3), min_size=1, max_size=50)


def test_the_headline_is_the_median_call() -> None:
    found = rates(2 * 8192**3, [1.392e-3, 1.40e-3, 1.38e-3, 9.0, 1.392e-3])
    assert found.median == pytest.approx(789.9e12, rel=1e-4)
    assert found.samples == 5
    assert found.min == pytest.approx(2 * 8192**3 / 9.0)


@pytest.mark.parametrize(
    ("flop", "time", "rate"),
    [(2 * 2048 * 4096 * 4096, 24.08e-6, 2854e12), (2 * 4096**3, 0.03e-3, 4581e12)],
)
def test_be_01_the_arithmetic_of_an_impossible_time_is_right(
    flop: int, time: float, rate: float
) -> None:
    assert rates(flop, [time]).median == pytest.approx(rate, rel=1e-3)


@given(TIMES)
def test_the_median_lies_between_the_slowest_and_the_fastest(times: list[float]) -> None:
    found = rates(10**12, times)
    assert found.min <= found.median <= found.max


@given(TIMES, st.floats(0.01, 100))
def test_twice_the_time_is_half_the_rate(times: list[float], factor: float) -> None:
    slower = rates(10**12, [factor * t for t in times])
    assert slower.median == pytest.approx(rates(10**12, times).median / factor)
