"""Every field of every kind of config.json, against the classes of transformers that read it."""

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import transformers
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from napkin.checking.count import built_on_meta, count
from napkin.errors import NapkinError
from napkin.questions.flops import flops
from napkin.specs import architectures
from napkin.specs.config import Config
from napkin.specs.model import Model
from tests.checking.test_count import SMALL

TOKENS = 24
KINDS = tuple(architectures.READERS)
EXAMPLES = 20  # of a kind: a minute in all on two cores; run with 100 when a list changes

PLAIN = dict(SMALL[::-1])  # the first of each kind
# What a kind of field may hold: small, null, zero, and what no model has.
SMALL_SIZE = st.sampled_from([None, 0, 1, 2, 3, 4, 8, 16, 24, -1])
FLAG = st.sampled_from([None, False, True])
SCALAR = st.sampled_from([None, 0, 0.0, 0.1, 0.5, 1.0])
LAYER = st.sampled_from(["full_attention", "sliding_attention", "attention", "chunked_attention"])
ROPE = {"rope_type": "default", "rope_theta": 1e4}
ACTIVATION = st.sampled_from([None, "silu", "gelu", "relu", "prelu", "xielu", "nosuch"])
WIDTH = st.sampled_from([None, 48, 64, 65])
LAYERS = st.sampled_from([None, 0, 1, 2, 3, 4])
# Of a head: even, as its rotation wants it.
HEAD = st.sampled_from([None, 0, 2, 16, 24])
OWN: dict[str, st.SearchStrategy[Any]] = {
    "layer_types": st.none() | st.lists(LAYER, min_size=2, max_size=3),
    "mlp_only_layers": st.none() | st.lists(st.integers(0, 3), max_size=2),
    "hidden_act": ACTIVATION,
    "activation_function": ACTIVATION,
    "hidden_activation": ACTIVATION,
    "hidden_size": WIDTH,
    "n_embd": WIDTH,
    "word_embed_proj_dim": st.sampled_from([None, 32, 48, 64]),
    "num_hidden_layers": LAYERS,
    "n_layer": LAYERS,
    "head_dim": HEAD,
    "qk_nope_head_dim": HEAD,
    "qk_rope_head_dim": HEAD,
    "v_head_dim": HEAD,
    "vocab_size": st.sampled_from([None, 0, 1, 100, 200]),
    "sliding_window": st.sampled_from([None, 0, 1, 8, 16, 64]),
    "max_position_embeddings": st.sampled_from([None, 0, 32, 128]),
    "rope_parameters": st.sampled_from([None, ROPE, ROPE | {"partial_rotary_factor": 0.5}]),
    "rope_scaling": st.sampled_from([None, ROPE]),
    "topk_method": st.sampled_from([None, "greedy", "group_limited_greedy", "noaux_tc"]),
    "pretraining_tp": st.sampled_from([None, 1, 2]),
    "per_layer_config": st.sampled_from([None, {}, {"1": {"intermediate_size": 80}}]),
}
FLAGS = """attention_bias mlp_bias qkv_bias enable_bias use_sliding_window tie_word_embeddings
    use_parallel_residual layer_norm_elementwise_affine do_layer_norm_before add_cross_attention
    _remove_final_layer_norm use_bidirectional_attention scale_attn_by_inverse_layer_idx
    reorder_and_upcast_attn scale_attn_weights norm_topk_prob rope_interleave is_decoder
    is_encoder_decoder output_router_logits lm_head_bias qk_norm"""
SCALARS = """attention_dropout dropout layerdrop hidden_dropout resid_pdrop rotary_pct rms_norm_eps
    partial_rotary_factor routed_scaling_factor router_aux_loss_coef final_logit_softcapping
    attn_logit_softcapping swiglu_limit initializer_range"""
# Of other kinds, and of none: transformers sets them, and its classes may look at them.
ELSEWHERE = ("head_dim", "num_experts", "num_local_experts", "sliding_window", "layer_types")


