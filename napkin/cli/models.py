"""`napkin models`."""

from typing import Annotated

import typer

from napkin.cli.options import Format, Output, names_of_models
from napkin.cli.respond import respond

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME|FILE]",
        autocompletion=names_of_models,
        help="A model, a config.json or its folder, or a shape; none lists all.",
    ),
]


def models(name: Name = None, format: Format = None, output: Output = None) -> None:
    """How many parameters does a model have, and where?

    Counted from its config.json, part by part.

    napkin models llama-3-8b
    """
    respond("models", locals())
