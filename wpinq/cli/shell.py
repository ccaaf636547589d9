"""`wpinq shell`: observe bins at a prompt, or line by line from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from wpinq.cli import arguments, options
from wpinq.cli.errors import BAD, message_of, say
from wpinq.cli.inputs import Input
from wpinq.cli.interrupt import interruptible
from wpinq.errors import WpinqError
from wpinq.scripts.script import find, load

if TYPE_CHECKING:
    from wpinq.cli.commands import Commands


@arguments.over(arguments.protected)
def shell(dataflow: options.DataflowName, place: Input, *, budget: options.Budget = None) -> None:
    """Observe the measurements of a dataflow script interactively; `help` lists the commands.

    Where standard input is not a terminal, its lines are the commands, and the exit code is 2 if one of them failed.
    """
    from wpinq.cli.commands import Commands
    from wpinq.cli.run import begin

    measurements, _ = begin(load(dataflow), place, budget, {})
    commands = Commands(measurements, {*place.places(), find(dataflow).resolve()})
    if sys.stdin.isatty():
        from wpinq.cli.prompt import lines

        typer.echo("All measurements are charged; bins cost nothing more. Type help for the commands.")
        _answer(commands, lines(commands))
    elif not _answer(commands, _piped()):
        raise typer.Exit(BAD)


def _piped() -> Iterator[str]:
    interruptible()
    while line := sys.stdin.readline():
        yield line
        interruptible()


def _answer(commands: Commands, lines: Iterable[str]) -> bool:
    """Carry out lines until one is `quit`; whether all went well."""
    good = True
    for line in lines:
        if line.split() in (["quit"], ["exit"]):
            break
        try:
            text = commands.do(line)
        except WpinqError as error:
            say(message_of(error))
            good = False
        else:
            typer.echo(text, nl=bool(text))
    return good
