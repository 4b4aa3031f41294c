"""The formulas against numbers from papers and from torch."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from napkin.accounting import compute, memory
from napkin.accounting.run import RUN, SPEED, solve
from napkin.quantity import Quantity, given, in_numbers, in_symbols


def q(value: float, unit: str, symbol: str = "x") -> Quantity:
    return given(symbol, "", value, unit, "")


UNITS = {"N": "param", "D": "token", "n": "GPU", "P": "FLOP/s/GPU", "MFU": "1", "r": "token/s"}


def inputs(**values: float) -> dict[str, Quantity]:
    known = {symbol: q(value, UNITS[symbol], symbol) for symbol, value in values.items()}
    return {"f/N": compute.TRAINING, **known}


def test_the_lecture_s_70b_takes_143_93_days() -> None:
    run = solve(inputs(N=70e9, D=15e12, n=1024, P=1979e12 / 2, MFU=0.5), RUN)
    assert run["C"].value == 6.3e24
    assert run["t"].value / 86_400 == pytest.approx(143.92659381842682, rel=1e-12)


def test_narayanan_s_8tp_over_nx_is_6nd_at_three_quarters_of_the_hardware_rate() -> None:
    for tokens, params, gpus, rate, days in (
        (300e9, 175e9, 1024, 140e12, 33.908420138888886),
        (450e9, 1e12, 3072, 163e12, 83.2108469665985),
    ):
        run = solve(inputs(N=params, D=tokens, n=gpus, P=rate, MFU=6 / 8), RUN)
        assert run["t"].value / 86_400 == pytest.approx(days, rel=1e-12)


def test_llama_65b_at_380_tokens_per_second_and_gpu() -> None:
    f = compute.flop_per_token(q(65_285_660_672, "param", "N"))
    speed = solve({"f": f, "r₁": q(380, "token/s/GPU", "r₁"), **inputs(P=312e12)}, SPEED)
    assert speed["MFU"].value == pytest.approx(0.4770875202953846)


def test_palm_s_utilization_without_attention() -> None:
    f = compute.flop_per_token(q(540.35e9, "param", "N"))
    speed = solve({"f": f, **inputs(r=238_300, n=6144, P=275e12)}, SPEED)
    assert speed["MFU"].value == pytest.approx(0.4572635120738636, rel=1e-12)


def test_recomputation_is_a_second_forward_pass() -> None:
    MFU = q(0.3, "%", "MFU")
    HFU = compute.hfu(MFU)
    assert (in_symbols(HFU), in_numbers(HFU)) == ("MFU × (8 / 6)", "0.3 × (8 / 6)")
    assert HFU.value == pytest.approx(0.4)
    assert compute.hfu(MFU, frozen_base=True).value == pytest.approx(0.45)


@pytest.mark.parametrize(("m", "n", "k"), [(48, 80, 112), (1, 7, 3), (8192, 8192, 8192)])
def test_a_matmul_s_flop_are_those_that_torch_counts(m: int, n: int, k: int) -> None:
    with FlopCounterMode(display=False) as counted:
        torch.mm(torch.empty(m, k, device="meta"), torch.empty(k, n, device="meta"))
    ours = compute.matmul(q(m, "1", "m"), q(n, "1", "n"), q(k, "1", "k"))
    assert ours.value == counted.get_total_flops()


def test_six_is_what_torch_counts_for_a_weight_and_a_token() -> None:
    tokens, inner = 32, 64
    x = torch.empty(tokens, inner, device="meta", requires_grad=True)
    layer = torch.nn.Linear(inner, inner, bias=False, device="meta")
    with FlopCounterMode(display=False) as forward:
        y = layer(x)
    with FlopCounterMode(display=False) as backward:
        torch.autograd.backward(y.sum())
    N = q(inner * inner, "param", "N")
    assert forward.get_total_flops() == 2 * inner * inner * tokens
    assert (
        solve({"N": N, **inputs(D=tokens)}, RUN)["C"].value
        == forward.get_total_flops() + backward.get_total_flops()
    )


def test_a_frozen_base_is_what_torch_counts_without_weight_gradients() -> None:
    tokens, inner = 32, 64
    x = torch.empty(tokens, inner, device="meta", requires_grad=True)
    layer = torch.nn.Linear(inner, inner, bias=False, device="meta").requires_grad_(False)
    with FlopCounterMode(display=False) as counted:
        torch.autograd.backward(layer(x).sum())
    f = compute.flop_per_token(q(inner * inner, "param", "N"), compute.FROZEN_BASE)
    assert f.value * tokens == counted.get_total_flops()


def test_openai_s_gpt_3_is_3640_petaflop_s_days() -> None:
    C = q(3.14e23, "FLOP", "C")
    assert compute.petaflop_s_days(C).value == pytest.approx(3640, rel=2e-3)


def test_the_pool_holds_forty_billion_parameters() -> None:
    terms = [q(4, "B/param", s) for s in ("weights", "gradients", "m", "v")]
    s = memory.bytes_per_param(terms)
    M = memory.pooled(q(8, "GPU", "n"), q(80e9, "B/GPU", "M₁"))
    assert in_symbols(s) == "weights + gradients + m + v"
    assert (s.value, memory.largest_model(M, s).value) == (16, 40e9)


def test_zero_s_7_5b_model_has_120_gb_of_state() -> None:
    assert memory.training_state(q(7.5e9, "param", "N"), q(16, "B/param", "s")).value == 120e9
