"""How a task cuts what it made by the key of who reads next.

Equal records are added up before they travel where that shrinks them: the first lot of each way tells, and it changes
no answer. Where a step needs identities alone (`Keyed.hashed`), a task sends 24 bytes for each distinct record, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wpinq.core.engines.shards import cut, split
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Schema
from wpinq.core.state.states import Hashed
from wpinq.core.state.write_buffer import Shrinking, Tally

ROWS, OF_SHARD, MOST_ROWS = 1 << 16, 1 << 14, 1 << 20
"""Rows that are cut, and perhaps added up, at once: so many for each shard, and at least and at most so many."""
MAX_HELD_IDENTITIES = 1 << 27
"""Identities that a task adds up before it sends them: pages of 3 gigabytes."""
IDENTITIES_AT_ONCE = 1 << 20
"""Identities that are sent as one piece, of 24 megabytes."""


class Records:
    """Sends batches to the shards of their keys.

    Args:
        keys: The columns of the key.
        key: The key of identities.
        shards: How many shards there are.
    """

    def __init__(self, keys: Sequence[str], key: bytes, shards: int) -> None:
        self._keys, self._key, self._shards = tuple(keys), key, shards
        self._waiting: list[Batch] = []
        self._rows, self._most = 0, max(ROWS, min(OF_SHARD * shards, MOST_ROWS))
        self._shrinking = Shrinking()

    def add(self, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """Let records wait, or send all that wait."""
        self._waiting.append(batch)
        self._rows += len(batch)
        if self._rows >= self._most:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[int, Batch]]:
        """Send what waits."""
        if not self._waiting:
            return
        whole = Batch.concat(self._waiting, self._waiting[0].schema)
        self._waiting, self._rows = [], 0
        whole = self._shrinking(whole)
        yield from (piece for piece in split(whole, self._keys, self._key, self._shards) if len(piece[1]))


class Identities:
    """Sends the sums of records by identity; see `Records`."""

    def __init__(self, schema: Schema, key: bytes, shards: int) -> None:
        self._tally, self._shards = Tally(schema, key, threads=1), shards

    def add(self, batch: Batch) -> Iterator[tuple[int, Hashed]]:
        """Add records up."""
        self._tally.absorb(batch)
        if self._tally.size >= MAX_HELD_IDENTITIES:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[int, Hashed]]:
        """Send the sums."""
        for shard, (ids, weights) in enumerate(cut(*self._tally.take(), self._shards)):
            for start in range(0, len(ids), IDENTITIES_AT_ONCE):
                some = slice(start, start + IDENTITIES_AT_ONCE)
                yield shard, Hashed(ids[some], weights[some])
