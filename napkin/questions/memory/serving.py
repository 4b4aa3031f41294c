"""What serving a model takes on one GPU: its weights and its KV cache, no more."""

from functools import partial

from napkin import parsing, units
from napkin.accounting import serving
from napkin.accounting.notation import letter as size
from napkin.accounting.quantised import quantised
from napkin.errors import NapkinError, quoted
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Answer, Words
from napkin.questions.capacity import Capacity, capacity_of
from napkin.questions.machines import machines
from napkin.questions.memory import scenario
from napkin.questions.memory.answering import (
    COLUMNS,
    SERVED,
    fits_in,
    on_how_many,
    result_of,
    room_of,
    verdict_of,
)
from napkin.questions.memory.by_sum import shared_by
from napkin.questions.memory.fit import OF_SERVING, largest
from napkin.questions.memory.scenario import Settings
from napkin.questions.options import Text
from napkin.questions.peak import both_readings
from napkin.questions.workload import tokens_of, too_long
from napkin.specs import dtypes, optimizers, quantization
from napkin.specs.model import Model, Stack
from napkin.specs.quantization import EXPERTS, FIELD, LINEARS, Quantization

ALLOWED = (
    *("params", "model", "gpus", "hardware", "memory", "precision", "context", "batch"),
    *("double_quant", "inference", "fit"),
)
CACHED = "bf16"  # what keys and values are kept in, and weights that nobody quantises
BITS_16 = dtypes.BITS[CACHED]


def inference(asked: Settings) -> Answer:
    """Bytes of one GPU. Raises NapkinError."""
    of_training = [option for option in asked.given if option not in ALLOWED]
    asked.refuse(of_training, "is a setting of training; leave --inference out")
    if asked.fit is not None:
        return _fitted(asked)
    return _answered(asked)


def _fitted(asked: Settings) -> Answer:
    """With the most sequences that there is room for."""
    options.choice("fit", asked.fit, (OF_SERVING,))
    asked.refuse(("batch",), "--fit asks for it; leave one out")
    if asked.context is None:
        raise options.error("fit", "batch needs --context")

    def at(sequences: int) -> Answer:
        return _answered(asked.replace(batch=sequences))

    most = largest(lambda sequences: bool(at(sequences).result["fits"]))
    if most == 0:
        return _answered(asked.replace(batch=1), "no batch fits, not even 1: ")
    return _answered(asked.replace(batch=most), f"batch {most:,} is the largest that fits: ")


def _answered(asked: Settings, headline: str = "") -> Answer:
    about, N = scenario.model(asked)
    count, hardware = machines(asked.gpus, asked.hardware)
    gpus = options.read("gpus", count, parsing.gpus, 1)
    how, source = _stored_as(about, asked)
    W, N_q = _weights(about, N, how, source)
    KV = _cache(about, asked)
    where = capacity_of(hardware, asked.memory, None)
    ranks = gpus * where.devices
    total = serving.on_one(W, KV, shared_by(ranks))
    inputs = {
        "params": N.value,
        "model": None if about is None else about.name,
        "gpus": gpus,
        "hardware": where.hardware,
        "precision": how.precision,
        "double_quant": how.double,
        "context": None if KV is None else _tokens(asked),
        "batch": None if KV is None else _sequences(asked),
    }
    cache = None if KV is None else KV.value / ranks
    kinds = {"weights": W.value / ranks, SERVED: cache}
    result = result_of(where, total.value, "inference", kinds)
    words = partial(
        _words,
        about,
        N,
        how,
        gpus,
        where,
        total,
        W,
        KV,
        asked,
        _not_used(about, how, source),
        _said_of_weights(about, N, N_q, how, source),
        headline,
    )
    rows = (W, total) if KV is None else (W, KV, total)
    return Answer("memory", inputs, result, words, (total,), (), COLUMNS, rows)


def _stored(text: Text) -> str:
    if str(text) in optimizers.PRECISIONS and str(text) not in dtypes.BITS:
        raise NapkinError(f"{quoted(text)} is a recipe of training; write bf16, fp8 or nf4")
    name = dtypes.precision(text)
    if name not in dtypes.BITS:
        raise NapkinError(f"{quoted(text)} is not stored; write one of {' '.join(dtypes.BITS)}")
    return name


def _stored_as(about: Model | Stack | None, asked: Settings) -> tuple[Quantization, str]:
    """As --precision says; else as the model's file does, in 16 bits where it does not."""
    of_file = about.quantization if isinstance(about, Model) else None
    double = options.switch("double_quant", asked.double_quant)
    if of_file is not None and of_file.problem:
        of_file = None
    if asked.precision is None and of_file is not None and not double:
        return of_file, FIELD
    precision = options.read("precision", asked.precision, _stored, CACHED)
    if double and precision != "nf4":
        raise options.error("double_quant", "goes with --precision nf4")
    if of_file is not None and of_file.precision == precision and not double:
        return of_file, FIELD
    return quantization.asked(precision, double), "--precision"


def _weights(
    about: Model | Stack | None, N: Quantity, how: Quantization, source: str
) -> tuple[Quantity, Quantity | None]:
    """W, and the parameters that are quantised where others are not."""
    b = given("b", f"bytes of {how.precision}", how.bits / 8, "B/param", source)
    if not isinstance(about, Model) or how.bits >= BITS_16:
        return serving.weights(N, b), None
    label = "weights that are quantised"
    N_q = given("N_q", label, quantised(about, how), "param", about.name)
    b_16 = given("b_16", f"bytes of {CACHED}", BITS_16 / 8, "B/param", "the others")
    return serving.quantised_weights(N_q, b, N, b_16), N_q


