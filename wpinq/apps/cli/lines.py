"""Lines for a terminal: text without anything that moves its cursor, and one line on standard error."""

from __future__ import annotations

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
    """Print one line on standard error."""
    typer.echo(f"wpinq: {one_line(text)}", err=True)
