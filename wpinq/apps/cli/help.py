"""`--help` of a command with many options: by subject, what most need, on a screen; `--help-all` has the rest."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import typer.core

FEW = 14
"""A command with no more options has one help."""
SUBJECTS: dict[str, tuple[str, ...]] = {
    "Whom it protects": ("unit", "at_most", "per", "shared", "period", "at", "zone", "through", "owners",
                         "bound_epsilon", "bound_bins"),
    "Records": ("source", "public", "where", "derive", "columns", "header", "format", "separator", "decimal",
                "encoding", "table", "tz", "data_version", "name"),
    "What is asked": ("of", "down", "across", "categories", "other", "listed", "total", "observe", "keys", "bounds",
                      "epsilon", "mechanism", "split", "method", "prior", "mutual", "bipartite", "seed", "chains",
                      "steps", "show_loss", "explain", "functions"),
    "What it may cost": ("budget", "ledger", "delta", "rho", "ledger_delta", "ledger_rho", "accounting",
                         "repeat", "analyst"),
    "A stream": ("follow", "every", "lateness", "keep", "recover", "to", "status", "metrics", "listen"),
    "Where answers go": ("html", "title", "save", "json", "plot", "synthesize", "processes", "index"),
}  # fmt: skip
"""Options by subject, in the order of the help; what stands nowhere is under Others."""
MOST = {
    "unit", "at_most", "source", "where", "columns", "format", "of", "down", "across", "categories", "observe", "keys",
    "bounds", "epsilon", "budget", "ledger", "follow", "every", "recover", "listen", "html", "save", "json", "plot",
    "synthesize", "explain",
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
    options = {parameter.name: parameter for parameter in parameters if parameter.param_type_name == "option"}
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
    """What is said of a parameter: all, or its first sentence."""
    text = " ".join((getattr(parameter, "help", "") or "").split())
    return text if whole else re.split(r"(?<=[^.])[.;] (?=[A-Zaio])|[.]$", text, maxsplit=1)[0]
