"""How large is a checkpoint, how often to save one, and what do failures cost?"""

from functools import partial

from napkin import parsing, units
from napkin.accounting import storage
from napkin.accounting.parameters import parameters
from napkin.errors import NapkinError
from napkin.quantity import Quantity, given
from napkin.questions import options
from napkin.questions.answer import Answer, Inputs, Words, value_of
from napkin.questions.examples import CHECKPOINT
from napkin.questions.machines import machines
from napkin.questions.options import Text
from napkin.record import Record
from napkin.specs import models, optimizers

DEFAULT_PRECISION, DEFAULT_OPTIMIZER = "mixed", "adamw"
MTBF, RESTART = 50_000, "10min"
OVERHEAD = "a file adds about 224 bytes a tensor (torch.save) or 83 (safetensors)"
RANGE = "published runs: 14,000 to 100,000 GPU-hours an interruption"
COLUMNS = (
    *("params", "model", "precision", "optimizer", "bandwidth", "gpus", "mtbf", "restart"),
    *("bytes", "weights_bytes", "seconds", "interval_seconds"),
    *(f"lost.{part}" for part in ("saves", "work_done_again", "restarts", "sum")),
)


class _Failures(Record):
    """What interruptions cost a run of n GPUs."""

    M: Quantity
    t_int: Quantity
    saves: Quantity
    again: Quantity
    restarts: Quantity
    lost: Quantity
    assumed: str = ""


def checkpoint(
    model: str | None = None,
    *,
    params: Text | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    bandwidth: Text | None = None,
    gpus: Text | None = None,
    mtbf: Text | None = None,
    restart: Text | None = None,
) -> Answer:
    """Bytes of weights and of the whole state, the time to write them, the interval by Young
    (1974) and Daly (2006), and the share of a run that is lost. Raises NapkinError."""
    N, name = _params(params, model)
    p_name, p = options.read("precision", precision, optimizers.precision, DEFAULT_PRECISION)
    o_name, o = options.read("optimizer", optimizer, optimizers.optimizer, DEFAULT_OPTIMIZER)
    kept = sum(term.bytes for term in optimizers.terms(p, o) if term.symbol != "gradients")
    source = f"--precision {p_name} --optimizer {o_name}"
    w = given("w", "weights", p.weights, "B/param", source)
    s = given("s", "weights, master and moments", kept, "B/param", source)
    W, S = storage.weights(w, N), storage.state(s, N)
    t_save = None
    if bandwidth is not None:
        rate = options.quantity(
            "bandwidth", bandwidth, parsing.flow, "BW", "rate of writing", "B/s"
        )
        t_save = storage.writing(S, rate)
    failures, of_failures = _failures(t_save, gpus, mtbf, restart)
    inputs: Inputs = {
        "params": N.value,
        "model": name,
        "precision": p_name,
        "optimizer": o_name,
        "bandwidth": None if t_save is None else rate.value,
        **of_failures,
    }
    result = {
        "bytes": S.value,
        "weights_bytes": W.value,
        "seconds": value_of(t_save),
        "interval_seconds": None if failures is None else failures.t_int.value,
        "lost": None if failures is None else _shares(failures),
    }
    lost = None if failures is None else failures.lost
    steps = tuple(q for q in (W, S, t_save, lost) if q is not None)
    rows = (S, t_save) if failures is None else (S, t_save, failures.M, failures.t_int, lost)
    words = partial(_words, N, name, f"{p_name} {o_name}", W, S, t_save, failures)
    napkin = tuple(q for q in rows if q is not None)
    return Answer("checkpoint", inputs, result, words, steps, (), COLUMNS, napkin)


def _params(params: Text | None, model: str | None) -> tuple[Quantity, str | None]:
    if params is not None and model is not None:
        raise options.error("params", "--model already says it; leave one out")
    if params is not None:
        return options.quantity("params", params, parsing.count, "N", "parameters", "param"), None
    if model is None:
        raise NapkinError(f"checkpoint needs --model or --params, as in: {CHECKPOINT}")
    about = options.read("model", model, models.find)
    return given("N", "parameters", parameters(about).N.value, "param", about.name), about.name


def _failures(
    t_save: Quantity | None, gpus: Text | None, mtbf: Text | None, restart: Text | None
) -> tuple[_Failures | None, Inputs]:
    if gpus is None:
        for option, value in (("mtbf", mtbf), ("restart", restart)):
            if value is not None:
                raise options.error(option, "goes with --gpus")
        return None, {"gpus": None, "mtbf": None, "restart": None}
    if t_save is None:
        raise options.error("gpus", "needs --bandwidth, at which a checkpoint is written")
    count, _ = machines(gpus, None)
    n = options.quantity("gpus", count, parsing.gpus, "n", "GPUs", "GPU")
    hours = options.quantity(
        "mtbf",
        mtbf,
        parsing.per_second,
        "h_fail",
        "GPU-hours an interruption",
        "GPU·hour",
        MTBF,
    )
    label = "time to restart"
    R = options.quantity("restart", restart, parsing.duration, "t_restart", label, "s", RESTART)
    M = storage.between_interruptions(hours, n)
    t_int = storage.interval(t_save, M)
    shares = (
        storage.lost_to_saves(t_save, t_int),
        storage.lost_to_work_done_again(t_int, M),
        storage.lost_to_restarts(R, M),
    )
    inputs = {"gpus": n.value, "mtbf": hours.value, "restart": R.value}
    unsaid = [f"{units.figures(hours.value)} GPU-hours a failure"] if mtbf is None else []
    unsaid += [f"{R} to restart"] if restart is None else []
    assumed = f"{', '.join(unsaid)} (assumed)" if unsaid else ""
    return _Failures(M, t_int, *shares, storage.lost(*shares), assumed), inputs


def _shares(of: _Failures) -> dict[str, float]:
    return {
        "saves": of.saves.value,
        "work_done_again": of.again.value,
        "restarts": of.restarts.value,
        "sum": of.lost.value,
    }


def _settings(of: _Failures) -> str:
    if of.lost.value > 1:
        return "no progress: failures come faster than the work is done again"
    return f"a save every {of.t_int} · {of.lost} of the time lost · {of.assumed}".rstrip(" ·")


def _words(
    N: Quantity,
    name: str | None,
    recipe: str,
    W: Quantity,
    S: Quantity,
    t_save: Quantity | None,
    of: _Failures | None,
) -> Words:
    size = units.gb_and_gib(S.value)
    condition = f"{name or units.count(N.value)} · {recipe}, gradients left out"
    notes = [f"the weights alone, to serve or to share: {units.gb_and_gib(W.value)}"]
    if t_save is None:
        next_ = "time: --bandwidth 2TB/s · failures: --gpus too"
        return Words(size, condition, [*notes, next_], details=[OVERHEAD])
    if of is None:
        condition = f"{condition} · {t_save} to write"
        return Words(size, condition, [*notes, "failures: --gpus too"], details=[OVERHEAD])
    warnings = []
    if of.lost.value > 1:
        warnings.append("more is lost than there is: such a run makes no progress")
    elif of.t_int.value < t_save.value:
        warnings.append("a save takes longer than the interval between two")
    return Words(
        size,
        condition,
        [*notes, RANGE, "saving while the step goes on loses less than this"],
        warnings,
        settings=_settings(of),
        details=[OVERHEAD],
    )
