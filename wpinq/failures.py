"""Failures inside a dataflow, redacted: messages never hold data.

An exception of Polars or NumPy may quote a value, and bytewax would print it with a backtrace. So no exception of a
step reaches bytewax: the first one is kept as an `EngineError` that names the step and the type of the exception, all
later items are skipped, and the error is raised when the flow has ended.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from wpinq.errors import EngineError, WpinqError

STAYS = "What was charged stays charged, so the same question is free."
P = ParamSpec("P")
T = TypeVar("T")


class Failure:
    """The first failure of a run, if there was one."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def guard(self, step: str, function: Callable[P, T], instead: T) -> Callable[P, T]:
        """Wrap a step: it is skipped once anything has failed, and what it raises is kept.

        Args:
            step: The step's name, for the message.
            function: What it does.
            instead: What it returns when it is skipped or fails.
        """

        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if self.error is None:
                try:
                    return function(*args, **kwargs)
                except BaseException as error:  # noqa: BLE001  Polars panics are no Exceptions; any text may quote data
                    self.error = self.error or redact(step, error)
            return instead

        return call

    def raise_if_failed(self) -> None:
        """Raise what failed, if anything did, without the exceptions that it came from: they may quote data."""
        if self.error is not None:
            raise _bare(self.error) from None


def redact(step: str, error: BaseException) -> BaseException:
    """The redacted form of an exception: wpinq's own in full, an interrupt or exit without text, others by type."""
    if isinstance(error, WpinqError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    if isinstance(error, SystemExit):
        return SystemExit(error.code if type(error.code) is int else 1)
    failed = f"{step} failed with {type(error).__name__}"
    if isinstance(error, (MemoryError, OSError)):
        number = errno.ENOMEM if isinstance(error, MemoryError) else error.errno or errno.EIO
        return EngineError(f"{failed}: {os.strerror(number).lower()}. {STAYS}")
    if isinstance(error, ImportError):  # of a library that came with wpinq: too little memory, or a broken installation
        return EngineError(f"{failed}: is there memory left, and is all of it installed? {STAYS}")
    return EngineError(f"{failed}; please report this.")


def redacted(step: str, function: Callable[[], T]) -> T:
    """Call a function; raise its exceptions in redacted form.

    Raises:
        EngineError: Instead of any exception that is not wpinq's own.
    """
    try:
        return function()
    except BaseException as error:  # noqa: BLE001  see `Failure.guard`
        failed = redact(step, error)
    raise _bare(failed) from None


def _bare(error: BaseException) -> BaseException:
    """An exception without those that it came from: they may quote data."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)
