"""The commands, by name. Each of them is a module of its own, loaded when the command is asked for, or its help."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from wpinq.apps.cli.help import Helped

COMMANDS = {
    "demo": "demo",
    "degrees": "degrees",
    "graph": "graph",
    "run": "run",
    "shell": "shell",
    "try": "try_",
    "audit": "audit",
    "explain": "explain",
    "sql": "sql",
    "table": "table",
    "check": "check",
    "ledger": "ledger",
    "publish": "publish",
    "serve": "serve",
    "mcp": "mcp",
    "token": "token",
}
"""The module of each command. It holds a function of its name, or commands of its own as `app`."""


class Commands(typer.core.TyperGroup):
    """The commands: all are known by name, and only the one that is asked for is made."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # of these a misspelt one is told the nearest

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"wpinq.apps.cli.{COMMANDS[cmd_name]}")
        alone = typer.Typer()
        if hasattr(module, "app"):
            alone.add_typer(module.app, name=cmd_name)
        else:
            alone.command(cmd_name, cls=Helped)(getattr(module, COMMANDS[cmd_name]))
        return typer.main.get_group(alone).commands[cmd_name]


app = typer.Typer(
    cls=Commands,
    help="Publish counts about people without exposing them.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from wpinq.core import engine_name
        from wpinq.errors import installed

        typer.echo(f"wpinq {installed()}, engine: {engine_name()}")
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
        from wpinq import limit_memory

        limit_memory(memory, spill)
