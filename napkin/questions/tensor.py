"""How many elements and bytes does a tensor have?"""

from collections.abc import Sequence
from functools import partial

from napkin import units
from napkin.accounting import tensors
from napkin.errors import NapkinError
from napkin.quantity import Quantity, coefficient, given
from napkin.questions import options
from napkin.questions.answer import Answer, Words
from napkin.questions.examples import TENSOR
from napkin.questions.shapes import Shape, refuse_other_sizes, shape
from napkin.specs.dtypes import FORMATS, NF4_DOUBLE, precision

DEFAULT = "fp32"  # PyTorch's
SIDE = "the shape"  # where a side comes from
COLUMNS = ("shapes", "dtype", "double_quant", "elements", "bytes")


def tensor(
    *, shapes: Sequence[str] = (), dtype: str | None = None, double_quant: bool = False
) -> Answer:
    """Elements and bytes of a tensor, or of several together. Raises NapkinError."""
    if isinstance(shapes, str):
        shapes = (shapes,)
    if not shapes:
        raise NapkinError(f"tensor needs a shape, as in: {TENSOR}")
    asked = [shape(text) for text in shapes]
    refuse_other_sizes(asked)
    name = options.read("dtype", dtype, precision, DEFAULT)
    if options.switch("double_quant", double_quant) and name != "nf4":
        raise options.error("double_quant", "goes with --dtype nf4")
    size = NF4_DOUBLE / 8 if double_quant else FORMATS[name].bytes
    s = given("s", f"bytes of an element, {name}", size, "B", _source(dtype, name))
    letters = {
        letter: given(letter, "side", side, "1", SIDE)
        for each in asked
        for letter, side in zip(each.letters, each.sides, strict=False)
    }
    counts = [_elements(each, number, letters, len(asked)) for number, each in enumerate(asked, 1)]
    many = len(asked) > 1
    x = tensors.together("x", "elements of all", counts, "1") if many else counts[0]
    b = tensors.bytes_of("bytes", "bytes of all" if many else "bytes", x, s)
    inputs = {
        "shapes": [each.text for each in asked],
        "dtype": name,
        "double_quant": double_quant,
    }
    result = {"elements": x.value, "bytes": _whole(b.value)}
    return Answer("tensor", inputs, result, partial(_words, asked, name, x, b), (b,), (), COLUMNS)


def _source(dtype: str | None, name: str) -> str:
    bits = f"{FORMATS[name].bits:g} bits"
    return f"--dtype, {bits}" if dtype is not None else f"{bits} (assumed)"


def _elements(each: Shape, number: int, letters: dict[str, Quantity], tensors_: int) -> Quantity:
    several = tensors_ > 1
    symbol, label = (f"x_{number}", f"elements, tensor {number}") if several else ("x", "elements")
    if len(each.sides) == 1 and not each.letters:
        return given(symbol, label, each.sides[0], "1", SIDE)
    sides = [letters[letter] for letter in each.letters] or [
        coefficient(side) for side in each.sides
    ]
    return tensors.elements(symbol, label, sides)


def _whole(amount: float) -> float:
    return int(amount) if amount == int(amount) else amount


def _words(asked: Sequence[Shape], name: str, x: Quantity, b: Quantity) -> Words:
    of = " + ".join(" × ".join(f"{side:,}" for side in each.sides) for each in asked)
    notes = [f"{FORMATS[name].block} values is a block's scale, counted"] * bool(
        FORMATS[name].block
    )
    exact = f"{units.figures(x.value)} elements"
    return Words(units.gb_and_gib(b.value), f"{of} in {name} · {exact}", notes)
