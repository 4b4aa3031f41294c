"""One layer, operation by operation, against what the other questions say of the whole."""

import pytest

from napkin.accounting.operations import RANDOM_STATE
from tests.running import answer, napkin

LLAMA = "llama:L=2,d=64,H=4,kv=2,ff=160,V=300"
SCREEN = """\
43,136 parameters  one layer of 2 · llama:L=2,d=64,H=4,kv=2,ff=160,V=300, a sequence of 4,096 tokens in bf16, flash attention

operation                      shape   parameters        FLOP    kept
─────────────────────────────────────────────────────────────────────
norm before the attention         64           64                 388
query                        64 × 64        4,096       8,192     128
key                          64 × 32        2,048       4,096
value                        64 × 32        2,048       4,096
scores and their values       4 × 16                1,048,576     400
output                       64 × 64        4,096       8,192
norm before the MLP               64           64                 388
gate                        64 × 160       10,240      20,480     128
up                          64 × 160       10,240      20,480
activation                       160                              320
product                          160                              640
down                        160 × 64       10,240      20,480     320
sum                                        43,136   1,134,592   2,712
FLOP: of one token, forward; kept: bytes of one token, for the backward pass
"""


def test_the_screen_of_a_small_llama_has_a_row_for_each_operation_and_their_sum() -> None:
    ran = napkin(f"models {LLAMA} --layer")
    assert (ran.code, ran.out, ran.err) == (0, SCREEN, "")
    assert napkin(f"models {LLAMA} --layer --explain").out.startswith(SCREEN.rpartition("FLOP:")[0])
    in_markdown = napkin(f"models {LLAMA} --layer -f markdown").out
    assert "| query | 64 × 64 | 4,096 | 8,192 | 128 |\n" in in_markdown


MEASURED = [
    LLAMA,
    "llama-3-8b",  # its layers have key-value heads for several queries
    "gpt2",  # biases
    "qwen3-0.6b",  # norms of heads
    "phi-3-mini",  # fused matmuls
    "pythia-1b",  # attention and MLP side by side
    "mixtral-8x7b",
]


@pytest.mark.parametrize("model", MEASURED)
def test_the_sums_are_the_parameters_flop_and_bytes_that_other_answers_have(model: str) -> None:
    found = answer(f"models {model} --layer")["result"]
    sums = {key: sum(row[key] for row in found["layer"]) for key in ("parameters", "flop", "kept")}
    shape = answer(f"flops --model {model}")
    sizes = {row["symbol"]: row["value"] for row in shape["derivation"]}
    L, outside = sizes["L"], ("input table", "positions", "final norm", "output head")
    inside = sum(size for part, size in found["parts"].items() if part not in outside)
    assert sums["parameters"] * L == inside
    head = 2 * sizes["d"] * sizes["V"]
    assert sums["flop"] * L + head == shape["result"]["forward_per_token"]
    step = answer(f"memory --model {model} --precision bf16 --attention flash")
    kept = [
        row["value"]
        for row in step["derivation"]
        if row["symbol"].startswith("a_") and row["label"].endswith(", one layer")
    ]
    assert sums["kept"] * step["inputs"]["seq_len"] + RANDOM_STATE == sum(kept)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("", "goes with a model, as in: napkin models llama-3-8b --layer"),
        ("linear:L=2,d=4", "linear:L=2,d=4 is square matrices alone"),
    ],
)
def test_a_layer_of_no_transformer_is_refused(asked: str, says: str) -> None:
    ran = napkin(f"models {asked} --layer")
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: --layer: {says}\n")
