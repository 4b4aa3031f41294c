"""Parameters times a sum of bytes that is given: no kinds, no phases."""

from typing import Any

from napkin import parsing, units
from napkin.accounting import memory as formulas
from napkin.questions import options
from napkin.questions.answer import Answer, Words
from napkin.questions.step import settings
from napkin.questions.step.answering import fits_in, on_how_many
from napkin.questions.step.states import shared_by

BESIDE_A_SUM = ("params", "model", "gpus", "hardware", "memory", "bytes_per_param", "exit_code")


def by_sum(given: dict[str, Any]) -> Answer:
    """Raises NapkinError for a setting that the sum holds already."""
    for option in given:
        if option not in BESIDE_A_SUM:
            raise options.error(option, "--bytes-per-param already says the sum; leave one out")
    asked = settings.read({k: v for k, v in given.items() if k != "bytes_per_param"})
    s = options.quantity(
        "bytes_per_param",
        given["bytes_per_param"],
        parsing.bytes_per_param,
        "s",
        "training state per parameter",
        "B/param",
    )
    ranks = shared_by(asked.setup.ranks)
    total = formulas.copies("peak", "training state", [s], asked.N, ranks)
    capacity = asked.room.of_one_device
    kinds = ("weights", "master_weights", "gradients", "optimizer", "activations", "loss")
    result = {
        "per_gpu_bytes": {**dict.fromkeys((*kinds, "temporaries")), "peak": total.value},
        "peak_phase": "states",
        "phases": [],
        "capacity_bytes": capacity,
        "fits": total.value <= capacity,
    }
    inputs = asked.inputs | {"bytes_per_param": s.value, "precision": None, "optimizer": None}
    each = f"{units.figures(s.value)} bytes a parameter"
    where = f"on each of {on_how_many(asked.gpus, asked.room)}"
    shared = "" if ranks is None else ", all of it shared"
    condition = f"{each} × {units.count(asked.N.value)}{shared} · {where}"
    notes, warnings = fits_in(asked.room, total.value)
    words = Words(units.gb_and_gib(total.value), condition, [*notes, *asked.room.notes], warnings)
    return Answer("memory", inputs, result, lambda: words, (total,))
