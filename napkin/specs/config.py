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
        """A whole number under any of these names; the default where it is absent or null."""
        sizes = {n: self._whole(n, self.fields[n], least, most) for n in names if self.has(n)}
        if len(set(sizes.values())) > 1:
            (one, value), (other, another), *_ = sizes.items()
            raise self.error(one, f"{value} is not the {another} of {other}, another name for it")
        for size in sizes.values():
            return size
        if default is None:
            raise self.error(names[0], "is missing, and it has no default")
        return default

    def size_or_none(self, name: str, default: int | None = None, least: int = 1) -> int | None:
        """As `size`, but null is an answer of its own."""
        value = self.fields.get(name, default)
        return None if value is None else self._whole(name, value, least, MOST)

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

    def share(self, name: str, default: float) -> float:
        """A number from 0 to 1."""
        value = self.fields.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise self.error(name, f"{quoted(json.dumps(value))} is not a number from 0 to 1")
        return float(value)

    def part(self, name: str) -> "Config":
        """An object among the fields; an empty one where it is absent or null."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, dict):
            raise self.error(name, f"{json.dumps(value)[:60]} is not an object")
        return Config(value or {}, f"{self.file}: {name}")

    def same(self, name: str, value: object, why: str) -> None:
        """Refuses any other value of a field that may only repeat what `why` says."""
        if self.has(name) and self.fields[name] != value:
            shown = json.dumps(self.fields[name])[:60]
            raise self.error(name, f"{shown} is not the {json.dumps(value)} of {why}")

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
