"""Lines for a terminal: text without anything that moves its cursor, and one line on standard error."""

from __future__ import annotations

from contextlib import suppress

import typer


def printable(text: str) -> str:
    """Text without control characters."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def one_line(text: str) -> str:
    r"""Text on one line, without anything that moves a terminal's cursor.

    >>> one_line("spent:\n  0.1  pages\x1b[2J")
    'spent: 0.1 pages�[2J'
    """
    return printable(" ".join(text.split()))


def say(text: str) -> None:
    """Print one line on standard error, with the name of the program."""
    note(f"wpinq: {one_line(text)}")


def note(text: str) -> None:
    """Print text on standard error; where it cannot be written, it is dropped, and all else goes on."""
    with suppress(OSError):
        typer.echo(text, err=True)
