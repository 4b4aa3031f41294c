"""The one way to read a YAML file: every value knows its file and line.

Values are taken as the user typed them, before YAML's own guesses: `312e12` is a number,
`no` a word, `4090` a name. Unknown and duplicate keys, anchors and oversized files are
refused; what is wrong says where it stands: `my.yaml:3: peak.bf16: ...`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from napkin.errors import NapkinError, printable, quoted, suggestion
from napkin.specs.text_file import text_of

T = TypeVar("T")

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

SUGGESTIONS = 20  # in one file: each is sought among all known words, which takes its time


class Problem(NapkinError):
    """What is wrong at a line of a file."""

    line = 0


class Section:
    """A YAML mapping that is read key by key; what is wrong with it is collected, not raised.

    `problems` is shared with the sections inside, so that one reading finds them all.
    """

    def __init__(
        self,
        node: yaml.MappingNode,
        file: str,
        path: str = "",
        problems: "list[Problem] | None" = None,
    ) -> None:
        self.file, self.path, self.node = file, path, node
        self.problems: list[Problem] = [] if problems is None else problems
        self._nodes: dict[str, yaml.Node] = {}
        self._keys: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(self._error(key, "a key must be a word"))
            elif key.value in self._nodes:
                self.problems.append(self._error(key, f"{quoted(key.value)} is given twice"))
            else:
                self._nodes[key.value] = value
                self._keys[key.value] = key

    def read(
        self, readers: "Mapping[str, Reader]", required: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """What each key's reader makes of it; a key that cannot be read is left out."""
        found = {}
        for key, node in self._keys.items():
            try:
                if key not in readers:
                    raise self._error(node, f"unknown key {quoted(key)}{self._hint(key, readers)}")
                found[key] = readers[key](self, key)
            except Problem as problem:
                self.problems.append(problem)
        missing = [key for key in required if key not in self._nodes]
        if missing:
            self.problems.append(self._error(self.node, f"missing {', '.join(missing)}"))
        return found

    def _hint(self, key: str, known: Iterable[str]) -> str:
        if len(self.problems) >= SUGGESTIONS:
            return ""
        return suggestion(key, known) or f"; known are {', '.join(known)}"

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def text(self, key: str) -> str:
        """The letters of a value."""
        return self.value(key, str)[0]

    def texts(self, key: str) -> tuple[str, ...]:
        """The words of a list."""
        return tuple(text for text, _ in self.values(key, str))

    def value(self, key: str, read: Callable[[str], T]) -> tuple[T, str]:
        """A single value as `read` takes it, and its `file:line`."""
        return self._scalar(self._nodes[key], key, read)

    def values(self, key: str, read: Callable[[str], T]) -> list[tuple[T, str]]:
        """A list's values, each with its `file:line`; one value alone is a list of one."""
        node = self._nodes[key]
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        return [self._scalar(item, key, read) for item in nodes]

    def section(self, key: str) -> "Section":
        """A mapping inside this one."""
        node = self._nodes[key]
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, "is not a mapping of keys to values", key)
        return Section(node, self.file, self._below(key), self.problems)

    def is_section(self, key: str) -> bool:
        return isinstance(self._nodes[key], yaml.MappingNode)

    def complain(self, problem: str, key: str) -> None:
        """Adds a problem with the value of a key."""
        self.problems.append(self._error(self._nodes[key], problem, key))

    def _scalar(self, node: yaml.Node, key: str, read: Callable[[str], T]) -> tuple[T, str]:
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(node, "is not a single value", key)
        text = " ".join(node.value.split())  # a line break in a value is a blank
        if not text:
            raise self._error(node, "is empty", key)
        if not text.isprintable():
            raise self._error(node, "holds a character that cannot be shown", key)
        try:
            return read(text), self._place(node)
        except NapkinError as error:
            raise self._error(node, str(error), key) from None

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _place(self, node: yaml.Node) -> str:
        return f"{self.file}:{node.start_mark.line + 1}"

    def _error(self, node: yaml.Node, problem: str, key: str = "") -> Problem:
        name = self._below(key) if key else self.path
        error = Problem(f"{self._place(node)}: {f'{name}: ' if name else ''}{problem}")
        error.line = node.start_mark.line
        return error


Reader = Callable[[Section, str], Any]


def without_place(read: Callable[[str], Any]) -> Reader:
    """A single value without its place."""
    return lambda section, key: section.value(key, read)[0]


def load(path: Path, shown: str | None = None, kind: str = "hardware file") -> Section:
    """The file's outermost mapping; `kind` is what it should be.

    Raises NapkinError, naming the file as `shown`.
    """
    shown = printable(shown or path)
    text = text_of(path, shown, kind)
    try:
        _refuse_anchors(text, shown)
        node = yaml.compose(text, Loader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = " ".join(str(error.problem or error.context).split())
        if "another document" in problem:
            problem = "it holds several documents; keep one a file"
        raise NapkinError(f"{shown}{line}: not valid YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise NapkinError(f"{shown}: not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:  # the loader in Python; the one in C has a limit of its own
        raise NapkinError(f"{shown}: not valid YAML: nested too deeply") from None
    if node is None:
        raise NapkinError(f"{shown}: the file is empty")
    if not isinstance(node, yaml.MappingNode):
        raise NapkinError(f"{shown}:{node.start_mark.line + 1}: is not a mapping of keys to values")
    return Section(node, shown)


def _refuse_anchors(text: str, shown: str) -> None:
    if "&" not in text and "*" not in text:
        return
    event: Any
    for event in yaml.parse(text, Loader):
        if getattr(event, "anchor", None):
            problem = "anchors and aliases are not read; write the value out"
            raise NapkinError(f"{shown}:{event.start_mark.line + 1}: {problem}")
