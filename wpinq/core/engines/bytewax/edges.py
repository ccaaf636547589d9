"""The two ends of a dataflow in bytewax's terms: what every worker takes in, and what the caller is handed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

T = TypeVar("T")


class Feed(DynamicSource[T]):
    """Items for every worker.

    Args:
        share: Gives, for a worker's number and that of all workers, its items in lists.
    """

    def __init__(self, share: Callable[[int, int], Iterator[list[T]]]) -> None:
        self._share = share

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSourcePartition[T]:
        """One worker's share."""
        return _Share(self._share(worker_index, worker_count))


class _Share(StatelessSourcePartition[T]):
    def __init__(self, items: Iterator[list[T]]) -> None:
        self._items = items

    def next_batch(self) -> list[T]:
        return next(self._items)


class HandOver(DynamicSink[T]):
    """Hands every item to the caller.

    Args:
        take: Called with each item; all workers of a process call the same function.
    """

    def __init__(self, take: Callable[[T], None]) -> None:
        self._take = take

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSinkPartition[T]:
        """All workers of a process hand over to one place."""
        return _Handed(self._take)


class _Handed(StatelessSinkPartition[T]):
    def __init__(self, take: Callable[[T], None]) -> None:
        self._take = take

    def write_batch(self, items: list[T]) -> None:
        for item in items:
            self._take(item)
