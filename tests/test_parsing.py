"""One number grammar: tables of good and bad texts, and what holds for all of them."""

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napkin import parsing
from napkin.errors import NapkinError
from tests.running import data

TABLE = data("numbers.yaml")


def rows(kind: str) -> list[tuple[str, str, Any]]:
    return [(reader, *row) for reader, table in TABLE[kind].items() for row in table]


@pytest.mark.parametrize(("reader", "text", "value"), rows("good"))
def test_a_good_text_is_read(reader: str, text: str, value: float) -> None:
    assert getattr(parsing, reader)(text) == value


@pytest.mark.parametrize(("reader", "text", "message"), rows("bad"))
def test_a_bad_text_is_refused_with_what_to_write(reader: str, text: str, message: str) -> None:
    with pytest.raises(NapkinError) as caught:
        getattr(parsing, reader)(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (math.nan, "nan is not a finite number; write 70e9, 70B or 70_000_000_000"),
        (math.inf, "inf is not a finite number; write 70e9, 70B or 70_000_000_000"),
        (-1, "'-1' is not above 0; write 70e9, 70B or 70_000_000_000"),
        (True, "'True' is not a number; write 70e9, 70B or 70_000_000_000"),
        (None, "'None' is not a number; write 70e9, 70B or 70_000_000_000"),
        ([70], "'[70]' is not a number; write 70e9, 70B or 70_000_000_000"),
    ],
)
def test_a_number_from_python_meets_the_same_refusals(number: Any, message: str) -> None:
    with pytest.raises(NapkinError) as caught:
        parsing.count(number)
    assert str(caught.value) == message


def test_a_time_from_python_needs_its_unit_too() -> None:
    with pytest.raises(NapkinError) as caught:
        parsing.duration(0.98)
    assert str(caught.value) == "0.98 has no unit; write 30d, 12h, 5min, 0.03s or 20ms"


def test_whole_values_are_integers_so_that_counts_stay_exact() -> None:
    assert isinstance(parsing.count("15T"), int)
    assert isinstance(parsing.count(15e12), int)
    assert parsing.count("671_026_404_352") == 671_026_404_352


@given(st.integers(1, 10**15), st.sampled_from(["", "K", "M", "B", "T"]))
def test_a_suffix_is_a_power_of_a_thousand(digits: int, suffix: str) -> None:
    power = 3 * ["", "K", "M", "B", "T"].index(suffix)
    assert parsing.per_second(f"{digits}{suffix}") == digits * 10**power


@given(st.decimals("1e-20", "1e20", allow_nan=False, allow_infinity=False))
def test_a_decimal_is_read_to_the_nearest_float(number: Decimal) -> None:
    text = str(number)
    if len(text) <= parsing.LONGEST:
        assert float(parsing.per_second(text)) == float(text)


@given(st.floats(1e-20, 1e20))
def test_text_and_number_are_read_alike(number: float) -> None:
    assert float(parsing.per_second(repr(number))) == float(parsing.per_second(number)) == number


READERS = [getattr(parsing, reader) for reader in TABLE["good"]]


@given(st.sampled_from(READERS), st.text() | st.from_regex(r"[-+]?[\d._eE]+ ?[a-zA-Z%$/]{0,6}"))
def test_any_text_is_a_finite_number_or_one_line(reader: Any, text: str) -> None:
    try:
        value = reader(text)
    except NapkinError as error:
        assert str(error).isprintable()
    else:
        assert math.isfinite(value)
        assert value >= 0


@given(st.sampled_from(READERS), st.one_of(st.integers(), st.floats(), st.none(), st.booleans()))
def test_any_number_is_finite_or_one_line(reader: Any, number: Any) -> None:
    try:
        value = reader(number)
    except NapkinError as error:
        assert str(error).isprintable()
    else:
        assert math.isfinite(value)
