"""The reference, written from commands and public names whenever the site is built, so that it is never stale."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import msgspec
import typer

import wpinq
from wpinq.apps.cli.app import app
from wpinq.apps.publish.evidence.report import plain

PAGE = "reference-commands.md"
MARK = re.compile(r"<!-- public names of ([\w.]+) -->")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Append the commands to their page, and write out marks for public names, as MkDocs asks hooks to."""
    text = MARK.sub(lambda mark: "\n\n".join(named(import_module(mark[1]))), markdown)
    return "\n".join([text, *written()]) if page.file.src_uri == PAGE else text


def named(module: ModuleType) -> Iterator[str]:
    """A line of mkdocstrings for each public function and class of a module, but errors and what `wpinq` names too."""
    for name in module.__all__:
        public = getattr(module, name)
        error = isinstance(public, type) and issubclass(public, Exception)
        twice = module is not wpinq and getattr(wpinq, name, None) is public
        if not isinstance(public, ModuleType) and not error and not twice:
            keys = isinstance(public, type) and issubclass(public, msgspec.Struct)  # a table of a file: all its keys
            shown = "\n    options: {show_if_no_docstring: true}" if keys else ""
            yield f"::: {public.__module__}.{public.__qualname__}{shown}"


def written() -> Iterator[str]:
    """All commands, with what they do, their arguments and their options."""
    yield from _group(typer.main.get_command(app), "wpinq", 2)


def _group(group: Any, name: str, level: int) -> Iterator[str]:
    for one in group.list_commands(None):
        command, full = group.get_command(None, one), f"{name} {one}"
        yield from (f"{'#' * level} {full}", "")
        yield from (f"{plain(text)}\n" for text in (command.help or "").split("\n\n"))
        if hasattr(command, "list_commands"):
            yield from _group(command, full, level + 1)
        else:
            yield from (_parameter(each) for each in command.params if not getattr(each, "hidden", False))
            yield ""


def _parameter(one: Any) -> str:
    """An argument or an option on a line, with its default where it has one that help would show."""
    flags = [*one.opts, *one.secondary_opts] if one.param_type_name == "option" else []
    kind = "|".join(getattr(one.type, "choices", ())) or one.type.name.upper()
    value = "" if getattr(one, "is_flag", False) else one.metavar or (kind if flags else one.name.upper())
    said = f"{', '.join(flags)} {value}".strip()
    text = plain(getattr(one, "help", None) or "")
    default = f" By default `{one.default}`." if getattr(one, "show_default", False) and one.default and value else ""
    return f"- `{said}`{' (needed)' if one.required and flags else ''}: {text}{default}"
