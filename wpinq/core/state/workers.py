"""Threads that work beside the one that brings the work: kernels and Polars let other threads run.

How many cores this process may use, and how many threads are worth it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import ParamSpec, TypeVar

MOST_THREADS = 16
THREADS = "WPINQ_THREADS"
"""A name in the environment: how many threads a process may have at once; worker processes are told their part."""
QUOTAS = (("/sys/fs/cgroup/cpu.max",), ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"))
"""Where a container says which part of the machine it has: a quota and a period, in versions 2 and 1 of its groups."""


def cores() -> int:
    """How many threads of this process are busy at once."""
    setting = os.environ.get(THREADS, "")
    most = int(setting) if setting.isdecimal() else MOST_THREADS
    return max(1, min(machine(), most))


@cache
def machine() -> int:
    """How many cores this process may use: those that it is bound to, and no more than its container's quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for paths in QUOTAS:
        try:
            quota, period = map(float, " ".join(Path(path).read_text() for path in paths).split())
        except (OSError, ValueError):  # there is none: "max", or no such file
            continue
        if quota > 0 and period > 0:
            bound = min(bound, max(1, round(quota / period)))
    return bound


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