def own_fields(kind: str) -> set[str]:
    """Of transformers' class, as a file may write them."""
    made = transformers.AutoConfig.for_model(kind)
    return {each.name for each in dataclasses.fields(made)} | set(type(made).attribute_map)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_transformers_class_was_looked_at(kind: str) -> None:
    reader = architectures.READERS[kind]
    assert own_fields(kind) - reader.reads - reader.ignores - set(reader.only) == set()
    assert reader.reads.isdisjoint(reader.ignores)
    assert set(reader.only).isdisjoint(reader.reads | reader.ignores)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_transformers_saves_has_no_field_that_is_not_known(kind: str) -> None:
    reader = architectures.READERS[kind]
    own = {name: value for name, value in PLAIN[kind].items() if name in reader.reads}
    saved = json.loads(transformers.AutoConfig.for_model(kind, **own).to_json_string(False))
    assert reader.strange(Config(saved, "config.json")) == []
    # All but the notes: what a saved deepseek_v3 predicts ahead is a default of its class.
    read = reader(Config(saved, "")).replace(notes=())
    assert repr(read) == repr(reader(Config(own, "")))


class Asked(dict[str, Any]):
    """Fields that remember which of them were asked for."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_called_read_is_read(kind: str) -> None:
    reader = architectures.READERS[kind]
    asked = set()
    for of, small in SMALL:
        if of == kind:
            for odd in ({}, {"use_sliding_window": True}, {"rope_scaling": ROPE}):
                fields = Asked({**small, **odd})
                reader.model(Config(fields, "config.json"))
                asked |= fields.names
    assert asked == reader.reads


@st.composite
def configs(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """A small model of a kind, a few of whose fields are anything."""
    reader = architectures.READERS[kind]
    names = sorted(own_fields(kind) | reader.reads | {*reader.only, *ELSEWHERE, "qk_norm"})
    names = [name for name in names if name not in ("dtype", "architectures", "id2label")]
    changed = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    return {**PLAIN[kind], **{name: draw(values(name)) for name in changed}, "model_type": kind}


def values(name: str) -> st.SearchStrategy[Any]:
    if name in OWN:
        return OWN[name]
    return FLAG if name in FLAGS.split() else SCALAR if name in SCALARS.split() else SMALL_SIZE


@pytest.mark.parametrize("kind", KINDS)
def test_any_config_is_counted_as_transformers_builds_it_or_is_refused(
    kind: str, tmp_path: Path
) -> None:
    file, compared = tmp_path / "config.json", []

    # Derandomised: the same files in every run, so that a failure is of what was changed.
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(configs(kind))
    def same_or_refused(fields: dict[str, Any]) -> None:
        file.write_text(json.dumps(fields))
        try:
            computed = flops(model=str(file), seq_len=TOKENS)
            built = count(kind, fields, TOKENS)
        except NapkinError as error:
            assert "\n" not in str(error)  # refused, or nothing that transformers builds
            return
        compared.append(fields)
        model = architectures.model(fields, "", "config.json")
        result = computed.result
        assert result["params"] == built.params
        assert result["forward_per_token"] * TOKENS == built.forward
        assert result["backward_per_token"] * TOKENS == built.backward
        assert Counter(seen(model)) == Counter(windows(kind, fields))
        reader = architectures.READERS[kind]
        known = reader.reads | reader.ignores | set(reader.only)
        unread = [name for name, value in fields.items() if value and name not in known]
        assert all(any(name in note for note in computed.notes) for name in unread)

    same_or_refused()
    assert len(compared) >= EXAMPLES / 5


def seen(model: Model) -> list[int | None]:
    """The window of each layer."""
    windows = [tokens for tokens, layers in model.windows for _ in range(layers)]
    return [*windows, *[None] * (model.layers - len(windows))]


def windows(kind: str, fields: Mapping[str, Any]) -> list[int | None]:
    """Those of transformers' layers: their own, or where they have none that of all."""
    built = built_on_meta(kind, fields)
    of_all = built.config.sliding_window if kind in ("mistral", "phi3", "mixtral") else None
    attention = [each for each in built.modules() if type(each).__name__.endswith("Attention")]
    return [getattr(each, "sliding_window", of_all) for each in attention]
