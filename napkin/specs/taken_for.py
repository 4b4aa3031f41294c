"""What people give in place of a config.json: one line that says what it is and what to give."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from napkin.errors import NapkinError, printable, quoted
from napkin.specs import config
from napkin.specs.text_file import names_in

BESIDE = "give the config.json beside it"
BEGINNING = 512  # bytes, in which a file shows what it is

BY_CONTENT = {
    b"GGUF": "a GGUF file, whose shape napkin does not read; give the config.json it was made from",
    b"version https://git-lfs": "a pointer of Git LFS; `git lfs pull` gets the file itself",
    b"PK\x03\x04": f"holds weights; {BESIDE}",  # torch.save's zip
    b"\x80": f"holds weights; {BESIDE}",  # a pickle
}
BY_SUFFIX = {
    ".gguf": BY_CONTENT[b"GGUF"],
    ".safetensors": f"holds weights; {BESIDE}",
    ".bin": f"holds weights; {BESIDE}",
    ".pt": f"holds weights; {BESIDE}",
    ".pth": f"holds weights; {BESIDE}",
}
INDEX = f"an index of weight files; {BESIDE}"
TOKENIZER = f"a tokenizer's file; {BESIDE}"
BY_NAME = {
    "model.safetensors.index.json": INDEX,
    "pytorch_model.bin.index.json": INDEX,
    "tokenizer.json": TOKENIZER,
    "vocab.json": TOKENIZER,
}
# By the fields that a file of this kind has, where a config.json has none of them.
BY_FIELDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("weight_map",), INDEX),
    (
        ("peft_type",),
        "the settings of an adapter (PEFT); give the config.json of its base model{base}",
    ),
    (
        ("dim", "n_layers", "n_heads"),
        "the params.json of Meta's own release; give the config.json of the same model for "
        "transformers, or a shape: llama:L=n_layers,d=dim,H=n_heads,...",
    ),
    (("tokenizer_class",), TOKENIZER),
    (("added_tokens_decoder",), TOKENIZER),
    (("do_sample",), f"the settings of generation; {BESIDE}"),
    (("eos_token_id", "transformers_version"), f"the settings of generation; {BESIDE}"),
    (("error",), "an error's page that was saved; get the config.json again"),
)
# What a folder that has no config.json is known by; of these the first that it has.
IN_FOLDER = ("adapter_config.json", "params.json")
OF_A_CONFIG = ("model_type", "architectures", "hidden_size", "n_embd", "text_config")


def by_name(path: Path, shown: str) -> None:
    """Raises NapkinError for what a file's name or its first bytes say that it is."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return
        with path.open("rb") as file:
            first = file.read(BEGINNING)
    except (OSError, ValueError):
        return  # who reads it says why it cannot
    said = BY_SUFFIX.get(path.suffix.casefold()) or BY_NAME.get(path.name)
    for beginning, what in BY_CONTENT.items():
        if first.startswith(beginning):
            said = what
    if first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        said = "a web page that was saved; get the config.json itself"
    if said is not None:
        raise NapkinError(f"{shown}: {said}")


def in_folder(folder: Path, shown: str) -> None:
    """Raises NapkinError that says what the folder is, where it has a file that tells."""
    for name in IN_FOLDER:
        if (folder / name).is_file():
            within = printable(os.path.join(shown, name))
            by_name(folder / name, within)
            by_fields(config.load(folder / name, within), within)
    if any(name.casefold().endswith(".gguf") for name in names_in(str(folder))):
        said = "a folder of GGUF files; give the config.json that they were made from"
        raise NapkinError(f"{printable(shown)}: {said}")


def by_fields(fields: Mapping[str, Any], shown: str) -> None:
    """Raises NapkinError for fields of another kind of file."""
    if any(name in fields for name in OF_A_CONFIG):
        return
    for names, said in BY_FIELDS:
        if all(name in fields for name in names):
            base = fields.get("base_model_name_or_path")
            of = f", {quoted(base)}" if isinstance(base, str) and base else ""
            raise NapkinError(f"{shown}: {said.format(base=of)}")
