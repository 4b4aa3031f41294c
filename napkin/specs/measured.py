"""Figures that bench measured on this machine: one YAML file per device and precision.

A figure stands for the very device and precision it was measured on, and for no other power
limit. A CPU's is kept for who wants to look at it; no GPU's answer ever takes it.
"""

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from napkin import parsing
from napkin.errors import NapkinError, printable, quoted
from napkin.record import Record
from napkin.specs import dtypes, yaml_file
from napkin.specs.accelerator import Accelerator
from napkin.specs.folders import measured_folder
from napkin.specs.text_file import names_in, unreadable
from napkin.specs.yaml_file import Reader, Section, without_place

GPU = "cuda"  # what torch calls NVIDIA's and AMD's alike
LONGEST_NAME = 200  # of a device in a file's name, which may have 255 bytes
METHOD = 1  # raised when bench measures in another way
OLD_DAYS = 90
SAME_POWER = 0.02


class Measured(Record):
    """FLOP/s of one torch device, with what is needed to judge the figure."""

    path: Path
    source: str  # file:line of the rate
    device: str
    type: str  # cuda, cpu
    dtype: str
    rate: float
    shape: str
    date: str  # ISO 8601, UTC
    torch: str
    method: int
    power_limit: float | None = None  # W

    def doubts(self, now: datetime) -> list[str]:
        """Why it may no longer hold; it is used all the same."""
        found = []
        days = (now - datetime.fromisoformat(self.date)).days
        if days > OLD_DAYS:
            found.append(f"it is {days} days old")
        if self.method != METHOD:
            found.append(f"it was measured by method {self.method}; bench now has {METHOD}")
        return found


def path_of(device: str, dtype: str) -> Path:
    """`nvidia-h100-80gb-hbm3--bf16.yaml`."""
    return _path(measured_folder(), device, dtype)


@lru_cache(maxsize=256)  # a sweep asks a hundred thousand times
def _path(folder: str, device: str, dtype: str) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", device.casefold()).strip("-") or "device"
    return Path(folder, f"{name[:LONGEST_NAME]}--{dtype}.yaml")


def find(accelerator: Accelerator, dtype: str) -> Measured | None:
    """The figure on file for this accelerator and precision, where there is one to use.

    Raises NapkinError for a file or folder that cannot be read.
    """
    folder = measured_folder()
    if not os.path.isdir(folder):
        return None
    for name in accelerator.device_names:
        path = _path(folder, name, dtype)
        if _is_there(path):
            found = read(path)
            same = found.type == GPU and found.device == name and found.dtype == dtype
            return found if same and _same_power(found, accelerator) else None
    return None


def _is_there(path: Path) -> bool:
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        where = path.parent if isinstance(error, PermissionError) else path
        raise unreadable(printable(where), error) from None
    return True


def _same_power(found: Measured, accelerator: Accelerator) -> bool:
    if found.power_limit is None or accelerator.tdp is None:
        return True
    return abs(found.power_limit / accelerator.tdp.value - 1) <= SAME_POWER


def everything() -> tuple[list[Measured], list[str]]:
    """All that can be read, by file name, and what is wrong with the others."""
    folder = measured_folder()
    try:
        names = [name for name in names_in(folder) if "--" in name and name.endswith(".yaml")]
    except NapkinError as error:
        return [], [str(error)]
    found, broken = [], []
    for name in names:
        try:
            found.append(read(Path(folder, name)))
        except NapkinError as error:
            broken.append(str(error))
    return found, broken


def read(path: Path) -> Measured:
    """One figure. Raises NapkinError."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0  # the reader says what is wrong
    return _read(path, changed)


@lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> Measured:
    file = yaml_file.load(path, path.name, "measured figure")
    fields = file.read(READERS, required=REQUIRED)
    if file.problems:
        raise file.problems[0]
    (rate, source) = fields["rate"]
    if path_of(fields["device"], fields["dtype"]).name != path.name:
        file.complain("is not the precision and device that the file is named for", "dtype")
        raise file.problems[0]
    kept = {key: value for key, value in fields.items() if key in Measured._fields}
    return Measured(**kept | {"path": path, "source": source, "rate": rate})


def write(device: str, dtype: str, record: Mapping[str, object]) -> Path:
    """Saves a figure in place of an older one, whole or not at all. Raises NapkinError."""
    from napkin import files  # which no answer needs

    path = path_of(device, dtype)
    date = datetime.now(UTC).replace(microsecond=0).isoformat()
    lines = {"device": device, "dtype": dtype, **record, "method": METHOD, "date": date}
    text = "# Written by `napkin bench`; train-time, mfu and hardware read it.\n"
    text += "".join(f"{key}: {_scalar(value)}\n" for key, value in lines.items())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.put(str(path), text.encode())
    except OSError as error:
        raise NapkinError(f"{printable(path)}: cannot be written: {error.strerror}") from None
    return path


def _scalar(value: object) -> str:
    # Quoted, so that a device's name is read letter by letter.
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _date(text: str) -> str:
    try:
        if datetime.fromisoformat(text).tzinfo is None:
            raise ValueError
    except ValueError:
        raise NapkinError(f"{quoted(text)} is not a date with its time zone") from None
    return text


def _with_place(section: Section, key: str) -> tuple[float, str]:
    return section.value(key, parsing.achieved)


READERS: dict[str, Reader] = {
    "device": Section.text,
    "type": Section.text,
    "dtype": without_place(dtypes.precision),
    "rate": _with_place,
    "shape": Section.text,
    "date": without_place(_date),
    "torch": Section.text,
    "method": without_place(parsing.whole),
    "power_limit": without_place(parsing.power),
    **dict.fromkeys(("least", "most", "samples", "seconds", "error", "napkin"), Section.text),
    **dict.fromkeys(("clock", "power", "temperature", "slowed_by"), Section.text),
    # Of a figure that several ranks measured at once: how many, and whose it is.
    **dict.fromkeys(("ranks", "slowest_rank"), Section.text),
}
REQUIRED = ("device", "type", "dtype", "rate", "shape", "date", "torch", "method")
