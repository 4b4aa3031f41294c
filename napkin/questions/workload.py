"""The model that a question is about, by its parameters alone or by its shape, and the state
that training keeps of each parameter."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from napkin import parsing, units
from napkin.accounting import compute, memory
from napkin.errors import NapkinError, quoted
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.options import Text
from napkin.questions.quantities import quantity
from napkin.record import NOTHING, Record
from napkin.specs import conventions, optimizers
from napkin.specs.conventions import CONVENTIONS, SIX_N
from napkin.specs.optimizers import OPTIMIZERS, PRECISIONS, Optimizer, Precision

if TYPE_CHECKING:
    from napkin.specs.model import Model, Stack

USUAL_SEQ_LEN = 4096  # tokens; where the model is made for fewer, as many
RECOMPUTE = ("none", "selective", "full")
# The inputs of every question about it.
COLUMNS = ("params", "active_params", "model", "convention", "seq_len")
MOST_TOKENS = 10**9  # of one sequence


MUCH_ATTENTION = 1.5  # times the FLOP that 6N counts


class Workload(Record):
    """N, the active N, and the training FLOP per token under each convention that is known."""

    N: Quantity
    N_act: Quantity
    convention: str
    inputs: Inputs
    flop: Mapping[str, Quantity] = NOTHING  # by shape; empty without
    again: Mapping[str, Quantity] = NOTHING  # what --recompute adds
    model: "Model | Stack | None" = None
    T: Quantity | None = None  # where --seq-len was given
    warnings: Sequence[str] = ()
    assumed: str = ""  # what was taken for --seq-len
    k: Quantity | None = None  # in FLOP/param/token, where --flops-per-param says it

    @property
    def f(self) -> Quantity:
        """f in FLOP/token, as asked for."""
        if self.k is None and self.flop:
            return self.flop[self.convention]
        return compute.flop_per_token(self.N_act, compute.TRAINING if self.k is None else self.k)

    @property
    def cost(self) -> dict[str, Quantity]:
        """What a token costs, as a run's relations take it."""
        if self.convention == SIX_N:
            return {"f/N": compute.TRAINING if self.k is None else self.k}
        return {"f": self.f}

    @property
    def each(self) -> str:
        """`6N`, `8N`."""
        return f"{units.figures((compute.TRAINING if self.k is None else self.k).value)}N"

    @property
    def named(self) -> str:
        """` · llama-3-8b`, where the model's shape is known, and how it is counted if not by 6N."""
        if self.model is None:
            return ""
        how = "" if self.convention == SIX_N else f", {conventions.dashed(self.convention)}"
        how = how if self.k is None else f", {self.each}"
        return f" · {self.model.name}{how}"

    @property
    def leaves_out(self) -> list[str]:
        """Of the default convention, where attention is too much to leave out."""
        if self.model is None or self.convention != SIX_N or self.k is not None:
            return []
        times = self.flop["exact_causal"].value / self.f.value
        if times < MUCH_ATTENTION:
            return []
        much = f"the matmuls and causal attention are {units.figures(times, 3)} times as much"
        return [f"6N leaves out attention: {much} (--convention exact-causal)"]

    def counted(self, MFU: float | None = None) -> list[str]:
        """How the FLOP are counted, and how far the other conventions are from it; of an MFU,
        what it would be by them."""
        if self.model is None:
            return []
        if self.k is not None:
            return [*self.model.notes]
        others = [f for name, f in self.flop.items() if name != self.convention]
        least, *_, most = sorted(others, key=lambda f: f.value)
        by = {id(f): conventions.dashed(name) for name, f in self.flop.items()}
        low, high = (f.value / self.f.value for f in (least, most))
        said = f"counted as {CONVENTIONS[self.convention]}{self.assumed}"
        if MFU is None:
            figures, end = [units.figures(low, 3), units.figures(high, 3)], " of it"
        else:
            figures, end = [units.humanize(MFU * each, "%") for each in (low, high)], " MFU"
        rest = f"{figures[0]} ({by[id(least)]}) to {figures[1]} ({by[id(most)]}){end}"
        return [*self.model.notes, f"{said}; the others: {rest}"]


