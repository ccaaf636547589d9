"""How records are sent to the shard of their key, within a process and between processes.

Within one process a batch is cut into shards as it comes. Between processes traffic is the bottleneck, so each process
first adds up equal records. Where a step needs only a record's identity (`Keyed.hashed`), each process sends 24 bytes
for each of its distinct records, once, at its end; otherwise it sends batches of added-up records. A measured histogram
needs no exchange: each process counts its own, and the first process adds them up.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

import bytewax.operators as op
import numpy as np
from bytewax.dataflow import Stream
from bytewax.operators import KeyedStream, StatefulBatchLogic

from wpinq.core.engines.bytewax.placement import labels
from wpinq.core.engines.shards import cut, split
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Schema
from wpinq.core.state.states import Hashed
from wpinq.core.state.table import Ids, Weights
from wpinq.core.state.write_buffer import MAX_WAITING_ROWS, Tally
from wpinq.failures import Failure

T = TypeVar("T")
MAX_HELD_IDENTITIES = 1 << 27
"""Identities that a process adds up before it sends them: pages of 3 gigabytes."""
IDENTITIES_PER_MESSAGE = 1 << 21
"""Identities that are sent as one message, of 48 megabytes."""


class Parcel(Generic[T]):
    """An item that is sent between processes. The engine pickles it twice, so the bytes are kept for then."""

    __slots__ = ("_bytes", "content")

    def __init__(self, content: T) -> None:
        self.content, self._bytes = content, b""

    def __reduce__(self) -> tuple[Callable[[bytes], Parcel[T]], tuple[bytes]]:
        self._bytes = self._bytes or pickle.dumps(self.content, pickle.HIGHEST_PROTOCOL)
        return _open, (self._bytes,)


def _open(content: bytes) -> Parcel[T]:
    return Parcel(pickle.loads(content))  # noqa: S301  the engine's own traffic is pickles already


KeyedRecords: TypeAlias = Batch | Hashed
Routed: TypeAlias = "KeyedStream[tuple[int, Parcel[KeyedRecords]]]"


def pieces(ids: Ids, weights: Weights) -> Iterator[tuple[Ids, Weights]]:
    """Identities and weights in messages of `IDENTITIES_PER_MESSAGE`."""
    for start in range(0, len(ids), IDENTITIES_PER_MESSAGE):
        yield (
            np.ascontiguousarray(ids[start : start + IDENTITIES_PER_MESSAGE]),
            weights[start : start + IDENTITIES_PER_MESSAGE],
        )


def keep_local(name: str, up: Stream[T], label: str) -> KeyedStream[T]:
    """Give every item the label of this worker, so that it stays in this process."""
    return op.map(name, up, lambda item: (label, item))


def added(
    name: str, up: Stream[Batch], label: str, make: Callable[[], CombineHashed | CombineRecords]
) -> Stream[KeyedRecords]:  # fmt: skip
    """The records that a process has read, with equal ones added up."""
    own = op.stateful_batch(name, keep_local(f"{name}_own", up, label), lambda _resume: make())
    return op.map(f"{name}_out", own, lambda item: item[1])


def send(
    name: str, up: Stream[KeyedRecords], keys: Sequence[str], port: int, *, key: bytes, shards: int, failure: Failure
) -> Routed:  # fmt: skip
    """Send every record to the shard of its key."""

    def parts(one: KeyedRecords) -> Iterator[tuple[str, KeyedRecords]]:
        if isinstance(one, Batch):
            yield from ((labels(shards)[shard], piece) for shard, piece in split(one, keys, key, shards))
            return
        for shard, (ids, weights) in enumerate(cut(one.ids, one.weights, shards)):
            yield from ((labels(shards)[shard], Hashed(*piece)) for piece in pieces(ids, weights))

    def step(items: list[KeyedRecords]) -> list[tuple[str, tuple[int, Parcel[KeyedRecords]]]]:
        return [(label, (port, Parcel(part))) for item in items for label, part in parts(item)]

    return op.flat_map_batch(name, up, failure.guard("exchange", step, []))


class CombineHashed(StatefulBatchLogic[Batch, KeyedRecords, None]):
    """Adds up all records of a process by identity; gives them on at its end, or at `MAX_HELD_IDENTITIES`."""

    def __init__(self, schema: Schema, key: bytes, failure: Failure) -> None:
        self._tally = Tally(schema, key, threads=1)
        self._absorb = failure.guard("exchange", self._tally.absorb, None)
        self._take: Callable[[], list[KeyedRecords]] = failure.guard(
            "exchange", lambda: [Hashed(*self._tally.take())], []
        )

    def on_batch(self, values: list[Batch]) -> tuple[list[KeyedRecords], bool]:
        """Take in what arrived."""
        for batch in values:
            self._absorb(batch)
        return (self._take() if self._tally.size >= MAX_HELD_IDENTITIES else []), False

    def on_eof(self) -> tuple[list[KeyedRecords], bool]:
        """Give what is left."""
        return self._take(), False

    def snapshot(self) -> None:
        """Nothing is kept."""
        return


class CombineRecords(StatefulBatchLogic[Batch, KeyedRecords, None]):
    """Adds up equal records of a process, within some `MAX_WAITING_ROWS` rows."""

    def __init__(self, failure: Failure) -> None:
        self._batches: list[Batch] = []
        self._rows = 0
        self._take: Callable[[], list[KeyedRecords]] = failure.guard("exchange", self._taken, [])

    def on_batch(self, values: list[Batch]) -> tuple[list[KeyedRecords], bool]:
        """Take in what arrived."""
        self._batches += values
        self._rows += sum(map(len, values))
        return (self._take() if self._rows >= MAX_WAITING_ROWS else []), False

    def on_eof(self) -> tuple[list[KeyedRecords], bool]:
        """Give what is left."""
        return self._take(), False

    def _taken(self) -> list[KeyedRecords]:
        batches, self._batches, self._rows = self._batches, [], 0
        return [Batch.concat(batches, batches[0].schema).consolidate()] if batches else []

    def snapshot(self) -> None:
        """Nothing is kept."""
        return


class PassThrough(StatefulBatchLogic[T, T, None]):
    """Passes on what arrives."""

    def on_batch(self, values: list[T]) -> tuple[list[T], bool]:
        """Take in what arrived."""
        return values, False

    def snapshot(self) -> None:
        """Nothing is kept."""
        return
