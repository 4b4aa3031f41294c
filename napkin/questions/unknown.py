"""One run, any unknown: what its options say of its work, its GPU-hours and the rate of a GPU, and
which of these three is left to be found."""

from collections.abc import Mapping, Sequence
from math import isclose

from napkin import parsing
from napkin.accounting import compute, memory, run
from napkin.errors import NapkinError
from napkin.quantity import Quantity, derivation, given
from napkin.questions import options
from napkin.questions.answer import Inputs
from napkin.questions.examples import TRAIN_TIME
from napkin.questions.options import Text, flag
from napkin.questions.peak import Promise, printed_memory
from napkin.questions.quantities import goodput, quantity
from napkin.questions.workload import STATE, Workload
from napkin.record import Record

ASSUMED_MFU = "50%"
SAME = 1e-3  # relative: as close as published figures are rounded
# The options that say a side of a run, but for the usual question's.
ANOTHER_WAY = (
    *("flops", "compute_optimal", "tokens_per_param", "steps"),
    *("time", "within", "gpu_hours", "budget", "energy"),
    *("achieved", "tokens_per_second", "tokens_per_second_per_gpu", "step_time"),
)
ALONE = frozenset(  # which are quantities whatever stands beside them
    ("flops", "gpus", "gpu_hours", "price", "budget", "power", "pue", "energy")
    + ("mfu", "achieved", "tokens_per_second", "tokens_per_second_per_gpu")
)
SIDES = ("params", "model", "tokens", "gpus", "mfu", *ANOTHER_WAY)


class Settings(options.Settings):
    """The options that are figures of a run."""

    params: Text | None = None
    model: str | None = None
    tokens: Text | None = None
    epochs: Text | None = None
    flops: Text | None = None
    flops_per_param: Text | None = None
    tokens_per_param: Text | None = None
    compute_optimal: bool = False
    gpus: Text | None = None
    node: Text | None = None
    time: Text | None = None
    within: Text | None = None
    gpu_hours: Text | None = None
    price: Text | None = None
    budget: Text | None = None
    power: Text | None = None
    pue: Text | None = None
    energy: Text | None = None
    mfu: Text | None = None
    achieved: Text | None = None
    tokens_per_second: Text | None = None
    tokens_per_second_per_gpu: Text | None = None
    steps: Text | None = None
    step_time: Text | None = None
    tokens_per_step: Text | None = None
    seq_len: Text | None = None
    global_batch: Text | None = None
    lost_time: Text | None = None
    goodput: Text | None = None


def required(asked: Settings) -> None:
    """Refuses the usual question where it lacks what it cannot do without."""
    if not set(asked.given).intersection(ANOTHER_WAY):
        size = asked.params if asked.model is None else asked.model
        options.required(
            "train-time", TRAIN_TIME, params=size, tokens=asked.tokens, gpus=asked.gpus
        )


class Run(Record):
    """All that is known of it, by symbol, and what was asked for."""

    asked: str  # time gpus tokens params model mfu price
    found: Mapping[str, Quantity]
    assumed: frozenset[str]  # symbols of the defaults that held
    rate: str  # the symbol that says the rate, where it is not what was asked for
    inputs: Inputs  # of the options that were given
    S: Quantity | None = None  # the training state, where the parameters are known
    n_min: Quantity | None = None


def find(asked: Settings, about: Workload | None, promised: Promise) -> Run:
    """Raises NapkinError where two things are unknown, none is, or two options contradict."""
    reader = _Reader(asked, about)
    known = {**reader.known(), "P": promised.P}
    assumed = set()
    tdp = promised.accelerator.tdp
    if tdp is not None and _needs_power(known):
        known["power"] = given("power", "power of one GPU: its TDP", tdp.value, "W/GPU", tdp.source)
        assumed.add("power")
    sides = run.sides(frozenset(known))
    what = _asked(asked, known, sides)
    if what != "mfu" and not sides.rate:
        known["MFU"] = quantity("mfu", None, ASSUMED_MFU)
        assumed.add("MFU")
    if tdp is not None and not {"power", "energy"} & known.keys():
        known["TDP"] = given("TDP", "TDP of one GPU", tdp.value, "W/GPU", tdp.source)
    S, n_min = (None, None) if about is None else _state(about.N, promised)
    found = _solved(known)
    if "t_max" in found and "h" in found:
        n = run.gpus_in_time(found["h"], found["t_max"], n_min, known.get("n_node"))
        if n.value > parsing.MOST_GPUS:
            option = "within" if asked.time is None else "time"
            raise options.error(option, f"would take {n}, more than there are; write more")
        found = run.solve(run.solve({**found, "n": n}, run.HOURS), run.RUN)
    if about is None and "N" in found:
        S, n_min = _state(found["N"], promised)
    if "goodput" in found:
        found = run.solve(found, run.LOST)
    rate = next((symbol for symbol in ("MFU", "A", "r₁", "r", "t_step") if symbol in known), "")
    return Run(what, found, frozenset(assumed), rate, reader.inputs, S, n_min)


