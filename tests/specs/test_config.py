"""What a config.json leaves out, gets wrong, or cannot mean."""

import json
from pathlib import Path
from typing import Any

import pytest

from napkin.errors import NapkinError
from napkin.specs import models
from napkin.specs.architectures import READERS
from napkin.specs.model import Experts, Model
from tests.running import napkin

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}


def read(tmp_path: Path, fields: Any) -> Model:
    file = tmp_path / "config.json"
    file.write_text(fields if isinstance(fields, str) else json.dumps(fields))
    found = models.find(str(file))
    assert isinstance(found, Model)
    return found


def problem(tmp_path: Path, fields: Any) -> str:
    with pytest.raises(NapkinError) as caught:
        read(tmp_path, fields)
    return str(caught.value).removeprefix(f"{tmp_path}/config.json")


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in LLAMA.items() if key != name}


V3 = {"model_type": "deepseek_v3", "first_k_dense_replace": 1}
# What transformers takes where the field is absent, or null.
DEFAULTS: list[tuple[dict[str, Any], str, Any]] = [
    ({}, "attention.kv_heads", 4),
    ({"num_key_value_heads": None}, "attention.kv_heads", 4),
    ({"num_key_value_heads": 2}, "attention.kv_heads", 2),
    ({}, "attention.qk", 16),
    ({"head_dim": None}, "attention.qk", 16),
    ({"head_dim": 32}, "attention.qk", 32),
    ({}, "tied", False),
    ({"model_type": "gemma", "num_key_value_heads": 4}, "tied", True),
    ({"model_type": "gemma", "num_key_value_heads": 1}, "attention.qk", 256),
    ({"model_type": "opt", "ffn_dim": 256}, "tied", True),
    ({"model_type": "gpt_neox"}, "tied", False),
    ({"model_type": "qwen2", "num_key_value_heads": 2}, "attention.qkv_bias", True),
    ({"model_type": "qwen2", "num_key_value_heads": 2}, "attention.out_bias", False),
    ({"model_type": "qwen3", "num_key_value_heads": 2}, "attention.qk", 128),
    ({"model_type": "gpt2", "n_inner": None}, "mlp.width", 256),
    ({"model_type": "gpt2"}, "position_rows", 1024),
    ({"model_type": "opt", "ffn_dim": 256}, "position_rows", 2050),
    ({"model_type": "mistral", "num_key_value_heads": 2}, "windows", ((4096, 2),)),
    (
        {"model_type": "mistral", "num_key_value_heads": 2, "sliding_window": None},
        "windows",
        (),
    ),
    ({"model_type": "gemma2", "num_key_value_heads": 2}, "windows", ((4096, 1),)),
    ({"model_type": "qwen2", "num_key_value_heads": 2}, "windows", ()),
    (
        {"model_type": "mixtral", "num_key_value_heads": 2, "num_experts": 4},
        "experts",
        Experts(4, 2, 128),
    ),
    (
        {"model_type": "mixtral", "num_key_value_heads": 2, "num_local_experts": 4},
        "experts",
        Experts(4, 2, 128),
    ),
    (
        {"model_type": "qwen3_moe", "num_local_experts": 16, "moe_intermediate_size": 32},
        "experts",
        Experts(16, 8, 32, normalised=False, cast=True),
    ),
    ({"model_type": None, "architectures": ["LlamaForCausalLM"]}, "architecture", "llama"),
    ({"model_type": "qwen3_moe", "num_experts": 0}, "experts", None),
    ({**V3, "n_shared_experts": 0}, "experts.shared_width", 0),
    ({**V3, "first_k_dense_replace": 9}, "experts", None),
    ({**V3, "n_routed_experts": None}, "experts", None),
    ({"model_type": "gpt_neox"}, "parallel", True),
    ({"model_type": "gpt_neox", "use_parallel_residual": False}, "parallel", False),
    ({"model_type": "gpt_neox", "rotary_pct": 1.0}, "attention.rotary.share", 1.0),
    (
        {"model_type": "gpt_neox", "rope_parameters": {"partial_rotary_factor": 0.5}},
        "attention.rotary.share",
        0.5,
    ),
    ({"architectures": ["GPT2LMHeadModel"]}, "architecture", "llama"),
]


