"""The one way to read a file: a plain one of a sensible size, or one line that says what it is.

What lies in a folder is read this way too: a pipe, a device or a file of gigabytes may lie there.
"""

import os
from pathlib import Path
from stat import S_ISREG

from napkin.errors import NapkinError, printable

LARGEST = 1_000_000  # bytes


def expanded(text: str) -> Path:
    """A path as a shell would take it; `~nobody` stays as it is where there is no nobody."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def text_of(path: Path, shown: str, kind: str = "hardware file") -> str:
    """A file's text; `kind` is what it should be. Raises NapkinError."""
    try:
        return content_of(path, shown, kind).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NapkinError(f"{shown}: is not UTF-8 text") from None


def content_of(path: Path, shown: str, kind: str = "hardware file") -> bytes:
    """As `text_of`, before it is taken for text."""
    try:
        if not S_ISREG(os.stat(path).st_mode):  # asked before it is opened: a pipe would wait
            raise NapkinError(f"{shown}: is not a file")
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise NapkinError(f"{shown}: no such file") from None
    except (OSError, ValueError) as error:
        raise unreadable(shown, error) from None
    if len(content) > LARGEST:
        raise NapkinError(f"{shown}: is larger than 1 MB, which no {kind} is")
    return content


def names_in(folder: str) -> list[str]:
    """What a folder holds, by name; nothing where there is none. Raises NapkinError."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise unreadable(printable(folder), error) from None


def unreadable(shown: str, error: OSError | ValueError) -> NapkinError:
    """What the system says of a file or folder that is there and cannot be read."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return NapkinError(f"{shown}: cannot be read: {reason}")
