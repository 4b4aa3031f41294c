"""Rates of given times: no clock, no device."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napkin.bench.statistics import fell, rates, spread

TIMES = st.lists(st.floats(1e-7, 1e3), min_size=1, max_size=50)


def test_the_headline_is_the_median_call() -> None:
    found = rates(2 * 8192**3, [1.392e-3, 1.40e-3, 1.38e-3, 9.0, 1.392e-3], 9.01)
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
    assert rates(flop, [time], time).median == pytest.approx(rate, rel=1e-3)


@given(TIMES)
def test_the_median_lies_between_the_slowest_and_the_fastest(times: list[float]) -> None:
    found = rates(10**12, times, sum(times))
    assert found.min <= found.median <= found.max
    slack = 1 + 1e-12  # percentiles are interpolated
    assert found.min <= found.p5 * slack <= found.median * slack**2
    assert found.median <= found.p95 * slack <= found.max * slack**2


@given(TIMES, st.floats(0.01, 100))
def test_twice_the_time_is_half_the_rate(times: list[float], factor: float) -> None:
    slower = rates(10**12, [factor * t for t in times], 1.0)
    assert slower.median == pytest.approx(rates(10**12, times, sum(times)).median / factor)


def test_nine_calls_of_ten_lie_between_the_5th_and_the_95th_percentile() -> None:
    found = rates(100, [float(n) for n in range(1, 101)], 5050)
    assert found.p5 == pytest.approx(100 / 95.05)
    assert found.p95 == pytest.approx(100 / 5.95)


def test_sustained_counts_the_pauses_too() -> None:
    assert rates(10**12, [0.1] * 10, 1.0).sustained == pytest.approx(10**13)
    assert rates(10**12, [0.1] * 10, 2.0).sustained == pytest.approx(5 * 10**12)


def test_the_spread_is_that_of_the_middle_half() -> None:
    assert spread([1.0]) == 0
    assert spread([1.0] * 99 + [50.0]) == 0
    assert spread([0.9, 0.95, 1.0, 1.05, 1.1]) == pytest.approx(0.1)


def test_a_fall_is_one_from_each_fifth_of_the_calls_to_the_next() -> None:
    falling = [1.0] * 10 + [1.01] * 10 + [1.02] * 10 + [1.03] * 10 + [1.04] * 10
    assert fell(falling) == pytest.approx(1 - 1 / 1.04)
    assert rates(10**12, falling, 51.0).fell == fell(falling)
    assert fell(falling[::-1]) == 0  # it became faster
    assert fell(falling[:20] * 3) == 0  # up and down
    assert fell([1.0] * 50) == 0
    assert fell(falling[::5]) == 0  # too few to tell
    assert fell([*falling[:9], 9.0, *falling[10:]]) == fell(falling)  # one stall
