"""Models divided over GPUs: tensor, pipeline, context and expert parallel."""

from math import lcm
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from napkin.accounting.activations import korthikanti
from napkin.accounting.layout import Degrees
from napkin.accounting.stages import layers_of
from tests.running import answer, data, napkin

GPT3 = "gpt2:L=96,d=12288,H=96,ff=49152,V=50257"
BLOCK = "memory --activations korthikanti --seq-len 2048 --model"
ROWS = {row["id"]: row for row in data("published_memory.yaml")}


def step(found: dict[str, Any], symbol: str) -> float:
    return float(next(s["value"] for s in found["derivation"] if s["symbol"] == symbol))


def kinds(command: str) -> dict[str, float]:
    found: dict[str, float] = answer(f"memory {command}")["result"]["per_gpu_bytes"]
    return found


@pytest.mark.parametrize(
    ("options", "of_sbh"),
    [
        ("--attention eager", 34 + 80),
        ("", 34),
        ("--tp 8 --attention eager", 10 + 24 / 8 + 80 / 8),
        ("--tp 8", 10 + 24 / 8),
        ("--tp 8 --sequence-parallel --attention eager", (34 + 80) / 8),
        ("--tp 8 --sequence-parallel", 34 / 8),
    ],
)
def test_a_gpt_block_keeps_what_korthikanti_s_table_says(options: str, of_sbh: float) -> None:
    found = answer(f"{BLOCK} {GPT3} {options}")
    assert step(found, "a_GPT_block") == pytest.approx(of_sbh * 2048 * 12288, rel=1e-12)


@pytest.mark.parametrize("t", [1, 2, 8])
def test_the_same_formula_answers_for_each_number_of_tensor_ranks(t: int) -> None:
    s, b, h, a = 2048, 1, 12288, 96
    n_tp: Any = None if t == 1 else t
    of: Any = korthikanti  # on plain numbers
    plain = of(b, s, h, a, True, n_tp)
    assert plain == s * b * h * ((34 if t == 1 else 10 + 24 / t) + 5 * a * s / (h * t))
    assert of(b, s, h, a, False, n_tp, True) == s * b * h * 34 / t


def test_zero_shares_over_what_tensor_and_pipeline_parallel_leave() -> None:
    found = answer("memory --params 7.5e9 --gpus 512 --tp 4 --pp 2 --zero 1")
    assert step(found, "N_r") == 7.5e9 / 8
    assert step(found, "n_dp") == 64
    assert found["result"]["per_gpu_bytes"]["optimizer"] == 8 * 7.5e9 / 8 / 64
    assert found["result"]["per_gpu_bytes"]["gradients"] == 2 * 7.5e9 / 8


def test_what_each_dimension_divides_is_divided_and_what_is_whole_stays_whole() -> None:
    found = answer("memory --model llama-3-8b --tp 8 --zero 0")
    parts = answer("models llama-3-8b")["result"]["parts"]
    whole = parts["norms and biases"] + parts["final norm"]
    total = sum(parts.values())
    assert step(found, "N_r") == (total - whole) / 8 + whole


def test_experts_are_divided_by_expert_ranks_and_shared_by_those_that_hold_the_same() -> None:
    found = answer("memory --model mixtral-8x7b --gpus 64 --ep 8 --zero 3")
    parts = answer("models mixtral-8x7b")["result"]["parts"]
    experts = parts["experts"]
    rest = sum(parts.values()) - experts
    assert step(found, "N_r") == rest + experts / 8
    weights = found["result"]["per_gpu_bytes"]["weights"]
    assert weights == pytest.approx(2 * (rest / 64 + experts / 8 / 8), rel=1e-12)
    # Not the experts over all ranks again, nor the rest over the ranks of experts alone.
    assert weights == pytest.approx(2 * sum(parts.values()) / 64, rel=1e-12)


def test_an_uneven_routing_is_a_stated_factor() -> None:
    asked = "--model mixtral-8x7b --gpus 8 --ep 8"
    even, fuller = kinds(asked), kinds(f"{asked} --imbalance 1.5")
    assert fuller["activations"] > even["activations"]
    assert "experts over 8 of them, sent rows 1.5 times the mean" in " ".join(
        answer(f"memory {asked} --imbalance 1.5")["notes"]
    )


@pytest.mark.parametrize(
    ("layers", "pp", "expected"),
    [
        (80, 4, [20, 20, 20, 20]),
        (126, 16, [7, *([8] * 14), 7]),  # Llama 3.1 405B, 2407.21783, section 3.3.2
        (61, 16, [4] * 13 + [3] * 3),
    ],
)
def test_layers_lie_where_they_really_lie(layers: int, pp: int, expected: list[int]) -> None:
    assert layers_of(layers, Degrees(pp=pp)) == expected


def test_the_stage_that_holds_most_is_named_with_its_micro_batches() -> None:
    asked = "memory --model llama-3.1-70b --gpus 32 --tp 8 --pp 4"
    found = answer(f"{asked} --grad-accum 16")
    words = "stage 0 of 0-3 holds most: layers 0-19 of 80 + input table; 4 micro-batches in flight"
    assert words in found["notes"]
    assert step(found, "n_fly") == 4
    assert step(answer(f"{asked} --grad-accum 2"), "n_fly") == 2


