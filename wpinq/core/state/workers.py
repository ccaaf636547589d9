"""Threads that work beside the one that brings the work: kernels and Polars let other threads run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from wpinq.core.kernels.cores import THREADS, cores

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

__all__ = ["THREADS", "Workers", "cores", "in_order"]

FEW = 1 << 17
"""Rows up to which one thread does all: starting others would take longer."""
WAITING = 4
"""Pieces of work that wait for a thread; whoever has more for it waits, so that they do not pile up."""


def in_order(function: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
    """What a function gives for items, in their order; as many at once as there are cores, and as many held."""
    with ThreadPoolExecutor(cores(), "wpinq works") as pool:
        running = deque[Future[U]]()
        try:
            for item in items:
                running.append(pool.submit(function, item))
                if len(running) > cores():
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


class Workers:
    """Some threads, each of which does what it is handed in that order.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._threads = [ThreadPoolExecutor(1, "wpinq works") for _ in range(count)]
        self._running: list[deque[Future[object]]] = [deque() for _ in range(count)]

    def hand(self, number: int, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Let a thread call a function; what an earlier call raised is raised here."""
        running = self._running[number]
        if len(running) == WAITING:
            running.popleft().result()
        running.append(self._threads[number].submit(function, *args, **kwargs))

    def finish(self) -> None:
        """Wait for all calls, raise what one raised, and end the threads."""
        for thread in self._threads:
            thread.shutdown(wait=True)
        for running in self._running:
            while running:
                running.popleft().result()
