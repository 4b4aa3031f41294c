"""Measures what a device does, with torch, which nothing but this and `checking` imports."""

import os
import sys
from importlib.util import find_spec

from napkin import libraries
from napkin.errors import NapkinError

# That there is a matmul for; what a device has of them, `operators` knows.
PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")


def require_torch() -> None:
    """Raises NapkinError that says how to install torch, where it is not there or broken."""
    if find_spec("torch") is None:
        raise NapkinError(
            f"bench measures with PyTorch, which is not installed: {sys.executable} "
            "-m pip install torch (everything else works without)"
        )
    try:
        os.getcwd()
    except FileNotFoundError:  # deleted: MKL ends the process where it finds no folder to be in
        os.chdir(os.sep)
    libraries.load("torch", "PyTorch")
