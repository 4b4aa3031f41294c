"""Counts with transformers and torch what the formulas compute: a model's parameters and FLOP."""

import sys
from importlib.util import find_spec

from napkin import libraries
from napkin.errors import NapkinError


def require() -> None:
    """Raises NapkinError that says how to install what is missing."""
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise NapkinError(
            f"--check: counts with torch and transformers; {' and '.join(missing)} not installed: "
            f"{sys.executable} -m pip install {' '.join(missing)}"
        )
    libraries.load("torch", "PyTorch")
    libraries.load("transformers", "transformers")