def _state(N: Quantity, promised: Promise) -> tuple[Quantity, Quantity]:
    S = memory.training_state(N, STATE)
    return S, memory.min_gpus(S, printed_memory(promised.accelerator))


def _solved(known: Mapping[str, Quantity]) -> dict[str, Quantity]:
    found = run.solve(known, run.RUN)
    if {"C", "f/N", "D/N"} <= found.keys() and "N" not in found:
        N = run.optimal_params(found["C"], found["f/N"], found["D/N"])
        found = run.solve({**found, "N": N}, run.RUN)
    return found


def _needs_power(known: Mapping[str, Quantity]) -> bool:
    """Where an energy is all that says the GPU-hours."""
    if "energy" not in known or "power" in known:
        return False
    sides = run.sides(frozenset(known))
    return not sides.hours and not (sides.work and {"n", "t_max"} & known.keys())


def _asked(asked: Settings, known: Mapping[str, Quantity], sides: run.Sides) -> str:
    """The one thing that is left to be found."""
    for one, other in run.said_twice(known) if sides.twice else ():
        if not isclose(one.value, other.value, rel_tol=SAME):
            raise NapkinError(f"{_says(one)}, but {_says(other)}; leave one of them out")
    work, hours = sides.work, sides.hours
    if work and hours:
        if not sides.rate:
            return "mfu"
        said = [flag(option) for option in asked.given if option in SIDES]
        raise NapkinError(f"nothing is left to be found: leave out one of {_joined(said, 'or')}")
    if work and "n" in known:
        return "price" if "cost" in known and "p" not in known else "time"
    if work and "t_max" in known:
        return "gpus"
    if hours and "D/N" in known:
        return "model"
    lacks_model = not work and not {"N", "f"} & known.keys()
    lacks_tokens = not work and not sides.tokens
    if hours and not (lacks_model and lacks_tokens):
        return "tokens" if lacks_tokens else "params"
    raise _too_much_unknown(known, lacks_model, lacks_tokens, hours)


def _too_much_unknown(
    known: Mapping[str, Quantity],
    lacks_model: bool,
    lacks_tokens: bool,
    hours: bool,
) -> NapkinError:
    if "cost" in known and "p" not in known:
        return options.error("budget", "needs --price, unless all else is given")
    names = ["--params"] * lacks_model + ["--tokens"] * lacks_tokens
    if "n" not in known and not hours:
        names.append("--gpus")
    if hours or "t_max" in known:
        optimal = " or --compute-optimal" if names[:2] == ["--params", "--tokens"] else ""
        some = "one of them" if len(names) == 2 else "all but one"
        return NapkinError(
            f"train-time finds one unknown, not {_joined(names)}: give {some}{optimal}"
        )
    return NapkinError(f"train-time needs {_joined(names)}, as in: {TRAIN_TIME}")


def _says(one: Quantity) -> str:
    """`--params and --tokens say 3.15e23 FLOP`."""
    leaves = (q for q in derivation(one) if not q.args and q.symbol != "P")
    flags = dict.fromkeys(q.source if q.source.startswith("--") else "--model" for q in leaves)
    return f"{_joined(list(flags))} {'say' if len(flags) > 1 else 'says'} {one}"


def _joined(names: Sequence[str], word: str = "and") -> str:
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last


