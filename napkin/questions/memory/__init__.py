"""What does a training step keep on one GPU, phase by phase, and does it fit?"""

from napkin.questions import options
from napkin.questions.answer import Answer, Report
from napkin.questions.memory import scenario
from napkin.questions.memory.answering import answered
from napkin.questions.memory.scenario import Settings
from napkin.questions.options import Text

DOES_NOT_FIT = 3  # the exit code, where a script asks for one


def memory(
    model: str | None = None,
    *,
    params: Text | None = None,
    gpus: Text | None = None,
    hardware: str | None = None,
    memory: Text | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    bytes_per_param: Text | None = None,
    lora_rank: Text | None = None,
    lora_targets: str | None = None,
    quantize: str | None = None,
    zero: Text | None = None,
    tp: Text | None = None,
    pp: Text | None = None,
    cp: Text | None = None,
    ep: Text | None = None,
    sequence_parallel: bool = False,
    virtual_stages: Text | None = None,
    imbalance: Text | None = None,
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
    settings = Settings(
        params=params,
        model=model,
        gpus=gpus,
        hardware=hardware,
        memory=memory,
        precision=precision,
        optimizer=optimizer,
        bytes_per_param=bytes_per_param,
        lora_rank=lora_rank,
        lora_targets=lora_targets,
        quantize=quantize,
        zero=zero,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        sequence_parallel=sequence_parallel,
        virtual_stages=virtual_stages,
        imbalance=imbalance,
        micro_batch=micro_batch,
        seq_len=seq_len,
        grad_accum=grad_accum,
        recompute=recompute,
        attention=attention,
        norm=norm,
        step=step,
        chunked_loss=chunked_loss,
        bucket_view=bucket_view,
        activations=activations,
        fit=fit,
        inference=inference,
        context=context,
        batch=batch,
        double_quant=double_quant,
    )
    options.switch("exit_code", exit_code)
    answer = _answer(settings)
    fits = bool(answer.result["fits"])
    return Report("memory", [answer], exit_code=DOES_NOT_FIT if exit_code and not fits else 0)


def _answer(asked: Settings) -> Answer:
    # Loaded here: most calls do without all three.
    if options.switch("inference", asked.inference):
        from napkin.questions.memory.serving import inference

        return inference(asked)
    asked.refuse(("context", "batch", "double_quant"), "goes with --inference")
    if asked.fit is not None:
        from napkin.questions.memory.fit import fitted

        return fitted(asked)
    if asked.bytes_per_param is not None:
        from napkin.questions.memory.by_sum import by_sum

        return by_sum(asked)
    return answered(scenario.read(asked), settings=asked)
