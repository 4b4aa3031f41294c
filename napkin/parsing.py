"""Text -> numbers in base units: one grammar for options, YAML and Python.

Each reader takes text or a number and returns an int where the value is whole, else a
float. What it cannot read is a NapkinError that says what to write instead; the caller
adds where the text stood (`--params`, `h100-sxm.yaml:9`).
"""

import math
import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from types import MappingProxyType

from napkin.errors import NapkinError, quoted
from napkin.units import figures

# A suffix multiplies by factor · 10**exponent; both whole, so that 33.65% is exactly 0.3365.
Suffixes = Mapping[str, tuple[int, int]]

LONGEST = 64
MOST_GPUS = 10**9
MOST_ELEMENTS = 10**15  # of a side of a tensor
# No product of a formula's few inputs can leave the range of a float.
SMALLEST, LARGEST = 1e-30, 1e30

_NUMBER = re.compile(
    r"([+-]?)([0-9](?:_?[0-9])*)?(?:\.([0-9](?:_?[0-9])*)?)?(?:[eE]([+-]?[0-9]+))?\s*(.*)",
    re.DOTALL,
)
_IN_TOKENS = re.compile(r"(.*\S)\s*tok(?:ens?)?\s*", re.DOTALL | re.IGNORECASE)
_NOT_FINITE = ("nan", "inf", "infinity")

COUNT: Suffixes = {"": (1, 0), "k": (1, 3), "m": (1, 6), "b": (1, 9), "t": (1, 12)}
# No model, and no run, has so few: `8` is 8B whose letter was left out.
FEWEST = 1000

PER_GPU = ("/gpu", "/device", "/chip")  # however a log names one accelerator

FACTOR: Suffixes = {"": (1, 0)}

FRACTION: Suffixes = {"": (1, 0), "%": (1, -2)}

MONEY: Suffixes = {"": (1, 0), "usd": (1, 0), "/gpu/hour": (1, 0), "/hour": (1, 0), "/h": (1, 0)}

_DAY = 86_400
TIME: Suffixes = {
    "us": (1, -6),
    "µs".casefold(): (1, -6),  # two code points look like this letter
    "ms": (1, -3),
    "s": (1, 0),
    "min": (60, 0),
    "h": (3600, 0),
    "d": (_DAY, 0),
    "w": (7 * _DAY, 0),
    "mo": (30 * _DAY, 0),
    "y": (365 * _DAY, 0),
    **{
        name + plural: (size, 0)
        for name, size in (
            ("sec", 1),
            ("second", 1),
            ("minute", 60),
            ("hr", 3600),
            ("hour", 3600),
            ("day", _DAY),
            ("week", 7 * _DAY),
            ("month", 30 * _DAY),
            ("year", 365 * _DAY),
        )
        for plural in ("", "s")
    },
}

_DECIMAL = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12, "p": 15, "e": 18}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}


def _with_prefixes(*names: str, binary: bool = False) -> Suffixes:
    suffixes = {p + n: (1, e) for p, e in _DECIMAL.items() for n in names}
    if binary:
        suffixes |= {p + n: (f, 0) for p, f in _BINARY.items() for n in names}
    return MappingProxyType(suffixes)


@cache
def _bytes() -> Suffixes:
    return _with_prefixes("b", "bytes", "byte", binary=True)


@cache
def _bandwidths() -> Suffixes:
    return _with_prefixes("b/s", binary=True)


@cache
def _rates() -> Suffixes:
    names = ("flop/s", "flops", "flops/s", "op/s", "ops")
    return _with_prefixes(*names, *(name + each for name in names for each in PER_GPU))


def _counts_of(*names: str) -> Suffixes:
    """Counts that may say what they count: `15T tokens`."""
    return {prefix + name: size for prefix, size in COUNT.items() for name in ("", *names)}


