"""Napkin math for training LLMs: every answer shows its derivation."""

TYPE_CHECKING = False  # as typing has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

# Loaded when first asked for: `import napkin` stays as quick as an empty module.
_HOMES = {
    "train_time": "napkin.api",
    "max_model": "napkin.api",
    "memory": "napkin.api",
    "mfu": "napkin.api",
    "flops": "napkin.api",
    "tensor": "napkin.api",
    "matmul": "napkin.api",
    "data": "napkin.api",
    "checkpoint": "napkin.api",
    "dtypes": "napkin.api",
    "explain": "napkin.api",
    "models": "napkin.api",
    "hardware": "napkin.api",
    "peak": "napkin.specs.accelerators",
    "NapkinError": "napkin.errors",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'napkin' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
