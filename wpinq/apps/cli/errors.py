"""Every failure is one line on standard error and an exit code, never a traceback: a traceback can quote records."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress

import typer

from wpinq.apps.cli.interrupt import STOPPED
from wpinq.apps.cli.room import check_room, why
from wpinq.apps.cli.spoken import options_of, spoken
from wpinq.errors import WpinqError

BAD, INTERRUPTED = 2, 130


def guarded(app: typer.Typer, arguments: Sequence[str] | None) -> int:
    """Run a command and turn whatever it raises into an exit code."""
    words = sys.argv[1:] if arguments is None else [*arguments]

    def ours(text: str) -> str:
        return spoken(text, options_of(typer.main.get_command(app), words), words)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say(ours(str(message)))
            check_room()
            code = typer.main.get_command(app).main(arguments, prog_name="wpinq", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        _silent()
        return 1
    except Exception as error:  # noqa: BLE001  nothing may show a traceback
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):  # that came while a class was made, say
            return _interrupted()
        if isinstance(error, OSError) and not isinstance(error, WpinqError):
            _silent()
        return _failed(ours(message_of(error)), BAD)
    return _interrupted() if code == INTERRUPTED else code or 0


def message_of(error: Exception) -> str:
    """What people are told of an error: our own in full, others by their type, for their text can hold data.

    >>> message_of(RuntimeError("ann viewed page 7"))
    'RuntimeError, which was not foreseen; please report this, with the command.'
    """
    if isinstance(error, WpinqError):
        return str(error)
    if hasattr(error, "format_message"):  # a wrong option or argument
        return _usage(error)
    if isinstance(error, (OSError, MemoryError)):
        return why(error)
    return f"{type(error).__name__}, which was not foreseen; please report this, with the command."


def one_line(text: str) -> str:
    r"""Text on one line, without anything that moves a terminal's cursor.

    >>> one_line("spent:\n  0.1  pages\x1b[2J")
    'spent: 0.1 pages�[2J'
    """
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Text without control characters."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def say(text: str) -> None:
    """Print one line on standard error."""
    typer.echo(f"wpinq: {one_line(text)}", err=True)


def _silent() -> None:
    """Drop what standard output still holds, so that the last flush is quiet too."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "wpinq"
    if type(error).__name__ == "NoArgsIsHelpError":
        return f"a command is missing; try '{command} --help'."
    return f"{error.format_message()} Try '{command} --help'."  # type: ignore[attr-defined]


def _interrupted() -> int:
    return _failed(STOPPED, INTERRUPTED)


def _failed(text: str, code: int) -> int:
    say(text)
    return code
