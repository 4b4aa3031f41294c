"""A run that trains adapters alone: what --lora-rank and --lora-targets choose, in FLOP."""

from napkin import parsing
from napkin.accounting import adapters, lora
from napkin.accounting.errors import Unmeasured
from napkin.accounting.flop_per_token import AttentionCost, Pass
from napkin.errors import NapkinError
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.options import Text
from napkin.specs.model import Model, Stack


def through(
    shape: Model | Stack, cost: AttentionCost, rank: Text, targets: str | None
) -> tuple[Pass, Inputs]:
    """FLOP of a token with the model frozen, and the options. Raises NapkinError."""
    r = options.quantity("lora_rank", rank, parsing.whole, *adapters.RANK, "1")
    words = adapters.targets("all" if targets is None else targets)
    try:
        found = lora.adapted(shape, cost, r, words)
    except Unmeasured as error:
        raise options.error(error.setting, str(error)) from None
    except NapkinError as error:
        raise options.error("lora_rank", str(error)) from None
    return found, {"lora_rank": r.value, "lora_targets": " ".join(words) or "all"}
