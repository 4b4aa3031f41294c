"""Published MFUs under the convention that each source follows, and what recomputation adds."""

from typing import Any

import pytest

from napkin.accounting.compute import flop_per_token
from napkin.accounting.flop_per_token import torchtitan
from napkin.quantity import given
from napkin.questions.mfu import mfu
from napkin.specs.conventions import CONVENTIONS
from tests.running import answer, data, napkin

ROWS = data("published_throughput.yaml")
FITTING = [row for row in ROWS if "left_out" not in row]


@pytest.mark.parametrize("row", FITTING, ids=[row["id"] for row in FITTING])
def test_a_published_mfu_follows_from_its_throughput(row: dict[str, Any]) -> None:
    ((key, stated),) = row["stated"].items()
    found = mfu(
        model=row["model"],
        seq_len=row["seq_len"],
        tokens_per_second_per_gpu=row["rate"],
        peak=row["peak"],
        convention=row["convention"],
        recompute="full" if key == "hfu" else None,
    )
    assert found.result[key] == pytest.approx(stated, abs=0.005)


def test_most_published_rows_fit_and_the_others_say_why() -> None:
    assert (len(ROWS), len(FITTING)) == (90, 59)
    assert all(row["left_out"] for row in ROWS if row not in FITTING)


def test_mf_02_conventions_move_an_mfu_by_fourteen_points() -> None:
    N = given("N", "", 560_988_160, "param", "")
    table = given("table", "", 83_886_080, "param", "")
    width = given("w_attn", "", 2 * 20 * 1280, "1", "")
    T = given("T", "", 2048, "token/seq", "")
    per_token = {
        0.715: flop_per_token(N),
        0.608: flop_per_token(N - table),
        0.741: torchtitan(N, table, width, T),
    }
    for published, f in per_token.items():
        assert f.value * 529_882 / (8 * 312e12) == pytest.approx(published, abs=0.0005)
    assert per_token[0.741].value == pytest.approx(3.4918e9, rel=1e-4)
    # The nearest shape that has a name: it has norms and biases more.
    asked = "mfu --model gpt_neox:L=20,d=1280,H=10,ff=5120,V=65536 --seq-len 2048 --gpus 8"
    found = answer(f"{asked} --hardware a100 --tokens-per-second 529882")["result"]
    assert found["conventions"]["torchtitan"] == pytest.approx(0.741, abs=0.001)
    assert list(found["conventions"]) == list(CONVENTIONS)


def test_pk_01_with_attention_a_published_46_percent_is_reached() -> None:
    asked = "mfu --model llama-7b --tokens-per-second 9600 --gpus 1 --seq-len 4096"
    found = answer(f"{asked} --convention palm")["result"]
    assert found["mfu"] == pytest.approx(0.455, abs=0.0005)
    assert found["conventions"]["six_n"] == pytest.approx(0.392, abs=0.0005)
    assert answer(asked)["result"]["mfu"] == pytest.approx(found["conventions"]["six_n"])


def derived(command: str, symbol: str) -> float:
    steps = {step["symbol"]: step["value"] for step in answer(command)["derivation"]}
    return float(steps[symbol])


# Counted by FlopCounterMode around the backward pass of two sequences of 192 tokens.
LLAMA, GPT = "llama:L=3,d=128,H=4,kv=2,ff=352,V=1000", "gpt2:L=3,d=128,H=4,ff=512,V=1000"
RECOMPUTED = [
    (LLAMA, "full", 537_919_488),
    (GPT, "full", 566_231_040),
    (GPT, "selective", 113_246_208),
]


@pytest.mark.parametrize(("shape", "how", "flop"), RECOMPUTED)
def test_recomputation_costs_what_was_counted(shape: str, how: str, flop: int) -> None:
    asked = f"flops --model {shape} --seq-len 192 --recompute {how}"
    assert derived(asked, "f_again") * 192 * 2 == flop


def test_a_checkpoint_that_stops_early_saves_each_block_s_last_matmul() -> None:
    notes = answer(f"flops --model {LLAMA} --seq-len 192 --recompute full")["notes"]
    saved = (537_919_488 - 434_110_464) / (2 * 192)
    assert f"{saved / 1e3:.4g} kFLOP/token less, each block's last matmul" in " ".join(notes)


def test_a_run_by_a_convention_is_that_many_flop_a_token() -> None:
    asked = "train-time --model llama-3-8b --tokens 15T --gpus 1024 --seq-len 8192"
    for name in CONVENTIONS:
        found = answer(f"{asked} --convention {name.replace('_', '-')}")
        assert found["result"]["flops"] == found["result"]["conventions"][name]
    exact = answer(f"{asked} --convention exact_full")["result"]
    assert exact["flops"] == pytest.approx(57_912_852_480 * 15e12, rel=1e-12)
    assert (exact["params"], exact["active_params"]) == (8_030_261_248, 8_030_261_248)


def test_experts_compute_when_active_and_take_memory_always() -> None:
    result = answer("train-time --model mixtral-8x7b --tokens 1T --gpus 512")["result"]
    assert result["flops"] == 6 * 12_879_925_248 * 10**12
    assert result["params"] == 46_702_792_704
    assert result["min_gpus_for_states"] == -(-46_702_792_704 * 16 // 80_000_000_000)


def test_other_conventions_are_null_where_the_shape_is_not_known() -> None:
    found = answer("mfu --params 7e9 --tokens-per-second 9600 --gpus 1")["result"]["conventions"]
    assert {name for name, value in found.items() if value is not None} == {"six_n"}
    ran = napkin("mfu --params 7e9 --tokens-per-second 9600 --gpus 1 --convention palm")
    assert ran.err == "Error: --convention: palm needs the model's shape: give --model\n"


def test_attention_is_a_tenth_and_half_from_the_lengths_that_are_said() -> None:
    asked = "flops --model llama-3-8b --seq-len"
    for symbol, share in (("T_10", 0.1), ("T_50", 0.5)):
        length = round(derived(f"{asked} 4096", symbol))
        command = f"{asked} {length}"
        scores = derived(command, "f_scores")
        assert scores / derived(command, "f_fwd") == pytest.approx(share, rel=1e-3)


def test_more_recomputation_is_a_higher_hfu() -> None:
    asked = "mfu --model llama-3.1-8b --seq-len 131072 --tokens-per-second 2000 --gpus 1"
    for convention in ("six-n", "palm", "exact-causal"):
        none, selective, full = (
            answer(f"{asked} --convention {convention} --recompute {how}")["result"]["hfu"]
            for how in ("none", "selective", "full")
        )
        assert none < selective < full


def test_a_frozen_base_has_no_other_conventions() -> None:
    asked = "mfu --model llama-3-8b --tokens-per-second 9600 --gpus 1 --frozen-base"
    found = answer(asked)["result"]
    known = {name: value for name, value in found["conventions"].items() if value is not None}
    assert known == {"six_n": found["mfu"]}


def test_what_is_computed_again_and_adapters_are_in_the_result() -> None:
    again = answer("flops --model llama-3-8b --recompute full")["result"]
    assert again["computed_per_token"] == (
        again["forward_per_token"] + again["backward_per_token"] + again["recomputed_per_token"]
    )
    adapted = answer("flops --model llama-3-8b --lora-rank 16")["result"]
    assert adapted["adapter_params"] == 41_943_040
    assert adapted["computed_per_token"] == (
        adapted["forward_per_token"] + adapted["backward_per_token"]
    )
