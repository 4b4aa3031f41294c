"""Parameters times a sum of bytes that is given: no kinds, no phases."""

from napkin import units
from napkin.accounting import memory as formulas
from napkin.accounting.notation import letter
from napkin.quantity import Quantity
from napkin.questions.answer import Answer, Words
from napkin.questions.memory import scenario
from napkin.questions.memory.answering import (
    COLUMNS,
    fits_in,
    on_how_many,
    result_of,
    room_of,
    verdict_of,
)
from napkin.questions.memory.scenario import Settings
from napkin.questions.peak import both_readings
from napkin.questions.workload import sum_given

BESIDE_A_SUM = ("params", "model", "gpus", "hardware", "memory", "bytes_per_param")


def shared_by(ranks: int) -> Quantity | None:
    """n, where there are several."""
    return letter("n_dp", "data-parallel ranks", ranks, "--gpus") if ranks > 1 else None


def by_sum(settings: Settings) -> Answer:
    """Raises NapkinError for a setting that the sum holds already."""
    others = [option for option in settings.given if option not in BESIDE_A_SUM]
    settings.refuse(others, "--bytes-per-param already says the sum; leave one out")
    asked = scenario.read(settings)
    s = sum_given(settings.bytes_per_param)
    ranks = shared_by(asked.setup.ranks)
    total = formulas.split("peak", "training state", s * asked.N, ranks)
    result = result_of(asked.capacity, total.value, "states", {})
    inputs = asked.inputs | {"bytes_per_param": s.value, "precision": None, "optimizer": None}
    each = f"{units.figures(s.value)} bytes a parameter"
    where = on_how_many(asked.gpus, asked.capacity)
    shared = "" if ranks is None else ", all of it shared"
    condition = f"{each} × {units.count(asked.N.value)}{shared} · {where}"
    verdict, failure, warnings = fits_in(asked.capacity, total.value)
    meant = asked.capacity.devices_meant
    warnings += both_readings(asked.capacity.wanted, meant, total, total.value * meant)
    words = Words(
        verdict_of(asked.capacity, total.value),
        condition,
        [],
        warnings,
        settings=room_of(asked.capacity, total.value),
        details=[*verdict, *asked.capacity.notes],
        failure=failure,
    )
    return Answer("memory", inputs, result, lambda: words, (total,), columns=COLUMNS)
