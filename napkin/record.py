"""Records: to a reader and to mypy what frozen dataclasses are, without their price at every start.

A dataclass writes and compiles its methods when its module is loaded, half a millisecond each; a
question loads thirty records. Here all share one method.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, dataclass_transform

NOTHING: Mapping[str, Any] = MappingProxyType({})  # of a field that is a mapping, where left out


@dataclass_transform(eq_default=False, frozen_default=True)
class Record:
    """Fields as annotated; what is left out has the class's value. Immutable, as mypy sees to,
    unless `frozen=False`."""

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, kw_only: bool = False, frozen: bool = True) -> None:
        cls._fields = (*cls._fields, *cls.__annotations__)

    def __init__(self, *values: Any, **fields: Any) -> None:
        self.__dict__.update(zip(self._fields, values, strict=False), **fields)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({values})"

    def replace(self, **changes: Any) -> Self:
        """The same but for these fields."""
        return type(self)(**self.__dict__ | changes)
