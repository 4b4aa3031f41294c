"""The names of the seven ways in which training FLOP per token are counted."""

from napkin.errors import NapkinError, quoted, suggestion

SIX_N = "six_n"
# By the names that JSON has; on the command line with dashes too.
CONVENTIONS = {
    SIX_N: "6N",
    "six_n_non_embedding": "6N, no embeddings",
    "palm": "6N + full attention",
    "torchtitan": "6N, no input table + full attention",
    "megatron": "matmuls + half the attention",
    "exact_full": "matmuls + full attention",
    "exact_causal": "matmuls + causal attention",
}


def dashed(name: str) -> str:
    """As it is written on the command line."""
    return name.replace("_", "-")


def read(text: object) -> str:
    """A convention's name, however it is written. Raises NapkinError."""
    name = str(text).strip().casefold().replace("-", "_")
    if name not in CONVENTIONS:
        known = [dashed(each) for each in CONVENTIONS]
        near = suggestion(dashed(name), known) or f"; write one of {' '.join(known)}"
        raise NapkinError(f"{quoted(text)} is not a convention{near}")
    return name
