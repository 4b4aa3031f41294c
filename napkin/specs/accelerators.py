"""Finding an accelerator by name, alias, the driver's exact device name, or a file.

Partial names never match and vendor words are never stripped: that is how other tables
give an L40S the A100's peak.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path

from napkin.errors import NapkinError, printable, quoted
from napkin.specs import dtypes, hardware_file, names, this_machine
from napkin.specs.accelerator import Accelerator
from napkin.specs.folders import SUFFIXES, hardware_files, own_folder, shipped_folder
from napkin.specs.text_file import content_of, expanded

_Text = tuple[Path, str]

SUGGESTED_OF = 200  # of the user's own files, in what is suggested for an unknown name


def find(wanted: str) -> Accelerator:
    """The accelerator of that name, alias, device name or file, or of `here`, this machine.

    Raises NapkinError.
    """
    found = lookup(wanted)
    if found is None:
        raise NapkinError(not_found(wanted, everything(SUGGESTED_OF)))
    return found


def lookup(wanted: str) -> Accelerator | None:
    """As `find`, but None for a name that is not known."""
    name = alike(wanted)
    if name == this_machine.NAME:
        return find(this_machine.device().name)
    if _is_path(wanted):
        return _of_path(wanted)
    folder = own_folder()
    has_own = os.path.isdir(folder)
    found = _own(folder, name) if has_own else None
    if found is None:
        found = shipped(name)
        if found is not None and has_own and found.key != name:
            # The user's file of that name wins under each of its names.
            found = _own(folder, found.key) or found
    return found


def by_name(known: Iterable[Accelerator]) -> dict[str, Accelerator]:
    """What answers to each name, as `alike` writes it; a user's own wins.

    Made once, as a table of other people's asks for thousands of names.
    """
    found: dict[str, Accelerator] = {}
    for each in sorted(known, key=lambda each: each.own):
        for name in set(map(alike, each.names)):
            if name not in found or (each.own and not found[name].own):
                found[name] = each
    return found


def _is_path(wanted: str) -> bool:
    if wanted.casefold().endswith(SUFFIXES):
        return True
    # A driver may print `MI250X / MI250`.
    return (os.sep in wanted or "/" in wanted) and " / " not in wanted


def _of_path(wanted: str) -> Accelerator:
    path = expanded(wanted)
    if not os.path.exists(path) and shipped(alike(path.stem)):
        raise NapkinError(f"{printable(wanted)}: no such file; did you mean {path.stem!r}?")
    return _loaded(path, shown=wanted, own=True)


def _own(folder: str, name: str) -> Accelerator | None:
    """The user's own; what two of the user's files answer to is refused."""
    paths = _paths_of(folder, name, partial(_texts, folder))
    if len(paths) > 1:
        files = " and ".join(path.name for path in paths)
        raise NapkinError(f"{quoted(name)} is a name of two of your files, {files}; keep one")
    return _loaded(paths[0], str(paths[0]), own=True) if paths else None


@cache
def shipped(name: str) -> Accelerator | None:
    """The shipped accelerator of a name as `alike` writes it."""
    paths = _paths_of(str(shipped_folder()), name, _shipped_texts)
    return _loaded(paths[0], paths[0].name, own=False) if paths else None


def everything(most_own: int | None = None) -> list[Accelerator]:
    """All that `find` knows by name, sorted by name; a user's own file wins over a shipped one.

    Of the user's own files no more than `most_own`, without those that cannot be read.
    """
    return everything_and_broken(most_own)[0]


def everything_and_broken(
    most_own: int | None = None,
) -> tuple[list[Accelerator], list[NapkinError]]:
    """`everything`, and what is wrong with the user's own files, the first problem of each."""
    paths = hardware_files(str(shipped_folder()))
    found = {path.stem: _loaded(path, path.name, own=False) for path in paths}
    broken = []
    try:
        for path in hardware_files(own_folder())[:most_own]:
            try:
                found[path.stem] = _loaded(path, str(path), own=True)
            except NapkinError as error:
                broken.append(error)
    except NapkinError as error:  # the folder itself
        broken.append(error)
    return [found[key] for key in sorted(found)], broken


