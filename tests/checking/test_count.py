"""The formulas against transformers' own classes and torch's FLOP counter."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from napkin.accounting.parameters import parameters as counted
from napkin.checking.count import built_on_meta, count, parameters
from napkin.questions.flops import flops
from napkin.specs import architectures, models
from napkin.specs.folders import model_names
from napkin.specs.model import Model
from tests.running import answer

TOKENS = 48
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 112,
    "vocab_size": 200,
    "max_position_embeddings": 128,
}
GROUPED = SIZES | {"num_key_value_heads": 2}
MLA = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 24,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 20,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 40,
}
# Every architecture, and every switch of it that changes a count.
SMALL: list[tuple[str, Mapping[str, Any]]] = [
    ("llama", GROUPED),
    ("llama", SIZES | {"tie_word_embeddings": True, "head_dim": 24}),
    ("llama", GROUPED | {"attention_bias": True, "mlp_bias": True}),
    ("mistral", GROUPED | {"sliding_window": 16}),
    ("qwen2", GROUPED),
    ("qwen2", GROUPED | {"use_sliding_window": True, "max_window_layers": 1}),
    ("qwen3", GROUPED | {"attention_bias": True, "head_dim": 24}),
    ("gemma", GROUPED),
    ("gemma2", GROUPED | {"sliding_window": 16}),
    ("gemma3_text", GROUPED | {"sliding_window": 16, "head_dim": 24}),
    ("phi3", GROUPED),
    ("olmo2", GROUPED),
    ("gpt2", {"n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 200, "n_positions": 128}),
    ("gpt2", {"n_embd": 64, "n_layer": 1, "n_head": 4, "vocab_size": 200, "n_inner": 80}),
    ("gpt_neox", SIZES),
    ("gpt_neox", SIZES | {"attention_bias": False, "tie_word_embeddings": True}),
    ("opt", SIZES | {"ffn_dim": 112, "word_embed_proj_dim": 64}),
    ("opt", SIZES | {"ffn_dim": 112, "word_embed_proj_dim": 32, "do_layer_norm_before": False}),
    ("opt", SIZES | {"ffn_dim": 112, "word_embed_proj_dim": 64, "enable_bias": False}),
    ("opt", SIZES | {"ffn_dim": 112, "layer_norm_elementwise_affine": False, "word_embed_proj_dim": 64}),
    ("mixtral", GROUPED | {"num_local_experts": 4}),
    ("qwen2_moe", GROUPED | {"num_experts": 6, "moe_intermediate_size": 40, "decoder_sparse_step": 2}),
    ("qwen2_moe", GROUPED | {"num_experts": 6, "moe_intermediate_size": 40, "mlp_only_layers": [1]}),
    ("qwen2_moe", GROUPED | {"num_experts": 6, "shared_expert_intermediate_size": 72, "qkv_bias": False}),
    ("qwen3_moe", GROUPED | {"num_experts": 16, "moe_intermediate_size": 40, "head_dim": 24}),
    ("qwen3_moe", GROUPED | {"num_experts": 16, "moe_intermediate_size": 40, "decoder_sparse_step": 2}),
    ("qwen2_moe", GROUPED | {"num_experts": 6, "shared_expert_intermediate_size": 0}),
    ("qwen3_moe", GROUPED | {"num_experts": 0}),
    ("deepseek_v3", SIZES | MLA | {"n_shared_experts": 0, "n_group": 2, "topk_group": 1}),
    ("deepseek_v2", SIZES | MLA | {"first_k_dense_replace": 9}),
    ("gpt_neox", SIZES | {"use_parallel_residual": False}),
    ("gpt_oss", GROUPED | {"num_local_experts": 6, "head_dim": 24, "sliding_window": 16}),
    ("gpt_oss", GROUPED | {"num_local_experts": 6, "attention_bias": False}),
    ("deepseek_v2", SIZES | MLA | {"q_lora_rank": None, "first_k_dense_replace": 1}),
    ("deepseek_v2", SIZES | MLA | {"q_lora_rank": 32, "attention_bias": True}),
    ("deepseek_v3", SIZES | MLA | {"q_lora_rank": 32, "first_k_dense_replace": 2, "n_group": 2, "topk_group": 1}),
    ("deepseek_v3", SIZES | MLA | {"q_lora_rank": 32, "attention_bias": True, "n_group": 2, "topk_group": 1}),
]  # fmt: skip


def test_every_architecture_is_counted() -> None:
    assert {kind for kind, _ in SMALL} == set(architectures.READERS)


@pytest.mark.parametrize(
    ("kind", "fields"), SMALL, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(SMALL)]
)
def test_a_small_model_counts_as_transformers_builds_it(
    kind: str, fields: Mapping[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**fields, "model_type": kind}))
    assert difference(str(file)) == (0, 0, 0)


# One of each architecture, the largest that is shipped.
LARGE = [
    "llama-3.1-405b",
    "mistral-7b",
    "qwen2.5-72b",
    "qwen3-32b",
    "gemma-7b",
    "gemma-2-27b",
    "gemma-3-1b",
    "phi-3-mini",
    "olmo-2-13b",
    "gpt3-175b",
    "gpt-neox-20b",
    "opt-175b",
    "mixtral-8x22b",
    "qwen3-235b-a22b",
    "gpt-oss-120b",
    "deepseek-v2",
    "deepseek-v3",
]


@pytest.mark.large
@pytest.mark.parametrize("name", LARGE)
def test_a_large_model_counts_as_transformers_builds_it(name: str) -> None:
    assert difference(name) == (0, 0, 0)


@pytest.mark.large
def test_every_shipped_model_has_transformers_parameters() -> None:
    for name in model_names():
        model = found(name)
        built = parameters(model.architecture, model.fields)
        assert (name, counted(model).N.value) == (name, built)


def found(wanted: str) -> Model:
    model = models.find(wanted)
    assert isinstance(model, Model)
    return model


def difference(wanted: str) -> tuple[float, float, float]:
    """Computed less counted: parameters, FLOP of a sequence forward and backward."""
    model = found(wanted)
    built = count(model.architecture, model.fields, TOKENS)
    computed = flops(model=wanted, seq_len=TOKENS).result
    return (
        computed["params"] - built.params,
        computed["forward_per_token"] * TOKENS - built.forward,
        computed["backward_per_token"] * TOKENS - built.backward,
    )


def test_check_shows_what_was_counted_beside_what_was_computed() -> None:
    shape = "llama:L=2,d=64,H=4,kv=2,ff=96,V=100"
    said = answer(f"flops --model {shape} --seq-len 32 --check")
    computed = said["result"]
    assert said["result"]["counted"] == {
        "params": computed["params"],
        "forward": computed["forward_per_token"] * 32,
        "backward": computed["backward_per_token"] * 32,
    }
    assert said["warnings"] == []
    assert [note for note in said["notes"] if "difference" in note] == [
        "74,560 parameters: counted and computed, difference 0",
        "4,866,048 FLOP forward, one sequence: counted and computed, difference 0",
        "9,732,096 FLOP backward, one sequence: counted and computed, difference 0",
    ]
    stack = answer("flops --model linear:L=3,d=16 --seq-len 8 --check")
    assert stack["result"]["counted"] == {"params": 784, "forward": 12544, "backward": 20992}
    assert stack["warnings"] == []


class Adapted(torch.nn.Module):
    """A frozen linear layer with an adapter beside it."""

    def __init__(self, base: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = torch.nn.Linear(base.in_features, rank, bias=False, device="meta")
        self.up = torch.nn.Linear(rank, base.out_features, bias=False, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.base(x) + self.up(self.down(x))
        return y


OPT = SIZES | {"ffn_dim": 112}
ONE_LAYER = {"num_hidden_layers": 1}
# Blocks of every form, and what stands around them.
BLOCKS: list[tuple[str, Mapping[str, Any]]] = [
    ("llama", GROUPED),
    ("llama", GROUPED | ONE_LAYER),
    ("phi3", GROUPED),
    ("gemma3_text", GROUPED),
    ("gpt_neox", SIZES),
    ("gpt_neox", SIZES | {"use_parallel_residual": False}),
    ("opt", OPT),
    ("opt", OPT | {"do_layer_norm_before": False}),
    ("opt", OPT | {"_remove_final_layer_norm": True}),
    ("opt", OPT | {"word_embed_proj_dim": 32}),
    ("opt", OPT | {"word_embed_proj_dim": 32} | ONE_LAYER),
]
BLOCK_IDS = [f"{kind}-{number}" for number, (kind, _) in enumerate(BLOCKS)]


def written(folder: Path, kind: str, fields: Mapping[str, Any]) -> str:
    file = folder / "config.json"
    file.write_text(json.dumps({**fields, "model_type": kind}))
    return str(file)


@pytest.mark.parametrize(("kind", "fields"), BLOCKS, ids=BLOCK_IDS)
def test_adapters_cost_what_is_counted_of_them(
    kind: str, fields: Mapping[str, Any], tmp_path: Path
) -> None:
    rank = 4
    file = written(tmp_path, kind, fields)
    built = built_on_meta(kind, fields)
    built.requires_grad_(False)
    for block in getattr(built.base_model, "decoder", built.base_model).layers:
        for part in list(block.modules()):
            for name, child in list(part.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(part, name, Adapted(child, rank))
    ids = torch.zeros(1, TOKENS, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as forward:
        logits = built(input_ids=ids).logits
    with FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    computed = flops(model=file, seq_len=TOKENS, lora_rank=rank).result
    trained = sum(each.numel() for each in built.parameters() if each.requires_grad)
    assert computed["adapter_params"] == trained
    assert computed["forward_per_token"] * TOKENS == forward.get_total_flops()
    assert computed["backward_per_token"] * TOKENS == backward.get_total_flops()


def test_adapters_of_gpt2_are_those_of_its_fused_layers() -> None:
    assert flops(model="gpt2", lora_rank=16).result["adapter_params"] == 2_359_296
    assert flops(model="llama-3-8b", lora_rank=16).result["adapter_params"] == 41_943_040
    assert flops(model="llama-7b", lora_rank=16).result["adapter_params"] == 39_976_960


GPT2 = {"n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 200, "n_inner": 112}
EARLY = [*BLOCKS, ("gpt2", GPT2), ("gemma2", GROUPED), ("olmo2", GROUPED)]


@pytest.mark.parametrize(
    ("kind", "fields"), EARLY, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(EARLY)]
)
def test_a_checkpoint_that_stops_early_leaves_out_what_is_said(
    kind: str, fields: Mapping[str, Any], tmp_path: Path
) -> None:
    file = written(tmp_path, kind, fields)
    ends_in_norm = kind in ("gemma2", "gemma3_text", "olmo2")
    if kind == "opt":
        ends_in_norm = fields.get("do_layer_norm_before") is False
    no_dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop", "dropout"), 0.0)
    built = built_on_meta(kind, {**fields, **no_dropout})
    built.train()
    kwargs = {"use_reentrant": False}
    built.gradient_checkpointing_enable(gradient_checkpointing_kwargs=kwargs)
    built.config.use_cache = True
    ids = torch.zeros(1, TOKENS, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as forward:
        logits = built(input_ids=ids, attention_mask=torch.ones(1, TOKENS)).logits
    with FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    answer = flops(model=file, seq_len=TOKENS, recompute="full")
    again = backward.get_total_flops() - 2 * forward.get_total_flops()
    less = answer.result["recomputed_per_token"] * TOKENS - again
    layers = found(file).layers
    assert less == (0 if ends_in_norm else 2 * layers * 112 * 64 * TOKENS)
    assert any("stops early" in note for note in answer.notes) == bool(less)


def test_switches_that_change_how_a_model_runs_do_not_stop_its_counting(tmp_path: Path) -> None:
    odd = {"use_cache": False, "gradient_checkpointing": True, "return_dict": False}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**GROUPED, **odd, "model_type": "llama"}))
    assert difference(str(file)) == (0, 0, 0)
