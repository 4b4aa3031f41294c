"""Reading a text file that a user named: of a sensible size, or one line that says what it is."""

from pathlib import Path

from napkin.errors import NapkinError

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
        if path.exists() and not path.is_file():
            raise NapkinError(f"{shown}: is not a file")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise NapkinError(f"{shown}: no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NapkinError(f"{shown}: cannot be read: {reason}") from None
    if len(content) > LARGEST:
        raise NapkinError(f"{shown}: is larger than 1 MB, which no {kind} is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NapkinError(f"{shown}: is not UTF-8 text") from None
