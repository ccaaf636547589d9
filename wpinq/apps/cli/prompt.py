"""The prompt of `wpinq shell`: history and completion."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.apps.cli import questions
from wpinq.apps.cli.errors import say
from wpinq.errors import lacking

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

    from wpinq.apps.cli.commands import Commands


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
