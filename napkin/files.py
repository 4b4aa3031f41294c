"""Putting a file in place: whole or not at all, so that two writers leave one document."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from stat import S_IMODE

# A path in such a folder is not a file's name but what a process holds open.
OPEN_FILES = re.compile(r"/dev/fd|/proc/(?P<process>\d+)(/task/\d+)?/fd")
MOST_LINKS = 40  # as many as Linux follows

# What ends a process and can be held back.
ENDING = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


def put(path: str, content: bytes) -> None:
    """Writes a file that stands at the path once it is whole; a link there stays a link.

    A file that may be written to keeps its owner and mode; a new one has what the umask leaves.
    Where nothing can be put beside or in place of it, as in a folder that is only to be read,
    a mounted file or another user's, the file itself is overwritten. Raises OSError.
    """
    path = os.path.realpath(path)
    with _unended():
        if not _replaced(path, content):
            with open(path, "wb") as file:
                file.write(content)


def try_beside(path: str) -> None:
    """Whether a new file could be put there. Raises OSError where not."""
    with _unended():
        descriptor, beside = _created_beside(os.path.realpath(path))
        os.close(descriptor)
        os.unlink(beside)


def open_file(path: str) -> int | None:
    """A descriptor to append to, where the path names what a process holds open.

    So do /dev/stdout, /dev/fd/3 and /proc/self/fd/1: what is written to them belongs behind
    what is there, and never in a new file in its place. Raises OSError.
    """
    path = os.path.abspath(path)
    for _ in range(MOST_LINKS):
        folder, name = os.path.split(path)
        holds = OPEN_FILES.fullmatch(os.path.realpath(folder))
        if holds and name.isdecimal():
            own = holds["process"] in (None, str(os.getpid()))
            # One of our own shares its position, so that the next to write there goes on behind.
            return os.dup(int(name)) if own else os.open(path, os.O_WRONLY | os.O_APPEND)
        if not os.path.islink(path):
            return None
        path = os.path.join(folder, os.readlink(path))
    return None


def _replaced(path: str, content: bytes) -> bool:
    """Whether a file beside it could take its place. A disk that is full is an OSError."""
    try:
        descriptor, beside = _created_beside(path)
    except OSError:
        return False
    try:
        with open(descriptor, "wb") as file:
            if os.access(path, os.W_OK) and not _made_alike(descriptor, path):
                return False
            file.write(content)
        return _renamed(beside, path)
    finally:
        if os.path.lexists(beside):
            os.unlink(beside)


def _created_beside(path: str) -> tuple[int, str]:
    # Not called after the file, whose name may be as long as names can be.
    beside = os.path.join(os.path.dirname(path), f".napkin-{os.urandom(8).hex()}")
    return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), beside


def _made_alike(descriptor: int, path: str) -> bool:
    """Whether the file now has the owner and the mode of the one at the path."""
    there, new = os.stat(path), os.fstat(descriptor)
    try:
        if (there.st_uid, there.st_gid) != (new.st_uid, new.st_gid):
            os.chown(descriptor, there.st_uid, there.st_gid)
        os.chmod(descriptor, S_IMODE(there.st_mode))
    except OSError:
        return False
    return True


def _renamed(beside: str, path: str) -> bool:
    try:
        os.replace(beside, path)
    except OSError:
        return False
    return True


@contextmanager
def _unended() -> Iterator[None]:
    """What would end the process waits for the end, so that no half is left behind."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
