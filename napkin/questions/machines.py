"""GPUs in all, with their kind where they are written together: `1024`, `1e3`, `8xH100`."""

import os
import re

from napkin.errors import quoted
from napkin.questions import options
from napkin.questions.options import Text
from napkin.specs import accelerators

SEVERAL = r"\s*([1-9][\d_,.]*(?:e\d+)?)\s*[x×*]\s*([^\W\d].*)"
VARIABLE = "NAPKIN_HARDWARE"


def machines(gpus: Text | None, hardware: str | None) -> tuple[Text | None, str | None]:
    """The count and the name of the accelerator, as --gpus and --hardware would say them.

    Raises NapkinError where --hardware names another one.
    """
    together = _together(gpus)
    if together is None:
        return gpus, hardware
    count, name = together.groups()
    meant = options.read("gpus", name, accelerators.find)
    chosen = None if hardware == os.environ.get(VARIABLE) else hardware
    other = None if chosen is None else options.read("hardware", chosen, accelerators.find)
    if other is not None and other.key != meant.key:
        raise options.error("hardware", f"{quoted(gpus)} says {meant.key} already; leave one out")
    return count, name


def _together(gpus: Text | None) -> re.Match[str] | None:
    text = str(gpus)
    # A number alone needs no pattern, which takes half a millisecond to compile.
    return None if text.isdecimal() else re.fullmatch(SEVERAL, text, re.IGNORECASE)


def as_many(gpus: Text | None, count: int) -> str:
    """Another count, written as the first was."""
    together = _together(gpus)
    return str(count) if together is None else f"{count}x{together[2]}"
