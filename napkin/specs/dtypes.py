"""The number formats a device computes in, by the names people give them."""

from napkin.errors import NapkinError, quoted, suggestion

PRECISIONS = (
    "fp64",
    "fp32",
    "tf32",
    "fp16",
    "bf16",
    "fp8",
    "fp8_e5m2",
    "fp6_e3m2",
    "fp6_e2m3",
    "fp4",
    "int8",
    "int4",
    "mxfp8",
    "mxfp6",
    "mxfp4",
    "nvfp4",
    "nf4",
)
VECTOR = ("fp64_vector", "fp32_vector")  # rates without the matrix units

# Bits of a value as it is stored, block scales in it (OCP MX 1.0; nvfp4: e4m3 for 16 values,
# nf4: fp32 for 64).
BITS = {
    "fp64": 64,
    "fp32": 32,
    "fp16": 16,
    "bf16": 16,
    "fp8": 8,
    "fp8_e5m2": 8,
    "fp6_e3m2": 6,
    "fp6_e2m3": 6,
    "fp4": 4,
    "int8": 8,
    "int4": 4,
    "mxfp8": 8.25,
    "mxfp6": 6.25,
    "mxfp4": 4.25,
    "nvfp4": 4.5,
    "nf4": 4.5,
}

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
