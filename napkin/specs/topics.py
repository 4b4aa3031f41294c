"""What `napkin explain` says, topic by topic."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from napkin.record import Record
from napkin.specs.text_file import text_of

FILE = Path(__file__).parents[1] / "data" / "explain.yaml"
NAME = re.compile(r"^([a-z-]+):$", re.MULTILINE)
# Of each question, what its working rests on.
OF = {
    "train_time": ("six", "mfu", "dense-and-sparse", "words", "chinchilla"),
    "max_model": ("sixteen", "optimizers", "mixed-precision", "zero"),
    "mfu": ("mfu", "conventions", "dense-and-sparse", "checkpointing"),
    "memory": ("activations", "sixteen", "checkpointing", "zero", "inference"),
    "flops": ("six", "conventions", "activations"),
    "models": ("words", "six"),
    "hardware": ("dense-and-sparse", "tensor-cores", "roofline", "words"),
    "bench": ("tensor-cores", "roofline", "dense-and-sparse"),
    "tensor": ("views", "words", "init"),
    "dtypes": ("mixed-precision", "tensor-cores"),
    "matmul": ("roofline", "tensor-cores", "six"),
    "data": ("data", "seeds"),
    "checkpoint": ("sixteen", "checkpointing", "seeds"),
}


class Topic(Record):
    """Its text, the question whose answer gives its number, and Python to try."""

    title: str
    text: str
    ask: Mapping[str, Mapping[str, Any]]
    reference: str
    snippet: str = ""
    prints: str = ""


def _text() -> str:
    return text_of(FILE, FILE.name)


def names() -> list[str]:
    """In the order of the file, which is not parsed for them."""
    return NAME.findall(_text())


@cache
def topics() -> dict[str, Topic]:
    """All, by name."""
    import yaml  # which completion goes without

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {name: Topic(**fields) for name, fields in yaml.load(_text(), loader).items()}
