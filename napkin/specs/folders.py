"""Where the files lie. Apart from their readers, so that completion need not load YAML."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from napkin.errors import NapkinError
from napkin.specs.text_file import names_in

SUFFIXES = (".yaml", ".yml")


@cache
def shipped_folder() -> Path:
    """`hardware/`: inside an installed wheel, else beside the package in a checkout.

    Raises NapkinError where it is in neither.
    """
    package = Path(__file__).parents[1]
    inside = package / "_data" / "hardware"
    return _on_disk(inside if inside.is_dir() else package.parent / "hardware")


@cache
def models_folder() -> Path:
    """`napkin/data/models/`: a config.json per shipped model. Raises NapkinError."""
    return _on_disk(Path(__file__).parents[1] / "data" / "models")


def _on_disk(folder: Path) -> Path:
    # From a zip file Python takes code, and code alone: an empty list would be a wrong answer.
    if not folder.is_dir():
        raise NapkinError(
            f"{folder}: no such folder; napkin reads its own files from a disk: "
            "install it, or unpack its zip file"
        )
    return folder


def own_folder() -> str:
    """`$XDG_CONFIG_HOME/napkin/hardware`, where a user's own files are looked for first."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return _under(base, os.environ.get("HOME"), ".config", "hardware")


def measured_folder() -> str:
    """`$XDG_DATA_HOME/napkin/measured`, where bench keeps its figures."""
    base = os.environ.get("XDG_DATA_HOME")
    return _under(base, os.environ.get("HOME"), ".local/share", "measured")


@cache  # a sweep asks for both a hundred thousand times
def _under(base: str | None, home: str | None, usual: str, name: str) -> str:
    # "If an implementation encounters a relative path in any of these variables it should
    # consider the path invalid and ignore it", says the XDG base directory specification.
    if not base or not os.path.isabs(base):
        base = os.path.join(home or os.path.expanduser("~"), usual)
    return os.path.join(base, "napkin", name)


def hardware_files(folder: str) -> list[Path]:
    """The hardware files of a folder, by name; hidden ones are passed over. Raises NapkinError."""
    return [
        Path(folder, name)
        for name in names_in(folder)
        if name.casefold().endswith(SUFFIXES) and not name.startswith(".")
    ]


def model_names() -> list[str]:
    """What can be typed after --model, by the names of the files alone."""
    return sorted(path.stem for path in models_folder().glob("*.json"))


def hardware_names() -> list[str]:
    """What can be typed after --hardware, by the names of the files alone."""
    names: set[str] = set()
    # A folder that cannot be read completes nothing.
    with suppress(NapkinError):
        names.update(path.stem for path in hardware_files(str(shipped_folder())))
    with suppress(NapkinError):
        names.update(path.stem for path in hardware_files(own_folder()))
    return sorted(names)
