"""The commands, by name. Each of them is a module of its own, loaded when the command is asked for, or its help.

`--help` of a command with many options shows by subject what most need, on a screen; `--help-all` has the rest.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from wpinq.errors import PlanError

COMMANDS = {
    "demo": "demo", "degrees": "degrees", "graph": "graph", "run": "run", "shell": "shell", "try": "try_",
    "audit": "audit", "explain": "explain", "sql": "sql", "table": "table", "check": "check", "ledger": "ledger",
    "publish": "publish", "serve": "serve", "mcp": "mcp", "token": "token",
}  # fmt: skip
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
        return _made(cmd_name) if cmd_name in COMMANDS else None


@cache
def _made(name: str) -> Any:
    """A command as Typer makes it of its function, which takes as long as many a command runs."""
    module = import_module(f"wpinq.apps.cli.{COMMANDS[name]}")
    alone = typer.Typer()
    if hasattr(module, "app"):
        for each in module.app.registered_commands:
            each.cls = Helped
        alone.add_typer(module.app, name=name)
    else:
        alone.command(name, cls=Helped)(getattr(module, COMMANDS[name]))
    return typer.main.get_group(alone).commands[name]


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


FEW = 14
"""A command with no more options has one help."""
SUBJECTS: dict[str, tuple[str, ...]] = {
    "Whom it protects": ("unit", "at_most", "per", "shared", "period", "at", "zone", "through", "owners",
                         "bound_epsilon", "bound_bins"),
    "Records": ("source", "public", "where", "derive", "columns", "header", "format", "separator", "decimal",
                "encoding", "table", "tz", "data_version", "name"),
    "What is asked": ("of", "down", "across", "want", "plan", "aim", "categories", "names_delta", "hierarchy",
                      "other", "listed", "total", "public_numbers", "sums", "means", "medians", "observe", "keys",
                      "bounds", "epsilon", "mechanism", "split", "method", "prior", "mutual", "bipartite", "seed",
                      "chains", "steps", "show_loss", "explain", "functions"),
    "What it may cost": ("budget", "ledger", "delta", "rho", "ledger_delta", "ledger_rho", "accounting",
                         "repeat", "analyst"),
    "A stream": ("follow", "every", "lateness", "keep", "workers", "recover", "to", "status", "metrics", "listen"),
    "Where answers go": ("html", "title", "save", "json", "plot", "synthesize", "out", "processes", "index"),
    "An audit": ("itself", "minutes", "cases", "seconds"),
}  # fmt: skip
"""Options by subject, in the order of the help; what stands nowhere is under Others."""
MOST = {
    "unit", "at_most", "source", "where", "columns", "format", "of", "down", "across", "categories",
    "sums", "means", "observe", "keys", "bounds", "epsilon", "budget", "ledger", "follow", "every", "recover", "listen",
    "html", "save", "json", "plot", "synthesize", "explain", "itself", "minutes", "out",
}  # fmt: skip
"""What `--help` says."""


class Helped(typer.core.TyperCommand):
    """A command whose help is short, with all of it behind `--help-all` where it is long."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; with `--help-all` where there are many."""
        parameters = super().get_params(ctx)
        return [*parameters[:-1], _everything(), parameters[-1]] if self._long else parameters

    @property
    def _long(self) -> bool:
        return sum(parameter.param_type_name == "option" for parameter in self.params) > FEW

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the arguments; of an option that was given twice, one of two values would be dropped in silence.

        Raises:
            PlanError: An option that takes one value is given twice.
        """
        words = args[: args.index("--")] if "--" in args else args
        for option in (each for each in self.params if each.param_type_name == "option"):
            names = (*option.opts, *option.secondary_opts)
            if not option.multiple and sum(word.partition("=")[0] in names for word in words) > 1:
                raise PlanError(f"{option.opts[0]}: is given twice; give it once.")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write `--help`."""
        if self._long:
            _write(self, ctx, formatter, whole=False)
        else:
            super().format_help(ctx, formatter)


def _everything() -> Any:
    def shown(ctx: Any, _: Any, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            formatter = ctx.make_formatter()
            _write(ctx.command, ctx, formatter, whole=True)
            typer.echo(formatter.getvalue().rstrip("\n"))
            ctx.exit()

    return typer.core.TyperOption(
        param_decls=["--help-all"], is_flag=True, expose_value=False, is_eager=True, callback=shown, hidden=False,
        help="Show all options, and all that is said of them.",
    )  # fmt: skip


def _write(command: Helped, ctx: Any, formatter: Any, *, whole: bool) -> None:
    """Write the help: usage, what the command does, its arguments, and its options by subject."""
    command.format_usage(ctx, formatter)
    paragraphs = (command.help or "").split("\n\n")
    for text in paragraphs if whole else paragraphs[:1]:
        formatter.write_paragraph()
        formatter.write_text(" ".join(text.split()))
    parameters = command.get_params(ctx)
    arguments = [
        (parameter.make_metavar(ctx), _help_of(parameter, whole=whole))
        for parameter in parameters
        if parameter.param_type_name == "argument"
    ]
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    options = {each.name: each for each in parameters if each.param_type_name == "option" and not each.hidden}
    for subject, names in _subjects(options):
        shown = [name for name in names if whole or name in MOST or subject == "Help"]
        more = [options[name].opts[0] for name in names if name not in shown]
        with formatter.section(subject):
            rows = [(_written(options[name], ctx), _help_of(options[name], whole=whole)) for name in shown]
            formatter.write_dl(rows) if rows else None
            formatter.write(_listed("also " if rows else "", more, formatter.width)) if more else None


def _listed(lead: str, options: list[str], width: int) -> str:
    """Names of options, none of them cut at its hyphens."""
    text = lead + ", ".join(options)
    return textwrap.fill(text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False) + "\n"


def _subjects(options: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    known = {name for names in SUBJECTS.values() for name in names} | {"help", "help_all"}
    for subject, names in (*SUBJECTS.items(), ("Others", tuple(set(options) - known)), ("Help", ("help_all", "help"))):
        known_names = sorted((name for name in names if name in options), key=names.index)
        if known_names:
            yield subject, known_names


def _written(option: Any, ctx: Any) -> str:
    return str(option.get_help_record(ctx)[0])


def _help_of(parameter: Any, *, whole: bool) -> str:
    """What is said of a parameter: all, with its default, or its first sentence."""
    text = " ".join((getattr(parameter, "help", "") or "").split())
    default = parameter.default
    if whole and default and isinstance(default, (int, float, str)) and not isinstance(default, bool):
        text += f" [default: {default:g}]" if isinstance(default, (int, float)) else f" [default: {default}]"
    return text if whole else re.split(r"(?<=[^.])[.;] (?=[A-Zaio])|[.]$", text, maxsplit=1)[0]