def _not_used(about: Model | Stack | None, how: Quantization, source: str) -> list[str]:
    """Of the file's quantization_config, where another one holds."""
    of_file = about.quantization if isinstance(about, Model) else None
    if of_file is None or source == FIELD:
        return []
    why = of_file.problem or f"--precision says {how.precision}"
    return [f"{FIELD} ({of_file.method}) is not used: {why}"]


def _said_of_weights(
    about: Model | Stack | None, N: Quantity, N_q: Quantity | None, how: Quantization, source: str
) -> list[str]:
    """Which weights are quantised."""
    notes = []
    if N_q is None:
        if how.bits < BITS_16:
            notes.append(f"every weight in {how.precision}: --model knows those that stay 16 bits")
        return notes
    which = {
        (LINEARS,): "linear layers of the blocks",
        (EXPERTS,): "experts",
        (LINEARS, EXPERTS): "linear layers of the blocks, experts too",
    }[how.of]
    by = f"{FIELD} ({how.method})" if source == FIELD else how.precision
    rest = units.count(N.value - N_q.value)
    left_out = ", and what it leaves out," if how.kept else ""
    notes.append(
        f"{by}: {units.figures(how.bits)} bits, scales in them, for {N_q} of {which}; "
        f"the other {rest}{left_out} stay {CACHED}"
    )
    if isinstance(about, Model) and about.experts is not None and EXPERTS not in how.of:
        notes.append("bitsandbytes leaves experts that are one tensor as they are")
    if how.precision == "nf4" and not how.double:
        notes.append("--double-quant quantises the scales too: 4.127 bits")
    return notes


def _cache(about: Model | Stack | None, asked: Settings) -> Quantity | None:
    """Of --batch sequences of --context tokens, where the model's shape is known."""
    if about is None or isinstance(about, Stack):
        asked.refuse(("context", "batch"), "goes with the --model of a transformer")
        return None
    if asked.context is None:
        asked.refuse(("batch",), "goes with --context")
        return None
    T = given("T", "context", _tokens(asked), "1", "--context")
    B = given("B", "sequences", _sequences(asked), "1", "--batch")
    s = given("s", f"bytes of a {CACHED} value", dtypes.BITS[CACHED] / 8, "B", "the cache's")
    a = about.attention
    if a.latent is not None:
        d_c = size("d_c", "compressed widths", a.latent.key_value + a.latent.rope)
        return serving.latent_cache(size("L", "layers", about.layers), d_c, T, B, s)
    H_kv, hd = size("H_kv", "key-value heads", a.kv_heads), size("hd", "head_dim", a.qk)
    short = [(tokens, layers) for tokens, layers in about.windows if tokens < T.value]
    if not short:
        return serving.kv_cache(size("L", "layers", about.layers), H_kv, hd, T, B, s)
    ((tokens, layers),) = short
    T_w = given("T_w", "window", tokens, "1", about.name)
    windowed = serving.of_layers(
        "KV_w", size("L_window", "layers with a window", layers), H_kv, hd, T_w, B, s
    )
    rest = about.layers - layers
    if not rest:
        return windowed
    L_all = size("L_all", "layers without", rest)
    return serving.windowed_cache(serving.of_layers("KV_all", L_all, H_kv, hd, T, B, s), windowed)


def _tokens(asked: Settings) -> int:
    return options.read("context", asked.context, tokens_of)


def _sequences(asked: Settings) -> int:
    return options.read("batch", asked.batch, parsing.whole, 1)


def _words(
    about: Model | Stack | None,
    N: Quantity,
    how: Quantization,
    gpus: int,
    where: Capacity,
    total: Quantity,
    W: Quantity,
    KV: Quantity | None,
    asked: Settings,
    not_used: list[str],
    of_weights: list[str],
    headline: str,
) -> Words:
    of = units.count(N.value) if about is None else about.name
    verdict, failure, warnings = fits_in(where, total.value)
    cached = ""
    if KV is not None:
        cached = f" · {_sequences(asked):,} × {_tokens(asked):,} tokens in the cache"
    notes = ["no cache: --context shows it"] if KV is None else _room(asked, W, KV, gpus, where)
    meant = where.devices_meant
    warnings += both_readings(where.wanted, meant, total, total.value * meant)
    if about is not None and KV is not None:
        warnings += too_long(about, _tokens(asked))
    notes += not_used
    details = [*of_weights, *verdict]
    if gpus * where.devices > 1:
        notes.append("split evenly, which few key-value heads may not allow")
    notes.append("weights and cache alone: no activations, no buffers of the engine")
    return Words(
        headline + verdict_of(where, total.value),
        f"{of} · {on_how_many(gpus, where)}",
        notes,
        warnings,
        settings=f"to serve in {how.precision}{cached} · {room_of(where, total.value)}",
        details=[*details, *where.notes],
        failure=failure,
    )


def _room(asked: Settings, W: Quantity, KV: Quantity, gpus: int, where: Capacity) -> list[str]:
    """What the cache takes, and how many sequences there is room for."""
    sequence = KV.value / _sequences(asked)
    token = units.humanize(sequence / _tokens(asked), "B")
    ranks = gpus * where.devices
    room = max(0, int((where.limit.bytes * ranks - W.value) // sequence))
    return [
        f"{token} a token · {units.humanize(sequence, 'B')} a sequence · {room:,} sequences fit"
    ]