def read(
    params: Text | None,
    active_params: Text | None,
    model: str | None,
    convention: str | None,
    seq_len: Text | None,
    flops_per_param: Text | None = None,
) -> Workload:
    """From --params, or from --model. Raises NapkinError."""
    if flops_per_param is not None and convention is not None:
        raise options.error(
            "convention", "--flops-per-param says how FLOP are counted; leave one out"
        )
    k = None if flops_per_param is None else quantity("flops_per_param", flops_per_param)
    name = SIX_N if convention is None else options.read("convention", convention, conventions.read)
    if model is None:
        if name != SIX_N:
            needs = f"{conventions.dashed(name)} needs the model's shape: give --model"
            raise options.error("convention", needs)
        N, N_act = parameters(params, active_params)
        return Workload(N, N_act, name, _inputs(N, N_act, name), k=k)
    for option, text in (("params", params), ("active_params", active_params)):
        if text is not None:
            raise options.error(option, "--model says it already; leave one out")
    from napkin.specs import models  # only a model's own questions wait for its readers

    about = _of_shape(options.read("model", str(model), models.find), name, seq_len)
    return about if k is None else about.replace(k=k)


def optional(
    params: Text | None,
    active_params: Text | None,
    model: str | None,
    convention: str | None,
    seq_len: Text | None,
    flops_per_param: Text | None = None,
) -> Workload | None:
    """None where neither --params nor --model is given. Raises NapkinError."""
    if params is None and model is None:
        if active_params is not None:
            raise options.error("active_params", "goes with --params")
        if convention is not None:
            raise options.error("convention", "goes with --params or --model")
        return None
    return read(params, active_params, model, convention, seq_len, flops_per_param)


def sequence(model: "Model | Stack", seq_len: Text | None) -> tuple[int, str, list[str]]:
    """T in tokens, its source, and what to warn of."""
    longest = model.longest
    if seq_len is None:
        return min(USUAL_SEQ_LEN, longest or USUAL_SEQ_LEN), "--seq-len (assumed)", []
    tokens = options.read("seq_len", seq_len, tokens_of)
    return tokens, "--seq-len", too_long(model, tokens)


def tokens_of(text: Text) -> int:
    """Of one sequence."""
    tokens = parsing.whole(text)
    if tokens > MOST_TOKENS:
        raise NapkinError(f"{quoted(text)} is more than {MOST_TOKENS:,}, which no model reads")
    return tokens


def too_long(model: "Model | Stack", tokens: int) -> list[str]:
    """Warns of a sequence that the model is not made for."""
    if model.longest is None or tokens <= model.longest:
        return []
    return [f"{tokens:,} tokens are more than the {model.longest:,} that {model.name} is made for"]


def _of_shape(model: "Model | Stack", name: str, seq_len: Text | None) -> Workload:
    tokens, source, warnings = sequence(model, seq_len)
    from napkin.accounting.flop_per_token import of_model

    totals = of_model(model, tokens, source)
    N, N_act = totals.N, totals.N_act
    assumed = "" if seq_len is not None else f", sequences of {tokens:,} tokens (assumed)"
    inputs = _inputs(N, N_act, name) | {"model": model.name, "seq_len": tokens}
    T = None if seq_len is None else totals.T
    return Workload(N, N_act, name, inputs, totals.flop, totals.again, model, T, warnings, assumed)


NONE: Inputs = dict.fromkeys(COLUMNS)  # the inputs of no model


def _inputs(N: Quantity, N_act: Quantity, convention: str) -> Inputs:
    return {
        "params": N.value,
        "active_params": N_act.value,
        "model": None,
        "convention": convention,
        "seq_len": None,
    }


def parameters(params: Text | None, active_params: Text | None) -> tuple[Quantity, Quantity]:
    """N and the parameters that compute: all of them, or a mixture of experts' active ones."""
    N = options.quantity("params", params, parsing.count, "N", "parameters", "param")
    if active_params is None:
        return N, N
    active = options.quantity(
        "active_params", active_params, parsing.count, "N_act", "active parameters", "param"
    )
    if active.value > N.value:
        raise options.error("active_params", f"{active} are more than the {N} there are")
    return N, active


def sum_given(text: Text | None) -> Quantity:
    """s in B/param as --bytes-per-param says it."""
    label = "state a parameter"
    return options.quantity("bytes_per_param", text, parsing.bytes_per_param, "s", label, "B/param")


def bytes_per_param(precision: Precision, optimizer: Optimizer, source: str) -> Quantity:
    """s in B/param, the sum of the recipe's terms."""
    terms = optimizers.terms(precision, optimizer)
    return memory.bytes_per_param([given(*term, "B/param", source) for term in terms])


# fp32 AdamW keeps as much; max-model shows the terms of every recipe.
STATE = bytes_per_param(PRECISIONS["mixed"], OPTIMIZERS["adamw"], "mixed precision AdamW")
