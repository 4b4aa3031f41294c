"""What a rank keeps under torch's tensor-parallel plan, on two processes that talk by gloo."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as untyped
import transformers as typed_in_part
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from napkin.accounting.layout import Degrees, Layout
from napkin.accounting.notation import PLAIN
from napkin.accounting.parameters import parameters
from napkin.accounting.stages import fullest
from napkin.specs import models
from napkin.specs.model import Model, Share
from napkin.specs.optimizers import OPTIMIZERS, PRECISIONS

spawn: Any = untyped.spawn  # type: ignore[attr-defined]
transformers: Any = typed_in_part

RANKS, BATCH, TOKENS = 2, 2, 64
LLAMA = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "head_dim": 16,
    "num_key_value_heads": 2,
    "intermediate_size": 160,
    "max_position_embeddings": 128,
    "vocab_size": 300,
}
CASES: list[tuple[str, Mapping[str, Any]]] = [
    ("llama", LLAMA),
    ("qwen3", LLAMA | {"num_key_value_heads": 4, "intermediate_size": 96}),
    ("qwen2", LLAMA | {"num_hidden_layers": 3, "vocab_size": 400}),
]
PLAN = {
    "model.embed_tokens": RowwiseParallel(input_layouts=Replicate()),
    **{
        f"model.layers.*.{name}": ColwiseParallel()
        for name in (
            *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            *("mlp.gate_proj", "mlp.up_proj"),
        )
    },
    **{
        f"model.layers.*.{name}": RowwiseParallel()
        for name in ("self_attn.o_proj", "mlp.down_proj")
    },
    "lm_head": ColwiseParallel(),
}


def local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def one_rank(rank: int, port: int, kind: str, fields: Mapping[str, Any], file: str) -> None:
    """Writes down the elements and the bytes that this rank keeps of a forward pass."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **fields)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    model = model.to(torch.bfloat16).train()
    parallelize_module(model, init_device_mesh("cpu", (RANKS,)), PLAN)
    own = [local(each) for each in [*model.parameters(), *model.buffers()]]
    params = sum(local(each).numel() for each in model.parameters())
    ours = {each.untyped_storage().data_ptr() for each in own}
    kept: dict[int, int] = {}
    alive = []  # a freed tensor's place could be another's

    def note(tensor: torch.Tensor) -> torch.Tensor:
        mine = local(tensor)
        place = mine.untyped_storage().data_ptr()
        if mine.is_floating_point() and place not in ours:
            kept[place] = mine.untyped_storage().nbytes()
            alive.append(mine)
        return tensor

    ids = torch.zeros(BATCH, TOKENS, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model.model(input_ids=ids, use_cache=False)
    if rank == 0:
        Path(file).write_text(json.dumps([params, sum(kept.values())]))
    dist.destroy_process_group()


@pytest.mark.parametrize(("kind", "fields"), CASES, ids=[case[0] for case in CASES])
def test_a_rank_keeps_what_napkin_says(
    kind: str, fields: Mapping[str, Any], tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = tmp_path / "kept.json"
    spawn(one_rank, (port, kind, fields, str(file)), nprocs=RANKS)
    params, kept = json.loads(file.read_text())
    whole = described(tmp_path, {**fields, "model_type": kind})
    assert parameters(whole.replace(share=Share(tensor=RANKS))).N.value == params
    bare = described(tmp_path, {**fields, "model_type": kind, "architectures": BARE[kind]})
    layout = Layout(
        PRECISIONS["bf16"],
        OPTIMIZERS["adamw"],
        ranks=1,
        zero=0,
        micro_batch=BATCH,
        seq_len=TOKENS,
        random_state=0,
        degrees=Degrees(tp=RANKS),
    )
    assert fullest(bare, layout, "", PLAIN).activations == kept


BARE = {kind: [f"{kind.capitalize()}Model"] for kind in ("llama", "qwen3", "qwen2")}


def described(folder: Path, fields: Mapping[str, Any]) -> Model:
    (folder / "config.json").write_text(json.dumps(fields))
    model = models.find(str(folder))
    assert isinstance(model, Model)
    return model
