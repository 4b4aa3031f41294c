"""The class in `architectures` decides what is counted: each against the very class."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.models.auto import modeling_auto as auto

from napkin.checking.count import built_on_meta
from napkin.questions.memory import memory
from napkin.specs import models
from napkin.specs.architectures import READERS, classes
from napkin.specs.model import Model
from tests import layouts
from tests.checking.test_count import SMALL, difference
from tests.running import answer, napkin

MAPPINGS: dict[str, Mapping[str, Any]] = {
    classes.CAUSAL: auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    classes.SEQUENCE: auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    classes.TOKEN: auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
    classes.BARE: auto.MODEL_MAPPING_NAMES,
}
# The issue's: 64·1000 + 2·(4·64² + 3·64·128 + 128) + 64 + 64 parameters.
REWARD = {
    "architectures": ["LlamaForSequenceClassification"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "num_attention_heads": 4,
    "num_labels": 1,
}


def test_the_known_classes_are_those_of_transformers() -> None:
    known = {(each.kind, each.task): each.name for each in classes.CLASSES.values()}
    assert known == {
        (kind, task): names[kind]
        for task, names in MAPPINGS.items()
        for kind in READERS
        if kind in names
    }


FIELDS = dict(SMALL)
CASES = [
    (each.name, {**FIELDS[each.kind]} | {"num_labels": 3, "model_type": each.kind})
    for each in classes.CLASSES.values()
]
OTHERS: list[tuple[str, dict[str, Any]]] = [
    # A table that is narrower than d: OPT's score stands on what is projected back.
    ("OPTForSequenceClassification", {"word_embed_proj_dim": 32}),
    ("Qwen3ForSequenceClassification", {"num_labels": 1}),
    ("LlamaForSequenceClassification", {"id2label": {"0": "no", "1": "so", "2": "yes"}}),
    ("LlamaForTokenClassification", {"token_classification_bias": False}),
    ("Gemma2ForSequenceClassification", {"tie_word_embeddings": True}),
    ("LlamaModel", {"tie_word_embeddings": True}),
    ("LLaMAForCausalLM", {}),
]
CASES += [
    (name, {**FIELDS[kind], **fields, "model_type": kind})
    for name, fields in OTHERS
    for kind in [classes.CLASSES[name.casefold()].kind]
]


@pytest.mark.parametrize(("name", "fields"), CASES, ids=[name for name, _ in CASES])
def test_each_class_counts_as_transformers_builds_it(
    name: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    file = write(tmp_path, fields | {"architectures": [name]})
    model = models.find(file)
    assert isinstance(model, Model)
    built = built_on_meta(model.architecture, model.fields)
    assert type(built).__name__.casefold() == name.casefold()
    assert difference(file) == (0, 0, 0)


def test_a_reward_model_has_a_score_and_no_logits(tmp_path: Path) -> None:
    file = write(tmp_path, REWARD)
    said = answer(f"flops --model {file} --check")
    assert said["result"]["params"] == said["result"]["counted"]["params"] == 146_304
    assert said["warnings"] == []
    head = "LlamaForSequenceClassification: a head of 1 label, none for the vocabulary"
    assert head in said["notes"]
    both = [held(tmp_path, REWARD | {"architectures": None}), held(tmp_path, REWARD)]
    # The log-softmax of 128 tokens over the vocabulary, in fp32; of the one score that counts.
    assert both[0]["activations"] - both[1]["activations"] == 4 * 128 * 1000 - 4
    assert [each["loss"] for each in both] == [8 * 128 * 1000, 8]
    assert held(tmp_path, REWARD | {"architectures": ["LlamaModel"]})["loss"] == 0


def held(folder: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Bytes of one GPU by kind."""
    (found,) = memory(model=write(folder, fields), seq_len=128).answers
    kinds: dict[str, Any] = found.result["per_gpu_bytes"]
    return kinds


HEADS = [
    ("LlamaForTokenClassification", {"num_labels": 5, "classifier_dropout": 0.0}),
    ("MistralForSequenceClassification", {"num_labels": 5, "num_key_value_heads": 2}),
]


