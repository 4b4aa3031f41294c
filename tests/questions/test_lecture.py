"""Tensors, number formats, matmuls, data and checkpoints, against values from outside."""

from typing import Any

import pytest

from napkin.accounting import compute, run
from napkin.quantity import given
from napkin.questions.checkpoint import checkpoint
from napkin.questions.data import data as training_set
from napkin.questions.matmul import matmul
from napkin.questions.tensor import tensor
from napkin.specs.dtypes import BITS, FORMATS, NF4_DOUBLE, precision
from tests.running import answer, answers, data, napkin

ROWS = {row["id"]: row for row in data("golden_lecture.yaml")}
NAMES = {"smallest_normal": "smallest_normal", "exp": "exponent"}


def rows(prefix: str, key: str = "") -> list[Any]:
    found = [row for id, row in ROWS.items() if id.startswith(prefix) and key in str(row)]
    assert found
    return [pytest.param(row["inputs"], row["expected"], id=row["id"]) for row in found]


@pytest.mark.parametrize(("asked", "expected"), rows("dtype.", "smallest_normal"))
def test_a_format_s_figures_follow_from_its_widths(
    asked: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = answer(f"dtypes {precision(asked['dtype'])}")["result"]
    bias = expected.pop("bias")
    assert found == {NAMES.get(key, key): value for key, value in expected.items()}
    assert FORMATS[precision(asked["dtype"])].bias == bias


def test_a_block_s_scales_are_in_its_bits() -> None:
    expected = {
        id.rpartition(".")[2]: row["expected"]["bits_per_value"]
        for id, row in ROWS.items()
        if id.startswith("dtype.effective_bits.")
    }
    for name in ("mxfp8", "mxfp6", "mxfp4", "nvfp4"):
        assert BITS[name] == expected[name]
    assert BITS["nf4"] == expected["nf4_block64_fp32"]
    assert expected["nf4_double_quant"] == NF4_DOUBLE


def test_a_small_value_becomes_nothing_in_fp16_and_stays_in_bf16() -> None:
    for name, value in ROWS["dtype.underflow_1e-8"]["expected"].items():
        assert answer(f"dtypes {name} --value 1e-8")["result"]["becomes"] == value
    boundary = ROWS["dtype.fp16_underflow_boundary"]["expected"]
    fp16 = FORMATS["fp16"]
    assert fp16.rounded(boundary["largest_to_zero"]) == 0
    assert fp16.rounded(boundary["largest_to_zero"] * (1 + 2**-52)) == boundary["next_result"]
    listed = {line.split()[0]: line for line in napkin("dtypes --value 1e-8").out.splitlines()}
    assert listed["fp16"].endswith(" 0")
    assert listed["bf16"].endswith(" 1.001171768e-08")
    assert FORMATS["bf16"].rounded(257) == 256
    assert FORMATS["fp16"].rounded(2049) == 2048


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_an_integer_has_its_range(name: str) -> None:
    expected = ROWS["dtype.int"]["expected"][name]
    found = answer(f"dtypes {name}")["result"]
    assert (found["bytes"], found["max"]) == (expected["bytes"], expected["max"])
    assert found["exponent"] is found["eps"] is None


def test_a_format_that_only_looks_like_ocp_s_is_refused() -> None:
    assert napkin("dtypes float8_e4m3fnuz").err == (
        "Error: 'float8_e4m3fnuz' is AMD's own of MI300 (max 240 for e4m3, 57344 for e5m2), "
        "not OCP's; write fp8 or fp8_e5m2\n"
    )


@pytest.mark.parametrize(("asked", "expected"), rows("tensor."))
def test_a_tensor_takes_its_elements_times_their_bytes(
    asked: dict[str, Any], expected: dict[str, Any]
) -> None:
    shape = "x".join(map(str, asked["shape"]))
    found = answer(f"tensor {shape} --dtype {asked['dtype']}")["result"]
    assert found["bytes"] == expected["bytes"]
    assert found["bytes"] == expected.get("MiB", found["bytes"] / 2**20) * 2**20


def test_several_tensors_add_up() -> None:
    """The lecture's total_memory_bytes: parameters, gradients, optimizer state, activations."""
    L, D, B = 2, 4, 2
    count = L * D * D + D
    shapes = [f"L={L},D={D},D_out={D}", f"D={D}", f"B={B},D={D},L={L}"]
    found = tensor(shapes=[*shapes[:2]] * 3 + shapes[2:])
    assert found.result == {"elements": 3 * count + B * D * L, "bytes": 4 * (3 * count + B * D * L)}
    assert tensor(shapes=["64x64"], dtype="nf4", double_quant=True).result["bytes"] == (
        4096 * NF4_DOUBLE / 8
    )


@pytest.mark.parametrize(("asked", "expected"), rows("matmul."))
def test_a_matmul_s_roofline(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """On the golden's own peak; the bandwidth is the H100's."""
    m, n, p = asked["m"], asked["n"], asked["p"]
    found = matmul(
        shapes=[f"{m}x{n}", f"{n}x{p}"],
        dtype="bf16" if asked["bytes_per_value"] == 2 else "fp32",
        peak=asked["peak_flops"],
        hardware="h100-sxm",
    ).result
    assert found.pop("mfu") is None
    assert found.pop("bound") == expected["bound"]
    figures = {key: value for key, value in expected.items() if key != "bound"}
    assert found == pytest.approx(figures, rel=1e-12)


def test_the_ridge_points_of_two_cards() -> None:
    """The golden takes half of 1,979 for the H100, its file 989.4."""
    row = ROWS["roofline.ridge"]
    (P, _), (P_a, _) = row["inputs"]["h100"], row["inputs"]["a100_80g"]
    for card, peak, ridge in (
        ("h100-sxm", P, row["expected"]["h100_flop_per_byte"]),
        ("a100-sxm-80gb", P_a, row["expected"]["a100_flop_per_byte"]),
    ):
        found = matmul(shapes=["8x8", "8x8"], hardware=card, peak=peak)
        steps = {step["symbol"]: step["value"] for step in found.derivation}
        assert steps["I_P"] == pytest.approx(ridge, rel=1e-12)


def test_a_matmul_s_time_gives_its_share_of_the_peak() -> None:
    found = answer("matmul 1024x51200 51200x51200 --time 0.03s")
    flop = 2 * 1024 * 51200 * 51200
    assert found["result"]["flops"] == flop
    assert found["result"]["mfu"] == pytest.approx(flop / 0.03 / 989.4e12)
    assert napkin("matmul 4x5 6x7").err == (
        "Error: 4x5 has 5 columns and 6x7 6 rows: the inner sides must be the same\n"
    )


@pytest.mark.parametrize("rows_", [1, 318, 319, 10_000])
def test_from_so_many_rows_on_the_peak_binds(rows_: int) -> None:
    found = answer(f"matmul {rows_}x8192 8192x8192")
    assert "compute-bound from 319 rows on, with these other sides" in found["notes"]
    assert found["result"]["bound"] == ("compute" if rows_ >= 319 else "memory")


@pytest.mark.parametrize(
    ("id", "tokens", "vocab"),
    [("data.openwebtext", 9_035_582_198, 50257), ("data.llama1", "1.4T", 32000)],
)
def test_a_training_set_s_bytes(id: str, tokens: float, vocab: int) -> None:
    found = training_set(tokens=tokens, vocab=vocab).result["bytes"]
    assert found == ROWS[id]["expected"]["bytes"]


def test_a_token_has_two_bytes_while_its_ids_fit() -> None:
    row = ROWS["data.dtype_choice"]
    found = [training_set(tokens=1e6, vocab=V).result["bytes"] for V in row["inputs"]["vocabs"]]
    assert found == [1e6 * each for each in row["expected"]["bytes_per_token"]]


def test_a_checkpoint_s_bytes_by_recipe() -> None:
    expected = ROWS["file.llama-3-8b"]["expected"]
    mixed = checkpoint(model="llama-3-8b").result
    assert mixed["weights_bytes"] == expected["bf16_weights"]
    assert mixed["bytes"] == expected["bf16_plus_master_and_adamw"]
    fp32 = checkpoint(model="llama-3-8b", precision="fp32").result
    assert fp32["bytes"] == expected["fp32_weights_plus_adamw"]
    nanogpt = ROWS["file.nanogpt_ckpt"]
    small = checkpoint(params=nanogpt["inputs"]["N"], precision="fp32").result["bytes"]
    assert small == nanogpt["expected"]["twelve_N"]
    overheads = ROWS["file.overheads"]["expected"]
    (note,) = [each for each in checkpoint(params="8B").notes if "a tensor" in each]
    assert str(overheads["torch_save_bytes_per_tensor_approx"]) in note
    assert str(overheads["safetensors_bytes_per_tensor_approx"]) in note
    rest = nanogpt["expected"]["mask_buffers"] + nanogpt["expected"]["rest"]
    assert small + rest == nanogpt["expected"]["measured_file"]


def test_llama_3_lost_less_than_a_tenth_of_its_time() -> None:
    """2407.21783: 419 unplanned interruptions in 54 days on 16,384 GPUs, over 90 % effective."""
    hours = 54 * 24 * 16384 / 419
    found = checkpoint(
        params="405B", gpus=16384, mtbf=hours, bandwidth=f"{5.67e12 / 10} B/s", restart="10min"
    )
    steps = {step["symbol"]: step["value"] for step in found.derivation}
    assert steps["M"] == pytest.approx(3.1 * 3600, rel=0.01)
    assert found.result["seconds"] == pytest.approx(10)
    assert found.result["interval_seconds"] == pytest.approx(7.9 * 60, rel=0.01)
    assert found.result["lost"]["sum"] == pytest.approx(0.096, abs=0.001)
    by_default = checkpoint(params="405B", gpus=16384, bandwidth="2TB/s").result["lost"]["sum"]
    assert 0.05 < by_default < 0.1


def test_chinchilla_s_model_and_tokens() -> None:
    row = ROWS["chinchilla"]
    C = given("C", "training compute", row["inputs"]["C"], "FLOP", "--flops")
    N = run.optimal_params(C, compute.TRAINING, compute.TOKENS_PER_PARAM)
    assert N.value == pytest.approx(row["expected"]["N"], rel=1e-12)
    assert run.solve({"N": N, "D/N": compute.TOKENS_PER_PARAM}, run.RUN)[
        "D"
    ].value == pytest.approx(row["expected"]["D"], rel=1e-12)


def test_all_formats_are_listed_with_what_becomes_of_a_value() -> None:
    found = answers("dtypes --value 70000")
    becomes = {each["inputs"]["dtype"]: each["result"]["becomes"] for each in found}
    assert list(becomes) == list(FORMATS)
    assert becomes["fp16"] is None
    assert (becomes["bf16"], becomes["fp8"], becomes["fp4"]) == (70144, 448, 6)
