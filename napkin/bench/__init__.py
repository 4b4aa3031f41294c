"""Measures what a device does, with torch, which nothing but this and `checking` imports."""

import sys
import warnings
from importlib.util import find_spec

from napkin.errors import DeviceError, NapkinError

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
        with warnings.catch_warnings():  # torch says on every import that NumPy is not there
            warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
            import torch  # noqa: F401
    except Exception as error:  # a broken installation can raise anything
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DeviceError(f"PyTorch is installed but cannot be imported: {first}") from None