def test_the_last_stage_holds_most_where_the_logits_are_more_than_what_waits() -> None:
    asked = "memory --model gemma-2b --gpus 2 --pp 2 --recompute full --seq-len 8192"
    assert any(note.startswith("stage 1 of 0-1 holds most") for note in answer(asked)["notes"])


def test_interleaved_stages_keep_as_much_more_as_their_paper_says() -> None:
    """2205.05198, section 4.2.3: 1 + (p - 1) / (p m) times the layers of a plain schedule."""
    asked = "memory --model llama-3.1-70b --gpus 4 --pp 4 --grad-accum 64 --virtual-stages"
    assert step(answer(f"{asked} 5"), "n_fly") == pytest.approx(4 * (1 + 3 / (4 * 5)))


def test_context_parallel_ranks_keep_their_tokens_of_each_sequence() -> None:
    one = kinds("--model llama-3-8b --gpus 8 --seq-len 8192")
    eight = kinds("--model llama-3-8b --gpus 8 --cp 8 --seq-len 65536")
    assert eight["activations"] == one["activations"]
    assert eight["weights"] == one["weights"]


ONES = "--tp 1 --pp 1 --ep 1 --cp 1"


@pytest.mark.parametrize(
    "asked",
    [
        "--model llama-3-8b --gpus 8 --seq-len 8192",
        "--model mixtral-8x7b --gpus 64 --zero 1 --recompute full",
        "--model gpt2 --attention eager",
        "--model llama-7b --lora-rank 8 --quantize nf4",
        "--model gemma-2-9b --gpus 4 --fit micro-batch",
    ],
)
@pytest.mark.parametrize("format", ["json", "markdown", "csv", "table"])
def test_one_of_each_is_byte_for_byte_the_answer_without_them(asked: str, format: str) -> None:
    plain = napkin(f"memory {asked} -f {format}")
    assert plain.code == 0
    assert napkin(f"memory {asked} {ONES} -f {format}") == plain


MODELS = st.sampled_from(["llama-3-8b", "mixtral-8x7b", "gpt2", "qwen2.5-7b", "gemma-2-9b"])
DEGREE = st.sampled_from([1, 2, 3, 4, 8, 16])
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(MODELS, DEGREE, DEGREE, DEGREE, DEGREE, st.integers(1, 300))
def test_all_ranks_are_gpus_or_one_line_says_why_not(
    model: str, tp: int, pp: int, cp: int, ep: int, gpus: int
) -> None:
    asked = f"--model {model} --tp {tp} --pp {pp} --cp {cp} --ep {ep} --gpus {gpus}"
    ran = napkin(f"memory {asked} --seq-len 4080 --attention flash -f json")
    if ran.code:
        assert ran.code == 2
        assert ran.err.count("\n") == 1
        return
    found = answer(f"memory {asked} --seq-len 4080 --attention flash")
    assert gpus % lcm(tp * pp * cp, tp * pp * ep) == 0
    if tp * pp > 1 and found["inputs"]["zero"] and gpus > tp * pp:
        assert step(found, "n_dp") * tp * pp == gpus


@QUICK
@given(
    st.sampled_from(["llama-3-8b", "qwen2.5-7b", "gemma-2-9b", "mixtral-8x7b"]),
    st.sampled_from(["none", "full"]),
    st.integers(0, 3),
    st.sampled_from(["tp", "cp", "gpus", "pp"]),
    st.booleans(),
)
def test_more_ranks_never_need_more_a_gpu(
    model: str, recompute: str, zero: int, way: str, is_sequence: bool
) -> None:
    def peak(degree: int) -> float:
        # As many micro-batches as either pipeline has stages.
        fixed = f"--model {model} --recompute {recompute} --zero {zero} --grad-accum 8"
        more = " --sequence-parallel" if way == "tp" and is_sequence and degree > 1 else ""
        gpus = 4 * degree
        degrees = f"--{way} {degree}" if way != "gpus" else ""
        return kinds(f"{fixed} {degrees} --gpus {gpus} --attention flash{more}")["peak"]

    if way == "pp":  # stages hold whole layers, and both ends a table
        peaks = [peak(degree) for degree in (1, 2)]
    else:
        peaks = [peak(degree) for degree in (1, 2, 4)]
    assert peaks == sorted(peaks, reverse=True)


@QUICK
@given(
    MODELS,
    st.sampled_from(["", "--tp 2", "--pp 2", "--tp 2 --pp 2 --sequence-parallel", "--cp 2"]),
    st.sampled_from(["none", "full"]),
)
def test_each_stage_of_zero_needs_no_more_than_the_one_before(
    model: str, degrees: str, recompute: str
) -> None:
    assume(not (model == "qwen2.5-7b" and "--tp" in degrees))
    asked = f"--model {model} --gpus 16 {degrees} --recompute {recompute} --grad-accum 4"
    states = [
        sum(
            kinds(f"{asked} --zero {stage} --attention flash --bucket-view")[kind]
            for kind in ("weights", "master_weights", "gradients", "optimizer")
        )
        for stage in range(4)
    ]
    assert states == sorted(states, reverse=True)


