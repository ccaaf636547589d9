"""Ctrl-C while the command line waits."""

import signal


def interruptible() -> None:
    """Let an interrupt end the next wait.

    Polars puts a handler of its own in front of Python's when it first computes, one after which the system restarts
    what waited, so Python would learn of the interrupt only at the next line of input.
    """
    signal.siginterrupt(signal.SIGINT, True)