@pytest.mark.parametrize(
    ("changes", "path", "expected"), DEFAULTS, ids=[f"{c} {p}" for c, p, _ in DEFAULTS]
)
def test_what_is_left_out_is_as_transformers_takes_it(
    tmp_path: Path, changes: dict[str, Any], path: str, expected: object
) -> None:
    found: Any = read(tmp_path, LLAMA | changes)
    for name in path.split("."):
        found = getattr(found, name)
    assert repr(found) == repr(expected)


def test_a_text_part_leaves_more_to_the_defaults_and_says_so(tmp_path: Path) -> None:
    # The form in which the hub ships gemma-3-4b.
    part = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    fields = {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": {**part, "model_type": "gemma3_text", "sliding_window": 1024},
        "vision_config": {"hidden_size": 1152},
    }
    found = read(tmp_path, fields)
    assert (found.architecture, found.attention.heads, found.vocab) == ("gemma3_text", 8, 262208)
    assert found.windows == ((1024, 29),)
    assert found.notes == (
        "the text model of gemma3 alone",
        "vocab_size is not in the file: 262208 is transformers' default",
        "num_attention_heads is not in the file: 8 is transformers' default",
    )
    text = {**LLAMA, "model_type": "llama"}
    assert read(tmp_path, {"model_type": "llava", "text_config": text}).architecture == "llama"
    text = {**without("num_hidden_layers"), "model_type": "mistral", "num_key_value_heads": 2}
    assert read(tmp_path, {"model_type": "llava", "text_config": text}).notes == (
        "the text model of llava alone",
        "num_hidden_layers is not in the file: 32 is transformers' default",
    )


