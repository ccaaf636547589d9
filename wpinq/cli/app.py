"""The commands, by name. What each of them does is a module of its own, which loads heavy libraries when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wpinq.cli import check, ledger
from wpinq.cli.degrees import degrees
from wpinq.cli.dry import dry
from wpinq.cli.explain import explain
from wpinq.cli.run import run
from wpinq.cli.shell import shell
from wpinq.cli.sql import sql

app = typer.Typer(
    help="Publish counts about people without exposing them.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from wpinq.cli.show import installed

        typer.echo(f"wpinq {installed()}")
        raise typer.Exit


@app.callback(no_args_is_help=True)
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            help="What counting may hold in memory, 8GB say; by default half of the machine's. The rest waits on disk.",
            metavar="SIZE",
            show_default=False,
        ),
    ] = None,
    spill: Annotated[
        Path | None,
        typer.Option(
            help="A private directory where it waits, with --memory; that of the ledger by default.", show_default=False
        ),
    ] = None,
) -> None:
    """Publish counts about people without exposing them.

    The budget of a data set is kept in a ledger beside it. A command that is given again costs nothing again and gives
    the same answers.
    """
    if memory is not None or spill is not None:
        from wpinq.state.memory import limit_memory

        limit_memory(memory, spill)


app.command()(degrees)
app.command()(run)
app.command()(shell)
app.command(name="try")(dry)
app.command()(explain)
app.command()(sql)
app.command(name="check")(check.check)
app.add_typer(ledger.app, name="ledger")
