"""Signals while the command line waits: Ctrl-C, and what a service manager ends a process by."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOPPED = "interrupted; what was charged stays charged, so the same command is free"


def interruptible() -> None:
    """Let an interrupt end the next wait.

    Polars puts a handler of its own in front of Python's when it first computes, one after which the system restarts
    what waited, so Python would learn of the interrupt only at the next line of input.
    """
    signal.siginterrupt(signal.SIGINT, True)


@contextmanager
def at_once() -> Iterator[None]:
    """Let a signal end the process, also where a thread waits for a line of input, which nothing ends."""

    def end(number: int, _: object) -> None:
        os.write(2, f"wpinq: {STOPPED}\n".encode())
        os._exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending(stop: threading.Event) -> Iterator[None]:
    """Let SIGTERM set an event, so that a stream ends between two epochs; in the main thread, which alone gets it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