_TOKENS = _counts_of("tokens", "token", "tok")
_TOKEN_RATES = ("tokens/s", "token/s", "tok/s")
_ALL_GPUS = _counts_of(*_TOKEN_RATES)
_ONE_GPU = _counts_of(*_TOKEN_RATES, *(name + each for name in _TOKEN_RATES for each in PER_GPU))


@cache
def _amounts() -> Suffixes:
    return _with_prefixes("flop", "flops")


def count(text: object) -> float:
    """Parameters: `70e9`, `70B`, `1.5T`, `70_000_000_000`; 1,000 at least."""
    return _large(text, COUNT, "B")


def tokens(text: object) -> float:
    """Tokens of a run: `15e12`, `15T`, `15T tokens`; 1,000 at least."""
    return _large(text, _TOKENS, "T")


def _large(text: object, suffixes: Suffixes, usual: str) -> float:
    example = "70e9, 70B or 70_000_000_000"
    value = _positive(text, _number(text, suffixes, example), example)
    if value >= FEWEST:
        return value
    bare = str(text).strip()
    is_likely = value >= 0.01 and re.fullmatch(r"[0-9.]+", bare)
    hint = f"did you mean {bare}{usual}?" if is_likely else f"write {example}"
    raise NapkinError(f"{quoted(text)} is fewer than {FEWEST:,}; {hint}")


def per_second(text: object) -> float:
    """A count that a second, a step or an hour may see a fraction of: `9600`, `0.5`, `6.4M`."""
    return _fine(text, COUNT)


def tokens_per_step(text: object) -> float:
    """Tokens of one optimizer step: `4M`, `4M tokens`."""
    return _fine(text, _TOKENS)


def tokens_per_second(text: object) -> float:
    """Tokens per second of all GPUs: `9600`, `1.2M tok/s`."""
    return _fine(text, _ALL_GPUS)


def tokens_per_second_per_gpu(text: object) -> float:
    """Tokens per second of one GPU: `9600`, `9.6k tok/s/GPU`."""
    return _fine(text, _ONE_GPU)


def _fine(text: object, suffixes: Suffixes) -> float:
    example = "9600 or 1.2M"
    return _positive(text, _number(text, suffixes, example), example)


def whole(text: object, example: str = "8 or 1024") -> int:
    """How many of a thing: `8`, `1e3`."""
    value = _positive(text, _number(text, COUNT, example), example)
    if not isinstance(value, int):
        below = max(1, math.floor(value))
        raise NapkinError(f"{quoted(text)} is not a whole number; write {below} or {below + 1}")
    return value


def gpus(text: object) -> int:
    """How many GPUs: `1024`, `1e3`; up to 1e9."""
    count = whole(text)
    if count > MOST_GPUS:
        raise NapkinError(f"{quoted(text)} is more GPUs than there are; write 8 or 1024")
    return count


