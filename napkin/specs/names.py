"""Names that carry numbers, a chip's or a model's: which are near, and which only look so.

H100 and A100 are one letter apart and three times in speed, so a name that may be meant agrees
with the written one in every number, and in every word but for a slip in a long one.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile

Parts = tuple[str, ...]

SHORTEST = 3  # letters and digits that begin a name
LONG = 4  # letters of a word in which a slip can be told: not in h, gb, sxm
SLIP = 0.8  # how alike a word with a slip in it is


@lru_cache(maxsize=4096)
def parts(name: str) -> Parts:
    """Its words and numbers: `H100-SXM` and `h100 sxm` are (h, 100, sxm)."""
    return tuple(re.findall(r"[^\W\d_]+|\d+", name.casefold()))


def with_numbers_of(name: str, known: Iterable[str]) -> list[str]:
    """Those that have its very numbers: gemma2, not gemma3_text, of `gema2`."""
    return [each for each in known if _numbers(each) == _numbers(name)]


def _numbers(name: str) -> list[str]:
    return [part for part in parts(name) if part.isdigit()]


@lru_cache(maxsize=4096)
def family(name: str) -> Parts:
    """Through its first number: (h, 100) of h100-sxm, (llama, 3) of llama-3.1-8b."""
    of = parts(name)
    number = next((at for at, part in enumerate(of) if part.isdigit()), len(of))
    return of[: number + 1]


def begun(wanted: str, known: Iterable[str]) -> list[str]:
    """Those of which this is the beginning: llama-3.1-8b of `llama3`, llama-30b not."""
    of = parts(wanted)
    if len("".join(of)) < SHORTEST:
        return []
    found = [name for name in known if _begins(of, parts(name))]
    return [name for name in found if parts(name) == of] or found


def holding(word: str, known: Iterable[str]) -> list[str]:
    """Those that have its letters and numbers one after the other: all Llamas of `llama`. None of
    what is not one word, nor where there is but one, which may be another than was meant."""
    of = parts(word)
    if len("".join(of)) < SHORTEST or not re.fullmatch(r"[\w.-]+", word):
        return []
    several = [name for name in known if _holds(parts(name), of)]
    return several if len(several) > 1 else []


def of_some_version(word: str, known: Iterable[str]) -> list[str]:
    """Those of which it leaves out the version alone: llama-3-8b of `llama-8b`."""
    first, *rest = parts(word) or ("",)
    return [name for name in known if rest and _without_version(parts(name)) == (first, *rest)]


def _without_version(name: Parts) -> Parts:
    """The last number of several is a size."""
    numbers = sum(1 for _ in takewhile(str.isdigit, name[1:]))
    return name[:1] + name[max(1, numbers) :]


def _holds(name: Parts, of: Parts) -> bool:
    return any(name[at : at + len(of)] == of for at in range(len(name) - len(of) + 1))


def _begins(of: Parts, name: Parts) -> bool:
    *whole, last = of
    at = len(whole)
    if len(name) <= at or list(name[:at]) != whole:
        return False
    return name[at] == last or (last.isalpha() and name[at].startswith(last))


def hint(wanted: str, known: Collection[str], kinds: Mapping[str, str], otherwise: str) -> str:
    """`; did you mean 'h100-sxm'?` for h100sxm. Of what only belongs to a family, the `kinds`
    that are of it, as they are to be shown, and what else to do. Nothing where there is none."""
    of, joined, words = parts(wanted), _joined(wanted), _words(tuple(known))
    for name in known:
        if joined == _joined(name) or _agree(of, parts(name), words):
            return f"; did you mean {name!r}?"
    related = [shown for kind, shown in kinds.items() if _is_relative(of, family(kind), words)]
    return f"; known of its family: {', '.join(related)}; {otherwise}" if related else ""


@lru_cache(maxsize=64)
def _words(known: tuple[str, ...]) -> frozenset[str]:
    return frozenset(part for name in known for part in parts(name))


@lru_cache(maxsize=4096)
def _joined(name: str) -> str:
    """Without what parts two words: TPUv4 is tpu-v4. Two numbers stay two."""
    return re.sub(r"(?<!\d) | (?!\d)", "", " ".join(parts(name)))


def _is_relative(of: Parts, family: Parts, words: Collection[str]) -> bool:
    if len(of) == 1 and len(of[0]) >= LONG:
        return _agree(of, family[:1], words)
    spans = (of[at : at + len(family)] for at in range(len(of) - len(family) + 1))
    return len(family) > 1 and any(_agree(span, family, words) for span in spans)


def _agree(a: Parts, b: Parts, words: Collection[str]) -> bool:
    return len(a) == len(b) and all(_same(x, y, words) for x, y in zip(a, b, strict=True))


def _same(written: str, known: str, words: Collection[str]) -> bool:
    if written == known:
        return True
    if not (written.isalpha() and known.isalpha()) or written in words:
        return False  # another number, or another word that is known
    may_slip = min(len(written), len(known)) >= LONG
    ends_alike = (written[0], written[-1]) == (known[0], known[-1])
    return may_slip and ends_alike and SequenceMatcher(None, written, known).ratio() >= SLIP