def unseen() -> str:
    """Why the user's own files are not looked at, nothing where they are or there are none."""
    folder = own_folder()
    if not os.path.isdir(folder) or os.access(folder, os.R_OK | os.X_OK):
        return ""
    return f"your own hardware files are not looked at: {printable(folder)} cannot be read"


def peak(device_name: str, dtype: str, sparse: bool = False) -> float:
    """The promised FLOP/s, dense unless `sparse`: 989.4e12 for
    ("NVIDIA H100 80GB HBM3", "bf16").

    A driver's exact device name means one device as torch or JAX counts them (half of a
    MI250X); a hardware name, an alias or a file means the package, as everywhere else.
    Takes torch's dtype names. Raises NapkinError, which names near devices; there is no
    fallback.
    """
    wanted = str(device_name)
    found = find(wanted)
    whole = found.peak_of(dtypes.precision(dtype), sparse).value
    return float(whole / devices_meant(found, wanted))


def devices_meant(accelerator: Accelerator, wanted: str) -> int:
    """Into how many devices its figures are to be divided for that name of it."""
    is_device = alike(wanted) in map(alike, accelerator.device_names)
    return accelerator.devices_per_package if is_device else 1


@lru_cache(maxsize=1024)
def alike(name: str) -> str:
    """Case, blanks, dashes and underscores do not tell two names apart."""
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())


@lru_cache(maxsize=64)
def _value_of(wanted: str) -> re.Pattern[str]:
    words = r"[\s_-]+".join(map(re.escape, wanted.split("-")))
    return re.compile(rf"[\[,:-]\s*[\"']?\s*{words}\s*[\"']?\s*(?:[,\]#]|$)", re.I | re.M)


def _paths_of(folder: str, name: str, texts: Callable[[], Iterable[_Text]]) -> list[Path]:
    direct = os.path.join(folder, f"{name}.yaml")
    if os.path.isfile(direct):
        return [Path(direct)]
    return [path for path, text in texts() if _answers_to(path, text, name)]


def _answers_to(path: Path, text: str, wanted: str) -> bool:
    if alike(path.stem) == wanted:
        return True
    # Only a file that has the name as a value of its own is parsed: 52 parses would be felt.
    if not wanted or not all(word in text for word in wanted.split("-")):
        return False
    if not _value_of(wanted).search(text):
        return False
    # A broken file that has the name is named as broken, not passed over for another.
    return wanted in map(alike, _loaded(path, path.name, own=False).names)


@cache  # a table of other people's asks for thousands of names
def _shipped_texts() -> list[_Text]:
    return list(_texts(str(shipped_folder())))


def _texts(folder: str) -> Iterator[_Text]:
    """A folder's files with what they hold, in small letters; what cannot be read holds nothing:
    `unseen` names the folder, `everything_and_broken` the file."""
    with suppress(NapkinError):
        for path in hardware_files(folder):
            try:
                yield path, content_of(path, path.name).decode("utf-8", "replace").casefold()
            except NapkinError:
                yield path, ""


def not_found(wanted: str, known: list[Accelerator]) -> str:
    """What to say of a name that none of these has."""
    if "," in wanted:
        return f"{quoted(wanted)} has a comma; write one name"
    words = set(alike(wanted).split("-"))
    fits = {
        each.key: name
        for each in known
        for name in each.names
        if words <= set(alike(name).split("-"))
    }
    if fits:
        said = [key if key == name else f"{key} ({name})" for key, name in fits.items()]
        which = f"one of: {', '.join(said)}" if len(said) > 1 else said[0]
        return f"{quoted(wanted)} is no exact name; write {which}"
    every = [name for each in known for name in each.names]
    shown = {each.key: f"{each.key} ({each.name})" for each in known}
    near = names.hint(wanted, every, shown, "for another, give a hardware file")
    return f"no hardware is called {quoted(wanted)}{near or '; `napkin hardware` lists all'}"


def _loaded(path: Path, shown: str, own: bool) -> Accelerator:
    return _cached(path, shown, own, _version(path))


def _version(path: Path) -> tuple[int, int]:
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return 0, 0  # the reader says what is wrong
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=256)
def _cached(path: Path, shown: str, own: bool, version: tuple[int, int]) -> Accelerator:
    return hardware_file.read(path, shown, own)
