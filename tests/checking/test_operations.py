"""An architecture that nobody made: its reader is all that napkin is told of it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from napkin.specs import architectures
from napkin.specs.architectures.decoder import FIELDS, Sizes, decoder
from napkin.specs.config import Config
from napkin.specs.model import Model, Norm, Rotary
from napkin.specs.reader import reader
from tests.checking.saving import bytes_saved
from tests.running import answer

BATCH, TOKENS = 2, 48
LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, INNER, WORDS = 3, 64, 4, 2, 24, 112, 200
ROTATED = HEAD // 2
FIELDS_OF_ONE = {
    "model_type": "made_up",
    "num_hidden_layers": LAYERS,
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD,
    "intermediate_size": INNER,
    "vocab_size": WORDS,
    "max_position_embeddings": 128,
}


@reader(FIELDS + "head_dim hidden_act")
def made_up(config: Config) -> Model:
    """A gate and what it lets through by one matmul, norms after a sublayer, half a head turned."""
    return decoder(
        config,
        Sizes(32000, 4096, 11008, 32, 32, longest=2048),
        attention={"rotary": Rotary(share=0.5)},
        mlp={"fused": True},
        norm=Norm("rms", "after"),
    )


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        normalised = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * normalised.to(x.dtype)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.k = nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.v = nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.o = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.gate_up = nn.Linear(WIDTH, 2 * INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)
        self.after_attention, self.after_mlp = RMSNorm(), RMSNorm()

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.after_attention(self.attention(x, cos, sin))
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        mlp: Tensor = self.after_mlp(self.down(functional.silu(gate) * up))
        return x + mlp

    def attention(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = (
            each(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for each in (self.q, self.k, self.v)
        )
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        k, v = (each.repeat_interleave(HEADS // KV_HEADS, dim=1) for each in (k, v))
        scores = q @ k.transpose(2, 3) * HEAD**-0.5
        scores = scores + torch.full((TOKENS, TOKENS), -1e9, dtype=x.dtype).triu(1)
        weights = scores.softmax(-1, dtype=torch.float32).to(x.dtype)
        out: Tensor = self.o((weights @ v).transpose(1, 2).flatten(2))
        return out


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """By its position, half of it."""
    turning, still = x[..., :ROTATED], x[..., ROTATED:]
    first, second = turning.chunk(2, dim=-1)
    turning = turning * cos + torch.cat((-second, first), dim=-1) * sin
    return torch.cat((turning, still), dim=-1)


class MadeUp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = RMSNorm()
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        speeds = 10000 ** -(torch.arange(0, ROTATED, 2) / ROTATED)
        angles = torch.outer(torch.arange(TOKENS), speeds).repeat(1, 2)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits: Tensor = self.head(self.norm(x))
        return logits

    def loss(self, ids: Tensor) -> Tensor:
        return functional.cross_entropy(self(ids).float().flatten(0, 1), ids.flatten())


IDS = torch.zeros(BATCH, TOKENS, dtype=torch.long)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The options that name the model."""
    monkeypatch.setitem(architectures.READERS, "made_up", made_up)
    (tmp_path / "config.json").write_text(json.dumps(FIELDS_OF_ONE))
    return f"--model {tmp_path} --seq-len {TOKENS}"


def test_its_parameters_and_flop_are_those_of_torch(told: str) -> None:
    model = MadeUp()
    with FlopCounterMode(display=False) as forward:
        output = model(IDS)
    with FlopCounterMode(display=False) as backward:
        output.sum().backward()
    result = answer(f"flops {told}")["result"]
    assert result["params"] == sum(each.numel() for each in model.parameters())
    assert result["forward_per_token"] * BATCH * TOKENS == forward.get_total_flops()
    assert result["backward_per_token"] * BATCH * TOKENS == backward.get_total_flops()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_its_bytes_kept_are_those_of_torch(told: str, precision: str) -> None:
    dtypes: dict[str, Any] = {"fp32": torch.float32, "bf16": torch.bfloat16}
    model = MadeUp().to(dtypes[precision])
    step = f"memory {told} --micro-batch {BATCH} --precision {precision} --attention eager"
    kept = answer(step)["result"]["per_gpu_bytes"]["activations"]
    assert kept == bytes_saved(model, lambda: model.loss(IDS))
