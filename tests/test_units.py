"""Units as text, and amounts as people say them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napkin import units


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (12_436_514.55, "s", "143.9 days"),
        (48_600, "s", "13.5 hours"),
        (90, "s", "1.5 minutes"),
        (0.03, "s", "30 ms"),
        (24.08e-6, "s", "24.08 µs"),
        (6.3e24, "FLOP", "6.3e24 FLOP"),
        (5.0657e17, "FLOP/s", "506.6 PFLOP/s"),
        (989.4e12, "FLOP/s/GPU", "989.4 TFLOP/s/GPU"),
        (70e9, "param", "70B parameters"),
        (999.96e9, "param", "1T parameters"),
        (1.206e6, "token/s", "1.206M tokens/s"),
        (9600, "token/s/GPU", "9,600 tokens/s/GPU"),
        (1024, "GPU", "1,024 GPUs"),
        (1, "GPU", "1 GPU"),
        (3.537e6, "GPU·hour", "3.537M GPU-hours"),
        (2.476e9, "W·hour", "2.476 GWh"),
        (8.8437e6, "USD", "$8.844M"),
        (2.5, "USD/GPU/hour", "$2.50/GPU/hour"),
        (0.392267, "%", "39.2 %"),
        (16, "B/param", "16 B/param"),
        (1.12e12, "B", "1.12 TB"),
    ],
)
def test_an_amount_is_said_as_people_say_it(value: float, unit: str, said: str) -> None:
    assert units.humanize(value, unit) == said


def test_gb_and_gib_are_two_units() -> None:
    assert units.gb_and_gib(56e9) == "56 GB (52.15 GiB)"
    assert units.gb_and_gib(80 * 2**30) == "85.9 GB (80 GiB)"


def test_days_that_are_hard_to_picture_come_with_years() -> None:
    assert units.long_time(722.5 * units.DAY) == "722.5 days (1.98 years)"
    assert units.long_time(143.9 * units.DAY) == "143.9 days"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6.3e24, "6.3e24"),
        (7.2e23, "7.2e23"),
        (8.64e19, "86.4e18"),
        (70e9, "70e9"),
        (1024, "1024"),
        (989.4e12, "989.4e12"),
        (0.5, "0.5"),
        (0.0001, "0.0001"),
        (5e-05, "50e-6"),
        (131072, "131072"),
        (0, "0"),
        (-2.5, "-2.5"),
    ],
)
def test_a_formula_shows_numbers_in_powers_of_a_thousand(value: float, text: str) -> None:
    assert units.engineering(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_in_a_formula_reads_back_as_the_same_float(value: float) -> None:
    assert float(units.engineering(value)) == value


@given(st.integers(-(10**40), 10**40))
def test_an_integer_in_a_formula_keeps_every_digit(value: int) -> None:
    mantissa, _, exponent = units.engineering(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    assert int(whole + fraction) * 10 ** (int(exponent or 0) - len(fraction)) == value


@pytest.mark.parametrize(
    ("unit", "canonical"),
    [
        ("FLOP/GPU/s", "FLOP/s/GPU"),
        ("hour·GPU", "GPU·hour"),
        ("USD/hour/GPU", "USD/GPU/hour"),
        ("s/s", "1"),
        ("%", "1"),
        ("1/step", "1/step"),
    ],
)
def test_equal_units_have_one_spelling(unit: str, canonical: str) -> None:
    assert units.canonical(unit) == canonical


def test_an_unknown_base_unit_is_a_bug_in_a_formula() -> None:
    with pytest.raises(ValueError, match="'FLOPS' is not one of the base units USD, FLOP"):
        units.powers("FLOPS")