class _Reader:
    """What the options say, by symbol; each that is read becomes an input of the answer.

    Raises NapkinError.
    """

    def __init__(self, asked: Settings, about: Workload | None) -> None:
        self.asked, self.about = asked, about
        self.inputs: Inputs = {}

    def known(self) -> dict[str, Quantity]:
        asked = self.asked
        lost, inputs = goodput(asked.lost_time, asked.goodput)
        self.inputs |= inputs
        known = {**self._work(), **lost}
        for option in asked.given:
            if option in ALONE:
                one = self._take(option)
                known[one.symbol] = one
        if {"r", "r₁"} & known.keys() and self.about is None:
            option = "tokens_per_second" if "r" in known else "tokens_per_second_per_gpu"
            raise options.error(option, "needs --params or --model; or use --achieved")
        if "r" in known and "n" not in known:
            why = "counts all GPUs: give --gpus, or use --tokens-per-second-per-gpu"
            raise options.error("tokens_per_second", why)
        known |= self._steps()
        known |= self._time(known)
        return known if asked.node is None else known | {"n_node": self._node(known)}

    def _work(self) -> dict[str, Quantity]:
        """What a token costs, how many there are, and how many a parameter sees."""
        asked, about = self.asked, self.about
        known = {"f/N": compute.TRAINING} if about is None else {"N": about.N_act, **about.cost}
        if asked.flops_per_param is not None:
            each = self._take("flops_per_param")
            known |= {"f/N": each} if about is None else {}
        if asked.epochs is not None:
            known["e"] = self._take("epochs")
        if asked.tokens is not None and asked.epochs is not None:
            known["D₁"] = self._take("tokens", symbol="D₁", label="tokens of one epoch")
        elif asked.tokens is not None:
            known["D"] = self._take("tokens")
        if asked.tokens_per_param is not None:
            known["D/N"] = self._take("tokens_per_param")
        elif options.switch("compute_optimal", asked.compute_optimal):
            known["D/N"] = compute.TOKENS_PER_PARAM
            self.inputs["compute_optimal"] = True
        if "D/N" in known and about is not None and asked.tokens is not None:
            option = "compute_optimal" if asked.tokens_per_param is None else "tokens_per_param"
            raise options.error(option, "the parameters and --tokens are given; leave one out")
        return known

    def _steps(self) -> dict[str, Quantity]:
        """The optimizer steps: how many, of how many tokens; how long, where that is the rate."""
        asked, about = self.asked, self.about
        known = {}
        if asked.tokens_per_step is not None:
            read = () if about is None or about.model is None else ("seq_len",)
            asked.refuse(
                {"global_batch", "seq_len"} - {*read}, "does nothing beside --tokens-per-step"
            )
            known["K"] = self._take("tokens_per_step")
        elif asked.global_batch is not None:
            if asked.seq_len is None:
                raise options.error("global_batch", "needs --seq-len, or use --tokens-per-step")
            T = None if about is None else about.T
            T = self._take("seq_len") if T is None else T
            batch = options.batch(asked.global_batch, T)
            self.inputs["global_batch"] = batch.value
            known["K"] = compute.tokens_per_step(T, batch)
        elif asked.seq_len is not None and (about is None or about.model is None):
            raise options.error("seq_len", "goes with --model")
        if asked.steps is not None:
            if asked.step_time is None and not known:
                raise options.error("steps", "needs --step-time (their time) or --tokens-per-step")
            known["steps"] = self._take("steps")
        elif asked.step_time is not None:
            if not known or about is None or asked.gpus is None:
                other = "as a rate --tokens-per-step, --gpus and --params or --model"
                raise options.error("step_time", f"needs --steps; {other}")
            known["t_step"] = self._take("step_time")
        return known

    def _time(self, known: Mapping[str, Quantity]) -> dict[str, Quantity]:
        """t where the GPUs are given; t_max where whole GPUs take a little less."""
        asked = self.asked
        symbol, label = ("t", "training time") if "n" in known else ("t_max", "time that there is")
        said = {
            option: self._take(option, symbol, label)
            for option in ("time", "within")
            if getattr(asked, option) is not None
        }
        if asked.steps is not None and asked.step_time is not None:
            t_step = self._take("step_time")
            said["step_time"] = run.time_of_steps(
                symbol, label, known["steps"], t_step, known.get("goodput")
            )
        if len(said) > 1:
            names = _joined([*map(flag, said)])
            raise NapkinError(f"{names} say the same thing twice; leave one out")
        return dict.fromkeys((symbol,), *said.values()) if said else {}

    def _node(self, known: Mapping[str, Quantity]) -> Quantity:
        """The node, of which the GPUs that are given must be whole ones."""
        node = self._take("node")
        if not {"n", "t_max"} & known.keys():
            raise options.error("node", "goes with --gpus or --within")
        if "n" in known and known["n"].value % node.value:
            n, whole = known["n"].value, int(known["n"].value // node.value)
            meant = " or ".join(f"{c * node.value:,}" for c in (whole, whole + 1) if c)
            problem = f"{n:,} are no whole nodes of {node.value:,}; write {meant}"
            raise options.error("gpus", problem)
        return node

    def _take(self, option: str, symbol: str = "", label: str = "") -> Quantity:
        one = quantity(option, getattr(self.asked, option), symbol=symbol, label=label)
        self.inputs[option] = one.value
        return one
