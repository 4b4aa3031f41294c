"""What does a training step keep on one GPU, phase by phase, and does it fit?"""

from typing import Any

from napkin.questions import options
from napkin.questions.answer import Answer, Report
from napkin.questions.memory import scenario
from napkin.questions.memory.answering import answered
from napkin.questions.options import Text

DOES_NOT_FIT = 3  # the exit code, where a script asks for one


def memory(
    *,
    params: Text | None = None,
    model: str | None = None,
    gpus: Text | None = None,
    hardware: str | None = None,
    memory: Text | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    bytes_per_param: Text | None = None,
    zero: Text | None = None,
    micro_batch: Text | None = None,
    seq_len: Text | None = None,
    grad_accum: Text | None = None,
    recompute: str | None = None,
    attention: str | None = None,
    norm: str | None = None,
    step: str | None = None,
    chunked_loss: bool = False,
    bucket_view: bool = False,
    activations: str | None = None,
    fit: str | None = None,
    exit_code: bool = False,
    inference: bool = False,
    context: Text | None = None,
    batch: Text | None = None,
    double_quant: bool = False,
) -> Report:
    """Bytes of one GPU by kind and by phase of a training step, against what it has.

    Options as on the command line, as text or numbers. Raises NapkinError.
    """
    options_given = locals().items()  # 0 is a value, and equal to False
    given = {
        name: value for name, value in options_given if value is not None and value is not False
    }
    options.switch("exit_code", exit_code)
    answer = _answer(given)
    fits = bool(answer.result["fits"])
    return Report("memory", [answer], exit_code=DOES_NOT_FIT if exit_code and not fits else 0)


def _answer(given: dict[str, Any]) -> Answer:
    # Loaded here: most calls do without all three.
    if given.pop("inference", False):
        from napkin.questions.memory.serving import inference

        return inference(given)
    for option in ("context", "batch", "double_quant"):
        if option in given:
            raise options.error(option, "goes with --inference")
    if "fit" in given:
        from napkin.questions.memory.fit import fitted

        return fitted(given)
    if "bytes_per_param" in given:
        from napkin.questions.memory.by_sum import by_sum

        return by_sum(given)
    return answered(scenario.read(given))
