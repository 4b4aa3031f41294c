"""The measurement itself, for real, on the CPU."""

import itertools
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.benchmark import Timer
from torch.utils.flop_counter import FlopCounterMode

from napkin.bench import device as devices
from napkin.bench import matmul, operators, timing
from napkin.bench.operators import OPERATORS, Shape
from napkin.errors import DeviceError, NapkinError
from tests.running import ROOT

CPU = devices.Device("cpu", "this CPU")


def cube(n: int) -> Shape:
    return Shape(n, n, n)


@pytest.mark.usefixtures("_one_thread")
def test_the_figure_agrees_with_torch_s_own_timer_in_the_same_run() -> None:
    # One thread, short calls, arms in turn and medians hold on a loaded machine.
    size = 256
    a, b = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty(size, size)
    timer = Timer("torch.mm(a, b, out=out)", globals={"torch": torch, "a": a, "b": b, "out": out})
    ratios = []
    for _ in range(4):
        ours = matmul.measure(CPU, "fp32", cube(size), 0.05, 0.05).rates.time
        theirs = statistics.median(timer.timeit(1).times[0] for _ in range(200))
        ratios.append(ours / theirs)
    assert 0.75 < statistics.median(ratios) < 1.33


@pytest.mark.usefixtures("_one_thread")
def test_eight_times_the_work_takes_more_than_twice_the_time() -> None:
    def time(size: int) -> float:
        return matmul.measure(CPU, "fp32", cube(size), 0.05, 0.05).rates.time

    assert statistics.median(time(256) / time(128) for _ in range(5)) > 2


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [("fp64", 0, 1e-14), ("fp32", 1e-8, 1e-5), ("bf16", 1e-4, 1e-2), ("fp16", 1e-5, 1e-2)],
)
def test_the_error_is_that_of_the_precision(dtype: str, least: float, most: float) -> None:
    found = matmul.measure(CPU, dtype, cube(96), 0.01)
    assert least <= found.error <= most
    assert found.rates.samples >= timing.LEAST_CALLS


