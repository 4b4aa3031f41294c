"""What serving a model keeps: its weights, and the keys and values of every token before."""

from napkin.quantity import Quantity, coefficient, define

KEY_VALUE = coefficient(2, "1", "2 = key + value")


def weights(N: Quantity, b: Quantity) -> Quantity:
    """W in B, of b B/param; block scales are in it."""
    return define("W", "weights", N * b, "B")


def quantised_weights(N_q: Quantity, b: Quantity, N: Quantity, b_16: Quantity) -> Quantity:
    """W in B, of b B/param where they are quantised and of b_16 where they are not."""
    return define("W", "weights", N_q * b + (N - N_q) * b_16, "B")


def kv_cache(
    L: Quantity, H_kv: Quantity, hd: Quantity, T: Quantity, B: Quantity, s: Quantity
) -> Quantity:
    """In B, of B sequences of T tokens: s bytes a value, for the key-value heads alone
    (GQA, 2305.13245)."""
    return define("KV", "keys and values", KEY_VALUE * L * H_kv * hd * T * B * s, "B")


def latent_cache(L: Quantity, d_c: Quantity, T: Quantity, B: Quantity, s: Quantity) -> Quantity:
    """The same of MLA, which keeps the compressed widths (DeepSeek-V2 2405.04434, section 2.1)."""
    return define("KV", "compressed keys and values", L * d_c * T * B * s, "B")


def windowed_cache(whole: Quantity, windowed: Quantity) -> Quantity:
    """Of layers that see all, and of those that see a window."""
    return define("KV", "keys and values", whole + windowed, "B")


def of_layers(
    symbol: str, L: Quantity, H_kv: Quantity, hd: Quantity, T: Quantity, B: Quantity, s: Quantity
) -> Quantity:
    """As `kv_cache`, of some layers."""
    formula = KEY_VALUE * L * H_kv * hd * T * B * s
    return define(symbol, "keys and values, some layers", formula, "B")


def on_one(W: Quantity, KV: Quantity | None, n: Quantity | None) -> Quantity:
    """In B of one GPU, split evenly over n."""
    whole = W if KV is None else W + KV
    return define("peak", "weights and cache", whole if n is None else whole / n, "B")
