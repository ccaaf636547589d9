"""The command line. Each command checks all that it is told before the first thing is charged."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Its words; those of the process when there are none.

    Returns:
        The exit code: 0, or 2 after one line on standard error that says what is wrong.
    """
    from wpinq.cli.app import app
    from wpinq.cli.errors import guarded

    return guarded(app, arguments)
