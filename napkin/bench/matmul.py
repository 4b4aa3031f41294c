"""Times one matmul: random data, warmed up by time, synchronised, checked against fp64.

Clocks, power limits and modes are never changed.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from napkin.bench import operators
from napkin.bench.device import Device, free_bytes, speaking_for_the_device
from napkin.bench.nvml import State, Watch
from napkin.bench.operators import OPERATORS, Operator, Shape
from napkin.bench.statistics import Rates, rates
from napkin.bench.timing import Call, timed
from napkin.errors import DeviceError, NapkinError

GPU_SIZE = 8192  # over every cache, and few tiles are left over in the last wave
LARGER_THAN_ANY_CACHE = 2**31  # bytes of operands, from where one set of them is enough
CHECKED_ROWS = 64
CHECKED_COLUMNS = 256  # at a time
CHECKED_ELEMENTS = 2**22  # of the operands' fp64 copies at a time, so that they stay small
CHECKED_PRODUCTS = 3  # of their size are alive at a time: the exact, the found, the difference
MOST_OF = 0.9  # of the free memory
PROBE_SECONDS = 0.02
LARGEST_PROBE = 4096

# Near the best shapes that others found, and what models multiply.
SCAN_GPU = (
    Shape(4096, 4096, 4096),
    Shape(8192, 8192, 8192),
    Shape(16384, 16384, 16384),
    Shape(8192, 8192, 2048),
    Shape(8192, 28672, 8192),
    Shape(2048, 2048, 13312),
    Shape(4096, 4864, 32896),
)
SCAN_CPU = (Shape(256, 256, 256), Shape(512, 512, 512), Shape(1024, 1024, 1024))


class Measurement(NamedTuple):
    """What one shape did on one device."""

    shape: Shape
    rates: Rates
    error: float  # against fp64, relative
    unsteady: str  # what makes the figure doubtful, empty if nothing does
    state: State | None = None  # of the GPU while it worked, where that is told


def default_size(device: Device, dtype: str) -> int:
    """8192 on a GPU; on a CPU the first power of two whose product takes 20 ms."""
    if device.is_gpu:
        return GPU_SIZE
    op = operators.operator(device, dtype)
    random = torch.Generator(device.torch).manual_seed(0)
    size = 64
    while size < LARGEST_PROBE:
        a, b = operators.operands(op, Shape(size, size, size), device, random)
        out = torch.empty(size, size, dtype=op.out)
        operators.multiply(op, a, b, out)
        start = time.perf_counter()
        operators.multiply(op, a, b, out)
        if time.perf_counter() - start > PROBE_SECONDS:
            break
        size *= 2
    return size


def sets_of_operands(shape: Shape, dtype: str) -> int:
    """Two, so that no call finds its inputs in the cache, or one that no cache can hold."""
    return 1 if _operand_bytes(shape, dtype) > LARGER_THAN_ANY_CACHE else 2


def bytes_needed(shape: Shape, dtype: str) -> int:
    """At the most: all operands, and what it takes to make or to check them."""
    operands = sets_of_operands(shape, dtype) * _operand_bytes(shape, dtype)
    return operands + max(_bytes_of_making(shape, dtype), _bytes_of_checking(shape, dtype))


def _bytes_of_making(shape: Shape, dtype: str) -> int:
    """The numbers that the last operand is cast from."""
    source = operators.cast_from(OPERATORS[dtype])
    return 0 if source is None else max(shape.m, shape.n) * shape.k * source.itemsize


def _bytes_of_checking(shape: Shape, dtype: str) -> int:
    """The output, and in fp64 parts of the operands, products of theirs and two sums."""
    rows = len(range(0, shape.m, _step(shape.m)))
    columns = min(shape.n, CHECKED_COLUMNS)
    op = OPERATORS[dtype]
    copies = (rows + columns) * min(shape.k, _depth(rows, columns))
    if op.operand == torch.float64:  # is taken as it is
        copies = 0
    elements = copies + CHECKED_PRODUCTS * rows * columns + 2
    return shape.m * shape.n * op.out.itemsize + elements * torch.float64.itemsize


def _operand_bytes(shape: Shape, dtype: str) -> int:
    return (shape.m + shape.n) * shape.k * OPERATORS[dtype].operand.itemsize


def measure(
    device: Device,
    dtype: str,
    shape: Shape,
    seconds: float,
    warm_up: float | None = None,
    ready: Callable[[], None] = lambda: None,
) -> Measurement:
    """FLOP/s of a shape over at least `seconds`; `ready` as `timed` calls it.

    Raises NapkinError where it does not fit, DeviceError where the product is wrong.
    """
    op = operators.operator(device, dtype)
    if any(size % op.multiple for size in shape):
        raise NapkinError(
            f"{_as_asked(shape)} does not fit: {dtype} wants multiples of {op.multiple}"
        )
    with speaking_for_the_device(device.name):
        _refuse_too_large(device, dtype, shape)
        try:
            with operators.precision(dtype), torch.inference_mode():
                return _measured(device, dtype, op, shape, seconds, warm_up, ready)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
            raise NapkinError(_too_large(dtype, shape, None)) from None


def _is_out_of_memory(error: RuntimeError) -> bool:
    # On a CPU it is a plain RuntimeError.
    return isinstance(error, torch.cuda.OutOfMemoryError) or "allocate memory" in str(error)


def _measured(
    device: Device,
    dtype: str,
    op: Operator,
    shape: Shape,
    seconds: float,
    warm_up: float | None,
    ready: Callable[[], None],
) -> Measurement:
    random = torch.Generator(device.torch).manual_seed(0)
    number_of_sets = sets_of_operands(shape, dtype)
    sets = [operators.operands(op, shape, device, random) for _ in range(number_of_sets)]
    out = torch.empty(shape.m, shape.n, dtype=op.out, device=device.torch)

    def call(number: int) -> None:
        operators.multiply(op, *sets[number % number_of_sets], out)

    error = max(product_error(call, number, sets, out) for number in range(number_of_sets))
    _refuse_wrong(device, dtype, op, error)
    watch = Watch(device)
    times = timed(call, seconds, warm_up, device, watch.look, ready)
    found, state = rates(shape.flop, times.calls, times.window), watch.state()
    return Measurement(shape, found, error, times.unsteady or _shared(state), state)


def _shared(state: State | None) -> str:
    if state is None or not state.others:
        return ""
    return f"{state.others} other process{'es' if state.others > 1 else ''} had this GPU too"


def _refuse_wrong(device: Device, dtype: str, op: Operator, error: float) -> None:
    if not error <= op.limit:
        raise DeviceError(
            f"{device.name}: the {dtype} product is wrong by {error:.1e} "
            f"(limit {op.limit:.0e}); no figure is given"
        )
    if error < op.least:
        raise DeviceError(
            f"{device.name}: {dtype} was not at work, the product is off by {error:.1e} only"
        )


def product_error(
    call: Call,
    number: int,
    sets: Sequence[tuple[torch.Tensor, torch.Tensor]],
    out: torch.Tensor,
) -> float:
    """The product's relative error on some rows; NaN, or huge, where an element was not written."""
    out.fill_(float("nan") if out.is_floating_point() else torch.iinfo(out.dtype).min)
    call(number)
    a, b = sets[number]
    step = _step(a.shape[0])
    rows = a[::step]
    wrong, total = (rows.new_zeros((), dtype=torch.float64) for _ in range(2))
    for first in range(0, b.shape[1], CHECKED_COLUMNS):
        columns = slice(first, first + CHECKED_COLUMNS)
        exact = _exact(rows, b[:, columns])
        wrong += (out[::step, columns].double() - exact).square().sum()
        total += exact.square().sum()
    return float((wrong / total).sqrt())


