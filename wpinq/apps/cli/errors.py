"""Every failure is one line on standard error and an exit code, never a traceback: a traceback can quote records.

Messages are in the words of the command line: `separator=';'` is `--separator ';'` here. A message names the argument
that was wrong, or what to give instead, as Python calls it: whoever raises it does not know who asked. This is the one
place that knows how the command that runs calls it. What the user wrote stays as it is.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import typer

from wpinq.apps.cli.lines import say
from wpinq.apps.cli.process import STOPPED, check_room, check_threads, why
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
            if arguments is None:  # a process of this command alone: what a program that runs on has, it knows
                check_threads()
            code = typer.main.get_command(app).main(arguments, prog_name="wpinq", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        _silent()
        return 1
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  nothing may show a traceback; a panic of Polars is no Exception
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):  # that came while a class was made, say
            return _interrupted()
        if isinstance(error, OSError) and not isinstance(error, WpinqError):
            _silent()
        called = " ".join(("wpinq", *_command(typer.main.get_command(app), words)[1]))
        return _failed(ours(message_of(error, called)), BAD)
    return _interrupted() if code == INTERRUPTED else code or 0


def message_of(error: BaseException, called: str = "wpinq") -> str:
    """What people are told of an error: our own in full, others by their type, for their text can hold data.

    Args:
        error: The error.
        called: The command that was called.

    >>> message_of(RuntimeError("ann viewed page 7"))
    'RuntimeError, which was not foreseen; please report this, with the command.'
    """
    if isinstance(error, WpinqError):
        return str(error)
    if hasattr(error, "format_message"):  # a wrong option or argument
        return _usage(error, called)
    if isinstance(error, (OSError, MemoryError)):
        return why(error)
    return f"{type(error).__name__}, which was not foreseen; please report this, with the command."


def _silent() -> None:
    """Drop what standard output still holds, so that the last flush is quiet too."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: BaseException, called: str) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else called
    if type(error).__name__ == "NoArgsIsHelpError":
        return f"a command is missing; try '{command} --help'."
    return f"{error.format_message()} Try '{command} --help'."  # type: ignore[attr-defined]


def _interrupted() -> int:
    return _failed(STOPPED, INTERRUPTED)


def _failed(text: str, code: int) -> int:
    say(text)
    return code


OTHER = {"version": "data_version", "loss": "show_loss"}
"""Arguments whose options have other names."""
OF_USERS = {"epsilon": "bound_epsilon", "bins": "bound_bins", "asking": "bound_bins"}
"""Those of `users`."""
_VALUE = (
    r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\{[^{}]*\}|\[[^][]*\]|(?:wpinq\.)?users\([^()]*\)|True\b|False\b|None\b|\.\.\.|"
    r"-?\d[\w.]*"
)
_ARGUMENT = rf"(?P<name>[a-z_]+)=(?P<value>{_VALUE}|(?=[\s,;:.)]|$))"
_CALL = r"(?P<call>[A-Za-z_][\w.]*)\((?P<given>(?:\.\.\., )?(?:[a-z_]+=(?:" + _VALUE + r")(?:, )?)+(?:\.\.\.)?)\)"
_SPOKEN = re.compile(rf"(?<![\w?&/'\"$%{{.=-])(?:{_CALL}|{_ARGUMENT})")
_GIVEN = re.compile(_ARGUMENT)


def spoken(text: str, options: Mapping[str, Sequence[str]], words: Sequence[str] = ()) -> str:
    """A message with options in place of Python's arguments.

    Args:
        text: The message.
        options: For each parameter of the command what turns it on, and what turns it off.
        words: What the user wrote.

    >>> known = {"separator": ["--separator"], "header": ["--header", "--no-header"], "unit": ["--unit"]}
    >>> spoken("views.csv: pass separator=';' or header=False; sep=1 stays.", known)
    "views.csv: pass --separator ';' or --no-header; sep=1 stays."
    >>> spoken("protect(unit=...): no column 'a'.", known)
    "--unit: no column 'a'."
    """
    assignments = [re.escape(word) for word in words if "=" in word]
    parts = re.split(f"({'|'.join(assignments)})", text) if assignments else [text]
    return "".join(
        part if index % 2 else _SPOKEN.sub(lambda match: _with_options(match, options), part)
        for index, part in enumerate(parts)
    )


def _command(command: Any, words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that was given, and its name; all of it where there is no such command."""
    names = []
    for word in words:
        if word in (command.list_commands(None) if hasattr(command, "list_commands") else ()):
            command = command.get_command(None, word)
            names.append(word)
    return command, names


def options_of(command: Any, words: Sequence[str]) -> dict[str, list[str]]:
    """The options of the command that was given, by their parameters; none where there is no such command."""
    command, _ = _command(command, words)
    return {
        parameter.name: [*parameter.opts, *parameter.secondary_opts]
        for parameter in command.params
        if parameter.param_type_name == "option"
    }


def _with_options(match: re.Match[str], options: Mapping[str, Sequence[str]]) -> str:
    if match["call"] is None:
        return _option(match["name"], match["value"], options, {}) or match[0]
    renamed = OF_USERS if match["call"] in ("users", "wpinq.users", "Unit") else {}
    replaced = [
        _option(argument["name"], argument["value"], options, renamed) for argument in _GIVEN.finditer(match["given"])
    ]
    return ", ".join(text for text in replaced if text) or match[0]


def _option(name: str, value: str, options: Mapping[str, Sequence[str]], renamed: Mapping[str, str]) -> str:
    """An option with its value as one writes them; nothing where the command has none."""
    spellings = options.get(renamed.get(name, OTHER.get(name, name)))
    if not spellings:
        return ""
    if value == "False":
        return spellings[1] if len(spellings) > 1 else f"no {spellings[0]}"
    if value in ("", "...", "None", "True"):
        return spellings[0]
    if "users(" in value:
        column, *more = value.partition("(")[2].removesuffix(")").split(", ")
        rest = [_option(*argument.partition("=")[::2], options, OF_USERS) for argument in more if "=" in argument]
        return " ".join([spellings[0], column.strip("'"), *filter(None, rest)])
    if name == "bounds" and (ends := re.fullmatch(r"\{'([^']*)': \(.*\)\}", value)):
        return f"{spellings[0]} '{ends[1]}=LOW..HIGH'"
    return f"{spellings[0]} {_written(value)}"


def _written(value: str) -> str:
    """A literal as a shell takes it: names by commas, and types after colons."""
    try:
        tree = ast.parse(value.replace(", ...", ""), mode="eval").body
    except SyntaxError:
        return value
    match tree:
        case ast.Dict(keys=keys, values=kinds):
            pairs = ((_plain(key), _plain(kind)) for key, kind in zip(keys, kinds, strict=True))
            return shlex.quote(",".join(f"{name}:{kind}" if kind else name for name, kind in pairs))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return shlex.quote(",".join(map(_plain, parts)))
    return shlex.quote(_plain(tree))


def _plain(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=value):
            return "" if value is ... else str(value)
        case ast.Name(id=name):
            return name
    return "" if node is None else ast.unparse(node)
