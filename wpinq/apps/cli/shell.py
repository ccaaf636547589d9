"""`wpinq shell`: observe bins and ask new questions at a prompt, or line by line from standard input.

The prompt has a history and completion.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wpinq.apps.cli import arguments, options, questions
from wpinq.apps.cli.errors import BAD, message_of
from wpinq.apps.cli.inputs import Input
from wpinq.apps.cli.lines import say
from wpinq.apps.cli.process import check_input, interruptible
from wpinq.apps.scripts.script import find, load
from wpinq.errors import WpinqError, lacking

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

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

    check_input()
    opened: list[Collection] = []

    def remembered(views: Collection) -> Collection:
        opened.append(views)
        return views

    measurements, _ = begin(load(dataflow), of_script(data, find(dataflow)), budget, {}, remembered)
    commands = Commands(measurements, opened[0], {*data.files(), find(dataflow).resolve()})
    if sys.stdin.isatty():
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


def lines(commands: Commands) -> Iterator[str]:
    """Ask for lines until the terminal is closed; an interrupt clears the line."""
    ask = input if (missing := lacking("shell")) else _session(commands).prompt
    if missing:
        say(f"lines are neither completed nor kept: {missing}.")
    while True:
        try:
            yield ask("wpinq> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _session(commands: Commands) -> PromptSession[str]:
    """A prompt that completes lines and keeps them."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.shortcuts import CompleteStyle

    return PromptSession(
        history=_history(),
        completer=_completer(commands),
        complete_style=CompleteStyle.READLINE_LIKE,
        complete_while_typing=False,
    )


def _completer(commands: Commands) -> Completer:
    """Commands and measurements at the start; what each goes on with after it."""
    from prompt_toolkit.completion import DynamicCompleter, NestedCompleter, WordCompleter

    columns = [*commands.records.columns, questions.RECORDS, *questions.COSTS]
    plan = WordCompleter([*columns, *questions.OPERATORS])
    select = WordCompleter([*columns, "COUNT(*)", "FROM", "WHERE", "GROUP BY", "bounds", "keys"], ignore_case=True)

    def now() -> Completer:
        names = dict.fromkeys(commands.measurements)
        takes: dict[str, Any] = {"explain": names, "plot": names, "measure": plan, "SELECT": select}
        return NestedCompleter.from_nested_dict({word: takes.get(word) for word in commands.words})

    return DynamicCompleter(now)


def _history() -> History:
    """What was asked before, in a file of the user's own, or in memory where there can be none."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "wpinq" / "history"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
