"""What a config.json means: one reader per architecture, with transformers' own defaults.

Checked against transformers 5.24's classes, parameter by parameter (tests/checking).
"""

import json
from collections.abc import Mapping

from napkin.errors import NapkinError, printable, quoted
from napkin.specs import quantization
from napkin.specs.architectures import classes
from napkin.specs.architectures.readers import READERS as READERS
from napkin.specs.config import Config, Fields
from napkin.specs.model import LANGUAGE, Model

# The text model of a larger one that does not say which it has.
USUAL_TEXT = {"gemma3": "gemma3_text", "llava": "llama", "paligemma": "gemma"}
# Beside a text part the whole one's field decides of the head, but in these a true of either.
TIED = "tie_word_embeddings"
TIED_BY_EITHER = ("llava", "llava_onevision", "llava_next_video", "shieldgemma2")


def model(fields: Fields, name: str, file: str, shown: Mapping[str, str] | None = None) -> Model:
    """The model that a config describes; `shown` are other names for its fields.

    Raises NapkinError.
    """
    kind, part, notes = _text_part(fields, file)
    config = Config(part, file, part is not fields, shown)
    of_class, about = classes.described(config, kind)
    notes += about
    found = READERS[kind](config)
    a, experts = found.attention, found.experts
    if a.heads % a.kv_heads:
        problem = f"{a.kv_heads} do not divide the {a.heads} attention heads"
        raise config.error("num_key_value_heads", problem)
    if experts is not None and experts.active > experts.count:
        problem = f"{experts.active} are more than the {experts.count} experts there are"
        raise config.error("num_experts_per_tok", problem)
    head = classes.head(config, of_class)
    said = (*found.notes, *notes, *classes.note(of_class, head), *config.notes)
    tied = found.tied and head is LANGUAGE
    # Beside a text part, the whole model's.
    both = (config, Config(fields, file))
    stored = next(filter(None, (quantization.of(each, experts is not None) for each in both)), None)
    return found.replace(
        name=name,
        architecture=kind,
        head=head,
        tied=tied,
        notes=said,
        quantization=stored,
        fields=part,
    )


def _text_part(fields: Fields, file: str) -> tuple[str, Fields, list[str]]:
    """The architecture, and the fields that describe the text model."""
    whole = Config(fields, file)
    kind = whole.word("model_type", "")
    if kind in READERS:
        return kind, fields, []
    part = fields.get("text_config")
    if part is not None:
        return _text_model(whole, kind, part)
    of_class = classes.known(whole)
    if of_class is None:
        raise _unknown(whole, kind)
    if not kind:
        return of_class.kind, fields, []
    said = f"model_type {quoted(kind)} is not known: read as {of_class.kind}, by its class"
    return of_class.kind, fields, [f"{said} {of_class.name}"]


def _text_model(whole: Config, kind: str, part: object) -> tuple[str, Fields, list[str]]:
    """Of a model that has more than text, its text model with its output head."""
    if not isinstance(part, dict):
        raise whole.error("text_config", f"{json.dumps(part)[:60]} is not an object")
    for name in classes.named(whole):
        if not name.endswith(classes.MULTIMODAL) and classes.known(whole) is None:
            raise classes.not_counted(whole, name)
    classes.no_draft(whole)
    config = Config(part, whole.file)
    of_class = classes.known(config)
    inner = config.word("model_type", "" if of_class is None else of_class.kind)
    inner = inner or USUAL_TEXT.get(kind, "")
    if inner not in READERS:
        raise _unknown(whole, inner or f"text_config of {kind or 'this model'}")
    notes = [f"the text model of {printable(kind) or 'this model'} alone"]
    text = {k: v for k, v in part.items() if k != "architectures"}  # the whole one's class decides
    if whole.has(TIED):
        of_whole, of_text = whole.flag(TIED, False), config.flag(TIED, False)
        text[TIED] = of_whole or (of_text and kind in TIED_BY_EITHER)
        if config.has(TIED) and text[TIED] != of_text:
            notes.append(f"{TIED}: the whole model's {json.dumps(of_whole)}, not text_config's")
    return inner, text, notes


def _unknown(config: Config, kind: str) -> NapkinError:
    """Neither its model_type nor its class is known: both, and the ways on."""
    names = classes.named(config)
    said = [f"the architecture {quoted(kind)}"] if kind else []
    if names:
        said.append(f"the class {quoted(names[0])}")
    if not said:
        problem = "has neither model_type nor architectures, so what it describes is not known"
    else:
        verb = "is" if len(said) == 1 else "are"
        problem = f"{' and '.join(said)} {verb} not known; known are {' '.join(READERS)}"
    return NapkinError(f"{config.file}: {problem}; {classes.WAYS_ON}")
