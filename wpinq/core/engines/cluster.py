"""The same dataflow on several processes, on one machine or more: each reads a share, and the first adds up the counts.

Traffic between the processes is bytewax's own: pickles over TCP, neither encrypted nor authenticated. Everyone who can
reach an address can run code, so use addresses of a private network only. The web interface of bytewax, which would
show counts of items, is not started.

All processes build the same graph from the same plans, with the same identity key. Only the first has a ledger and keys
of noise (privacy rule 37). If a process fails, the whole cluster ends: the first process reports it, and nothing is
answered.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, ParamSpec, TypeVar

from bytewax._bytewax import cluster_main

from wpinq.core.engines.bytewax.flow import build
from wpinq.core.engines.job import Job
from wpinq.core.state.histogram import Histogram
from wpinq.errors import EngineError
from wpinq.failures import Failure, redact

P = ParamSpec("P")
T = TypeVar("T")

_spoken = [2]
"""The file descriptor for this process's messages, also while the engine's own output is hidden."""


class LostError(EngineError):
    """Another process failed or went away."""


def run(job: Job, process: int, addresses: Sequence[str]) -> list[Histogram]:
    """Run one process of a cluster until all of them have read their shares.

    Args:
        job: What is computed; its shards are as many as there are processes.
        process: Which process this is; the first, 0, gets the histograms.
        addresses: `host:port` of each process.

    Returns:
        The histograms of all roots in the first process, empty ones in the others.

    Raises:
        LostError: Another process failed.
        SourceError, EngineError: A step of this process failed.
    """
    result = job.empty()
    os.environ.pop("BYTEWAX_DATAFLOW_API_ENABLED", None)
    try:
        with _hidden():
            cluster_main(build(job, result), list(addresses), process)  # type: ignore[no-untyped-call]
    except BaseException as error:  # noqa: BLE001  a panic of the engine is no Exception
        job.failure.raise_if_failed()
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise redact("the cluster", error) from None
        raise LostError("another process of the cluster failed or went away; nothing was answered.") from None
    job.failure.raise_if_failed()
    return result


class FatalFailure(Failure):
    """Failures of a process that is not the first: it ends at once, so that the first never takes a part for the whole.

    Args:
        tell: Tells the first process why.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        super().__init__()
        self._tell = tell

    def guard(self, step: str, function: Callable[P, T], instead: T) -> Callable[P, T]:
        """Wrap a step; see `Failure.guard`."""

        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001  its text may quote data
                known = redact(step, error)
                self._tell(str(known) or f"{step} was stopped.")
                end(known)

        return call


def end(error: BaseException) -> NoReturn:
    """Print the redacted error, and end this process at once."""
    say(str(error))
    os._exit(2)


def say(text: str) -> None:
    """Write a line to the terminal."""
    os.write(_spoken[0], f"wpinq: {text}\n".encode())


@contextmanager
def _hidden() -> Iterator[None]:
    """Hide the engine's own output: a backtrace where a process ends, and messages about retries."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept, nothing = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    _spoken[0] = kept[1]
    try:
        for number in (1, 2):
            os.dup2(nothing, number)
        yield
    finally:
        for number, item in zip((1, 2), kept, strict=True):
            os.dup2(item, number)
            os.close(item)
        os.close(nothing)
        _spoken[0] = 2
