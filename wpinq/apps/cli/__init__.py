"""The command line. Each command checks all that it is told before the first thing is charged."""

from __future__ import annotations

import atexit
import gc
import signal
import sys
from collections.abc import Sequence

from wpinq.apps.cli.process import STOPPED, hold_standard

YOUNG = 200_000
"""Objects that a command makes before they are looked through: its modules make nearly all, and none is garbage."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Its words; those of the process when there are none.

    Returns:
        The exit code: 0, or 2 after one line on standard error that says what is wrong.
    """
    if arguments is not None:
        return _run(arguments)
    hold_standard()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)  # the process is this command and no more: at its end nothing is looked through
    try:
        return _run(None)
    except KeyboardInterrupt:  # while modules were loaded, before anything was read
        sys.stderr.write(f"wpinq: {STOPPED}\n")
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # of the interpreter's end nobody wants a traceback


def _run(arguments: Sequence[str] | None) -> int:
    from wpinq.apps.cli.app import app
    from wpinq.apps.cli.errors import guarded

    return guarded(app, arguments)
