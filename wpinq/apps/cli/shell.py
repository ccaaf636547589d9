"""`wpinq shell`: observe bins and ask new questions at a prompt, or line by line from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.errors import BAD, message_of, say
from wpinq.apps.cli.inputs import Input
from wpinq.apps.cli.interrupt import interruptible
from wpinq.apps.scripts.script import find, load
from wpinq.errors import WpinqError

if TYPE_CHECKING:
    from wpinq.apps.cli.commands import Commands
    from wpinq.collection import Collection


@arguments.over(arguments.protected)
def shell(dataflow: options.DataflowName, data: Input, *, budget: options.Budget = None) -> None:
    """Observe the measurements of a dataflow script, and ask new questions; `help` lists the commands.

    A new question is priced first, and charged by a line `yes` after it. Where standard input is not a terminal, its
    lines are the commands, and the exit code is 2 if one of them failed.
    """
    from wpinq.apps.cli.commands import Commands
    from wpinq.apps.cli.run import begin, of_script

    opened: list[Collection] = []

    def remembered(views: Collection) -> Collection:
        opened.append(views)
        return views

    measurements, _ = begin(load(dataflow), of_script(data, find(dataflow)), budget, {}, remembered)
    commands = Commands(measurements, opened[0], {*data.files(), find(dataflow).resolve()})
    if sys.stdin.isatty():
        from wpinq.apps.cli.prompt import lines

        typer.echo("Measurements are charged, their bins cost nothing more; new questions do. Type help.")
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