def product(wrong: str) -> float:
    """The error that the check finds in a product that is wrong in one way."""
    size = 128
    a, b = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty(size, size)

    def call(number: int) -> None:
        if wrong == "half of k":
            torch.mm(a[:, : size // 2], b[: size // 2], out=out)
        elif wrong == "zeros":
            out.zero_()
        elif wrong == "tf32":
            torch.mm(
                *((x.view(torch.int32) & ~0x1FFF).view(torch.float32) for x in (a, b)), out=out
            )
        elif wrong == "one element unwritten":
            out.copy_(a @ b)
            out[0, 0] = float("nan")
        elif wrong == "nothing":
            torch.mm(a, b, out=out)

    return matmul.product_error(call, 0, [(a, b)], out)


def test_a_wrong_product_is_caught() -> None:
    assert product("half of k") == pytest.approx(0.71, abs=0.05)
    assert product("zeros") == 1
    assert product("nothing") < OPERATORS["fp32"].limit
    assert product("tf32") > OPERATORS["fp32"].limit
    for wrong in ("one element unwritten", "nothing is written"):
        assert not product(wrong) <= OPERATORS["fp32"].limit


def test_no_figure_comes_from_a_wrong_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        OPERATORS, "fp32", OPERATORS["fp32"]._replace(limit=1e-12)
    )  # what fp32 cannot reach
    with pytest.raises(DeviceError, match=r"the fp32 product is wrong by .*; no figure is given"):
        matmul.measure(CPU, "fp32", cube(64), 0.01)


def test_be_02_a_size_that_does_not_fit_says_what_it_needs() -> None:
    assert matmul.bytes_needed(cube(131072), "bf16") == pytest.approx(103.1e9, rel=1e-3)
    with pytest.raises(NapkinError) as caught:
        matmul.measure(CPU, "bf16", cube(131072), 0.01)
    message = re.fullmatch(
        r"--size: 131072 in bf16 needs 103\.1 GB, [0-9.]+ GB are free; try --size ([0-9]+)",
        str(caught.value),
    )
    assert message
    free = devices.free_bytes(CPU)
    assert free is None or matmul.bytes_needed(cube(int(message[1])), "bf16") < free


def test_precision_settings_come_back() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    matmul.measure(CPU, "fp32", cube(64), 0.01)
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_events_that_cannot_be_true_give_no_figure() -> None:
    with pytest.raises(DeviceError, match="its events measure no time; no figure is given"):
        timing.doubt([0.0] * 10, 1.0, "a GPU")
    assert timing.doubt([1e-3] * 1000, 1.01, "a GPU") == ""
    assert timing.doubt([1e-3] * 1000, 2.0, "a GPU") == (
        "the device's events add up to 50% of the host's clock"
    )
    assert timing.doubt([1e-5] * 1000, 1e-2, "a GPU").startswith("a call takes under 50 µs")


def test_another_error_is_not_called_one_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("cuBLAS is out of order\nmore lines")

    monkeypatch.setattr(matmul, "_measured", broken)
    with pytest.raises(DeviceError, match=r"^this CPU: cuBLAS is out of order$"):
        matmul.measure(CPU, "fp32", cube(64), 0.01)


def test_memory_that_runs_out_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(matmul, "_measured", full)
    with pytest.raises(NapkinError, match=r"^--size: 64 in fp32 needs .* GB, more than there is"):
        matmul.measure(CPU, "fp32", cube(64), 0.01)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@pytest.mark.parametrize("wanted", ["cuda:", "cuda:x", "cuda:-1", "cuda:9999", "gpu", ""])
def test_a_device_that_bench_does_not_know_is_refused(wanted: str) -> None:
    with pytest.raises(NapkinError, match="is not measured; write cuda, cuda:1 or cpu"):
        devices.choose(wanted)


def test_a_product_in_a_finer_precision_than_asked_for_gives_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # tf32 asked for, fp32 at work: as on a card without TF32 or under a setting that forbids it.
    monkeypatch.setitem(OPERATORS, "fp32", OPERATORS["tf32"])
    with pytest.raises(DeviceError, match=r"fp32 was not at work, the product is off by .* only"):
        matmul.measure(CPU, "fp32", cube(64), 0.01)


@pytest.mark.parametrize("dtype", operators.ON_A_CPU)
@pytest.mark.parametrize("shape", [Shape(64, 256, 128), Shape(256, 64, 8), Shape(8, 8, 512)])
def test_any_shape_is_measured_in_every_precision(dtype: str, shape: Shape) -> None:
    found = matmul.measure(CPU, dtype, shape, 0.01, 0.0)
    assert found.shape == shape
    assert found.rates.median * found.rates.time == pytest.approx(
        2 * shape.m * shape.n * shape.k, rel=1e-9
    )


def test_an_int8_product_is_exact() -> None:
    assert matmul.measure(CPU, "int8", Shape(128, 64, 256), 0.01).error == 0


def test_int8_wants_multiples_of_8() -> None:
    with pytest.raises(
        NapkinError, match=r"^--shape: 100x64x64 does not fit: int8 wants multiples of 8$"
    ):
        matmul.measure(CPU, "int8", Shape(100, 64, 64), 0.01)


def test_fp8_operands_hold_numbers_only_and_the_product_is_right() -> None:
    op, shape = OPERATORS["fp8"], Shape(64, 96, 128)
    a, b = operators.operands(op, shape, CPU, torch.Generator().manual_seed(0))
    assert a.dtype == b.dtype == torch.float8_e4m3fn
    assert not a.double().isnan().any()
    assert not b.double().isnan().any()
    out = torch.empty(shape.m, shape.n, dtype=op.out)
    error = matmul.product_error(lambda number: operators.multiply(op, a, b, out), 0, [(a, b)], out)
    assert 1e-4 < error < op.limit


def peak_of(work: Callable[[], object]) -> int:
    """The most bytes that torch's allocator had handed out at a time."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        work()
    results: Any = profiled.profiler
    events = [e for e in results.kineto_results.events() if e.name() == "[memory]"]
    changes: list[int] = [e.nbytes() for e in sorted(events, key=lambda event: event.start_ns())]
    return max(itertools.accumulate(changes))


# Square, deep enough that the check goes part by part, flat, wide.
SHAPES = [cube(512), Shape(16, 16, 2**19), Shape(2000, 16, 4096), Shape(64, 4000, 256)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", operators.ON_A_CPU)
def test_the_memory_that_is_counted_is_the_memory_that_is_taken(dtype: str, shape: Shape) -> None:
    taken = peak_of(lambda: matmul.measure(CPU, dtype, shape, 0.001, 0.0))
    assert taken <= matmul.bytes_needed(shape, dtype) <= 1.05 * taken


def test_the_numbers_that_fp8_is_cast_from_are_counted() -> None:
    shape, random = Shape(16, 16, 2**19), torch.Generator().manual_seed(0)

    def both_sets() -> object:
        return [operators.operands(OPERATORS["fp8"], shape, CPU, random) for _ in range(2)]

    taken = peak_of(both_sets)
    assert taken <= matmul.bytes_needed(shape, "fp8") <= 1.05 * taken


def test_an_error_is_the_same_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = matmul.measure(CPU, "fp16", Shape(96, 300, 1000), 0.001, 0.0).error
    monkeypatch.setattr(matmul, "CHECKED_ELEMENTS", 32_000)
    assert matmul._depth(96, 256) < 100
    parts = matmul.measure(CPU, "fp16", Shape(96, 300, 1000), 0.001, 0.0).error
    assert parts == pytest.approx(whole, rel=1e-9)


def test_operands_that_no_cache_can_hold_are_made_once() -> None:
    assert matmul.sets_of_operands(cube(8192), "bf16") == 2
    assert matmul.sets_of_operands(cube(32768), "bf16") == 1


@pytest.mark.parametrize("shape", [Shape(48, 80, 112), Shape(33, 1, 7), Shape(8192, 8192, 8192)])
def test_the_flop_of_a_shape_are_those_that_torch_counts(shape: Shape) -> None:
    a = torch.empty(shape.m, shape.k, device="meta")
    b = torch.empty(shape.n, shape.k, device="meta").t()
    with FlopCounterMode(display=False) as counter:
        torch.mm(a, b)
    assert counter.get_total_flops() == shape.flop


def test_a_check_on_a_gpu_says_that_there_is_none() -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "gpu_check.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, "gpu-check: skipped, there is no GPU here\n")


def test_calls_that_are_mostly_their_launch_are_doubtful() -> None:
    assert timing._too_short(10e-6, 10e-6) == ""
    assert timing._too_short(9e-6, 10e-6) == (
        "a call takes under 10 µs, and launching it is part of that: try a larger --size"
    )
    assert matmul.measure(CPU, "fp32", cube(1), 0.01, 0.0).unsteady != ""
