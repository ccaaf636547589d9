"""What some threads print, log or warn of is dropped; what others do comes out as ever.

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
from typing import Any, TypeAlias

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
