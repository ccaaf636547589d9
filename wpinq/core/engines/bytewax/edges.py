"""The ends of a dataflow in bytewax's terms, and the exchange between its workers.

`Feed` is what every worker reads, `HandOver` what the caller receives. An exchange sends records to the shard of their
key within one process: each batch is cut as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

import bytewax.operators as op
from bytewax.dataflow import Stream
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import KeyedStream
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from wpinq.core.engines.shards import split
from wpinq.core.records.batch import Batch
from wpinq.failures import Failure

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


Routed: TypeAlias = "KeyedStream[tuple[int, Batch]]"


def send(
    name: str, up: Stream[Batch], keys: Sequence[str], port: int, *, key: bytes, shards: int, failure: Failure
) -> Routed:  # fmt: skip
    """Send every record to the shard of its key; the engine sees the number of the shard, and nothing of the key."""

    def step(items: list[Batch]) -> list[tuple[str, tuple[int, Batch]]]:
        return [(str(shard), (port, part)) for item in items for shard, part in split(item, keys, key, shards)]

    return op.flat_map_batch(name, up, failure.guard("exchange", step, []))
