"""The peak of a training step as a person would write it down: bytes a parameter times parameters,
then what else is alive."""

from collections.abc import Sequence

from napkin.accounting.layout import Layout
from napkin.accounting.memory import bytes_per_param, split
from napkin.accounting.notation import TRACED
from napkin.accounting.states import GRADIENTS, STAGES, shared
from napkin.accounting.step import Step
from napkin.accounting.sums import total
from napkin.quantity import Quantity, define

ROWS = 3  # beside the state's


def working(step: Step, layout: Layout) -> tuple[Quantity, ...]:
    """s in B/param, then S and every other term of the peak in B, then their sum."""
    terms, alive = step.states.terms, step.peak.alive
    s = bytes_per_param(list(terms.values()))
    unborn = None if step.states.gradients in alive else terms[GRADIENTS]
    state = _state(s, unborn, step, layout)
    frozen = () if step.states.frozen is None else (step.states.frozen,)
    others = _few([q for q in alive if q not in step.states.all], ROWS - len(frozen))
    if not others and not frozen:
        return s, *state
    whole = total((*frozen, state[-1], *others))
    return *frozen, s, *state, *others, define("peak", "the sum", whole, "B")


def _state(
    s: Quantity, unborn: Quantity | None, step: Step, layout: Layout
) -> tuple[Quantity, ...]:
    """S of one GPU; before it, where ZeRO shares a part alone, what every GPU holds of it."""
    held = {name: term for name, term in step.states.terms.items() if term is not unborn}
    label = "training state" if unborn is None else "state at the peak"
    N = step.params.N
    if step.params.experts is not None:
        kinds = [kind for kind in step.states.trained if kind in step.peak.alive]
        return (define("S", label, total(kinds), "B"),)
    there = s if unborn is None else s - unborn
    ranks = {name: shared(layout, STAGES.get(name, 1), TRACED) for name in held}
    whole = [term for name, term in held.items() if ranks[name] is None]
    n = next((who for who in ranks.values() if who is not None), None)
    if n is None or not whole:
        return (split("S", label, there * N, n),)
    s_all = define("s_all", "not shared", total(whole), "B/param")
    return s_all, define("S", label, s_all * N + (there - s_all) * N / n, "B")


def _few(others: Sequence[Quantity], rows: int) -> list[Quantity]:
    """As they are, or the largest and the sum of the rest."""
    if len(others) <= rows:
        return list(others)
    largest = sorted(others, key=lambda q: q.value, reverse=True)[: rows - 1]
    rest = total([q for q in others if q not in largest])
    return [*(q for q in others if q in largest), define("rest", "what else is alive", rest, "B")]
