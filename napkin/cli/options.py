"""The options that several commands share. All are text: the questions read them."""

from typing import Annotated

import typer

from napkin.render import FORMATS
from napkin.specs import optimizers
from napkin.specs.dtypes import PRECISIONS
from napkin.specs.folders import hardware_names, model_names

CONVENTIONS = (
    "six-n",
    "six-n-non-embedding",
    "palm",
    "torchtitan",
    "megatron",
    "exact-full",
    "exact-causal",
)

ASSUMPTIONS, OUTPUT = "What is assumed", "Output"


def starting_with(words: list[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def names_of_hardware(incomplete: str) -> list[str]:
    return starting_with(hardware_names(), incomplete)


def names_of_models(incomplete: str) -> list[str]:
    return starting_with(model_names(), incomplete)


def _conventions(incomplete: str) -> list[str]:
    return starting_with(list(CONVENTIONS), incomplete)


def _dtypes(incomplete: str) -> list[str]:
    return starting_with(list(PRECISIONS), incomplete)


def _formats(incomplete: str) -> list[str]:
    return starting_with(list(FORMATS), incomplete)


def recipes(incomplete: str) -> list[str]:
    return starting_with(list(optimizers.PRECISIONS), incomplete)


def _optimizers(incomplete: str) -> list[str]:
    return starting_with(list(optimizers.OPTIMIZERS), incomplete)


def option(panel: str, metavar: str, help: str) -> typer.models.OptionInfo:
    """One whose default its help says."""
    found: typer.models.OptionInfo = typer.Option(
        metavar=metavar, show_default=False, help=help, rich_help_panel=panel
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
    typer.Option(
        metavar="NAME",
        autocompletion=_conventions,
        show_default=False,
        help=f"How FLOP are counted: {' '.join(CONVENTIONS)} (default six-n).",
        rich_help_panel=ASSUMPTIONS,
    ),
]
SeqLen = Annotated[
    str | None,
    typer.Option(
        metavar="TOKENS",
        show_default=False,
        help="Sequence length (default 4096, or the model's if that is less).",
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
    typer.Option(
        "--hardware",
        "-H",
        metavar="NAME|FILE",
        envvar="NAPKIN_HARDWARE",
        autocompletion=names_of_hardware,
        show_default=False,
        help="Accelerator: a name that `napkin hardware` lists, a driver's device name, "
        "or your own YAML file (default h100-sxm).",
        rich_help_panel=ASSUMPTIONS,
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="PRECISION",
        autocompletion=_dtypes,
        show_default=False,
        help="Which peak: bf16 fp16 fp32 tf32 fp64 fp8 and smaller (default bf16).",
        rich_help_panel=ASSUMPTIONS,
    ),
]
Peak = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        envvar="NAPKIN_PEAK",
        show_default=False,
        help="Of one GPU: '700 TFLOP/s', measured (by bench) or promised (by the datasheet, the "
        "default).",
        rich_help_panel=ASSUMPTIONS,
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
    typer.Option(
        metavar="NAME",
        autocompletion=_optimizers,
        show_default=False,
        help=f"{' '.join(optimizers.OPTIMIZERS)} (default adamw).",
        rich_help_panel=ASSUMPTIONS,
    ),
]
BytesPerParam = Annotated[
    str | None,
    typer.Option(
        metavar="BYTES",
        help="The sum itself, instead of a precision and an optimizer: 18.",
        rich_help_panel=ASSUMPTIONS,
    ),
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
    typer.Option(
        "--format",
        "-f",
        metavar="NAME",
        autocompletion=_formats,
        show_default=False,
        help=f"{' '.join(FORMATS)} (default table).",
        rich_help_panel=OUTPUT,
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file; its suffix chooses the format.",
        rich_help_panel=OUTPUT,
    ),
]