def _exact(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A · B in fp64, part by part of the inner dimension."""
    product = a.new_zeros(a.shape[0], b.shape[1], dtype=torch.float64)
    depth = _depth(*product.shape)
    for first in range(0, a.shape[1], depth):
        inner = slice(first, first + depth)
        product.addmm_(a[:, inner].double(), b[inner].double())
    return product


def _step(rows: int) -> int:
    """Every how many rows are checked."""
    return max(1, rows // CHECKED_ROWS)


def _depth(rows: int, columns: int) -> int:
    """Of the inner dimension at a time."""
    return CHECKED_ELEMENTS // (rows + columns)


def _refuse_too_large(device: Device, dtype: str, shape: Shape) -> None:
    free = free_bytes(device)
    if free is not None and bytes_needed(shape, dtype) > MOST_OF * free:
        raise NapkinError(_too_large(dtype, shape, free))


def _too_large(dtype: str, shape: Shape, free: int | None) -> str:
    there = "more than there is" if free is None else f"{free / 1e9:.1f} GB are free"
    needs = bytes_needed(shape, dtype) / 1e9
    smaller = max(shape) // 2
    while free is not None and smaller > 1:
        if bytes_needed(Shape(smaller, smaller, smaller), dtype) <= MOST_OF * free:
            break
        smaller //= 2
    return f"{_as_asked(shape)} in {dtype} needs {needs:.1f} GB, {there}; try --size {smaller}"


def _as_asked(shape: Shape) -> str:
    return f"--size: {shape.m}" if len(set(shape)) == 1 else f"--shape: {shape}"