KNOWN = (
    "llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi3 olmo2 gpt2 gpt_neox opt mixtral "
    "qwen2_moe qwen3_moe gpt_oss deepseek_v2 deepseek_v3"
)
WAYS_ON = "--params asks by size, a shape like llama:L=32,d=4096,H=32,ff=11008,V=32000 by sizes"
MOE = {"model_type": "mixtral", "num_key_value_heads": 2}
SLIDING, FULL = "sliding_attention", "full_attention"
ACTS = (
    "gelu gelu_10 gelu_accurate gelu_fast gelu_new gelu_python gelu_python_tanh "
    "gelu_pytorch_tanh hardswish laplace leaky_relu linear mish quick_gelu relu relu2 relu6 "
    "sigmoid silu sqrtsoftplus swish tanh"
)
WRONG: list[tuple[Any, str]] = [
    (without("hidden_size"), ": hidden_size: is missing, and it has no default"),
    (without("num_hidden_layers"), ": num_hidden_layers: is missing, and it has no default"),
    (without("vocab_size"), ": vocab_size: is missing, and it has no default"),
    (
        without("model_type"),
        f": has neither model_type nor architectures, so what it describes is not known; {WAYS_ON}",
    ),
    ({**LLAMA, "model_type": 5}, ": model_type: '5' is not a word"),
    (
        {**without("model_type"), "architectures": "LlamaForCausalLM"},
        ": architectures: 'LlamaForCausalLM' is not a list",
    ),
    ({"model_type": "llava", "text_config": [1]}, ": text_config: [1] is not an object"),
    (
        {**LLAMA, "model_type": "deepseek_v2", "q_lora_rank": None},
        ": num_experts_per_tok: is missing, and it has no default",
    ),
    # A word of a file is never taken for another: llama4_text is no gemma3_text.
    (
        {**LLAMA, "model_type": "llama4_text"},
        f": the architecture 'llama4_text' is not known; known are {KNOWN}; {WAYS_ON}",
    ),
    (
        {**LLAMA, "model_type": "mamba", "architectures": ["MambaForCausalLM"]},
        ": the architecture 'mamba' and the class 'MambaForCausalLM' are not known; known are "
        f"{KNOWN}; {WAYS_ON}",
    ),
    (
        {**without("model_type"), "architectures": ["MambaForCausalLM"]},
        f": the class 'MambaForCausalLM' is not known; known are {KNOWN}; {WAYS_ON}",
    ),
    (
        {
            "model_type": "llama4",
            "architectures": ["Llama4ForConditionalGeneration"],
            "text_config": {**LLAMA, "model_type": "llama4_text"},
        },
        ": the architecture 'llama4_text' and the class 'Llama4ForConditionalGeneration' are not "
        f"known; known are {KNOWN}; {WAYS_ON}",
    ),
    ({**LLAMA, "hidden_size": "64"}, ': hidden_size: "64" is not a whole number'),
    ({**LLAMA, "hidden_size": 64.5}, ": hidden_size: 64.5 is not a whole number"),
    ({**LLAMA, "hidden_size": True}, ": hidden_size: true is not a whole number"),
    ({**LLAMA, "hidden_size": [64]}, ": hidden_size: [64] is not a whole number"),
    ({**LLAMA, "hidden_size": -64}, ": hidden_size: -64 is less than 1"),
    ({**LLAMA, "vocab_size": 0}, ": vocab_size: 0 is less than 1"),
    (
        {**LLAMA, "num_hidden_layers": 10**9},
        ": num_hidden_layers: '1000000000' is more than 10,000, which no model has",
    ),
    (
        {**LLAMA, "vocab_size": 10**12},
        ": vocab_size: '1000000000000' is more than 100,000,000, which no model has",
    ),
    (
        {**LLAMA, "tie_word_embeddings": "no"},
        ": tie_word_embeddings: 'no' is neither true nor false",
    ),
    (
        {**LLAMA, "num_key_value_heads": 3},
        ": num_key_value_heads: 3 do not divide the 4 attention heads",
    ),
    (
        {**LLAMA, "num_attention_heads": 5},
        ": hidden_size: 64 is no multiple of the 5 attention heads",
    ),
    (
        {**LLAMA, **MOE, "num_experts_per_tok": 9},
        ": num_experts_per_tok: 9 are more than the 8 experts there are",
    ),
    (
        {
            **LLAMA,
            "model_type": "gemma2",
            "num_key_value_heads": 2,
            "layer_types": ["full_attention"],
        },
        ": layer_types: names 1 layers of 2",
    ),
    (
        {**LLAMA, "model_type": "gemma2", "num_key_value_heads": 2, "layer_types": [1, 2]},
        ": layer_types: '1' is not counted yet",
    ),
    (
        {**LLAMA, "model_type": "gemma2", "sliding_window": None, "layer_types": [SLIDING, FULL]},
        ": layer_types: sliding_attention needs a window; sliding_window gives none",
    ),
    ({**LLAMA, "hidden_act": "prelu"}, f": hidden_act: 'prelu' is not counted; known are {ACTS}"),
    (
        {**LLAMA, "model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 2},
        ": n_embd: 32 is not the 64 of hidden_size, another name for it",
    ),
    (
        {**LLAMA, "model_type": "deepseek_v3", "num_key_value_heads": 2},
        ": num_key_value_heads: 2 is not the 4 of num_attention_heads: latent attention groups none",
    ),
    (
        {**LLAMA, "model_type": "gpt_oss", "head_dim": 16, "experts_per_token": 2},
        ": experts_per_token: 2 is not the 4 of num_experts_per_tok",
    ),
    (
        {**LLAMA, "model_type": "gpt_neox", "rotary_pct": 25},
        ": rotary_pct: '25' is not a number from 0 to 1",
    ),
    (
        {**LLAMA, "model_type": "gpt_neox", "rope_parameters": 5},
        ": rope_parameters: 5 is not an object",
    ),
    ("{", ":1: not valid JSON: Expecting property name enclosed in double quotes"),
    ("[1, 2]", ": is not a config.json: it holds no fields"),
    ("", ":1: not valid JSON: Expecting value"),
    ('{"a": NaN}', ": not valid JSON: NaN is not a number"),
    ("[" * 100_000, ": not valid JSON: nested too deeply"),
    (" " * 1_000_001, ": is larger than 1 MB, which no config.json is"),
]


@pytest.mark.parametrize(("fields", "says"), WRONG, ids=[says[2:60] for _, says in WRONG])
def test_what_is_wrong_is_named_with_its_field(tmp_path: Path, fields: Any, says: str) -> None:
    assert problem(tmp_path, fields) == says


# Fields that make another model of it, and the one value that is counted.
ONLY = [
    ("deepseek_v2", "mlp_bias", True, "false"),
    ("deepseek_v2", "moe_layer_freq", 2, "1"),
    ("deepseek_v3", "moe_layer_freq", 2, "1"),
    ("gemma", "use_bidirectional_attention", True, "false"),
    ("gemma2", "use_bidirectional_attention", True, "false"),
    ("gemma3_text", "use_bidirectional_attention", True, "false"),
    ("opt", "layerdrop", 0.1, "0"),
    ("gpt2", "add_cross_attention", True, "false"),
    ("llama", "pruned_heads", {"0": [1]}, "{}"),
    ("llama", "per_layer_config", {"0": {"intermediate_size": 64}}, "{}"),
]


@pytest.mark.parametrize(("kind", "name", "value", "counted"), ONLY)
def test_a_field_that_makes_another_model_is_refused_by_name(
    tmp_path: Path, kind: str, name: str, value: object, counted: str
) -> None:
    fields = {**LLAMA, "model_type": kind, "ffn_dim": 128, "num_experts_per_tok": 2}
    says = f": {name}: {json.dumps(value)} is not counted, only {counted}"
    assert problem(tmp_path, {**fields, name: value}) == says
    of_all = READERS[kind].only
    assert of_all[name] == (json.loads(counted),)


def test_fields_that_transformers_does_not_have_are_named(tmp_path: Path) -> None:
    strange = {"num_experts": 8, "sliding_window": 64, "qk\n\x1b[31m": 1, "alibi": "yes", "moe": 1}
    off: dict[str, Any] = {"lm_head_bias": False, "window": None, "layer_types": [], "experts": 0}
    assert read(tmp_path, {**LLAMA, **strange, **off}).notes == (
        "not counted, as transformers' llama has no such fields: num_experts, sliding_window, "
        "qk\\n\\x1b[31m, alibi and 1 more",
    )
    hub = {"torch_dtype": "bfloat16", "_name_or_path": "a/b", "rope_theta": 5e5, "do_sample": True}
    assert read(tmp_path, {**LLAMA, **hub}).notes == ()


@pytest.mark.parametrize("kind", ["mistral", "phi3", "mixtral", "qwen3_moe"])
def test_layer_types_that_transformers_ignores_do_not_open_a_window(
    tmp_path: Path, kind: str
) -> None:
    fields = {**LLAMA, "model_type": kind, "num_key_value_heads": 2, "use_sliding_window": True}
    slides = read(tmp_path, {**fields, "sliding_window": 16, "layer_types": [SLIDING, FULL]})
    assert slides.windows == ((16, 2),)
    assert "layer_types" in slides.notes[-1]


JUNK: list[Any] = [None, "x", -1, 0, 1.5, [], {}, True, 10**30, "[red]"]


@pytest.mark.parametrize("value", JUNK, ids=map(repr, JUNK))
def test_no_value_of_any_field_is_more_than_a_line(tmp_path: Path, value: object) -> None:
    file = tmp_path / "config.json"
    fields = LLAMA | {"num_key_value_heads": 2, "ffn_dim": 3, "text_config": {}, "n_inner": 8}
    for name in (*READERS, "llava"):
        others = ("layer_types", "num_experts", "architectures", "quantization_config")
        for field in (*fields, *others):
            file.write_text(json.dumps({**fields, "model_type": name, field: value}))
            ran = napkin(["models", str(file)])
            assert ran.code in (0, 2)
            if ran.code:
                assert (ran.out, ran.err.count("\n")) == ("", 1)
                assert ran.err.startswith("Error: ")
