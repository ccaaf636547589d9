"""The command line. Each command checks all that it is told before the first thing is charged.

app        the commands by name: degrees, run, shell, explain, sql, check and ledger are modules of their own
options    arguments and options that several take
inputs, columns, bins, dataflow     what is read from the command line: records, columns, bins, scripts
outputs, show, errors, interrupt    what is written and said
stream     `run` over what never ends
others, cluster, meeting, line, task    `run` on several processes
recover    `run` that goes on where it was killed
commands, prompt    what can be said in the shell, and the terminal
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Sequence

from wpinq.progress import loading


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Its words; those of the process when there are none.

    Returns:
        The exit code: 0, or 2 after one line on standard error that says what is wrong.
    """
    if arguments is None:  # the process is this command and no more: at its end nothing is looked through for garbage
        atexit.register(gc.freeze)
    with loading("wpinq.cli.app"):
        from wpinq.cli.app import app
        from wpinq.cli.errors import guarded

    return guarded(app, arguments)
