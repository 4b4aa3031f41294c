"""The application: one Typer group that builds only the command that was asked for."""

import os
import signal
import sys
from collections.abc import Sequence
from inspect import Signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import napkin
from napkin.cli import streams
from napkin.cli.commands import COMMANDS, SUBJECT, WRITTEN, screen
from napkin.errors import NapkinError, printable, quoted

LISTS = "A list, as in 8,16, is answered for each, and 1,024 is refused"
CONTEXT = {"help_option_names": ["-h", "--help"]}


class Group(TyperGroup):
    """Commands from the table COMMANDS, errors as one line."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        # Names and lines, which is all that the group's own help and suggestions need.
        self.commands = {name: _placeholder(name) for name in COMMANDS}
        self.listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = super().get_command(ctx, cmd_name)
        return known if known is None or self.listing else _built(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.listing = True
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NapkinError as error:
            for line in error.lines:
                streams.tell(f"Error: {line}")
            raise typer.Exit(error.exit_code) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Typer's own, but usage errors as plain lines: a hint, then `Error: ...`."""
        _show_brief(sys.argv[1:] if args is None else args)
        rest = (args, prog_name, complete_var, False, windows_expand_args)
        if not standalone_mode:
            return super().main(*rest, **extra)
        try:
            code = super().main(*rest, **extra)
        except Exception as error:
            if not hasattr(error, "show"):  # Typer's usage errors know how to print themselves
                raise
            streams.let_the_first_speak()
            answered = _as_others_say(error)
            if answered is not None:
                streams.tell(f"Error: {answered}")
                sys.exit(2)
            error.message = printable(getattr(error, "message", ""))  # type: ignore[attr-defined]
            error.show(file=sys.stderr)
            sys.exit(getattr(error, "exit_code", 2))
        sys.exit(code if isinstance(code, int) else 0)


def _show_brief(args: Sequence[str]) -> None:
    """-h, whatever else was typed."""
    if "-h" not in args or os.environ.get("_NAPKIN_COMPLETE"):
        return
    command = next((each for each in args if not each.startswith("-")), None)
    if command in COMMANDS:
        from napkin.cli import brief

        print(brief.screen(command))
    else:
        print(screen(napkin.__version__))
    sys.exit(0)


def _as_others_say(error: Exception) -> str | None:
    """Another tool's name of an option, answered with napkin's."""
    name, command = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if name is None or command is None or command.info_name not in COMMANDS:
        return None
    from napkin.cli.others import meant  # needed where a mistake is made

    known = (*COMMANDS[command.info_name].options, *WRITTEN)
    option = meant(name, known)
    why = _of_others(name, command.info_name) if option is None else f"napkin's is {option}"
    return None if why is None else f"{printable(name)}: {why}"


def _of_others(name: str, command: str) -> str | None:
    """Which commands have that option, where this one has not."""
    option = name.lstrip("-").replace("-", "_")
    having = [other for other, entry in COMMANDS.items() if option in entry.options]
    if not having or option == SUBJECT:
        return None
    return f"{command} has no such option; it is one of: {', '.join(having)}"


def _built(name: str) -> Any:
    """The command with the options of its entry, as Typer would make it of a function."""
    from napkin.cli import options

    entry = COMMANDS[name]

    def command(asked: typer.Context, **given: Any) -> None:
        # In the order in which they were typed: of lists the first is the slowest.
        _answer(name, {option: given[option] for option in asked.params})

    parameters = [options.parameter(name, each) for each in (*entry.options, *WRITTEN)]
    parameters.insert(0, options.ASKED)
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    several = options.lists(name)
    flags = " ".join(f"--{each.replace('_', '-')}" for each in several)
    lists = f"{LISTS}: {flags}." if several else ""
    command.__doc__ = "\n\n".join(filter(None, (entry.line, entry.about, lists, *entry.examples)))
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name, context_settings=CONTEXT)(command)
    return typer.main.get_command(single)


def _answer(name: str, given: dict[str, Any]) -> None:
    subject = given.pop(SUBJECT, None)
    if subject is not None:
        if given["model"] is not None:
            raise NapkinError(f"--model: {quoted(subject)} says it already; leave one out")
        given["model"] = subject
    if name == "bench":
        from napkin.cli.bench import bench

        bench(given)
    else:
        from napkin.cli.respond import respond

        respond(name.replace("-", "_"), given)


def _placeholder(name: str) -> Any:
    entry = COMMANDS[name]
    return TyperCommand(name, help=entry.line, rich_help_panel=entry.panel)


app = typer.Typer(
    cls=Group,
    context_settings=CONTEXT,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        print(f"napkin {napkin.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def napkin_(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What training an LLM costs, with the working shown."""
    if ctx.invoked_subcommand is None:
        print(screen(napkin.__version__))


def _leave_out_equals_signs() -> None:
    """bash gives `--fit=m` as three words, of which the middle one is no value."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    cursor = os.environ.get("COMP_CWORD", "")
    if not cursor.isdecimal():
        return
    before = [word for word in words[: int(cursor)] if word != "="]
    os.environ["COMP_WORDS"] = "\n".join([*before, *words[int(cursor) :]])
    os.environ["COMP_CWORD"] = str(len(before))


def run() -> None:
    """The whole program, from sys.argv to an exit code."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends quietly
    if os.environ.get("NO_COLOR"):
        os.environ["_TYPER_FORCE_DISABLE_TERMINAL"] = "1"  # bold is an escape code too
    _leave_out_equals_signs()
    streams.fill_closed()
    streams.make_readable()
    try:
        try:
            app()
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except OSError as error:
        streams.give_up(error)
        sys.exit(2)
