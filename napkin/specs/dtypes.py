"""The number formats a device computes in, by the names people give them.

One table: what `bench` measures, `hardware` promises and `memory` stores are its rows. Figures
follow from the widths (IEEE 754; OCP FP8, 2209.05433; OCP MX 1.0), exactly and without torch.
"""

import math

from napkin.errors import NapkinError, quoted, suggestion
from napkin.record import Record

IEEE, NAN_ONLY, FINITE = "inf and nan", "nan alone", "finite"  # what the largest codes mean


class Format(Record):
    """A number's bits: one of sign, then exponent and mantissa; 0 of either where it has none."""

    bits: float  # of a value as it is stored, the scales of its block in them
    exponent: int = 0
    mantissa: int = 0
    largest: str = IEEE
    use: str = ""
    stored_bits: int | None = None  # where it is a way to compute, not to store
    block: str = ""  # what a block's scale is, and of how many values
    integer: bool = False

    @property
    def bytes(self) -> float:
        """Of a value in memory."""
        return (self.stored_bits or self.bits) / 8

    @property
    def is_float(self) -> bool:
        return self.exponent > 0

    @property
    def bias(self) -> int:
        return int(2 ** (self.exponent - 1)) - 1

    @property
    def max(self) -> float | None:
        """The largest finite value."""
        if self.integer:
            return int(2 ** (self.bits - 1)) - 1
        if not self.is_float:
            return None
        # IEEE keeps the last exponent for inf and nan; others keep one code for nan, or none.
        top = 2**self.exponent - 1 - self.bias - (self.largest == IEEE)
        last = 2 if self.largest == NAN_ONLY else 1
        return math.ldexp(2 ** (self.mantissa + 1) - last, top - self.mantissa)

    @property
    def smallest_normal(self) -> float | None:
        return math.ldexp(1, 1 - self.bias) if self.is_float else None

    @property
    def smallest_subnormal(self) -> float | None:
        return math.ldexp(1, 1 - self.bias - self.mantissa) if self.is_float else None

    @property
    def eps(self) -> float | None:
        """From one to the next number."""
        return math.ldexp(1, -self.mantissa) if self.is_float else None

    def value(self, code: int) -> float:
        """Of a code of a float format of up to 32 bits."""
        sign = -1 if code >> (self.exponent + self.mantissa) else 1
        e = code >> self.mantissa & (2**self.exponent - 1)
        m = code & (2**self.mantissa - 1)
        if e == 2**self.exponent - 1:
            if self.largest == IEEE:
                return math.nan if m else sign * math.inf
            if self.largest == NAN_ONLY and m == 2**self.mantissa - 1:
                return math.nan
        if e == 0:
            return sign * math.ldexp(m, 1 - self.bias - self.mantissa)
        return sign * math.ldexp(2**self.mantissa + m, e - self.bias - self.mantissa)

    def rounded(self, value: float) -> float:
        """The nearest number of a float format, a tie to the even one; above the largest, inf
        where there is one, else the largest: torch's casts on a CPU."""
        if not math.isfinite(value) or value == 0:
            return value
        _, power = math.frexp(value)
        step = max(power - 1, 1 - self.bias) - self.mantissa
        # Exact: round() of a float takes a tie to even, and ldexp moves the point alone.
        near = math.ldexp(round(math.ldexp(value, -step)), step)
        most = self.max
        assert most is not None
        if abs(near) <= most:
            return near or math.copysign(0.0, value)
        return math.copysign(math.inf if self.largest == IEEE else most, value)


FORMATS = {
    "fp64": Format(64, 11, 52, use="simulation"),
    "fp32": Format(32, 8, 23, use="master, moments"),
    "tf32": Format(19, 8, 10, use="fp32 matmuls", stored_bits=32),
    "fp16": Format(16, 5, 10, use="loss scaled"),
    "bf16": Format(16, 8, 7, use="most training"),
    "fp8": Format(8, 4, 3, NAN_ONLY, "forward pass"),
    "fp8_e5m2": Format(8, 5, 2, use="gradients"),
    "fp6_e3m2": Format(6, 3, 2, FINITE, "in mxfp6"),
    "fp6_e2m3": Format(6, 2, 3, FINITE, "in mxfp6"),
    "fp4": Format(4, 2, 1, FINITE, "in mxfp4, nvfp4"),
    "int8": Format(8, integer=True, use="serving, Adam8bit"),
    "int4": Format(4, integer=True, use="serving: weights"),
    "mxfp8": Format(8.25, 4, 3, NAN_ONLY, "training", block="8 bits for 32"),
    "mxfp6": Format(6.25, block="8 bits for 32", use="serving"),
    "mxfp4": Format(4.25, 2, 1, FINITE, "serving: gpt-oss", block="8 bits for 32"),
    "nvfp4": Format(4.5, 2, 1, FINITE, "serving, training", block="8 bits (e4m3) for 16"),
    "nf4": Format(4.5, block="32 bits for 64", use="QLoRA's base"),
}
PRECISIONS = tuple(FORMATS)
VECTOR = ("fp64_vector", "fp32_vector")  # rates without the matrix units
# Of a value as it is stored, block scales in it.
BITS = {name: each.bits for name, each in FORMATS.items() if each.stored_bits is None}
# 4 bits, 8 of a scale for 64 of them, and an fp32 scale for 256 scales (QLoRA 2305.14314).
NF4_DOUBLE = 4 + 8 / 64 + 32 / (64 * 256)

# What torch and others call the same thing.
ALIASES = {
    "fp8_e4m3": "fp8",
    "fp8_e4m3fn": "fp8",
    "float8_e4m3fn": "fp8",
    "fp8_e4m3fnuz": "fp8",  # AMD's own kind, on MI300
    "fp8_e5m2fnuz": "fp8_e5m2",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2": "fp8_e5m2",
    "float8_e5m2fnuz": "fp8_e5m2",
    "fp4_e2m1": "fp4",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "double": "fp64",
}


def canonical(name: str) -> str:
    """napkin's own name for it; a word that is no precision stays as it is."""
    return ALIASES.get(name, name)


def precision(text: object) -> str:
    """`bf16` for `bf16`, `BF16`, `bfloat16` or `torch.bfloat16`. Raises NapkinError."""
    name = str(text).strip().casefold().replace("-", "_").removeprefix("torch.")
    name = canonical(name)
    if name not in PRECISIONS:
        # fp8_e3m4 is another format than fp8_e5m2, and not one with a slip in it.
        base = name.partition("_")[0] + "_"
        kinds = [each for each in PRECISIONS if f"{each}_".startswith(base)]
        hint = f"; write {' or '.join(kinds)}" if kinds else suggestion(name, PRECISIONS)
        hint = hint or f"; write one of {' '.join(PRECISIONS)}"
        raise NapkinError(f"{quoted(text)} is not a precision{hint}")
    return name
