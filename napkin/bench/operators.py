"""One matmul per precision: its operands, its operator, and how wrong its product may be.

Low precisions have operators of their own: `torch.mm` takes int8 and fp8 on a CPU and gives
another kind of answer. B is stored as N × K and transposed, as a linear layer's weight is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch

from napkin.bench.device import Device, speaking_for_the_device
from napkin.errors import NapkinError


class Shape(NamedTuple):
    """(m × k) by (k × n)."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flop(self) -> int:
        return 2 * self.m * self.n * self.k


class Operator(NamedTuple):
    """How a precision is multiplied; errors are relative to fp64 (Frobenius).

    The limits are about six times what is seen on random data; `least` tells a product that
    was made in a finer precision than was asked for.
    """

    operand: torch.dtype
    out: torch.dtype
    limit: float
    least: float = 0.0
    multiple: int = 1  # of every dimension, where the hardware's units want it


OPERATORS = {
    "fp64": Operator(torch.float64, torch.float64, 1e-12),
    "fp32": Operator(torch.float32, torch.float32, 1e-5),
    "tf32": Operator(torch.float32, torch.float32, 2e-3, least=1e-5),
    "fp16": Operator(torch.float16, torch.float16, 1e-2),
    "bf16": Operator(torch.bfloat16, torch.bfloat16, 1e-2),
    "fp8": Operator(torch.float8_e4m3fn, torch.bfloat16, 1e-2, multiple=16),
    "int8": Operator(torch.int8, torch.int32, 0.0, multiple=8),
}
ON_A_CPU = ("fp64", "fp32", "fp16", "bf16", "int8")  # fp8 is emulated there, tf32 not known


def operator(device: Device, dtype: str) -> Operator:
    """The operator of a precision there. Raises NapkinError where the device has none."""
    known = tuple(OPERATORS) if device.is_gpu else ON_A_CPU
    if dtype not in known:
        raise NapkinError(f"--dtype: bench measures {' '.join(known)} here, not {dtype}")
    if device.is_gpu and not _has_units(device, dtype):
        raise NapkinError(f"--dtype: {device.name} has no {dtype} units")
    found = OPERATORS[dtype]
    if dtype == "fp8" and _amd_chip(device).startswith("gfx94"):
        return found._replace(operand=torch.float8_e4m3fnuz)  # MI300's own kind
    return found


def _amd_chip(device: Device) -> str:
    if torch.version.hip is None:
        return ""
    return str(torch.cuda.get_device_properties(device.torch).gcnArchName)


def _has_units(device: Device, dtype: str) -> bool:
    # torch's own question answers yes for cards that emulate bf16.
    since = {"bf16": (8, 0), "tf32": (8, 0), "int8": (7, 5), "fp8": (8, 9)}
    with speaking_for_the_device(device.name):
        chip = _amd_chip(device)
        if chip:
            return dtype not in ("tf32", "fp8") or chip.startswith(("gfx94", "gfx95"))
        return torch.cuda.get_device_capability(device.torch) >= since.get(dtype, (0, 0))


def operands(
    op: Operator, shape: Shape, device: Device, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random A (m × k) and B (k × n): normal, or the full range for int8."""

    def one(rows: int, columns: int) -> torch.Tensor:
        place: Any = {"device": device.torch, "generator": random}
        if op.operand == torch.int8:
            return torch.randint(-128, 128, (rows, columns), dtype=torch.int8, **place)
        random_of = cast_from(op) or op.operand
        return torch.randn(rows, columns, dtype=random_of, **place).to(op.operand)

    return one(shape.m, shape.k), one(shape.n, shape.k).t()


def cast_from(op: Operator) -> torch.dtype | None:
    """fp32 for fp8: a cast gives no NaN, random bytes would. None where operands are made as
    they are."""
    return torch.float32 if op.operand.itemsize == 1 and op.operand.is_floating_point else None


def multiply(op: Operator, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """A · B into `out` by the precision's own operator."""
    if op.operand == torch.int8:
        torch._int_mm(a, b, out=out)
    elif op.operand.itemsize == 1:
        one = _one(a.device)
        torch._scaled_mm(a, b, one, one, out_dtype=op.out, out=out)
    else:
        torch.mm(a, b, out=out)


@cache  # made once: filling it is a kernel of its own
def _one(device: torch.device) -> torch.Tensor:
    return torch.ones((), device=device)


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """fp32 means fp32: TF32 only where it is asked for. What was set before comes back."""
    matmul: Any = torch.backends.cuda.matmul
    name = "fp32_precision" if hasattr(matmul, "fp32_precision") else "allow_tf32"
    values: tuple[object, object] = ("tf32", "ieee") if name == "fp32_precision" else (True, False)
    before = getattr(matmul, name)
    setattr(matmul, name, values[0] if dtype == "tf32" else values[1])
    try:
        yield
    finally:
        setattr(matmul, name, before)
