"""Peaks that others measured, beside what napkin says of the same recipe: README's table."""

from collections.abc import Iterator
from pathlib import Path
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


# Further off than a fifth, and why.
FURTHER = {
    "torchtitan-mem-70b-256": "logits of 16 sequences, whole on every tensor rank",
    "torchtitan-mem-405b-512-1f1b": "the size of its micro-batches is not published",
    "torchtune-405b-qlora-8xa100": "activations were moved to the host",
}


class Peak(NamedTuple):
    """In B; `asked` is empty of a step that is run here."""

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


def real(folder: Path) -> Iterator[Peak]:
    """Of whole steps of small models in bf16, run on this machine with every storage followed."""
    import torch

    from tests.checking import test_adapters as adapted
    from tests.checking import test_whole_step as whole

    for kind, fields, B, T, how, optimizer in (
        ("llama", whole.LLAMA, 2, 256, "none", "adamw foreach"),
        ("llama", whole.LLAMA, 2, 256, "full", "adamw fused"),
        ("gpt2", whole.GPT2, 2, 256, "none", "adamw fused"),
        ("mixtral", whole.EXPERTS, 2, 256, "full", "sgd foreach"),
    ):
        asked = (kind, fields, B, T, how, optimizer, torch.bfloat16)
        measured = max(whole.stepped(*asked).values())
        computed = whole.computed(folder, *asked).peak.bytes
        yield Peak(kind, f"{kind}, recomputation {how}, {optimizer}", "", computed, measured)
    for words, where, again in (
        ("all", "all-linear", "none"),
        ("qv", ["q_proj", "v_proj"], "full"),
    ):
        model = adapted.adapted("llama", adapted.BIG, where, torch.bfloat16, True, again)
        T = 4 * adapted.TOKENS
        steps = whole.stepped_of(model, whole.made("adamw foreach"), adapted.BATCH, T)
        layout = adapted.layout(words, torch.bfloat16, True, again).replace(seq_len=T)
        found = adapted.step(folder, "llama", adapted.BIG, layout)
        what = f"llama, LoRA beside {words}, recomputation {again}, adamw foreach"
        yield Peak("llama-lora", what, "", found.peak.bytes, max(steps.values()))


def table(folder: Path) -> str:
    """README's, the worst miss named beneath."""
    every = [*published(), *real(folder)]
    lines = ["| published, or run here | napkin | measured | off by |", "|---|---:|---:|---:|"]
    for peak in every:
        recipe = (
            f"`napkin memory --model {peak.asked}`" if peak.asked else f"a real step: {peak.what}"
        )
        unit = 1e9 if peak.asked else 1e6
        name = "GB" if peak.asked else "MB"
        figures = (f"{bytes / unit:.1f} {name}" for bytes in (peak.computed, peak.measured))
        lines.append(f"| {recipe} | {' | '.join(figures)} | {peak.off:+.1%} |".replace("%", " %"))
    worst = max(every, key=lambda peak: abs(peak.off))
    off = f"{worst.off:+.0%}".replace("%", " %")
    return "\n".join(
        [*lines, "", f"The worst miss is `{worst.name}`, {off}: {FURTHER[worst.name]}."]
    )
