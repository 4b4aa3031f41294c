"""A model's config.json, read field by field; every error names the file and the field."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from napkin.errors import NapkinError, quoted
from napkin.specs.text_file import text_of

MOST_LAYERS = 10_000
MOST = 10**8  # of any other size: the largest vocabularies have 10**6

Fields = Mapping[str, Any]


class Config:
    """The fields of one model. `nested` where a config holds the model as its text part:
    such a part leaves out what transformers' defaults say. `shown` are other names for fields."""

    def __init__(
        self,
        fields: Fields,
        file: str,
        nested: bool = False,
        shown: Mapping[str, str] | None = None,
    ) -> None:
        self.fields, self.file, self.nested, self.shown = fields, file, nested, shown or {}
        self.notes: list[str] = []

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.fields.get(name) is not None

    def main_size(self, *names: str, default: int, most: int = MOST) -> int:
        """A size that a model is known by: only a text part may leave it to the default."""
        if not any(map(self.has, names)):
            if not self.nested:
                raise self.error(names[0], "is missing, and it has no default")
            self.notes.append(f"{names[0]} is not in the file: {default} is transformers' default")
        return self.size(*names, default=default, most=most)

    def size(
        self, *names: str, default: int | None = None, least: int = 1, most: int = MOST
    ) -> int:
        """A whole number under the first of these names; the default where it is absent or null."""
        for name in names:
            if self.has(name):
                return self._whole(name, self.fields[name], least, most)
        if default is None:
            raise self.error(names[0], "is missing, and it has no default")
        return default

    def size_or_none(self, name: str, default: int | None = None) -> int | None:
        """As `size`, but null is an answer of its own."""
        if name not in self.fields:
            return default
        return None if self.fields[name] is None else self._whole(name, self.fields[name], 1, MOST)

    def has_number(self, name: str, default: bool) -> bool:
        """Whether one stands there; null says that there is none."""
        value = self.fields.get(name)
        if value is None:
            return default and name not in self.fields
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(name, f"{json.dumps(value)[:60]} is not a number")
        return True

    def flag(self, name: str, default: bool) -> bool:
        value = self.fields.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, f"{quoted(value)} is neither true nor false")
        return value

    def word(self, name: str, default: str) -> str:
        value = self.fields.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(name, f"{quoted(value)} is not a word")
        return value

    def items(self, name: str) -> list[Any]:
        """A list; empty where it is absent or null."""
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(name, f"{quoted(value)} is not a list")
        return value

    def error(self, name: str, problem: str) -> NapkinError:
        return NapkinError(f"{self.file}: {self.shown.get(name, name)}: {problem}")

    def _whole(self, name: str, value: object, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(name, f"{json.dumps(value)[:60]} is not a whole number")
        if value < least:
            raise self.error(name, f"{value} is less than {least}")
        if value > most:
            raise self.error(name, f"{quoted(value)} is more than {most:,}, which no model has")
        return value


def load(path: Path, shown: str) -> Fields:
    """The fields of a config.json. Raises NapkinError."""
    text = text_of(path, shown, "config.json")
    try:
        found = json.loads(text, parse_constant=_refused)
    except RecursionError:
        raise NapkinError(f"{shown}: not valid JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NapkinError(f"{shown}:{error.lineno}: not valid JSON: {error.msg}") from None
    except NapkinError as error:
        raise error.within(f"{shown}: not valid JSON") from None
    except ValueError:
        raise NapkinError(f"{shown}: not valid JSON: a number of thousands of digits") from None
    if not isinstance(found, dict):
        raise NapkinError(f"{shown}: is not a config.json: it holds no fields")
    return found


def _refused(constant: str) -> NoReturn:
    raise NapkinError(f"{constant} is not a number")
