"""Every error that wpinq raises, as one tree.

    WpinqError
      PlanError(ValueError)           wrong while a dataflow is being written
        UntraceableError              a function or expression that is not record by record
      SourceError(ValueError)         a file, table or object that cannot be read as records
        ChangedError                  data that are not those that were first charged under the name of their version
      BinError(TypeError)             a bin of the wrong type or shape
      ExactnessError(ValueError)      an amount that is not a positive, finite, exact number
      BudgetError                     more was asked than is left; nothing was drawn
      LedgerError(OSError)            the ledger cannot be trusted or written; nothing was drawn
      NotReadyError(RuntimeError)     observed before its version, window or epoch closed
      EngineError(RuntimeError)       an engine failed; names the step, never the data
      InternalError(AssertionError)   our own bug
      ExtraError(ImportError)         a library is not installed that only an extra brings

Rule for every message: name the call, what was found, and what to do. No message, attribute or chained cause may hold a
record, a weight, a row count or a true count: an error text is a release.

An exception of Polars or NumPy may quote a value, and bytewax would print it with a backtrace. So no exception of a
step reaches bytewax: the first one is kept as an `EngineError` that names the step and the type of the exception, all
later items are skipped, and the error is raised when the flow has ended (`Failure`, `redact`).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from fractions import Fraction
from typing import ParamSpec, TypeVar

WORD = 200
"""Characters of one word that a message shows: what a caller gave may be of any length."""
LONGEST = 4_000
"""Characters of a message."""


class WpinqError(Exception):
    """Root of the errors of wpinq. Its text is cut where it repeats something very long."""

    def __str__(self) -> str:
        text = re.sub(rf"(\S{{{WORD}}})\S+", r"\1...", super().__str__())
        return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


class PlanError(WpinqError, ValueError):
    """A dataflow was written wrongly. Nothing was read and nothing was charged."""


class UntraceableError(PlanError):
    """An expression is not element-wise, so it is not a function of one record."""


class SourceError(WpinqError, ValueError):
    """A source cannot be read as a collection of records. Nothing was charged."""


class ChangedError(SourceError):
    """The data are not those that were first charged under the name of their version, or not those that were opened.

    It is for their curator: that data changed is told by nothing that was charged.
    """


class BusyError(WpinqError):
    """Another process does the same work, which one does at a time; nothing was done."""


class BinError(WpinqError, TypeError):
    """A bin of a type or shape that the measurement cannot have. Types are public."""


class ExactnessError(WpinqError, ValueError):
    """An amount is not a finite number that can be read exactly."""


class BudgetError(WpinqError):
    """A charge was refused, and nothing was drawn.

    Attributes:
        requested: What was asked: epsilon, rho of Gaussian noise, or where both came together a divergence.
        remaining: What is left of that.
        spent: What was spent on what: pairs of a description and an amount.
    """

    def __init__(
        self,
        message: str,
        *,
        requested: Fraction = Fraction(0),
        remaining: Fraction = Fraction(0),
        spent: tuple[tuple[str, Fraction], ...] = (),
    ) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining
        self.spent = spent


class LedgerError(WpinqError, OSError):
    """The ledger is damaged, rolled back, locked, or another data set's. Nothing was drawn."""


class NotReadyError(WpinqError, RuntimeError):
    """A measurement was observed before the version it speaks about was closed."""


class EngineError(WpinqError, RuntimeError):
    """An engine failed. The message names the step and the error's type, never the data."""


class InternalError(WpinqError, AssertionError):
    """A promise that wpinq makes to itself was broken: please report it."""


class ExtraError(WpinqError, ImportError):
    """A library is not installed that only an extra brings. Nothing was charged."""


EXTRAS = {
    "audit": ("jax_privacy",),
    "graphs": ("networkx",),
    "kafka": ("confluent_kafka",),
    "mbi": ("mbi",),
    "mcp": ("mcp",),
    "metrics": ("prometheus_client",),
    "openlineage": ("openlineage",),
    "plot": ("matplotlib",),
    "postgres": ("adbc_driver_postgresql",),
    "serve": ("sqlglot", "matplotlib", "starlette", "uvicorn", "httptools", "jinja2"),
    "shell": ("prompt_toolkit",),
    "spark": ("pyspark",),
    "sql": ("sqlglot",),
    "testing": ("hypothesis",),
}
"""The extras of an installation, and what of each is looked for."""


def lacking(extra: str) -> str:
    """How to install what an extra brings, where it is not there; an empty text where it is."""
    from importlib.util import find_spec

    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    return f"there is no {' and no '.join(missing)}; pip install 'wpinq[{extra}]' brings it" if missing else ""


def needs(extra: str, call: str) -> None:
    """Insist that what an extra brings is there.

    Args:
        extra: Its name, as `pip install` takes it.
        call: What cannot be done without it, for the message.

    Raises:
        ExtraError: It is not.
    """
    if missing := lacking(extra):
        raise ExtraError(f"{call}: {missing}.")


def installed() -> str:
    """The version of wpinq that is installed; "not installed" where it runs from its folder alone."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wpinq")
    except PackageNotFoundError:
        return "not installed"


STAYS = "What was charged stays charged, so the same question is free."
NO_THREAD = "can't start new thread"
"""What Python says where the system starts no more threads."""
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
    if isinstance(error, RuntimeError) and str(error) == NO_THREAD:
        return EngineError(f"{failed}: too few threads can be started; raise ulimit -u. {STAYS}")
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
