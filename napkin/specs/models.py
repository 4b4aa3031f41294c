"""Finding a model: by name, by its name on the Hugging Face hub, a config.json, or a shape.

Nothing is downloaded and no code of a repository is run.
"""

import os
import re
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from napkin.errors import NapkinError, printable, quoted
from napkin.specs import architectures, config, inline, names
from napkin.specs.folders import model_names, models_folder
from napkin.specs.model import Model, Stack
from napkin.specs.text_file import expanded, names_in, text_of

CONFIG = "config.json"
OF_HUB = "models--"  # what a model's folder in the hub's cache begins with
HUB_NAMES = "hub_names"  # a shipped file's own field, beside those of config.json
HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


def find(wanted: str) -> Model | Stack:
    """A shape, a file or folder that is there, a shipped name, a name of the hub: the first of
    these that it is. Raises NapkinError."""
    if not wanted.strip():
        raise NapkinError("is empty; write a name that `napkin models` lists, or a config.json")
    if inline.is_one(wanted):
        return inline.model(wanted)
    path = expanded(wanted)
    if wanted.casefold().endswith(".json") or os.path.isfile(os.path.join(path, CONFIG)):
        return _of_path(path, wanted)
    if "/" in wanted and os.path.lexists(path):  # before it is a name of the hub
        return _of_path(path, wanted)
    found = shipped(alike(wanted))
    if found is not None:
        return found
    from napkin.specs import taken_for  # here and below: a shipped model's answer goes without

    if os.path.lexists(path) or path.suffix.casefold() in taken_for.BY_SUFFIX:
        return _of_path(path, wanted)
    if HUB_NAME.fullmatch(wanted):
        return _of_hub(wanted)
    raise NapkinError(not_found(wanted))


def not_found(wanted: str) -> str:
    """What to say of a name that no model has."""
    if "," in wanted:
        return f"{quoted(wanted)} has a comma; write one name"
    known = model_names()
    fits = names.begun(wanted, known) or names.of_some_version(wanted, known)
    if fits:
        which = fits[0] if len(fits) == 1 else f"one of: {', '.join(fits)}"
        return f"{quoted(wanted)} is no exact name; write {which}"
    shown = {name: name for name in known}
    near = names.hint(wanted, known, shown, "for another, give a config.json")
    return (
        f"no model is called {quoted(wanted)}"
        f"{near or '; `napkin models` lists all, or give a config.json'}"
    )


@lru_cache(maxsize=1024)
def alike(name: str) -> str:
    """Case, blanks, dashes and underscores do not tell two names apart."""
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())


@cache
def shipped(name: str) -> Model | None:
    """The shipped model of a name, or hub name, as `alike` writes it."""
    path = models_folder() / f"{name}.json"
    if "/" not in name:
        return _shipped(path) if os.path.isfile(path) else None
    for path in sorted(models_folder().glob("*.json")):
        # Only a file that has the name is parsed.
        if name in alike(text_of(path, path.name)):
            found = _shipped(path)
            if name in map(alike, hub_names(found)):
                return found
    return None


def _shipped(path: Path) -> Model:
    return architectures.model(config.load(path, path.name), path.stem, path.name)


def hub_names(model: Model) -> list[str]:
    """Its names on the Hugging Face hub, where it is a shipped one."""
    return list(model.fields.get(HUB_NAMES, []))


def _of_path(path: Path, shown: str) -> Model:
    from napkin.specs import taken_for

    file = path / CONFIG if os.path.isdir(path) else path
    if file != path and not os.path.lexists(file):
        taken_for.in_folder(path, shown)
        raise NapkinError(f"{printable(shown)}: is a folder without a {CONFIG}")
    shown = printable(shown if file == path else os.path.join(shown, CONFIG))
    taken_for.by_name(file, shown)
    fields = config.load(file, shown)
    taken_for.by_fields(fields, shown)
    return architectures.model(_own(fields), printable(_name(file)), shown)


def _name(file: Path) -> str:
    """`a/b` in the cache of the Hugging Face hub, else its folder's, or a file's own. No link is
    followed: the cache's lead to blobs."""
    whole = Path(os.path.abspath(file))
    cached = [part.name for part in whole.parents if part.name.startswith(OF_HUB)]
    if cached:
        return cached[0].removeprefix(OF_HUB).replace("--", "/")
    if whole.name == CONFIG:
        return whole.parent.name
    return whole.stem if whole.suffix.casefold() == ".json" else whole.name  # as Llama-3.1-8B


def _own(fields: config.Fields) -> config.Fields:
    """A user's, in which what only shipped files have means nothing."""
    return {name: value for name, value in fields.items() if name != HUB_NAMES}


def _of_hub(wanted: str) -> Model:
    """From the local cache of the Hugging Face hub: nothing is downloaded."""
    of_model = hub_cache() / f"{OF_HUB}{wanted.replace('/', '--')}"
    file = _cached_config(of_model)
    if file is None:
        raise NapkinError(
            f"{wanted} is not a shipped model and not in the Hugging Face cache; "
            f"get its {CONFIG} (hf download {wanted} {CONFIG}) and give that file"
        )
    return architectures.model(_own(config.load(file, wanted)), wanted, wanted)


def hub_cache() -> Path:
    """Where huggingface_hub keeps what it has downloaded."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    hf_home = os.environ.get("HF_HOME") or os.path.join(home, "huggingface")
    old = os.environ.get("HUGGINGFACE_HUB_CACHE")
    cache = os.environ.get("HF_HUB_CACHE") or old or os.path.join(hf_home, "hub")
    return expanded(os.path.expandvars(cache))


def _cached_config(of_model: Path) -> Path | None:
    """That of the main branch, else any that is there. Raises NapkinError for a cache that
    cannot be read."""
    folder = of_model / "snapshots"
    snapshots = [folder / name / CONFIG for name in names_in(str(folder))]
    snapshots = [path for path in snapshots if os.path.isfile(path)]
    main = ""
    with suppress(NapkinError):
        main = text_of(of_model / "refs" / "main", "refs/main").strip()
    return next((path for path in snapshots if path.parent.name == main), None) or (
        snapshots[-1] if snapshots else None
    )
