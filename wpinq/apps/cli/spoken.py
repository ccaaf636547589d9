"""Messages in the words of the command line: what they call `separator=';'` is `--separator ';'` here.

A message names the argument that was wrong, or what to give instead, as Python calls it: whoever raises it does not
know who asked. This is the one place that knows how the command that runs calls it. What the user wrote stays as it is.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

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


def options_of(command: Any, words: Sequence[str]) -> dict[str, list[str]]:
    """The options of the command that was given, by their parameters; none where there is no such command."""
    for word in words:
        if word in (command.list_commands(None) if hasattr(command, "list_commands") else ()):
            command = command.get_command(None, word)
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