@pytest.mark.parametrize(("name", "fields"), HEADS, ids=[name for name, _ in HEADS])
def test_a_classifier_keeps_what_its_formula_says(
    name: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    found = classes.CLASSES[name.casefold()]
    sizes = {key: value for key, value in REWARD.items() if key != "architectures"}
    file = write(tmp_path, {**sizes, **fields, "model_type": found.kind, "architectures": [name]})
    model = models.find(file)
    assert isinstance(model, Model)
    computed = layouts.total(model, 64, layouts.kept(model, 1, 64, 4, random_state=0))
    assert computed == saved(model, (1, 64) if found.task == classes.TOKEN else (1,))


def saved(model: Model, shape: tuple[int, ...]) -> int:
    """Bytes of distinct tensors, weights apart, that a forward pass with a loss saves in fp32."""
    built = built_on_meta(model.architecture, model.fields)
    built.config._attn_implementation = "sdpa"
    built = built.to_empty(device="cpu").train()
    built.init_weights()
    for module in built.modules():
        if hasattr(module, "inv_freq"):
            torch.nn.init.ones_(module.inv_freq)
    own = {each.untyped_storage().data_ptr() for each in [*built.parameters(), *built.buffers()]}
    kept: dict[int, torch.Tensor] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point() and tensor.untyped_storage().data_ptr() not in own:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    ids = torch.zeros(1, 64, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        built(input_ids=ids, labels=torch.zeros(shape, dtype=torch.long), use_cache=False)
    return sum(each.untyped_storage().nbytes() for each in kept.values())


WAYS_ON = "--params asks by size, a shape like llama:L=32,d=4096,H=32,ff=11008,V=32000 by sizes"
REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32},
        f"architectures: the class 'LlamaForCausalLMEagle3' is not counted; {WAYS_ON}",
    ),
    (
        {"architectures": ["LlamaForQuestionAnswering"]},
        f"architectures: the class 'LlamaForQuestionAnswering' is not counted; {WAYS_ON}",
    ),
    # Olmo2 has no class for tokens, so that nothing could be counted of it.
    (
        {"architectures": ["Olmo2ForTokenClassification"], "model_type": "olmo2"},
        f"architectures: the class 'Olmo2ForTokenClassification' is not counted; {WAYS_ON}",
    ),
    (
        {"architectures": ["LlamaForTokenClassification"], "model_type": "olmo2"},
        f"architectures: the class 'LlamaForTokenClassification' is not counted; {WAYS_ON}",
    ),
    (
        {"architectures": ["LlamaForCausalLM"], "draft_vocab_size": 32},
        f"draft_vocab_size: announces the head of a draft model, which is not counted; {WAYS_ON}",
    ),
    ({"architectures": [5]}, "architectures: '5' is not the name of a class"),
    ({"id2label": {"0": "a", "1": "b"}}, "num_labels: 1 are not the 2 of id2label"),
    ({"id2label": [1]}, "id2label: '[1]' names no labels"),
]


@pytest.mark.parametrize(("fields", "says"), REFUSED, ids=[says[:60] for _, says in REFUSED])
def test_another_class_is_refused_by_its_name(
    fields: dict[str, Any], says: str, tmp_path: Path
) -> None:
    file = write(tmp_path, REWARD | fields)
    ran = napkin(["models", file])
    assert (ran.code, ran.err) == (2, f"Error: {file}: {says}\n")


NOTED: list[tuple[dict[str, Any], str]] = [
    (
        {"architectures": ["LlamaForCausalLM", "LlamaModel"]},
        "architectures names 2 classes: read as the first, LlamaForCausalLM",
    ),
    (
        {"architectures": ["MistralForCausalLM"]},
        "model_type says llama, architectures says MistralForCausalLM: read as LlamaForCausalLM",
    ),
    (
        {"architectures": ["LlamaForCausalLM"], "model_type": "mine"},
        "model_type 'mine' is not known: read as llama, by its class LlamaForCausalLM",
    ),
    (
        {"architectures": ["LlamaModel"]},
        "LlamaModel: a bare model, without a head",
    ),
]


@pytest.mark.parametrize(("fields", "note"), NOTED, ids=[note[:60] for _, note in NOTED])
def test_what_is_read_of_an_odd_file_is_said(
    fields: dict[str, Any], note: str, tmp_path: Path
) -> None:
    found = answer(f"models {write(tmp_path, REWARD | fields)}")
    assert note in found["notes"]
    assert found["result"]["params"] in (146_240, 210_240)


@pytest.mark.parametrize("field", classes.ANNOUNCED)
def test_every_field_that_announces_other_tensors_is_refused(field: str, tmp_path: Path) -> None:
    file = write(tmp_path, REWARD | {field: True})
    says = f"{field}: announces {classes.ANNOUNCED[field]}, which is not counted; {WAYS_ON}"
    assert napkin(["models", file]).err == f"Error: {file}: {says}\n"
    nothing = write(tmp_path, REWARD | {field: None})
    assert answer(f"models {nothing}")["result"]["params"] == 146_304


