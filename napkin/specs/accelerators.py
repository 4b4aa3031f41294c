"""Accelerators: one YAML file each, found by name, alias or the driver's exact device name.

Partial names never match and vendor words are never stripped: that is how other tables
give an L40S the A100's peak.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from napkin import parsing
from napkin.errors import NapkinError, quoted, suggestion
from napkin.specs import dtypes, yaml_file
from napkin.specs.folders import own_folder, shipped_folder
from napkin.specs.yaml_file import Section


class Figure(NamedTuple):
    """A value in base units and the `file:line` that says so."""

    value: float
    source: str


class Peak(NamedTuple):
    """One precision's FLOP/s (int8, int4: OP/s) per package; `dense` is the one to plan with."""

    dense: Figure
    sparse: Figure | None = None  # 2:4 structured sparsity
    dense_fp16_accumulate: Figure | None = None  # GeForce: twice the fp32-accumulate rate
    sparse_fp16_accumulate: Figure | None = None


class Interconnect(NamedTuple):
    """The link between packages, per package; `domain` is how many reach each other by it."""

    name: str
    bidirectional: Figure | None = None
    unidirectional: Figure | None = None
    domain: Figure | None = None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """What its file says of one package (a MI250X is one package of two devices)."""

    key: str  # the file's name, which is what people type
    file: str
    own: bool  # a user's file, not one that napkin ships
    name: str
    vendor: str
    about: dict[str, str]  # architecture, form_factor, released, accumulate, memory_type
    aliases: tuple[str, ...]
    device_names: tuple[str, ...]
    devices_per_package: int
    peak: dict[str, Peak]
    memory: Figure  # as printed, GB = 1e9
    memory_visible: Figure | None  # as the driver reports it
    memory_torch: tuple[Figure, ...]  # the range of totals that torch was seen to report
    memory_bandwidth: Figure | None
    interconnect: Interconnect | None
    tdp: Figure | None
    sources: dict[str, tuple[str, ...]]  # per block of the file
    notes: tuple[str, ...]

    @property
    def short_name(self) -> str:
        """`H100 SXM` for NVIDIA H100 SXM."""
        return self.name.removeprefix(f"{self.vendor} ").removeprefix("GeForce ")

    def peak_of(self, dtype: str, sparse: bool = False) -> Figure:
        """The promised FLOP/s. Raises NapkinError that names what the device has."""
        if dtype not in self.peak:
            raise NapkinError(f"{self.key} has no {dtype} figure; it has {' '.join(self.peak)}")
        peak = self.peak[dtype]
        if not sparse:
            return peak.dense
        if peak.sparse is None:
            has = [name for name, p in self.peak.items() if p.sparse]
            says = f"it has {' '.join(has)}" if has else "it has none at all"
            raise NapkinError(f"{self.key} has no sparse {dtype} figure; {says}")
        return peak.sparse

    @property
    def names(self) -> tuple[str, ...]:
        """Everything it answers to."""
        return (self.key, *self.aliases, *self.device_names)


ABOUT = ("architecture", "form_factor", "released", "accumulate", "memory_type")
SOURCED = ("peak", "memory", "interconnect", "tdp", "device_names", "released")
KEYS = (
    *("name", "vendor", *ABOUT, "aliases", "device_names", "devices_per_package", "peak"),
    *("memory", "memory_visible", "memory_torch", "memory_bandwidth"),
    *("interconnect", "tdp", "sources", "notes"),
)
VECTOR = ("fp64_vector", "fp32_vector")


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
    return _accelerator(yaml_file.load(path, shown), path.stem, own)


def _accelerator(file: Section, key: str, own: bool) -> Accelerator:
    file.only(KEYS, required=("name", "peak", "memory"))
    sources = file.section("sources") if "sources" in file else None
    if sources:
        sources.only(SOURCED)
    return Accelerator(
        key=key,
        file=file.file,
        own=own,
        name=file.text("name"),
        vendor=file.text("vendor") if "vendor" in file else "",
        about={name: file.text(name) for name in ABOUT if name in file},
        aliases=file.texts("aliases"),
        device_names=file.texts("device_names"),
        devices_per_package=(
            file.value("devices_per_package", parsing.whole)[0]
            if "devices_per_package" in file
            else 1
        ),
        peak=_peaks(file.section("peak")),
        memory=Figure(*file.value("memory", parsing.memory)),
        memory_visible=_figure(file, "memory_visible", parsing.memory),
        memory_torch=(
            tuple(Figure(*v) for v in file.list("memory_torch", parsing.memory))
            if "memory_torch" in file
            else ()
        ),
        memory_bandwidth=_figure(file, "memory_bandwidth", parsing.bandwidth),
        interconnect=_interconnect(file.section("interconnect"))
        if "interconnect" in file
        else None,
        tdp=_figure(file, "tdp", parsing.power),
        sources={block: sources.texts(block) for block in sources} if sources else {},
        notes=file.texts("notes"),
    )


def _figure(section: Section, key: str, read: Callable[[str], float]) -> Figure | None:
    return Figure(*section.value(key, read)) if key in section else None


def _peaks(section: Section) -> dict[str, Peak]:
    peaks: dict[str, Peak] = {}
    section.only((*dtypes.PRECISIONS, *dtypes.ALIASES, *VECTOR))
    for key in section:
        name = dtypes.ALIASES.get(key, key)
        if name in peaks:
            raise NapkinError(f"{section.file}: peak.{key}: {name} is given under two names")
        if section.is_section(key):
            row = section.section(key)
            row.only(Peak._fields, required=("dense",))
            peaks[name] = Peak(*(_figure(row, field, parsing.rate) for field in Peak._fields))  # type: ignore[arg-type]
        else:
            peaks[name] = Peak(Figure(*section.value(key, parsing.rate)))
    if not peaks:
        raise NapkinError(f"{section.file}: peak: is empty; write bf16: 312 TFLOP/s")
    return peaks


def _interconnect(section: Section) -> Interconnect:
    section.only(Interconnect._fields, required=("name",))
    return Interconnect(
        section.text("name"),
        _figure(section, "bidirectional", parsing.bandwidth),
        _figure(section, "unidirectional", parsing.bandwidth),
        _figure(section, "domain", parsing.whole),
    )
