"""What reads one kind of config.json, and every field of that kind that was looked at.

A field is read, or changes nothing that is counted, or is counted for some of its values alone:
any other value is refused. What transformers' class of that kind does not have is named in a note.
"""

import json
from collections.abc import Callable, Mapping

from napkin.errors import printable
from napkin.record import NOTHING, Record
from napkin.specs.config import Config
from napkin.specs.model import Model

NAMED = 4  # fields of a note

# Of every kind, and changing nothing that is counted.
_IGNORED = """
    model_type architectures auto_map _name_or_path name_or_path transformers_version
    unsloth_version unsloth_fixed hub_names is_llama_config _attn_implementation_autoset
    _attn_implementation attn_implementation _flash_attn_2_enabled use_flash_attn
    use_flash_attention use_flash_attention_2 use_flash_attn_2 torch_dtype dtype
    quantization_config compression_config torchscript use_bfloat16 return_dict
    output_attentions output_hidden_states use_cache
    use_return_dict gradient_checkpointing cache_implementation chunk_size_feed_forward id2label
    label2id num_labels _num_labels problem_type task_specific_params finetuning_task is_decoder
    cross_attention_hidden_size tie_encoder_decoder

    bos_token_id eos_token_id pad_token_id sep_token_id decoder_start_token_id image_token_id
    image_token_index unk_token_id pad_token eos_token bos_token tokenizer_class prefix
    model_max_length max_sequence_length

    initializer_range attention_dropout hidden_dropout embd_pdrop resid_pdrop attn_pdrop dropout
    classifier_dropout embedding_dropout neftune_noise_alpha rms_norm_eps layer_norm_eps
    layer_norm_epsilon rope_theta rope_scaling rope_parameters rope_interleaved rope_interleave
    rope_local_base_freq partial_rotary_factor original_max_position_embeddings

    max_length max_new_tokens min_length do_sample early_stopping num_beams num_beam_groups
    diversity_penalty temperature top_k top_p typical_p repetition_penalty length_penalty
    no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids num_return_sequences
    output_scores return_dict_in_generate forced_bos_token_id forced_eos_token_id
    remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens
    tf_legacy_loss
"""
IGNORED = frozenset(_IGNORED.split())

Values = tuple[object, ...]
# Of every kind, and another model where it is anything else; null is always as if left out.
ONLY: Mapping[str, Values] = {
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "pruned_heads": ({},),
    "per_layer_config": ({},),
}


class Reader(Record):
    """Reads one kind of model: what it `reads` is counted, what it `ignores` changes no count,
    and `only` are the values that a field may have. All others of transformers' class: none."""

    kind: str
    model: Callable[[Config], Model]
    reads: frozenset[str]
    ignores: frozenset[str]
    only: Mapping[str, Values] = NOTHING
    # Where the kind is typed as a shape: its names for the letters that it calls otherwise than
    # most; None where it has more sizes than letters.
    letters: Mapping[str, str] | None = NOTHING
    alternates: bool = False  # some layers have a window unless it is said
    classes: str = ""  # what the names of transformers' classes of that kind begin with

    def __call__(self, config: Config) -> Model:
        """Raises NapkinError that names a field whose value is not counted."""
        for name, values in self.only.items():
            value = config.fields.get(name)
            if value is not None and value not in values:
                counted = " or ".join(map(json.dumps, values))
                raise config.error(name, f"{json.dumps(value)[:60]} is not counted, only {counted}")
        found = self.model(config)
        strange = [printable(name)[:40] for name in self.strange(config)]
        if not strange:
            return found
        shown = ", ".join(strange[:NAMED])
        rest = f" and {len(strange) - NAMED} more" if len(strange) > NAMED else ""
        note = f"not counted, as transformers' {self.kind} has no such fields: {shown}{rest}"
        return found.replace(notes=(*found.notes, note))

    def strange(self, config: Config) -> list[str]:
        """Fields that say something (neither null nor false, none nor empty) and are no one's."""
        known = {*self.reads, *self.ignores, *self.only}
        return [name for name, value in config.fields.items() if value and name not in known]


def reader(
    reads: str,
    *,
    ignores: str = "",
    only: Mapping[str, Values] | None = None,
    letters: Mapping[str, str] | None = NOTHING,
    alternates: bool = False,
    classes: str = "",
) -> Callable[[Callable[[Config], Model]], Reader]:
    """Names the fields of a kind, which is called as its function is."""

    def named(model: Callable[[Config], Model]) -> Reader:
        own = frozenset(reads.split())
        return Reader(
            model.__name__,
            model,
            own,
            (IGNORED | frozenset(ignores.split())) - own,
            {n: v for n, v in {**ONLY, **(only or {})}.items() if n not in own},
            letters,
            alternates,
            classes or model.__name__.title().replace("_", ""),
        )

    return named
