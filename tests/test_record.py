"""What records do and what they leave to mypy."""

from napkin.record import Record


class Shape(Record):
    name: str
    width: int = 1


class Linear(Shape, kw_only=True):
    outputs: int


def test_fields_come_by_place_or_by_name_in_the_order_of_the_classes() -> None:
    made = Linear("query", 64, outputs=32)
    assert (made.name, made.width, made.outputs) == ("query", 64, 32)
    assert Shape("key").width == 1


def test_a_changed_one_leaves_the_first_as_it_was() -> None:
    first = Shape("key", 8)
    changed = first.replace(width=9)
    assert (first.width, changed.width, changed.name) == (8, 9, "key")
    assert type(changed) is Shape


def test_one_prints_itself_and_equals_itself_alone() -> None:
    assert repr(Shape("key", 8)) == "Shape(name='key', width=8)"
    assert Shape("key", 8) != Shape("key", 8)
