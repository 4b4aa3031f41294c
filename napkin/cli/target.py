"""The file of --output: opened before the work starts, written when there is an answer."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from napkin.errors import NapkinError, printable


class Target:
    """A path to write to. A file there keeps what it holds until the new text is whole.

    The text goes to a file beside it that then takes its place, so two runs at once leave
    one document; a device or a pipe is written to as it is. Raises NapkinError.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(os.path.realpath(path))
        self.shown = f"--output: {printable(path)}"
        try:
            self.file, self.beside = self._opened()
        except (OSError, ValueError) as error:
            raise self._error(error) from None

    def _opened(self) -> tuple[TextIO, Path | None]:
        settings = {"encoding": "utf-8", "errors": "backslashreplace"}
        if self.path.exists():
            # Asks whether it may be written to at all, and keeps what it holds.
            file = open(self.path, "a", **settings)  # type: ignore[call-overload]
            if not self.path.is_file():
                return file, None
            file.close()
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        return open(handle, "w", **settings), Path(name)  # type: ignore[call-overload]

    def finish(self) -> None:
        """What was written is now at the path."""
        try:
            self.file.close()
            if self.beside is not None:
                self._take_place(self.beside)
        except OSError as error:
            self.give_up()
            raise self._error(error) from None

    def _take_place(self, beside: Path) -> None:
        umask = os.umask(0)
        os.umask(umask)
        mode = self.path.stat().st_mode & 0o777 if self.path.exists() else 0o666 & ~umask
        beside.chmod(mode)
        beside.replace(self.path)

    def give_up(self) -> None:
        """Leaves everything as it was."""
        with suppress(OSError):  # a full disk again
            self.file.close()
        if self.beside is not None:
            self.beside.unlink(missing_ok=True)

    def _error(self, error: OSError | ValueError) -> NapkinError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return NapkinError(f"{self.shown}: {reason}")
