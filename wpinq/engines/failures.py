"""Failures inside a dataflow, told without the data.

An exception of Polars or NumPy may quote a value, and bytewax would print its own text and a backtrace beside it. So no
exception of a step ever reaches bytewax: the first one is kept as our own error, which says which step failed and the
type of the failure, the flow runs dry, and the error is raised when it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from wpinq.errors import EngineError, WpinqError

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
                except (WpinqError, KeyboardInterrupt, SystemExit) as error:
                    self.error = error
                except BaseException as error:  # noqa: BLE001  Polars panics are no Exceptions; any text may quote data
                    self.error = EngineError(f"{step} failed with {type(error).__name__}; please report this.")
            return instead

        return call

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Run a dataflow, and raise at its end what failed in it."""
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  a dying peer is a PanicException, which is no Exception
            self.error = self.error or EngineError(
                f"the dataflow stopped with {type(error).__name__}; please report this."
            )
        if self.error is not None:
            self.error.__context__ = self.error.__cause__ = None
            raise self.error.with_traceback(None) from None