def sequences(text: object, length: int) -> int:
    """A batch: `1024` sequences, or `4M tokens` in sequences of `length` tokens."""
    in_tokens = _IN_TOKENS.fullmatch(text) if isinstance(text, str) else None
    if in_tokens is None:
        return whole(text)
    batch = whole(in_tokens[1])
    if batch % length:
        many = f"{figures(batch / length)} sequences of {length:,} tokens"
        below = max(1, batch // length)
        raise NapkinError(f"{quoted(text)} are {many}; write {below} or {below + 1}")
    return batch // length


def factor(text: object) -> float:
    """How many times over: `2`, `39.72`."""
    return _positive(text, _number(text, FACTOR, "2 or 1.5"), "2 or 1.5")


def bytes_per_param(text: object) -> float:
    """A sum of training state: `16`, `18`, `16 B/param`; 0.1 to 1000."""
    suffixes: Suffixes = {"": (1, 0), "b": (1, 0), "b/param": (1, 0)}
    value = _number(text, suffixes, "16 or 18")
    return _plausible(text, value, 0.1, 1000, "bytes a parameter (0.1 to 1000)", "")


def memory(text: object) -> float:
    """Bytes of one device: `80GB`, `80 GiB`, `85520809984`; 1 GB to 10 TB."""
    value = _number(text, {"": (1, 0), **_bytes()}, "80GB, 80GiB or 80e9")
    return _plausible(text, value, 1e9, 10e12, "a device's memory (1 GB to 10 TB)", "GB")


def rate(text: object) -> float:
    """FLOP/s of one device: `989.4 TFLOP/s`, `989.4e12`; 1e11 to 1e17."""
    value = _number(text, {"": (1, 0), **_rates()}, "989.4e12 or '989.4 TFLOP/s'")
    return _plausible(text, value, 1e11, 1e17, "a peak (1e11 to 1e17 FLOP/s)", " TFLOP/s")


def achieved(text: object) -> float:
    """FLOP/s that were reached on one device, however slow: `400TFLOP/s`."""
    value = _number(text, {"": (1, 0), **_rates()}, "400TFLOP/s")
    return _plausible(text, value, 1e6, 1e18, "one GPU's rate (FLOP/s)", " TFLOP/s")


def amount(text: object) -> float:
    """FLOP: `5.369e12`, `5.369 TFLOP`."""
    example = "6.3e24 or '5.4 TFLOP'"
    return _positive(text, _number(text, {"": (1, 0), **_amounts()}, example), example)


def bandwidth(text: object) -> float:
    """Bytes per second: `3.35 TB/s`."""
    example = "'3.35 TB/s'"
    return _positive(text, _number(text, _bandwidths(), example), example)


def power(text: object) -> float:
    """Watts of one device: `700 W`, `1.2 kW`; 1 W to 100 kW."""
    value = _number(text, _with_prefixes("w"), "'700 W'")
    return _plausible(text, value, 1, 1e5, "a device's power (1 W to 100 kW)", " W")


def fraction(text: object) -> float:
    """A share above 0, 100 % at most: `50%`, `0.5`."""
    value = _positive(text, _number(text, FRACTION, "50% or 0.5"), "50% or 0.5")
    return _at_most_all(text, value)


def share(text: object) -> float:
    """A share of which some must be left: 0 up to, not including, 100 %."""
    value = _at_most_all(text, _number(text, FRACTION, "10% or 0.1"))
    if not 0 <= value < 1:
        raise NapkinError(f"{quoted(text)} is not from 0 to below 100%; write 10% or 0.1")
    return value


def duration(text: object) -> float:
    """Seconds, from a time with its unit: `30d`, `12h`, `0.03s`, `3mo` (of 30 days)."""
    example = "30d, 12h, 5min, 0.03s or 20ms"
    return _positive(text, _number(text, TIME, example), example)


def seconds(text: object) -> float:
    """A time that may leave its unit out where the option is called --seconds: `3`, `0.5s`."""
    example = "3 or 0.5"
    return _positive(text, _number(text, {"": (1, 0), **TIME}, example), example)


def money(text: object) -> float:
    """US dollars: `2.50`, `$2.50`."""
    return _dollars(text, MONEY, "2.50")


def budget(text: object) -> float:
    """US dollars in all: `2M`, `$2.5M`, `2_000_000`."""
    return _dollars(text, _counts_of("usd", "dollars"), "2M or 500_000")


def _dollars(text: object, suffixes: Suffixes, example: str) -> float:
    bare = text.strip().removeprefix("$").lstrip() if isinstance(text, str) else text
    if isinstance(bare, str) and bare.startswith("."):
        why = "a shell takes the $2 of an unquoted $2.50 for a variable"
        raise NapkinError(f"{quoted(text)} has no digit before its point: {why}; write 2.50")
    return _positive(text, _number(bare, suffixes, example), example)


def energy(text: object) -> float:
    """Watt-hours: `2.5GWh`, `433 MWh`."""
    example = "2.5GWh or '433 MWh'"
    return _positive(text, _number(text, _with_prefixes("wh"), example), example)


def pue(text: object) -> float:
    """What a data center draws over what its machines do: `1.1`; 1 to 10."""
    return _plausible(text, _number(text, FACTOR, "1.1"), 1, 10, "a PUE (1 to 10)", "")


def gpu_hours(text: object) -> float:
    """GPU-hours: `30.84M`, `1_022_362`, `3.7M GPU-hours`."""
    names = ("gpu-hours", "gpuhours", "gpuh")
    return _positive(text, _number(text, _counts_of(*names), "30.84M"), "30.84M")


def flops_per_param(text: object) -> float:
    """FLOP per parameter and token: `6`, `8`; 0.1 to 1000."""
    what = "FLOP per parameter and token (0.1 to 1000)"
    return _plausible(text, _number(text, FACTOR, "6 or 8"), 0.1, 1000, what, "")


def flow(text: object) -> float:
    """Bytes per second that are written: `2TB/s`, `500 MB/s`."""
    example = "2TB/s or 10GB/s"
    return _positive(text, _number(text, _bandwidths(), example), example)


def number(text: object) -> float:
    """Any number that a float holds, of either sign: `1e-8`, `-70000`."""
    example = "1e-8 or 70000"
    if isinstance(text, bool) or len(str(text)) > LONGEST:
        raise NapkinError(f"{quoted(text)} is not a number; write {example}")
    try:
        value = float(str(text).strip())
    except ValueError:
        raise NapkinError(f"{quoted(text)} is not a number; write {example}") from None
    if not math.isfinite(value):
        raise NapkinError(f"{quoted(text)} is not a finite number; write {example}")
    return value


def size(text: object) -> int:
    """A side of a tensor: `8`, `49152`; up to 1e15."""
    value = whole(text, "8 or 49152")
    if value > MOST_ELEMENTS:
        raise NapkinError(f"{quoted(text)} is too large for a side of a tensor")
    return value


def items(text: str) -> list[str]:
    """A comma separates scenarios, never thousands: `256,512,1024` are three.

    What could be one number with its thousands (`1,024`, `1,536`) is refused, since as a list it
    would be answered for two small ones. It is a list where a blank follows each comma (`1, 536`),
    or where it rises and begins with three digits (`256,512`) or is of powers of two (`8,128`).
    An item that begins with 0 never is one.
    """
    parts = text.split(",")
    found = [part.strip() for part in parts]
    if "" in found:
        raise NapkinError(f"{quoted(text)} has a comma with nothing beside it; leave it out")
    begins_with_0 = any(re.match("0[0-9]", part) for part in found)
    is_list = all(part[:1].isspace() for part in parts[1:]) or _reads_as_list(found)
    if is_list and not begins_with_0:
        return found
    thousands = all(re.match(_THOUSANDS, part) for part in found[1:])
    meant = f"did you mean {''.join(found)}" if thousands else "write a number without commas"
    spaced = "" if begins_with_0 else f", or {', '.join(found)!r} for {len(found)} scenarios"
    end = "?" if thousands else ""
    why = f"{quoted(text)} could hold thousands, and a comma separates scenarios"
    raise NapkinError(f"{why}; {meant}{spaced}{end}")


_THOUSANDS = "[0-9]{3}(?![0-9])"


def _reads_as_list(found: list[str]) -> bool:
    """Whether no comma can stand between thousands, or none does so in practice."""
    joined = [
        bool(re.fullmatch("[1-9][0-9]{0,2}", before) and re.match(_THOUSANDS, after))
        for before, after in pairwise(found)
    ]
    if not any(joined):
        return True
    digits = [re.match("[0-9]{1,64}", part) for part in found]
    sizes = [int(each[0]) for each in digits if each]
    if len(sizes) < len(found) or sizes != sorted(set(sizes)):
        return False
    return not all(joined) or len(found[0]) == 3 or all(size & (size - 1) == 0 for size in sizes)


def _number(text: object, suffixes: Suffixes, example: str) -> float:
    """The number in base units, of any sign, with no more checked than that it is one."""
    if isinstance(text, str):
        return _from_text(text, suffixes, example)
    if isinstance(text, bool) or not hasattr(text, "__float__"):
        raise NapkinError(f"{quoted(text)} is not a number; write {example}")
    if "" not in suffixes:
        raise NapkinError(f"{text} has no unit; write {example}")
    try:
        value: float = int(text) if hasattr(text, "__index__") else float(text)
    except (TypeError, ValueError, OverflowError):  # an array of several
        raise NapkinError(f"{quoted(text)} is not one number; write {example}") from None
    return _finite(value, text, example)


def _from_text(text: str, suffixes: Suffixes, example: str) -> float:
    if len(text) > LONGEST:
        raise NapkinError(f"{quoted(text)} is too long for a number; write {example}")
    bare = text.strip()
    match = _NUMBER.fullmatch(bare)
    if "," in bare:
        raise NapkinError(f"{quoted(text)} has a comma; write one number: {example}")
    if bare.lstrip("+-").casefold() in _NOT_FINITE:
        raise NapkinError(f"{quoted(text)} is not a finite number; write {example}")
    if match is None or not (match[2] or match[3]):
        raise NapkinError(f"{quoted(text)} is not a number; write {example}")
    sign, whole_part, fraction_part, exponent, suffix = match.groups(default="")
    factor, power_of_ten = _suffix(text, suffix, suffixes, example)
    decimals = fraction_part.replace("_", "")
    digits, places = whole_part.replace("_", "") + decimals, len(decimals)
    value = _scaled(int(digits), int(exponent or 0) + power_of_ten - places, factor)
    return _finite(-value if sign == "-" else value, text, example)


def _scaled(digits: int, exponent: int, factor: int) -> float:
    """digits · 10**exponent · factor: an int where it is whole."""
    if not digits:
        return 0
    if abs(exponent) > 400:
        return math.inf if exponent > 0 else 0.0
    if exponent >= 0:
        return digits * int(10**exponent) * factor
    value, rest = divmod(digits * factor, 10**-exponent)
    return value if not rest else float(f"{digits * factor}e{exponent}")


def _suffix(text: str, suffix: str, suffixes: Suffixes, example: str) -> tuple[int, int]:
    found = suffixes.get("".join(suffix.split()).casefold())
    # Gb is a gigabit: an upper-case prefix before a lower-case b is not a byte.
    if found is None or (suffix and re.fullmatch(r"[KMGTP]i?b(/s)?", suffix)):
        problem = (
            f"{suffix!r} in {quoted(text)} is not a unit here"
            if suffix
            else f"{quoted(text)} has no unit"
        )
        raise NapkinError(f"{problem}; write {example}")
    return found


def _finite(value: float, text: object, example: str) -> float:
    if isinstance(value, float) and not math.isfinite(value) and not isinstance(text, str):
        raise NapkinError(f"{text} is not a finite number; write {example}")
    if abs(value) > LARGEST:
        raise NapkinError(f"{quoted(text)} is too large; write {example}")
    if value and abs(value) < SMALLEST:
        raise NapkinError(f"{quoted(text)} is too small; write {example}")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _positive(text: object, value: float, example: str) -> float:
    if value <= 0:
        raise NapkinError(f"{quoted(text)} is not above 0; write {example}")
    return value


def _at_most_all(text: object, value: float) -> float:
    if value <= 1:
        return value
    hint = f"; did you mean {value}%?" if 2 <= value <= 100 and "%" not in str(text) else ""
    raise NapkinError(f"{quoted(text)} is more than 100%{hint or '; write 50% or 0.5'}")


def _plausible(text: object, value: float, low: float, high: float, what: str, usual: str) -> float:
    if low <= value <= high:
        return value
    # `80` and `80B` are what people type for 80 GB.
    bare = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)( ?B)?", str(text).strip())
    meant = (
        f"; did you mean {bare[1]}{usual}?" if usual and bare and 1 <= float(bare[1]) < 1e5 else ""
    )
    raise NapkinError(f"{quoted(text)} is not plausible for {what}{meant}")
