"""A design of one's own, typed as a shape: `llama:L=32,d=4096,H=32,kv=8,ff=14336,V=128256`."""

import re
from typing import Any

from napkin import parsing
from napkin.errors import NapkinError, quoted, suggestion
from napkin.specs import architectures
from napkin.specs.config import MOST, MOST_LAYERS
from napkin.specs.model import Model, Stack
from napkin.specs.names import with_numbers_of

LINEAR = "linear"
EXAMPLE = "llama:L=32,d=4096,H=32,kv=8,ff=14336,V=128256"
LINEAR_EXAMPLE = "linear:L=4,d=4096"
MOE_EXAMPLE = "mixtral:L=32,d=4096,H=32,kv=8,ff=14336,E=8,k=2,V=32000"

# The field's letters, and config.json's names for them.
LETTERS = {
    "L": "num_hidden_layers",
    "d": "hidden_size",
    "H": "num_attention_heads",
    "kv": "num_key_value_heads",
    "hd": "head_dim",
    "ff": "intermediate_size",
    "V": "vocab_size",
    "T": "max_position_embeddings",
    "w": "sliding_window",
    "E": "num_experts",
    "k": "num_experts_per_tok",
    "tied": "tie_word_embeddings",
}
SWITCH = "use_sliding_window"
NEEDED = ("L", "d", "H", "ff", "V")
EXPERTS = ("E", "k")


def is_one(text: str) -> bool:
    """Whether this is a shape and not a name or a file."""
    kind, colon, rest = text.partition(":")
    known = kind.strip().casefold().replace("-", "_") in (LINEAR, *architectures.READERS)
    return bool(colon) and (known or re.match(r"\s*\w+\s*=", rest) is not None)


def model(text: str) -> Model | Stack:
    """Raises NapkinError, which names the letter that is wrong."""
    kind, _, rest = text.partition(":")
    kind = kind.strip().casefold().replace("-", "_")
    readers = architectures.READERS
    known = [LINEAR, *(name for name, reader in readers.items() if reader.letters is not None)]
    if kind in readers and kind not in known:
        raise NapkinError(f"{kind}: has more sizes than a line holds; write a config.json")
    if kind not in known:
        near = suggestion(kind, with_numbers_of(kind, known)) or f"; known are {' '.join(known)}"
        raise NapkinError(f"the architecture {quoted(kind)} is not known{near}")
    given = _letters(kind, rest)
    if kind == LINEAR:
        return _stack(text.strip(), given)
    if LETTERS["kv"] in readers[kind].reads:  # else heads share d, and are not grouped
        # In a design of one's own, what is not said is plain: all heads alike, no window.
        given.setdefault("kv", given["H"])
        if not readers[kind].alternates:
            given.setdefault("w", None)
        elif "w" not in given:
            given["layers"] = ["full_attention"] * min(given["L"], MOST_LAYERS)
        if "hd" not in given and given["d"] % given["H"]:
            problem = f"{given['d']} is no multiple of the {given['H']} heads; say hd too"
            raise NapkinError(f"{kind}: d: {problem}")
        given.setdefault("hd", given["d"] // given["H"])
    names = _names(kind) | {"layers": "layer_types"}
    fields = {names[letter]: value for letter, value in given.items()}
    if given.get("w") and SWITCH in readers[kind].reads:
        fields |= {SWITCH: True, "max_window_layers": 0}  # a window that is typed is meant
    shown = {name: letter for letter, name in names.items()}
    found = architectures.model({**fields, "model_type": kind}, text.strip(), kind, shown)
    return found if "T" in given else found.replace(longest=None)


def _stack(text: str, given: dict[str, Any]) -> Stack:
    for letter, most in (("L", MOST_LAYERS), ("d", MOST)):
        if given[letter] > most:
            raise NapkinError(f"{LINEAR}: {letter}: {given[letter]} is more than {most:,}")
    return Stack(text, given["L"], given["d"])


def _allowed(kind: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The letters an architecture takes, those it needs, and an example."""
    if kind == LINEAR:
        return ("L", "d"), ("L", "d"), LINEAR_EXAMPLE
    reads = architectures.READERS[kind].reads
    letters = tuple(letter for letter, name in _names(kind).items() if name in reads)
    if "E" in letters:
        return letters, (*NEEDED, *EXPERTS), MOE_EXAMPLE
    return letters, NEEDED, EXAMPLE


def _names(kind: str) -> dict[str, str]:
    return LETTERS | dict(architectures.READERS[kind].letters or {})


def _letters(kind: str, text: str) -> dict[str, Any]:
    """What is given, each letter once and none missing."""
    allowed, needed, example = _allowed(kind)
    found: dict[str, Any] = {}
    for part in text.split(","):
        letter, equals, value = (each.strip() for each in part.partition("="))
        if not equals:
            raise NapkinError(f"{kind}: {quoted(part)} is not a size; write {example}")
        if letter not in allowed:
            near = suggestion(letter, allowed) or f"; known are {' '.join(allowed)}"
            raise NapkinError(f"{kind}: {quoted(letter)} is none of its sizes{near}")
        if letter in found:
            raise NapkinError(f"{kind}: {letter} is given twice")
        found[letter] = _value(kind, letter, value)
    missing = [letter for letter in needed if letter not in found]
    if missing:
        raise NapkinError(f"{kind}: {', '.join(missing)} missing; write {example}")
    return found


def _value(kind: str, letter: str, text: str) -> int | bool:
    if letter == "tied":
        if text.casefold() in ("1", "0", "true", "false", "yes", "no"):
            return text.casefold() in ("1", "true", "yes")
        raise NapkinError(f"{kind}: tied: {quoted(text)} is neither yes nor no")
    try:
        return parsing.whole(text, "4096")
    except NapkinError as error:
        raise error.within(f"{kind}: {letter}") from None
