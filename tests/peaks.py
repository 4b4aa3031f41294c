"""Peaks that others measured, beside what napkin says of the same recipe: README's table."""

from collections.abc import Iterator
from typing import NamedTuple

from tests.running import answer, data

UNITS = {"GB": 1e9, "GiB": 2**30, "MB": 1e6}
TORCHTUNE = "--precision bf16 --micro-batch 2 --seq-len 2048 --recompute full --chunked-loss"
TORCHTITAN = "--seq-len 8192 --recompute full"
QLORA = "--lora-rank 64 --quantize nf4 --precision bf16"
BLOOM = (
    "gpt2:L=72,d=14336,H=112,ff=57344,V=250880 --seq-len 2048 --precision mixed-fp32-grads "
    "--activations korthikanti --recompute full --grad-accum 64 --zero 1"
)

# A published row, the recipe as napkin is asked for it, and bytes of which kind: the whole peak,
# or the weights that are frozen.
RECIPES = {
    "qlora-65b-total": (
        f"llama-65b {QLORA} --optimizer paged-adam8bit --recompute full --seq-len 512",
        "peak",
    ),
    "qlora-33b-total": (
        f"llama-30b {QLORA} --optimizer paged-adam8bit --recompute full --seq-len 512",
        "peak",
    ),
    "qlora-fig6-weights-13b": (f"llama-13b {QLORA}", "W_0"),
    "qlora-fig6-weights-33b": (f"llama-30b {QLORA}", "W_0"),
    "qlora-fig6-weights-65b": (f"llama-65b {QLORA}", "W_0"),
    "torchtune-3b-act-ckpt": (
        "llama-3.2-3b --precision bf16 --micro-batch 2 --seq-len 4096 --recompute full "
        "--chunked-loss --step fused",
        "peak",
    ),
    "torchtune-3b-lora": (
        "llama-3.2-3b --lora-rank 8 --precision bf16 --micro-batch 2 --seq-len 4096 "
        "--recompute full --chunked-loss",
        "peak",
    ),
    "torchtune-3b-qlora": (
        "llama-3.2-3b --lora-rank 8 --quantize nf4 --precision bf16 --micro-batch 2 "
        "--seq-len 4096 --recompute full --chunked-loss",
        "peak",
    ),
    "torchtune-8b-lora-4090": (f"llama-3.1-8b --lora-rank 8 {TORCHTUNE}", "peak"),
    "torchtune-8b-qlora": (f"llama-3.1-8b --lora-rank 8 --quantize nf4 {TORCHTUNE}", "peak"),
    "torchtune-70b-lora-8xa100": (f"llama-3.1-70b --gpus 8 --lora-rank 8 {TORCHTUNE}", "peak"),
    "torchtune-405b-qlora-8xa100": (
        f"llama-3.1-405b --gpus 8 --lora-rank 8 --quantize nf4 {TORCHTUNE}",
        "peak",
    ),
    "litgpt-lora-llama2-7b-mb1": (
        "llama-2-7b --lora-rank 8 --lora-targets qv --precision bf16 --seq-len 2048",
        "peak",
    ),
    "litgpt-lora-llama2-7b-mb2": (
        "llama-2-7b --lora-rank 8 --lora-targets qv --precision bf16 --micro-batch 2 "
        "--seq-len 2048",
        "peak",
    ),
    "torchtitan-mem-8b-cp1-32k": (
        "llama-3.1-8b --gpus 8 --seq-len 32768 --recompute full",
        "peak",
    ),
    "torchtitan-mem-8b-cp8-262k": (
        "llama-3.1-8b --gpus 8 --cp 8 --seq-len 262144 --recompute full",
        "peak",
    ),
    "torchtitan-mem-70b-256": (
        f"llama-3.1-70b --gpus 256 --tp 8 --sequence-parallel --micro-batch 16 {TORCHTITAN}",
        "peak",
    ),
    "torchtitan-mem-405b-512-1f1b": (
        "llama-3.1-405b --gpus 512 --tp 8 --pp 8 --sequence-parallel --micro-batch 4 "
        f"--grad-accum 8 {TORCHTITAN}",
        "peak",
    ),
    **{
        f"bloom-prequel-dp{dp}-tp8-pp{pp}-mbs{b}-zero1": (
            f"{BLOOM} --gpus 384 --tp 8 --pp {pp} --micro-batch {b}",
            "peak",
        )
        for dp, pp, sizes in ((8, 6, (1, 2, 4)), (4, 12, (1, 2, 4, 8)))
        for b in sizes
    },
}


class Peak(NamedTuple):
    """In B."""

    name: str
    what: str
    asked: str
    computed: float
    measured: float

    @property
    def off(self) -> float:
        return self.computed / self.measured - 1


def published() -> Iterator[Peak]:
    """Every recipe's."""
    rows = {row["id"]: row for row in data("published_memory.yaml")}
    for name, (asked, kind) in RECIPES.items():
        row, found = rows[name], answer(f"memory --model {asked}")
        computed = found["result"]["per_gpu_bytes"]["peak"]
        if kind != "peak":
            computed = next(s["value"] for s in found["derivation"] if s["symbol"] == kind)
        yield Peak(name, row["what"], asked, computed, row["value"] * UNITS[row["unit"]])
