"""The command line: reads arguments, asks one question, hands the answer to a renderer."""

from napkin.cli.app import app, main

__all__ = ["app", "main"]
