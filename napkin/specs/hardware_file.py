"""The schema of a hardware file, and the way from a file to an Accelerator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from napkin import parsing
from napkin.errors import NapkinError
from napkin.specs import dtypes, yaml_file
from napkin.specs.accelerator import Accelerator, Figure, Interconnect, Peak
from napkin.specs.yaml_file import Problem, Reader, Section, without_place


def read(path: Path, shown: str, own: bool) -> Accelerator:
    """The accelerator of a file. Raises the first of its problems, a NapkinError."""
    file = yaml_file.load(path, shown)
    fields = _fields(file)
    if file.problems:
        raise _in_order(file)[0]
    return Accelerator(key=path.stem, file=file.file, path=path, own=own, **fields)


def problems(path: Path, shown: str) -> list[NapkinError]:
    """Everything that is wrong with a file."""
    try:
        file = yaml_file.load(path, shown)
    except NapkinError as error:
        return [error]
    _fields(file)
    return list(_in_order(file))


def _in_order(file: Section) -> list[Problem]:
    return sorted(file.problems, key=lambda problem: problem.line)


def _fields(file: Section) -> dict[str, Any]:
    """What Accelerator takes; what is wrong with it is in the file's problems."""
    fields = file.read(READERS, REQUIRED)
    printed, visible = fields.get("memory"), fields.get("memory_visible")
    if printed and visible and not NEAR[0] < visible.value / printed.value < NEAR[1]:
        file.complain("is far from memory; which of the two is right?", "memory_visible")
    return fields


def _figure(parse: Callable[[str], float]) -> Reader:
    return lambda section, key: Figure(*section.value(key, parse))


def _figures(parse: Callable[[str], float]) -> Reader:
    return lambda section, key: tuple(Figure(*value) for value in section.values(key, parse))


def _peaks(section: Section, key: str) -> dict[str, Peak]:
    inside = section.section(key)
    found = inside.read(dict.fromkeys(PEAKS, _peak))
    peaks: dict[str, Peak] = {}
    for written, peak in found.items():
        name = dtypes.canonical(written)
        if name in peaks:
            inside.complain(f"{name} is given under two names", written)
        peaks[name] = peak
    if not inside:
        section.complain("is empty; write bf16: 312 TFLOP/s", key)
    return peaks


def _peak(section: Section, key: str) -> Peak | None:
    if not section.is_section(key):
        return Peak(Figure(*section.value(key, parsing.rate)))
    row = section.section(key)
    fields = row.read(dict.fromkeys(Peak._fields, _figure(parsing.rate)), required=("dense",))
    if "dense" not in fields:
        return None
    peak = Peak(**fields)
    if peak.sparse and peak.sparse.value < peak.dense.value:
        section.complain("dense is above sparse; are the two swapped?", key)
    return peak


def _reported(section: Section, key: str) -> dict[str, Figure]:
    return section.section(key).read(dict.fromkeys(PEAKS, _figure(parsing.rate)))


def _interconnect(section: Section, key: str) -> Interconnect | None:
    fields = section.section(key).read(INTERCONNECT, required=("name",))
    return Interconnect(**fields) if "name" in fields else None


def _sources(section: Section, key: str) -> dict[str, Any]:
    return section.section(key).read(dict.fromkeys(SOURCED, Section.texts))


PEAKS = (*dtypes.PRECISIONS, *dtypes.ALIASES, *dtypes.VECTOR)
SOURCED = ("peak", "reported", "memory", "interconnect", "tdp", "device_names", "released")
INTERCONNECT: dict[str, Reader] = {
    "name": Section.text,
    "bidirectional": _figure(parsing.bandwidth),
    "unidirectional": _figure(parsing.bandwidth),
    "unidirectional_per_peer": _figure(parsing.bandwidth),
    "direction_not_stated": _figure(parsing.bandwidth),
    "per_node": _figure(parsing.whole),
    "domain": _figure(parsing.whole),
}
# What a driver reports beside what the box says: GB read as GiB, less what ECC takes.
NEAR = (0.8, 1.2)
REQUIRED = ("name", "peak", "memory")
READERS: dict[str, Reader] = {
    "name": Section.text,
    "vendor": Section.text,
    "architecture": Section.text,
    "form_factor": Section.text,
    "released": Section.text,
    "aliases": Section.texts,
    "device_names": Section.texts,
    "devices_per_package": without_place(parsing.whole),
    "peak": _peaks,
    "reported": _reported,
    "accumulate": Section.text,
    "memory": _figure(parsing.memory),
    "memory_visible": _figure(parsing.memory),
    "memory_torch": _figures(parsing.memory),
    "memory_type": Section.text,
    "memory_bandwidth": _figure(parsing.bandwidth),
    "interconnect": _interconnect,
    "tdp": _figure(parsing.power),
    "sources": _sources,
    "notes": Section.texts,
}