def test_the_class_of_a_multimodal_model_is_its_own(tmp_path: Path) -> None:
    text = REWARD | {"architectures": ["LlamaModel"]}
    whole = {"model_type": "llava", "text_config": text, "vision_config": {"hidden_size": 8}}
    usual = write(tmp_path, whole | {"architectures": ["LlavaForConditionalGeneration"]})
    found = answer(f"models {usual}")
    # The text model with its output head, which lies outside of the text part.
    assert (found["result"]["params"], found["notes"][1]) == (
        210_240,
        "the text model of llava alone",
    )
    other = write(tmp_path, whole | {"architectures": ["LlavaForSequenceClassification"]})
    said = f"architectures: the class 'LlavaForSequenceClassification' is not counted; {WAYS_ON}"
    assert napkin(["models", other]).err == f"Error: {other}: {said}\n"


@pytest.mark.parametrize("field", ["draft_vocab_size", "medusa_num_heads", "is_encoder_decoder"])
def test_what_is_announced_beside_a_text_part_is_refused(field: str, tmp_path: Path) -> None:
    text = {k: v for k, v in REWARD.items() if k != "architectures"}
    file = write(
        tmp_path, {"model_type": "llava", "text_config": text, field: 5, "mm_vision_tower": 1}
    )
    says = f"{field}: announces {classes.ANNOUNCED[field]}, which is not counted; {WAYS_ON}"
    assert napkin(["models", file]).err == f"Error: {file}: {says}\n"


TOWER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}


@pytest.mark.parametrize("of_text", [True, False, None])
@pytest.mark.parametrize("of_whole", [True, False])
@pytest.mark.parametrize(
    ("kind", "of_class", "text", "tower"),
    [
        ("llava", "LlavaForConditionalGeneration", "llama", "clip_vision_model"),
        ("llava_next", "LlavaNextForConditionalGeneration", "llama", "clip_vision_model"),
        ("llava_onevision", "LlavaOnevisionForConditionalGeneration", "qwen2", "clip_vision_model"),
        ("gemma3", "Gemma3ForConditionalGeneration", "gemma3_text", "siglip_vision_model"),
        ("mistral3", "Mistral3ForConditionalGeneration", "mistral", "pixtral"),
    ],
)
def test_the_head_beside_a_text_part_is_tied_as_transformers_ties_it(
    kind: str,
    of_class: str,
    text: str,
    tower: str,
    of_whole: bool,
    of_text: bool | None,
    tmp_path: Path,
) -> None:
    part = {k: v for k, v in REWARD.items() if k != "architectures"}
    part |= {"model_type": text, "num_key_value_heads": 4, "head_dim": 16}
    fields = {
        "model_type": kind,
        "architectures": [of_class],
        "tie_word_embeddings": of_whole,
        "text_config": part if of_text is None else part | {"tie_word_embeddings": of_text},
        "vision_config": TOWER | {"model_type": tower, "image_size": 28, "patch_size": 14},
    }
    file = write(tmp_path, fields)
    described = transformers.AutoConfig.from_pretrained(tmp_path)
    with torch.device("meta"):
        built = getattr(transformers, of_class)(described)
    names = ("language_model", "lm_head")
    params = sum(p.numel() for n, p in built.named_parameters() if any(map(n.__contains__, names)))
    found = answer(f"models {file}")
    assert found["result"]["params"] == params
    ties = params < 200_000  # of 146 thousand, and 64 thousand of a head
    note = f"tie_word_embeddings: the whole model's {json.dumps(of_whole)}, not text_config's"
    assert (note in found["notes"]) == (of_text is not None and of_text != ties)


def test_conventions_of_a_model_without_an_output_head(tmp_path: Path) -> None:
    """6 FLOP for each of 81,920 weights of layers, 64 of the score and 320 of norms, and the
    attention of 2 layers, 4 heads, 2·16 wide; the table of 64,000 is no matmul."""
    found = answer(f"flops --model {write(tmp_path, REWARD)} --seq-len 64")["result"]
    attention = 6 * 2 * 4 * 32 * 64
    assert found["training_per_token"] == {
        "six_n": 6 * 146_304,
        "six_n_non_embedding": 6 * (81_920 + 320),
        "palm": 6 * 146_304 + attention,
        "torchtitan": 6 * (81_920 + 64 + 320) + attention,
        "megatron": 6 * (81_920 + 64) + attention // 2,
        "exact_full": 6 * (81_920 + 64) + attention,
        "exact_causal": 6 * (81_920 + 64) + attention * 65 // 128,
    }


def test_a_switch_of_logits_is_refused_where_there_are_none(tmp_path: Path) -> None:
    ran = napkin(["memory", "--model", write(tmp_path, REWARD), "--chunked-loss"])
    said = f"--chunked-loss: does nothing to {tmp_path.name}: it has no logits of V"
    assert (ran.code, ran.err) == (2, f"Error: {said}\n")


def write(folder: Path, fields: dict[str, Any]) -> str:
    file = folder / "config.json"
    file.write_text(json.dumps(fields))
    return str(file)
