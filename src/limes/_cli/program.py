"""The commands of ``limes``, and how their errors and exits become exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from io import TextIOWrapper
from typing import Annotated, ParamSpec

import typer

from limes import __version__
from limes._cli.explain import demo, diagnose, what_if
from limes._cli.explain import explain as explain_one
from limes._cli.scale import explain_table, verify
from limes.exceptions import LimesError, ModelError

P = ParamSpec("P")

# What streams do with characters that they cannot encode; others raise in the middle of a text
_LENIENT = ("backslashreplace", "replace", "xmlcharrefreplace", "namereplace", "ignore")

app = typer.Typer(
    help="Explain single predictions: what LIME converges to, exactly where the model can be read.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _to_its_end(command: Callable[P, None]) -> Callable[P, None]:
    """Make an exit from inside of a model an error; the exits of commands are ``typer.Exit``."""

    @wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except SystemExit as error:
            raise ModelError(f"the model, or a library of it, called sys.exit({error.code!r})") from error

    return wrapper


app.command("explain")(_to_its_end(explain_one))
app.command()(_to_its_end(diagnose))
app.command("explain-table")(_to_its_end(explain_table))
app.command()(verify)
app.command("app")(what_if)
app.command()(demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"limes {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run() -> int:
    """Run the command line and return its exit code; errors of limes are printed without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors not in _LENIENT:
            stream.reconfigure(errors="backslashreplace")  # cp1252 has no β, nor what a column may be called
    try:
        app()
    except LimesError as error:
        from limes._explanation.wording import one_line

        typer.secho(f"limes: {one_line(str(error))}", fg="red", err=True)  # names and cells are data
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
