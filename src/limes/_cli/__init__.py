"""The command line: ``limes`` and its commands, which ``limes --help`` lists."""

from __future__ import annotations

from typing import Annotated

import typer

from limes import __version__
from limes._cli.explain import demo, diagnose
from limes._cli.explain import explain as explain_one
from limes._cli.scale import explain_table, verify
from limes._cli.what_if import what_if
from limes.exceptions import LimesError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Explain single predictions: what LIME converges to, exactly where the model can be read.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("explain")(explain_one)
app.command()(diagnose)
app.command("explain-table")(explain_table)
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


def main() -> None:
    """Run the command line; errors that limes raises on purpose are printed without a traceback."""
    try:
        app()
    except LimesError as error:
        from limes._explanation.wording import one_line

        typer.secho(f"limes: {one_line(str(error))}", fg="red", err=True)  # names and cells are data
        raise SystemExit(1) from None
