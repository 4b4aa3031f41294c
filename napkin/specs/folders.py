"""Where hardware files lie. Apart from the reader, so that completion need not load YAML."""

import os
from functools import cache
from pathlib import Path


@cache
def shipped_folder() -> Path:
    """`hardware/`: inside an installed wheel, else beside the package in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "_data" / "hardware"
    return inside if inside.is_dir() else package.parent / "hardware"


def own_folder() -> str:
    """`$XDG_CONFIG_HOME/napkin/hardware`, where a user's own files are looked for first."""
    return _own_folder(os.environ.get("XDG_CONFIG_HOME"), os.environ.get("HOME"))


@cache  # a sweep asks for it a hundred thousand times
def _own_folder(config: str | None, home: str | None) -> str:
    base = config or os.path.join(home or os.path.expanduser("~"), ".config")
    return os.path.join(base, "napkin", "hardware")


def hardware_names() -> list[str]:
    """What can be typed after --hardware, by the names of the files alone."""
    return sorted(
        {p.stem for f in (shipped_folder(), Path(own_folder())) for p in f.glob("*.yaml")}
    )