ERRORS = {
    "--model llama-3-8b --gpus 12 --tp 8": (
        "--gpus: 12 are not divided by --tp 8; write a multiple of 8"
    ),
    "--model llama-3-8b --gpus 16 --tp 2 --pp 2 --ep 8": (
        "--gpus: 16 are not divided by --tp 2 --pp 2 --ep 8; write a multiple of 32"
    ),
    "--model llama-3-8b --tp 3": "--tp: 3 do not divide the 32 of llama-3-8b: attention heads",
    "--model llama-3-8b --ep 2": "--ep: llama-3-8b has no experts",
    "--model llama-3-8b --pp 64": "--pp: 32 layers do not fill 64 stages",
    "--model llama-3-8b --tp 0": "--tp: '0' is not above 0; write 8 or 1024",
    "--model llama-3-8b --tp -2": "--tp: '-2' is not above 0; write 8 or 1024",
    "--model mixtral-8x7b --ep 3": "--ep: 3 do not divide the 8 experts of mixtral-8x7b",
    "--model llama-3-8b --cp 3": "--cp: 3 do not divide the 4,096 tokens of --seq-len",
    "--model llama-3-8b --cp 2 --attention eager": (
        "--cp: ranks pass keys and values on in flash attention alone"
    ),
    "--model llama-3-8b --sequence-parallel": (
        "--sequence-parallel: divides what --tp leaves whole; write --tp too"
    ),
    "--model llama-3-8b --virtual-stages 2": (
        "--virtual-stages: goes with --pp: several stages of a rank"
    ),
    "--model llama-3-8b --imbalance 2": (
        "--imbalance: goes with --ep: how much more the fullest rank is sent"
    ),
    "--model mixtral-8x7b --ep 8 --imbalance 0.5": (
        "--imbalance: '0.5' is less than the mean; 1.2 is a fifth more"
    ),
    "--params 7e9 --ep 8": "--ep: goes with --model: --params knows no layers",
    "--model linear:L=4,d=64 --tp 2": "--tp: is not counted of linear:L=4,d=64",
}


@pytest.mark.parametrize("asked", ERRORS)
def test_what_cannot_be_so_divided_is_refused_in_one_line(asked: str) -> None:
    ran = napkin(f"memory {asked}")
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {ERRORS[asked]}\n")


# What other calculators get wrong here, with the right values.
LLAMA_70B = "--model llama-3-70b --gpus 8 --tp 8"


def test_zero_1_beside_tensor_parallel_divides_gradients_by_it_too() -> None:
    """Not 263 GiB a GPU, as of a model that nobody divides."""
    of = kinds(f"{LLAMA_70B} --zero 1 --precision mixed-fp32-grads")
    assert of["gradients"] / 2**30 == pytest.approx(4 * 70.5537e9 / 8 / 2**30, rel=1e-3)


def test_zero_3_does_not_divide_by_all_gpus_what_tensor_parallel_divides_already() -> None:
    """16.44 GiB of weights on 8 GPUs with tensor parallel 8, not 2.06."""
    assert kinds(f"{LLAMA_70B} --zero 3")["weights"] / 2**30 == pytest.approx(16.44, abs=0.02)


def test_a_whole_model_is_not_reported_as_what_expert_ranks_hold_of_it() -> None:
    assert answer("memory --model mixtral-8x7b --gpus 8 --ep 8")["inputs"]["params"] == 46702792704


def test_full_recomputation_keeps_one_input_a_layer_and_is_not_the_same_as_none() -> None:
    asked = "--model llama-3-70b --seq-len 8192 --gpus 64"
    found = answer(f"memory {asked} --recompute full")
    assert step(found, "L") * step(found, "a_block") / 2**30 == 10
    assert kinds(f"{asked} --recompute full")["peak"] < kinds(asked)["peak"]


def test_d_ff_and_key_value_heads_move_what_layers_keep() -> None:
    shape = "--model llama:L=4,d=512,H=8,kv={},ff={},V=1000 --seq-len 512"
    usual = kinds(shape.format(8, 2048))["activations"]
    assert kinds(shape.format(2, 2048))["activations"] < usual
    assert kinds(shape.format(8, 4096))["activations"] > usual


def test_the_parts_of_a_peak_are_added_not_their_largest_taken() -> None:
    of = kinds("--params 70e9")
    assert of["peak"] == 16 * 70e9


@pytest.mark.parametrize(
    "asked",
    [
        "--params -7e9",
        "--params 0",
        "--params nan",
        "--params 7e9 --gpus 0",
        "--params 7e9 --gpus -8",
        "--model gpt2 --micro-batch -1",
        "--model gpt2 --gpus 2 --tp 16",
        "--params 7e9 --memory -5",
        "--params 7e9 --memory nan",
        "--params 7e9 --precision fp8",
        "--params 1e30 --gpus 1e30",
    ],
)
def test_what_others_answer_without_a_word_is_refused(asked: str) -> None:
    ran = napkin(f"memory {asked}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
