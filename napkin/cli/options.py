"""The options that several commands share. All are text: the questions read them."""

from collections.abc import Callable
from typing import Annotated

import typer

from napkin.questions.shape.conventions import CONVENTIONS, dashed
from napkin.render import FORMATS
from napkin.specs import optimizers
from napkin.specs.dtypes import PRECISIONS
from napkin.specs.folders import hardware_names, model_names

DASHED = [dashed(name) for name in CONVENTIONS]

ASSUMPTIONS, OUTPUT = "What is assumed", "Output"


def starting_with(words: list[str], incomplete: str) -> list[str]:
    # A file's name that cannot be shown cannot be typed either.
    return [word for word in words if word.startswith(incomplete) and word.isprintable()]


def names_of_hardware(incomplete: str) -> list[str]:
    return starting_with(hardware_names(), incomplete)


def names_of_models(incomplete: str) -> list[str]:
    return starting_with(model_names(), incomplete)


def _conventions(incomplete: str) -> list[str]:
    return starting_with(DASHED, incomplete)


def _dtypes(incomplete: str) -> list[str]:
    return starting_with(list(PRECISIONS), incomplete)


def _formats(incomplete: str) -> list[str]:
    return starting_with(list(FORMATS), incomplete)


def recipes(incomplete: str) -> list[str]:
    return starting_with(list(optimizers.PRECISIONS), incomplete)


def _optimizers(incomplete: str) -> list[str]:
    return starting_with(list(optimizers.OPTIMIZERS), incomplete)


def option(
    panel: str,
    metavar: str,
    help: str,
    *names: str,
    completing: Callable[[str], list[str]] | None = None,
    envvar: str | None = None,
) -> typer.models.OptionInfo:
    """A text of a panel; its help says the default."""
    found: typer.models.OptionInfo = typer.Option(
        *names,
        metavar=metavar,
        envvar=envvar,
        autocompletion=completing,
        help=help,
        rich_help_panel=panel,
    )
    return found


Params = Annotated[
    str | None,
    typer.Option("--params", "-N", metavar="COUNT", help="Parameters: 70e9, 70B."),
]
ActiveParams = Annotated[
    str | None,
    typer.Option(
        metavar="COUNT",
        help="Active parameters of a mixture of experts: they compute, all --params take memory.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        autocompletion=names_of_models,
        help="A name that `napkin models` lists, a config.json or its folder, or a shape: "
        "llama:L=2,d=64,...",
    ),
]
Convention = Annotated[
    str | None,
    option(
        ASSUMPTIONS,
        "NAME",
        f"How FLOP are counted: {' '.join(DASHED)} (default six-n).",
        completing=_conventions,
    ),
]
SeqLen = Annotated[
    str | None,
    typer.Option(
        metavar="TOKENS", help="Sequence length (default 4096, or the model's if that is less)."
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option("--tokens", "-D", metavar="COUNT", help="Training tokens: 15e12, 15T."),
]
Gpus = Annotated[
    str | None,
    typer.Option("--gpus", "-g", metavar="COUNT", help="GPUs in all (packages): 1024, 1e3."),
]
Hardware = Annotated[
    str | None,
    option(
        ASSUMPTIONS,
        "NAME|FILE",
        "Accelerator: a name that `napkin hardware` lists, a driver's device name, "
        "or your own YAML file (default h100-sxm).",
        "--hardware",
        "-H",
        completing=names_of_hardware,
        envvar="NAPKIN_HARDWARE",
    ),
]
Dtype = Annotated[
    str | None,
    option(
        ASSUMPTIONS,
        "PRECISION",
        "Which peak: bf16 fp16 fp32 tf32 fp64 fp8 and smaller (default bf16).",
        completing=_dtypes,
    ),
]
Peak = Annotated[
    str | None,
    option(
        ASSUMPTIONS,
        "RATE",
        "Of one GPU: '700 TFLOP/s', measured (by bench) or promised (by the datasheet, the "
        "default).",
        envvar="NAPKIN_PEAK",
    ),
]
Sparse = Annotated[
    bool,
    typer.Option(
        "--sparse",
        help="Take the 2:4 sparse peak, which dense training cannot reach.",
        rich_help_panel=ASSUMPTIONS,
    ),
]
Optimizer = Annotated[
    str | None,
    option(
        ASSUMPTIONS,
        "NAME",
        f"{' '.join(optimizers.OPTIMIZERS)} (default adamw).",
        completing=_optimizers,
    ),
]
BytesPerParam = Annotated[
    str | None,
    option(ASSUMPTIONS, "BYTES", "The sum itself, instead of a precision and an optimizer: 18."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory of one GPU instead of the hardware's: 80GB, 80GiB, 85520809984.",
    ),
]
Format = Annotated[
    str | None,
    option(
        OUTPUT,
        "NAME",
        f"{' '.join(FORMATS)} (default table).",
        "--format",
        "-f",
        completing=_formats,
    ),
]
Output = Annotated[
    str | None,
    option(OUTPUT, "FILE", "Write to a file; its suffix chooses the format.", "--output", "-o"),
]
