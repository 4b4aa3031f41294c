"""Traced arithmetic: what is shown is what was computed."""

import pytest
from hypothesis import assume
from hypothesis import given as examples
from hypothesis import strategies as st

from napkin.quantity import (
    Quantity,
    UnitError,
    ceil,
    coefficient,
    coefficients,
    define,
    derivation,
    given,
    in_numbers,
    in_symbols,
    observed,
)
from tests.working import evaluated

SIX = coefficient(6, "FLOP/param/token", "6 = 2 forward + 4 backward")
N = given("N", "parameters", 70_000_000_000, "param", "--params")
D = given("D", "training tokens", 15_000_000_000_000, "token", "--tokens")
P = given("P", "peak", 989.4e12, "FLOP/s/GPU", "h100-sxm.yaml:16")


def test_a_step_is_written_as_the_field_writes_it() -> None:
    C = define("C", "training compute", SIX * N * D, "FLOP")
    assert in_symbols(C) == "6 × N × D"
    assert in_numbers(C) == "6 × 70e9 × 15e12"
    assert C.value == 6_300_000_000_000_000_000_000_000
    assert [c.label for c in coefficients(C)] == ["6 = 2 forward + 4 backward"]


def test_a_forgotten_gpu_count_is_a_unit_error() -> None:
    C = define("C", "training compute", SIX * N * D, "FLOP")
    with pytest.raises(UnitError, match=r"^t = C / P is in s·GPU, not s$"):
        define("t", "training time", C / P, "s")


def test_unlike_units_do_not_add() -> None:
    with pytest.raises(UnitError, match=r"^N \+ D joins param and token$"):
        N + D


def test_the_derivation_has_each_step_after_what_it_needs() -> None:
    C = define("C", "training compute", SIX * N * D, "FLOP")
    twice = define("E", "twice", C + C, "FLOP")
    assert [q.symbol for q in derivation(twice)] == ["N", "D", "C", "E"]


def test_two_quantities_of_one_name_are_refused() -> None:
    other = given("N", "neurons", 1, "param", "")
    with pytest.raises(ValueError, match=r"^two quantities are called N$"):
        derivation(N + other)


def test_a_branch_on_a_quantity_is_refused() -> None:
    with pytest.raises(TypeError, match="branch on settings"):
        bool(N)


def test_a_factor_of_one_that_carries_a_unit_is_not_written() -> None:
    alone = define("N₁", "parameters", coefficient(1, "GPU") * (N / coefficient(1, "GPU")), "param")
    assert (in_symbols(alone), in_numbers(alone)) == ("N", "70e9")


def test_a_renamed_quantity_shows_the_old_name() -> None:
    assert in_symbols(define("A", "active", N, "param")) == "N"


def test_inputs_are_exact_and_what_is_computed_or_observed_has_four_figures() -> None:
    x = given("x", "", 123456.789, "1", "--x")
    y = define("y", "", x * 2, "1")
    t = observed("t", "", 0.0123456789, "1", "measured")
    z = define("z", "", x * y * t, "1")
    assert in_numbers(z) == "123456.789 × 246900 × 0.01235"
    assert in_numbers(z, exact=True) == "123456.789 × 246913.578 × 0.0123456789"


def test_the_next_whole_number_is_part_of_the_trace() -> None:
    q = define("n_min", "", ceil(N / given("M", "", 3e10, "param", "")), "1")
    assert (q.value, in_symbols(q), in_numbers(q)) == (3, "ceil(N / M)", "ceil(70e9 / 30e9)")


def test_plain_numbers_join_from_both_sides() -> None:
    x = given("x", "", 4, "1", "")
    assert [
        (q.value, in_symbols(define("y", "", q, "1"))) for q in (1 - x, 1 + x, 2 * x, 8 / x)
    ] == [
        (-3, "1 - x"),
        (5, "1 + x"),
        (8, "2 × x"),
        (2.0, "8 / x"),
    ]


def trees(leaves: st.SearchStrategy[Quantity], operators: str) -> st.SearchStrategy[Quantity]:
    def join(inner: st.SearchStrategy[Quantity]) -> st.SearchStrategy[Quantity]:
        return st.builds(_joined, st.sampled_from(list(operators)), inner, inner)

    return st.recursive(leaves, join, max_leaves=12)


def _joined(operator: str, a: Quantity, b: Quantity) -> Quantity:
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    assume(b.value != 0)
    return a / b


def _leaf(value: float) -> Quantity:
    return given(f"x{value}", "", value, "1", "")


@examples(trees(st.integers(-999, 999).map(_leaf), "+-*"))
def test_the_printed_numbers_of_integers_evaluate_to_the_value(tree: Quantity) -> None:
    assume(tree.args)
    text = in_numbers(define("y", "", tree, "1"), exact=True)
    assert evaluated(text) == tree.value


@examples(trees(st.floats(0.01, 1e6).map(_leaf), "+*/"))
def test_the_printed_numbers_of_floats_evaluate_to_the_value(tree: Quantity) -> None:
    assume(tree.args)
    text = in_numbers(define("y", "", tree, "1"), exact=True)
    assert float(evaluated(text)) == pytest.approx(tree.value, rel=1e-12)


@examples(st.integers(2, 5), st.integers(2, 3), st.integers(2, 3))
def test_powers_of_powers_keep_their_brackets(base: int, first: int, second: int) -> None:
    q = define("y", "", (_leaf(base) ** first) ** second, "1")
    assert evaluated(in_numbers(q)) == q.value == (base**first) ** second
