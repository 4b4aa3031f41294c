"""The GPU of this machine, as its driver's files name it: no torch, no other program."""

from pathlib import Path

from napkin.errors import NapkinError
from napkin.record import Record

NAME = "here"

ROOT = Path("/")
NVIDIA = "proc/driver/nvidia/gpus/*/information"  # has a line `Model: NVIDIA H100 80GB HBM3`
AMD = "sys/class/drm/card*/device/product_name"


class Found(Record):
    """A device's name and the file that gives it."""

    name: str
    file: Path


def device() -> Found:
    """The one kind of GPU that this machine has. Raises NapkinError for none and for several."""
    found = [*_nvidia(), *_amd()]
    kinds = sorted({each.name for each in found})
    if not kinds:
        raise NapkinError(
            f"no driver's file names a GPU here (looked for {ROOT / NVIDIA}); write a name"
        )
    if len(kinds) > 1:
        raise NapkinError(f"there are several kinds of GPU here; write one: {', '.join(kinds)}")
    return found[0]


def _nvidia() -> list[Found]:
    found = []
    for file in sorted(ROOT.glob(NVIDIA)):
        for line in _lines(file):
            key, _, value = line.partition(":")
            if key == "Model":
                found.append(Found(" ".join(value.split()), file))
    return found


def _amd() -> list[Found]:
    named = [(file, " ".join(" ".join(_lines(file)).split())) for file in sorted(ROOT.glob(AMD))]
    return [Found(name, file) for file, name in named if name]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
