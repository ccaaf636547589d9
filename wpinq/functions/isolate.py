"""Run a user's Python function on records, one by one, so that nothing but its results comes out.

Each run has a thread of its own, so the depth of the stack, the decimal context and the like are the same whoever
calls (privacy rule 22). What the function prints or logs is discarded, warnings are silenced: they could quote records.
Whatever it raises on a record drops that record. In a thread that holds only the function an interrupt or an exit can
come only from the function, so these drop too; the real Ctrl-C reaches the caller, who stops the run. So does a
MemoryError: a run that ended there would tell, exactly, that a record exists on which the function raises one.

Functions must be pure and must end; that is part of the promise, as are enough memory for one call and not changing
`sys.setrecursionlimit` between runs.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from wpinq.errors import EngineError, PlanError

STACK = 64 << 20  # bytes of address space; only what is used becomes memory

_ONE_AT_A_TIME = threading.Lock()
"""Streams, warnings and logging belong to the process; the GIL would take turns anyway."""
_inside = threading.local()


def running() -> bool:
    """Whether the caller is a user's function, which may neither measure nor observe."""
    return getattr(_inside, "function", False)


def refuse_inside(call: str) -> None:
    """Refuse a call that a user's function makes while it runs: what it asked would depend on the records it saw.

    Raises:
        PlanError: A function called it; that drops the function's own record and nothing else.
    """
    if running():
        raise PlanError(f"{call}: called by a function of a dataflow; functions depend on their record alone.")


def each(step: Callable[[tuple[Any, ...]], Any], records: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Apply a step to each record; None stands where it raised.

    Raises:
        EngineError: The thread failed outside of any record.
        PlanError: A function called wpinq while it ran (the function's own record is dropped by that).
    """
    if running():
        raise PlanError("a function used wpinq while it ran; functions must depend on their record alone.")
    result: list[Any] = []
    failed: list[type[BaseException]] = []
    stop = threading.Event()

    def work() -> None:
        _inside.function = True
        try:
            for record in records:
                result.append(_outcome(step, record))
                if stop.is_set():
                    return
        except BaseException as error:  # noqa: BLE001  its text could quote a record: only its type leaves
            failed.append(type(error))

    with _ONE_AT_A_TIME, _quiet():
        thread = _start(work)
        try:
            while thread.is_alive():
                thread.join(0.2)  # Polars' signal handler restarts a wait without an end, and Ctrl-C would be late
        finally:
            stop.set()
    if failed:
        raise EngineError(f"a function of the dataflow stopped ({failed[0].__name__}); nothing was answered.")
    return result


def _outcome(step: Callable[[tuple[Any, ...]], Any], record: tuple[Any, ...]) -> Any:
    try:
        return step(record)
    except BaseException:  # noqa: BLE001
        return None


def _start(work: Callable[[], None]) -> threading.Thread:
    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=work, name="wpinq function", daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    return thread


class _Muffled:
    """A stream that drops what a user's function writes and passes on what other threads write."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if running() else self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if running() and name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    out, err, level = sys.stdout, sys.stderr, logging.root.manager.disable
    sys.stdout, sys.stderr = _Muffled(out), _Muffled(err)
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout, sys.stderr = out, err
        logging.disable(level)
