"""Units as text (`FLOP/s/GPU`): powers of base units, and how people say an amount."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

# In the order in which they are written: FLOP/s/GPU, never FLOP/GPU/s.
BASE = ("USD", "FLOP", "B", "W", "param", "token", "seq", "step", "s", "GPU", "hour", "pfs-day")

# `%` is a pure number that is said in hundredths.
PURE = ("1", "%")


@cache
def powers(unit: str) -> Mapping[str, int]:
    """The exponent of each base unit: `W·hour/s` -> {W: 1, hour: 1, s: -1}."""
    counts: dict[str, int] = {}
    numerator, *denominators = unit.split("/")
    for names, sign in ((numerator.split("·"), 1), (denominators, -1)):
        for name in names:
            if name in PURE:
                continue
            if name not in BASE:
                raise ValueError(f"{name!r} is not one of the base units {', '.join(BASE)}")
            counts[name] = counts.get(name, 0) + sign
    return MappingProxyType(counts)


def _written(exponents: Mapping[str, int]) -> str:
    above = [name for name in BASE for _ in range(exponents.get(name, 0))]
    below = [name for name in BASE for _ in range(-exponents.get(name, 0))]
    return "/".join(["·".join(above) or "1", *below])


@cache
def canonical(unit: str) -> str:
    """One spelling per unit, so that equal units are equal texts."""
    return _written(powers(unit))


@cache
def times(a: str, b: str, power: int = 1) -> str:
    """The unit of `x · y**power`, for x in a and y in b."""
    exponents = dict(powers(a))
    for name, exponent in powers(b).items():
        exponents[name] = exponents.get(name, 0) + power * exponent
    return _written(exponents)


@cache
def root(unit: str) -> str:
    """The unit of a square root. Raises ValueError for what is no square."""
    exponents = powers(unit)
    if any(exponent % 2 for exponent in exponents.values()):
        raise ValueError(f"{unit} is not the square of a unit")
    return _written({name: exponent // 2 for name, exponent in exponents.items()})


SI = ("", "k", "M", "G", "T", "P", "E")
COUNT = ("", "K", "M", "B", "T")
LARGEST_PREFIXED = 1e21  # beyond, 6.3e24 FLOP is what people write
DAY = 86_400
YEAR = 365 * DAY


def figures(value: float, digits: int = 4) -> str:
    """Four significant figures, whole numbers from 1,000 on in full."""
    if 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    if value and not 1e-4 <= abs(value) < 1e9:
        return engineering(value, digits)
    return f"{value:.{digits}g}"


def _prefixed(value: float, prefixes: tuple[str, ...]) -> tuple[str, str]:
    step = 0
    # As it will be shown: 999.96e9 is 1T, not 1000B.
    while abs(float(f"{value:.4g}")) >= 1000 and step < len(prefixes) - 1:
        value /= 1000
        step += 1
    return figures(value), prefixes[step]


def _time(seconds: float) -> str:
    for size, name in ((DAY, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= size:
            return f"{figures(seconds / size)} {name}"
    for scale, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{figures(seconds / scale)} {name}"
    return f"{figures(seconds / 1e-6)} µs"


def long_time(seconds: float) -> str:
    """A time, in years too where days are hard to picture."""
    years = f" ({figures(seconds / YEAR, 3)} years)" if seconds >= YEAR else ""
    return _time(seconds) + years


_WORDS = {
    "param": "parameters",
    "token": "tokens",
    "token/seq": "tokens/sequence",
    "GPU": "GPUs",
    "GPU·hour": "GPU-hours",
    "token/s": "tokens/s",
    "token/s/GPU": "tokens/s/GPU",
    "token/step": "tokens/step",
    "seq/step": "sequences/step",
    "pfs-day": "petaflop/s-days",
}


def humanize(value: float, unit: str) -> str:
    """An amount as people say it: `143.9 days`, `506.6 PFLOP/s`, `70B parameters`.

    Four significant figures; SI prefixes for FLOP, B and W, K M B T for what is counted.
    """
    if unit == "%":
        return f"{100 * value:,.0f} %" if value >= 10 else f"{100 * value:.3g} %"
    unit = canonical(unit)
    if unit == "1":
        return figures(value)
    if unit == "s":
        return _time(value)
    if unit.startswith("USD"):
        number, prefix = _prefixed(value, COUNT)
        if not prefix and value != int(value):
            number = f"{value:.2f}"
        return f"${number}{prefix}{unit[3:]}"
    if unit == "GPU":
        count = f"{value:,}" if isinstance(value, int) else figures(value)
        return f"{count} GPU" + ("" if value == 1 else "s")
    if unit == "FLOP/B":
        return f"{figures(value)} {unit}"
    if unit.startswith(("FLOP", "B", "W")):
        if abs(value) >= LARGEST_PREFIXED:
            return f"{engineering(value, 4)} {unit}"
        number, prefix = _prefixed(value, SI)
        return f"{number} {prefix}{'Wh' if unit == 'W·hour' else unit}"
    number, prefix = _prefixed(value, COUNT) if abs(value) >= 1e6 else (figures(value), "")
    return f"{number}{prefix} {_WORDS.get(unit, unit)}"


def tera(value: float) -> str:
    """A rate in T, every digit of a datasheet: `989.4`."""
    return f"{value / 1e12:.6g}"


def count(value: float) -> str:
    """A bare count as people say it: `70B`, `1,024`."""
    if abs(value) < 1e6:
        return figures(value)
    return "".join(_prefixed(value, COUNT))


def gib(value: float) -> str:
    """Bytes in GiB (2**30 bytes): `74.51 GiB`."""
    return f"{figures(value / 2**30)} GiB"


def gb_and_gib(value: float) -> str:
    """Bytes both ways, for where memory is compared: `80 GB (74.51 GiB)`; a few, one way."""
    if value < 2**20:
        return humanize(value, "B")
    binary = gib(value) if value >= 2**30 else f"{figures(value / 2**20)} MiB"
    return f"{humanize(value, 'B')} ({binary})"


def _digits(value: float) -> tuple[str, int]:
    """The shortest digits and the power of ten that give the value: 989.4 -> 9894, -1."""
    mantissa, _, exponent = (str(value) if isinstance(value, int) else repr(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    shift = int(exponent or 0) - len(fraction)
    digits = (whole + fraction).lstrip("0")
    return digits.rstrip("0"), shift + len(digits) - len(digits.rstrip("0"))


def _positional(digits: str, exponent: int) -> str:
    if exponent >= 0:
        return digits + "0" * exponent
    if len(digits) > -exponent:
        return f"{digits[:exponent]}.{digits[exponent:]}"
    return f"0.{digits.rjust(-exponent, '0')}"


def engineering(value: float, digits: int | None = None) -> str:
    """A number for a formula: `1024`, `70e9`, `6.3e24`; exact unless digits are given."""
    if digits is not None:
        value = float(f"{value:.{digits}g}")
    if not value:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    kept, exponent = _digits(value)
    magnitude = len(kept) + exponent - 1
    if -4 <= magnitude < 6:
        return sign + _positional(kept, exponent)
    power = magnitude // 3 * 3 if magnitude < 21 else magnitude  # 7.2e23, not 720e21
    return f"{sign}{_positional(kept, exponent - power)}e{power}"
