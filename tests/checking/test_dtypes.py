"""Number formats against torch, code by code and cast by cast."""

import math

import pytest
import torch

from napkin.specs.dtypes import FORMATS

TORCHS = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}
SMALL = [name for name, of in FORMATS.items() if name in TORCHS and of.bits <= 16]


@pytest.mark.parametrize("name", TORCHS)
def test_the_figures_are_those_of_finfo(name: str) -> None:
    of, info = FORMATS[name], torch.finfo(TORCHS[name])
    assert (of.bits, of.max, of.eps) == (info.bits, info.max, info.eps)
    assert of.smallest_normal == info.tiny
    assert of.bytes == TORCHS[name].itemsize


@pytest.mark.parametrize("name", SMALL)
def test_every_code_is_the_number_that_torch_reads(name: str) -> None:
    of = FORMATS[name]
    codes = torch.arange(2 ** int(of.bits))
    words = codes.to(torch.uint8 if of.bits == 8 else torch.int16).view(TORCHS[name])
    for code, theirs in zip(codes.tolist(), words.double().tolist(), strict=True):
        ours = of.value(code)
        assert ours == theirs or (math.isnan(ours) and math.isnan(theirs)), code


@pytest.mark.parametrize("name", SMALL)
def test_a_value_becomes_what_torch_s_cast_makes_of_it(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    scale = torch.exp(8 * torch.randn(20_000, generator=generator))
    values = torch.cat([torch.randn(20_000, generator=generator) * scale, torch.tensor([0.0, 1e6])])
    theirs = values.to(TORCHS[name]).double().tolist()
    assert [FORMATS[name].rounded(value) for value in values.double().tolist()] == theirs


@pytest.mark.parametrize("name", ["fp6_e3m2", "fp6_e2m3", "fp4"])
def test_a_format_that_torch_does_not_have_is_its_own_nearest_number(name: str) -> None:
    of = FORMATS[name]
    codes = [of.value(code) for code in range(2 ** int(of.bits))]
    assert max(codes) == of.max
    assert min(each for each in codes if each > 0) == of.smallest_subnormal
    for value in torch.linspace(-9, 9, 1001).double().tolist():
        nearest = min(abs(value - each) for each in codes)
        assert abs(of.rounded(value) - value) == nearest
