"""The ranks that torchrun started: what they tell each other, and how all of them stop for one.

They talk over gloo, on the CPU: a rank whose GPU is in trouble can still say so.
"""

import ctypes
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from napkin.errors import DeviceError, NapkinError, first_line, printable, quoted

if TYPE_CHECKING:
    from napkin.bench.device import Device

T = TypeVar("T")


class Member(NamedTuple):
    """One rank, and what it measures."""

    rank: int
    host: str
    device: "Device"

    def __str__(self) -> str:
        return f"rank {self.rank} on {self.host} ({self.device.torch})"


@dataclass(slots=True)
class Ranks:
    """This rank among `size`, `on_node` of them on this machine; a process alone is rank 0 of 1."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    on_node: int = 1
    by_torchrun: bool = False
    _told: NapkinError | None = None  # what was raised on all of them
    hosts: list[str] = field(default_factory=lambda: [""])

    def together(self, do: Callable[[], T]) -> list[T]:
        """What it gave on each rank. What it raises on one is raised on all."""
        try:
            mine = do()
        except NapkinError as error:
            if error is not self._told:
                self.tell(error)
            raise
        return self.tell(mine)

    def tell(self, mine: T) -> list[T]:
        """What every rank tells when it comes here, in their order; all wait for the last.

        Raises on every rank the error that one of them tells.
        """
        told = self._exchanged(mine)
        errors = [(rank, each) for rank, each in enumerate(told) if isinstance(each, NapkinError)]
        if errors:
            rank, error = errors[0]
            if len(errors) < self.size:
                error = error.within(f"rank {rank} on {self.hosts[rank]}")
            self._told = error
            raise error
        return told

    def wait(self) -> None:
        """For the last of all ranks."""
        self.tell(None)

    def _exchanged(self, mine: Any) -> list[Any]:
        if self.size == 1:
            return [mine]
        import torch.distributed

        told = [None] * self.size
        try:
            torch.distributed.all_gather_object(told, mine)
        except RuntimeError as error:
            gone = DeviceError(f"rank {self.rank} lost another rank: {_cause(error)}")
            self._told = gone  # there is no telling any more
            raise gone from None
        return told


def here() -> Ranks:
    """As torchrun's environment says. Raises NapkinError where that cannot be."""
    if any(name not in os.environ for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")):
        return Ranks()
    rank, local_rank, size = (_number(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    on_node = _number("LOCAL_WORLD_SIZE") if "LOCAL_WORLD_SIZE" in os.environ else local_rank + 1
    if "MASTER_PORT" in os.environ:
        _number("MASTER_PORT")
    if rank >= size:
        raise NapkinError(f"RANK: {rank} is not below WORLD_SIZE, {size}; torchrun sets both")
    return Ranks(rank, size, local_rank, on_node, by_torchrun=True)


def _number(variable: str) -> int:
    text = os.environ[variable]
    if not (text.isascii() and text.isdecimal() and len(text) < 8):
        raise NapkinError(f"{variable}: {quoted(text)} is not a whole number; torchrun sets it")
    return int(text)


@contextmanager
def joined() -> Iterator[Ranks]:
    """All ranks, once each is there; one alone where torchrun did not start several.

    Raises DeviceError where they cannot meet.
    """
    ranks = here()
    if ranks.size == 1:
        yield ranks
        return
    import torch.distributed

    if not torch.distributed.is_available():
        raise NapkinError("this torch is built without torch.distributed; run bench by itself")
    with _libraries_on_stderr():
        try:
            torch.distributed.init_process_group("gloo")
        except (RuntimeError, ValueError) as error:
            raise DeviceError(f"the ranks cannot meet: {_cause(error)}") from None
        try:
            ranks.hosts = ranks.tell(printable(socket.gethostname()))
            yield ranks
        finally:
            torch.distributed.destroy_process_group()


@contextmanager
def _libraries_on_stderr() -> Iterator[None]:
    """gloo and NCCL print to stdout, where the answer alone belongs."""
    if sys.stdout:
        sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        with suppress(Exception):  # what C has not written yet; Windows has another C
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def _cause(error: Exception) -> str:
    """Without the source file that gloo names in front, and its advice behind."""
    return re.sub(r"^\[\S+\] ", "", first_line(error)).partition(". ")[0]
