"""What is a number format: how wide, how far, how fine, and who computes in it?"""

from collections.abc import Iterator
from functools import partial

from napkin import parsing, units
from napkin.errors import NapkinError, printable, quoted
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Answer, Report, Table, Words
from napkin.questions.options import Text
from napkin.specs import accelerators
from napkin.specs.dtypes import FORMATS, NF4_DOUBLE, Format, precision

SOURCE = "IEEE 754, OCP"
LISTED = ("", "bits", "e/m", "max", "smallest", "eps", "used for")
KEYS = (
    *("bits", "sign", "exponent", "mantissa", "bytes", "max"),
    *("smallest_normal", "smallest_subnormal", "eps"),
)
COLUMNS = ("dtype", "value", *KEYS, "becomes")
AMDS = "fnuz"  # MI300's: another bias, one nan, no inf and no -0
SHOWN = 5  # accelerators of the fastest


def dtypes(*, name: str | None = None, value: Text | None = None) -> Report:
    """Every number format, or the one asked for; with `value`, what becomes of it in each.

    Raises NapkinError.
    """
    number = None if value is None else options.read("value", value, parsing.number)
    if name is None:
        answers = [_answer(each, value, number, alone=False) for each in FORMATS]
        return Report("dtypes", answers, _list(number))
    return Report("dtypes", [_answer(_known(name), value, number)])


def _known(name: str) -> str:
    if AMDS in name.casefold():
        raise NapkinError(
            f"{quoted(name)} is AMD's own of MI300 (max 240 for e4m3, 57344 for e5m2), "
            "not OCP's; write fp8 or fp8_e5m2"
        )
    return precision(name)


def _becomes(of: Format, number: float | None) -> float | None:
    """None of what a scale decides."""
    return of.rounded(number) if number is not None and of.is_float and not of.block else None


def _answer(name: str, value: Text | None, number: float | None, alone: bool = True) -> Answer:
    of = FORMATS[name]
    result = {key: getattr(of, key, None) for key in KEYS} | {"sign": _sign(name, of)}
    if not of.is_float:
        result |= {"exponent": None, "mantissa": None}
    inputs = {"dtype": name, "value": number}
    if number is not None:
        becomes = _becomes(of, number)
        # JSON has no inf: what is too large for the format is nothing.
        result["becomes"] = None if becomes in (None, float("inf"), -float("inf")) else becomes
    steps = tuple(_rows(of))
    words = partial(_words, name, of, value, number, alone)
    return Answer("dtypes", inputs, result, words, steps, columns=COLUMNS)


def _sign(name: str, of: Format) -> int | None:
    return None if name == "nf4" or (of.block and not of.is_float) else 1


def _rows(of: Format) -> Iterator[Quantity]:
    for symbol, label, amount in (
        ("bits", "bits of a value", of.bits),
        ("exp", "exponent bits", of.exponent or None),
        ("mant", "mantissa bits", of.mantissa or None),
        ("bytes", "bytes in memory", of.bytes),
        ("max", "largest", of.max),
        ("tiny", "smallest normal", of.smallest_normal),
        ("least", "smallest subnormal", of.smallest_subnormal),
        ("eps", "from 1 to the next", of.eps),
    ):
        if amount is not None:
            yield given(symbol, label, amount, "1", SOURCE)


def _list(number: float | None) -> Table:
    last = "used for" if number is None else "becomes"
    columns = (*LISTED[:-1], last)
    rows = [_row(name, of, number) for name, of in FORMATS.items()]
    caption = "e/m: bits of exponent and mantissa; a block's scales are in its bits"
    return Table(columns, rows, frozenset(columns[1:-1]), caption)


def _row(name: str, of: Format, number: float | None) -> tuple[str, ...]:
    last = of.use
    if number is not None:
        becomes = _becomes(of, number)
        last = "by its scale" if becomes is None else f"{becomes:.10g}"
    return (
        name,
        f"{of.bits:g}",
        f"{of.exponent}/{of.mantissa}" if of.is_float else "",
        _short(of.max),
        _short(of.smallest_subnormal),
        _short(of.eps),
        last,
    )


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if 1 <= value < 1e5 and value == int(value) else f"{value:.4g}"


def _words(name: str, of: Format, value: Text | None, number: float | None, alone: bool) -> Words:
    widths = f"1 + {of.exponent} + {of.mantissa} bits" if of.is_float else f"{of.bits:g} bits"
    about = f"{widths} of sign, exponent, mantissa" if of.is_float else widths
    settings = f"used for: {of.use}"
    notes = []
    if of.block:
        notes.append(f"a block's scale: {of.block} values, in the {of.bits:g} bits")
    if of.stored_bits:
        notes.append(f"a way to multiply, not to store: {of.stored_bits} bits in memory")
    if name == "nf4":
        notes.append(f"with double quantisation: {NF4_DOUBLE:.4g} bits")
    runs, all_of = _run_by(name) if alone else ([], [])
    notes += runs
    headline = name
    if number is not None:
        becomes = _becomes(of, number)
        what = "what its scale makes of it" if becomes is None else _figures(becomes)
        headline = f"{printable(value)} becomes {what} in {name}"
    return Words(headline, about, notes, settings=settings, details=all_of)


def _figures(value: float) -> str:
    """Four, or all of a whole number: 70144, 1.001e-08, inf."""
    whole = abs(value) < 1e9 and value == int(value)
    return f"{value:.0f}" if whole else f"{value:.4g}"


def _run_by(name: str) -> tuple[list[str], list[str]]:
    """The fastest accelerators that compute in it, and all of them."""
    known = [each for each in accelerators.everything() if name in each.peak]
    known.sort(key=lambda each: -each.peak[name].dense.value)
    rates = [(each.key, units.tera(each.peak[name].dense.value)) for each in known]
    if not rates:
        return ["no accelerator that is known multiplies in it"], []
    fastest = " · ".join(f"{key} {rate}" for key, rate in rates[:SHOWN])
    return (
        [f"{len(rates)} accelerators multiply in it, dense TFLOP/s:", f"  {fastest}"],
        [f"{key} {rate} TFLOP/s" for key, rate in rates[SHOWN:]],
    )
