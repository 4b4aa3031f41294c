"""The file of --output: looked at before the work starts, written when there is an answer."""

import io
import os
from contextlib import suppress
from errno import EISDIR
from stat import S_ISREG
from typing import Any, TextIO

from napkin import files
from napkin.errors import NapkinError, printable

TEXT: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace"}


class Target:
    """A path to write to. A file there keeps what it holds until the answer is whole.

    A device, a pipe or what a process holds open (/dev/stdout) is written to as it is.
    Raises NapkinError.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.shown = f"--output: {printable(path)}"
        if not path:
            raise NapkinError("--output: is empty; write a file's name")
        try:
            descriptor = self._opened()
        except (OSError, ValueError) as error:
            raise self._error(error) from None
        self.kept = io.BytesIO()
        self.as_it_is = descriptor is not None
        self.file: TextIO = (
            io.TextIOWrapper(self.kept, **TEXT)
            if descriptor is None
            else open(descriptor, "w", **TEXT)
        )

    def _opened(self) -> int | None:
        """What is not a file of its own, opened; None for a file, which may be written to."""
        descriptor = files.open_file(self.path)
        if descriptor is not None:
            return descriptor
        try:
            descriptor = os.open(self.path, os.O_WRONLY)
        except FileNotFoundError:
            if os.path.basename(self.path) in ("", os.curdir):
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR)) from None
            files.try_beside(self.path)
            return None
        if not S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        return None

    def finish(self) -> None:
        """What was written is now at the path."""
        try:
            self.file.flush()
            if not self.as_it_is:
                files.put(self.path, self.kept.getvalue())
            self.file.close()
        except OSError as error:
            self.give_up()
            raise self._error(error) from None

    def give_up(self) -> None:
        """Leaves everything as it was."""
        with suppress(OSError):  # a full disk again
            self.file.close()

    def _error(self, error: OSError | ValueError) -> NapkinError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return NapkinError(f"{self.shown}: {reason}")
