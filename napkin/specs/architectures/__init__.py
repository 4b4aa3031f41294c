"""What a config.json means: one reader per architecture, with transformers' own defaults.

Checked against transformers 5.24's classes, parameter by parameter (tests/checking).
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from napkin.errors import NapkinError, quoted, suggestion
from napkin.specs.architectures import dense, gpt, moe
from napkin.specs.config import Config, Fields
from napkin.specs.model import Model
from napkin.specs.reader import Reader

READERS: dict[str, Reader] = {
    "llama": dense.llama,
    "mistral": dense.mistral,
    "qwen2": dense.qwen2,
    "qwen3": dense.qwen3,
    "gemma": dense.gemma,
    "gemma2": dense.gemma2,
    "gemma3_text": dense.gemma3_text,
    "phi3": dense.phi3,
    "olmo2": dense.olmo2,
    "gpt2": gpt.gpt2,
    "gpt_neox": gpt.gpt_neox,
    "opt": gpt.opt,
    "mixtral": moe.mixtral,
    "qwen2_moe": moe.qwen2_moe,
    "qwen3_moe": moe.qwen3_moe,
    "gpt_oss": moe.gpt_oss,
    "deepseek_v2": moe.deepseek_v2,
    "deepseek_v3": moe.deepseek_v3,
}
# The text model of a larger one that does not say which it has.
USUAL_TEXT = {"gemma3": "gemma3_text", "llava": "llama", "paligemma": "gemma"}
# For a config without a model_type.
CLASSES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "Phi3ForCausalLM": "phi3",
    "Olmo2ForCausalLM": "olmo2",
    "GPT2LMHeadModel": "gpt2",
    "GPTNeoXForCausalLM": "gpt_neox",
    "OPTForCausalLM": "opt",
    "MixtralForCausalLM": "mixtral",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "GptOssForCausalLM": "gpt_oss",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
}


def model(fields: Fields, name: str, file: str, shown: Mapping[str, str] | None = None) -> Model:
    """The model that a config describes; `shown` are other names for its fields.

    Raises NapkinError.
    """
    kind, part, notes = _text_part(fields, file)
    config = Config(part, file, part is not fields, shown)
    found = READERS[kind](config)
    a, experts = found.attention, found.experts
    if a.heads % a.kv_heads:
        problem = f"{a.kv_heads} do not divide the {a.heads} attention heads"
        raise config.error("num_key_value_heads", problem)
    if experts is not None and experts.active > experts.count:
        problem = f"{experts.active} are more than the {experts.count} experts there are"
        raise config.error("num_experts_per_tok", problem)
    said = (*found.notes, *notes, *config.notes)
    return replace(found, name=name, architecture=kind, notes=said, fields=part)


def _text_part(fields: Fields, file: str) -> tuple[str, Fields, list[str]]:
    """The architecture, and the fields that describe the text model."""
    whole = Config(fields, file)
    kind = _kind(whole)
    if kind in READERS:
        return kind, fields, []
    part = fields.get("text_config")
    if part is not None and not isinstance(part, dict):
        raise whole.error("text_config", f"{json.dumps(part)[:60]} is not an object")
    if part is not None:
        inner = _kind(Config(part, file)) or USUAL_TEXT.get(kind, "")
        if inner in READERS:
            tied = {k: v for k, v in fields.items() if k == "tie_word_embeddings"}
            return inner, {**tied, **part}, [f"the text model of {kind or 'this model'} alone"]
        kind = inner or f"text_config of {kind}"
    if not kind:
        raise NapkinError(f"{file}: has no model_type, so its architecture is not known")
    near = suggestion(kind, READERS) or f"; known are {' '.join(READERS)}"
    raise NapkinError(f"{file}: the architecture {quoted(kind)} is not known{near}")


def _kind(config: Config) -> str:
    """model_type decides, else the first of `architectures`."""
    kind = config.word("model_type", "")
    if kind:
        return kind
    classes = config.items("architectures")
    first = str(classes[0]) if classes else ""
    return CLASSES.get(first, first)
