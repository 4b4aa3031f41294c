"""How many bytes are the tokens of a training set?"""

from functools import partial

from napkin import parsing, units
from napkin.accounting import storage
from napkin.errors import NapkinError
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Answer, Words
from napkin.questions.examples import DATA
from napkin.questions.options import Text
from napkin.specs import models
from napkin.specs.model import Stack

UINT16 = 2**16  # words that two bytes tell apart
COLUMNS = ("tokens", "vocab", "model", "bytes")


def data(
    *, tokens: Text | None = None, vocab: Text | None = None, model: str | None = None
) -> Answer:
    """Bytes of token ids as arrays keep them: uint16 or uint32. Raises NapkinError."""
    options.required("data", DATA, tokens=tokens)
    D = options.quantity("tokens", tokens, parsing.tokens, "D", "tokens", "token")
    V = _vocab(vocab, model)
    wide = V.value > UINT16
    kind = "uint32" if wide else "uint16"
    w = given("w", f"a token in {kind}", 4 if wide else 2, "B/token", f"V {_than(wide)} 65,536")
    b = storage.of_tokens(D, w)
    inputs = {"tokens": D.value, "vocab": V.value, "model": model}
    result = {"bytes": b.value}
    return Answer("data", inputs, result, partial(_words, D, V, b, kind), (V, b), (), COLUMNS)


def _than(wide: bool) -> str:
    return "above" if wide else "up to"


def _vocab(vocab: Text | None, model: str | None) -> Quantity:
    if vocab is not None and model is not None:
        raise options.error("vocab", "--model already says it; leave one out")
    if vocab is not None:
        return options.quantity("vocab", vocab, parsing.whole, "V", "vocabulary", "1")
    if model is None:
        raise NapkinError(f"data needs --vocab or --model, as in: {DATA}")
    about = options.read("model", model, models.find)
    if isinstance(about, Stack):
        raise options.error("model", f"{about.name} has no vocabulary")
    return given("V", "vocabulary", about.vocab, "1", about.name)


def _words(D: Quantity, V: Quantity, b: Quantity, kind: str) -> Words:
    notes = ["text itself is larger: about 4 bytes a token of English"]
    other = "uint32 would be twice that" if kind == "uint16" else "uint16 holds 65,536 words alone"
    return Words(
        units.gb_and_gib(b.value),
        f"{D} in {kind}, a vocabulary of {V.value:,}",
        [other, *notes],
    )
