"""The classes of transformers that are counted: of which kind they are, and what head they have.

The names are those of transformers 5.24's auto mappings (tests/checking/test_classes.py).
"""

from napkin.errors import NapkinError, printable, quoted
from napkin.record import Record
from napkin.specs.architectures.readers import READERS
from napkin.specs.config import MOST, Config, Fields
from napkin.specs.model import LANGUAGE, Head

CAUSAL, SEQUENCE, TOKEN, BARE = "causal LM", "sequence", "token", "bare"
SUFFIXES = {CAUSAL: "ForCausalLM", BARE: "Model"} | {
    task: f"For{task.capitalize()}Classification" for task in (SEQUENCE, TOKEN)
}
OTHER_NAMES = {("gpt2", CAUSAL): "GPT2LMHeadModel", ("gemma3_text", CAUSAL): "Gemma3ForCausalLM"}
NO_TOKEN_CLASS = ("gemma3_text", "olmo2", "opt", "deepseek_v2")
# Whose text model is counted alone; another class of theirs has another head.
MULTIMODAL = "ForConditionalGeneration"


class Class(Record):
    """A class of transformers, by the model_type and the task that it is of."""

    name: str
    kind: str
    task: str


def of(kind: str, task: str) -> Class:
    """The class of a kind for a task."""
    return Class(OTHER_NAMES.get((kind, task), READERS[kind].classes + SUFFIXES[task]), kind, task)


# By their names in small letters: the first Llama's files say LLaMAForCausalLM.
CLASSES = {
    found.name.casefold(): found
    for kind in READERS
    for found in (of(kind, task) for task in SUFFIXES)
    if found.task != TOKEN or kind not in NO_TOKEN_CLASS
}

TOWER = " tower"
# Fields that announce tensors which no class here has, and what they are.
ANNOUNCED = {
    "draft_vocab_size": "the head of a draft model",
    "eagle_config": "a draft model",
    "dflash_config": "a draft model",
    "speculators_config": "a draft model",
    "eagle_aux_hidden_state_layer_ids": "a draft model, which reads another's layers",
    "num_target_layers": "a draft model, which reads another's layers",
    "target_layer_ids": "a draft model, which reads another's layers",
    "medusa_num_heads": "further heads (Medusa)",
    "vision_config": "a vision tower",
    "vision_tower": "a vision tower",
    "mm_vision_tower": "a vision tower",
    "visual": "a vision tower",
    "mm_projector_type": "a vision tower",
    "audio_config": "an audio tower",
    "speech_config": "an audio tower",
    "is_encoder_decoder": "an encoder",
}
WAYS_ON = "--params asks by size, a shape like llama:L=32,d=4096,H=32,ff=11008,V=32000 by sizes"


def named(config: Config) -> list[str]:
    """The names in `architectures`."""
    found = config.items("architectures")
    for name in found:
        if not isinstance(name, str):
            raise config.error("architectures", f"{quoted(name)} is not the name of a class")
    return found


def known(config: Config) -> Class | None:
    """The first class that the config names, where it is one of these."""
    first = named(config)[:1]
    return CLASSES.get(first[0].casefold()) if first else None


def described(config: Config, kind: str) -> tuple[Class, list[str]]:
    """The class of this kind that a config describes, the causal one where it names none, and
    notes of what is not as it seems.

    Raises NapkinError for another class, and for fields that announce another one.
    """
    names = named(config)
    if not names:
        _nothing_else(config)
        return of(kind, CAUSAL), []
    found = known(config)
    if found is None:
        raise not_counted(config, names[0])
    _nothing_else(config)
    notes = []
    if any(name.casefold() != found.name.casefold() for name in names[1:]):
        notes.append(f"architectures names {len(names)} classes: read as the first, {found.name}")
    if found.kind == kind:
        return found, notes
    same_task = CLASSES.get(of(kind, found.task).name.casefold())
    if same_task is None:
        raise not_counted(config, names[0])
    notes.append(
        f"model_type says {kind}, architectures says {found.name}: read as {same_task.name}"
    )
    return same_task, notes


def not_counted(config: Config, name: str) -> NapkinError:
    """A class that is none of these."""
    return config.error("architectures", f"the class {quoted(name)} is not counted; {WAYS_ON}")


def no_draft(whole: Config) -> None:
    """Refuses what a model beside whose text part there are towers may not have either."""
    _nothing_else(whole, towers=True)


def _nothing_else(config: Config, towers: bool = False) -> None:
    for field, what in ANNOUNCED.items():
        if config.fields.get(field) and not (towers and what.endswith(TOWER)):
            raise config.error(field, f"announces {what}, which is not counted; {WAYS_ON}")


def head(config: Config, of_class: Class) -> Head | None:
    """What the class has on top; None for a bare model."""
    if of_class.task == CAUSAL:
        return LANGUAGE
    if of_class.task == BARE:
        return None
    bias = of_class.task == TOKEN and (
        of_class.kind in ("gpt2", "gpt_neox") or config.flag("token_classification_bias", True)
    )
    return Head(_labels(config), bias, pooled=of_class.task == SEQUENCE)


def _labels(config: Config) -> int:
    """As many as id2label has, else num_labels, else transformers' 2."""
    names = config.fields.get("id2label")
    if names is None:
        return config.size("num_labels", default=2)
    if not isinstance(names, dict) or not names:
        raise config.error("id2label", f"{quoted(names)} names no labels")
    if config.size("num_labels", default=len(names), most=MOST) != len(names):
        problem = f"{config.fields['num_labels']} are not the {len(names)} of id2label"
        raise config.error("num_labels", problem)
    return len(names)


def note(of_class: Class, found: Head | None) -> list[str]:
    """What a reader must know of a class that is no language model."""
    if found is None:
        return [f"{printable(of_class.name)}: a bare model, without a head"]
    if found.outputs is None:
        return []
    labels = "1 label" if found.outputs == 1 else f"{found.outputs:,} labels"
    return [f"{printable(of_class.name)}: a head of {labels}, none for the vocabulary"]


def built(kind: str, fields: Fields) -> str:
    """The name of the very class that a config of this kind describes."""
    return described(Config(fields, "config.json"), kind)[0].name
