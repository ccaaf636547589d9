"""Run a user's Python function on records, one by one, isolated, so that only its results leave it.

Each run has a thread of its own, so the depth of the stack, the decimal context and the like do not depend on the
caller (privacy rule 22). What the function prints, logs or warns of is dropped, because it could quote records. An
exception on a record drops that record. In a thread that runs only the function, an interrupt or an exit can come from
the function only, so these drop the record too; a real Ctrl-C reaches the caller, who stops the run. A MemoryError also
drops the record: a run that ended there would reveal, exactly, that a record exists on which the function raises it.

The guarantee assumes that functions are pure and end, that there is enough memory for one call, and that
`sys.setrecursionlimit` does not change between runs.

What some threads print, log or warn of is dropped; what others do comes out as ever.

Streams, the filters of warnings and the maker of log records belong to the process, and other threads replace them too.
Each is replaced by one that asks which thread it is, and put back only where it still stands: to put back what was
there before would bring to life a stream that somebody has closed meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from wpinq.errors import EngineError, PlanError

OUT, ERR, WARNINGS, LOGS = "stdout", "stderr", "warnings", "logs"
Put: TypeAlias = Callable[[Any, Any], Any]
"""Puts the second where the first stands, and nothing where something else does; gives what stands there then.

No call lies between the look and the change, so no other thread comes between.
"""
_here = threading.local()
_used: deque[Any] = deque(maxlen=64)
"""The last streams, for `print` before Python 3.14 holds no reference to the stream it writes to."""


@contextlib.contextmanager
def dropping(*kinds: str) -> Iterator[None]:
    """Drop what this thread says in here, of these kinds."""
    before = getattr(_here, "dropped", frozenset[str]())
    with contextlib.ExitStack() as stack:
        for put, made in _PLACES:
            stack.enter_context(_instead(put, made))
        _here.dropped = before.union(kinds)
        try:
            yield
        finally:
            _here.dropped = before


@contextlib.contextmanager
def _instead(put: Put, made: Callable[[Any], Any]) -> Iterator[None]:
    before = put(None, None)
    while (current := put(before, mine := made(before))) is not mine:
        before = current
    try:
        yield
    finally:
        put(mine, before)


def _dropped(kind: str) -> bool:
    return kind in getattr(_here, "dropped", ())


class _Muffled:
    """A stream that passes on what is not dropped."""

    def __init__(self, kind: str, stream: Any) -> None:
        self._kind, self._stream = kind, stream

    def write(self, text: str) -> Any:
        return len(text) if _dropped(self._kind) else self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "close", "detach") and _dropped(self._kind):
            raise AttributeError(name)
        return getattr(self._stream, name)


class _Ours:
    """A pattern that the texts of warnings match in threads that drop them."""

    def match(self, _: str) -> bool:
        return _dropped(WARNINGS)


class _Maker:
    """Makes log records, below every level where they are dropped."""

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self.make = make

    def __call__(self, *arguments: Any, **keywords: Any) -> logging.LogRecord:
        record = self.make(*arguments, **keywords)
        if _dropped(LOGS):
            record.levelno = -1
        return record


_IGNORED = ("ignore", _Ours(), Warning, None, 0)


def _muffled(kind: str, stream: Any) -> Any:
    if stream is None:
        return None
    _used.append(_Muffled(kind, stream._stream if isinstance(stream, _Muffled) else stream))
    return _used[-1]


def _put_out(old: Any, new: Any) -> Any:
    if sys.stdout is old:
        sys.stdout = new
    return sys.stdout


def _put_err(old: Any, new: Any) -> Any:
    if sys.stderr is old:
        sys.stderr = new
    return sys.stderr


def _put_filters(old: Any, new: Any) -> Any:
    if warnings.filters is old:
        warnings.filters = new
    return warnings.filters


def _put_maker(old: Any, new: Any) -> Any:
    if logging._logRecordFactory is old:  # type: ignore[attr-defined]
        logging._logRecordFactory = new  # type: ignore[attr-defined]
    return logging._logRecordFactory  # type: ignore[attr-defined]


_PLACES: tuple[tuple[Put, Callable[[Any], Any]], ...] = (
    (_put_out, lambda found: _muffled(OUT, found)),
    (_put_err, lambda found: _muffled(ERR, found)),
    (_put_filters, lambda found: [_IGNORED, *(one for one in found if one is not _IGNORED)]),
    (_put_maker, lambda found: _Maker(found.make if isinstance(found, _Maker) else found)),
)


STACK = 64 << 20  # bytes of address space; only what is used becomes memory

_ONE_AT_A_TIME = threading.Lock()
"""Held during a run: the GIL allows one thread anyway."""
_inside = threading.local()


def running() -> bool:
    """Whether the caller is a user's function, which may neither measure nor observe."""
    return getattr(_inside, "function", False)


def refuse_inside(call: str) -> None:
    """Refuse a call by a user's function while it runs, because the query would depend on the function's record.

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
    with one_thread() as thread:
        return thread.run(step, records)


@contextlib.contextmanager
def one_thread() -> Iterator[_Thread]:
    """Runs in here share a thread: starting one costs more than most functions, and some call one record by record."""
    shared: _Thread | None = getattr(_inside, "thread", None)
    if shared is not None:
        yield shared
        return
    with contextlib.ExitStack() as stack:
        _inside.thread = thread = _Thread(stack)
        try:
            yield thread
        except BaseException:
            thread.end(wait=False)  # the function may go on for ever
            raise
        else:
            thread.end(wait=True)
        finally:
            _inside.thread = None


class _Thread:
    """A thread that runs functions and nothing else; it begins with the first."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack, self._stop = stack, threading.Event()
        self._work_queue: SimpleQueue[tuple[Callable[[tuple[Any, ...]], Any], Iterable[tuple[Any, ...]]] | None]
        self._work_queue, self._done = SimpleQueue(), SimpleQueue[list[Any] | type[BaseException]]()
        self._thread: threading.Thread | None = None

    def run(self, step: Callable[[tuple[Any, ...]], Any], records: Iterable[tuple[Any, ...]]) -> list[Any]:
        if self._thread is None:
            self._stack.enter_context(_ONE_AT_A_TIME)
            self._thread = _start(self._work)
        self._work_queue.put((step, records))
        outcome: list[Any] | type[BaseException] = EngineError
        while self._thread.is_alive():
            with contextlib.suppress(Empty):
                outcome = self._done.get(timeout=0.2)  # Polars' signal handler restarts a wait without an end
                break
        if isinstance(outcome, type):
            raise EngineError(f"a function of the dataflow stopped ({outcome.__name__}); nothing was answered.")
        return outcome

    def end(self, *, wait: bool) -> None:
        self._stop.set()
        self._work_queue.put(None)
        if wait and self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        _inside.function = True
        with dropping(OUT, ERR, WARNINGS, LOGS):
            while (job := self._work_queue.get()) is not None:
                step, records = job
                result: list[Any] = []
                try:
                    for record in records:
                        result.append(_outcome(step, record))
                        if self._stop.is_set():
                            return
                except BaseException as error:  # noqa: BLE001  its text could quote a record: only its type leaves
                    self._done.put(type(error))
                else:
                    self._done.put(result)


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
