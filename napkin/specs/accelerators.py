"""Finding an accelerator by name, alias, the driver's exact device name, or a file.

Partial names never match and vendor words are never stripped: that is how other tables
give an L40S the A100's peak.
"""

import os
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from napkin.errors import NapkinError, quoted, suggestion
from napkin.specs import dtypes, hardware_file
from napkin.specs.accelerator import Accelerator
from napkin.specs.folders import own_folder, shipped_folder


def find(wanted: str) -> Accelerator:
    """The accelerator of that name, alias, device name or file. Raises NapkinError."""
    if os.sep in wanted or "/" in wanted or wanted.endswith((".yaml", ".yml")):
        path = Path(wanted).expanduser()
        return _loaded(path, shown=wanted, own=True)
    name, folder = _alike(wanted), own_folder()
    own = _path_of(Path(folder), name) if os.path.isdir(folder) else None
    if own is not None:
        return _loaded(own, shown=str(own), own=True)
    shipped = _shipped(name)
    if shipped is not None:
        return shipped
    raise NapkinError(_not_found(wanted))


def everything() -> list[Accelerator]:
    """All that `find` knows by name, sorted by name; a user's own file wins over a shipped one."""
    paths: dict[str, tuple[Path, bool]] = {}
    for folder, own in ((shipped_folder(), False), (Path(own_folder()), True)):
        paths |= {path.stem: (path, own) for path in _files(folder)}
    return [
        _loaded(path, shown=str(path) if own else path.name, own=own)
        for _, (path, own) in sorted(paths.items())
    ]


def peak(device_name: str, dtype: str, sparse: bool = False) -> float:
    """The promised FLOP/s of a device, dense unless `sparse`: 989.4e12 for
    ("NVIDIA H100 80GB HBM3", "bf16").

    Takes the driver's exact device name, a hardware name or a file, and torch's dtype names.
    Raises NapkinError, which names near devices; there is no fallback.
    """
    return find(str(device_name)).peak_of(dtypes.precision(dtype), sparse).value


def _files(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("*.yaml"))) if folder.is_dir() else iter(())


def _alike(name: str) -> str:
    """Case, blanks, dashes and underscores do not tell two names apart."""
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())


def _path_of(folder: Path, wanted: str) -> Path | None:
    direct = folder / f"{wanted}.yaml"
    if direct.is_file():
        return direct
    return next((path for path in _files(folder) if _answers_to(path, wanted)), None)


def _answers_to(path: Path, wanted: str) -> bool:
    if _alike(path.stem) == wanted:
        return True
    # Only a file that holds the name at all is parsed: 52 parses would be felt.
    try:
        if not wanted or wanted not in _alike(path.read_text("utf-8", errors="replace")):
            return False
    except OSError:
        return False
    return wanted in map(_alike, _loaded(path, path.name, own=False).names)


def _not_found(wanted: str) -> str:
    words = set(_alike(wanted).split("-"))
    known = everything()
    fits = {
        each.key: name
        for each in known
        for name in each.names
        if words <= set(_alike(name).split("-"))
    }
    if fits:
        several = ", ".join(key if key == n else f"{key} ({n})" for key, n in fits.items())
        return f"{quoted(wanted)} is no exact name; write one of: {several}"
    near = suggestion(_alike(wanted), [n for each in known for n in (each.key, *each.aliases)])
    return f"no hardware is called {quoted(wanted)}{near or '; `napkin hardware` lists all'}"


def _loaded(path: Path, shown: str, own: bool) -> Accelerator:
    try:
        stat = path.stat()
        version = (stat.st_mtime_ns, stat.st_size)
    except (OSError, ValueError):
        version = (0, 0)  # the reader says what is wrong
    return _cached(path, shown, own, version)


@cache
def _shipped(wanted: str) -> Accelerator | None:
    path = _path_of(shipped_folder(), wanted)
    return None if path is None else _loaded(path, path.name, own=False)


@lru_cache(maxsize=256)
def _cached(path: Path, shown: str, own: bool, version: tuple[int, int]) -> Accelerator:
    return hardware_file.read(path, shown, own)
