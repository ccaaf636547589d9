"""Changes that wait to be taken in: as records, or as weights by identity where no column is needed any more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from wpinq.core import kernels
from wpinq.core.kernels.sums import Sums
from wpinq.core.records.batch import WEIGHT, Batch, bytes_of_row
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Schema
from wpinq.core.state.memory import LIMIT
from wpinq.core.state.table import Ids, Weights, combine
from wpinq.core.state.workers import FEW, Workers, cores

MAX_WAITING_ROWS = 1 << 21
"""Rows that wait before equal records are added up."""
ROWS_PER_PASS = 1 << 15
"""Rows whose identities are made and added up at a time: they stay in the cache."""


SHRINKS = 2 / 3
"""Adding up pays where it leaves no more rows than this share."""


class Shrinking:
    """Adds equal records of one lot after another up, as long as that shrinks them."""

    def __init__(self) -> None:
        self._pays = True

    def __call__(self, lot: Batch) -> Batch:
        """The records of a lot."""
        if not self._pays:
            return lot
        few = lot.consolidate()
        self._pays = len(few) <= SHRINKS * len(lot)
        return few


class Waiting:
    """Records that wait. Equal ones are added up whenever their number doubles, so a row is processed a few times."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema.expanded()
        self._hold([])

    def absorb(self, batch: Batch) -> None:
        """Let the records of a batch wait."""
        batch = batch.select(self._schema.names)
        self._batches.append(batch.expand(batch.schema.ranged))
        self._rows += len(self._batches[-1])
        if self._rows > self._most and len(self._batches) > 1:
            self._hold([self.take()])

    def take(self) -> Batch:
        """All records, each once; none waits afterwards."""
        if not self._batches:
            return Batch.empty(self._schema)
        return self.rows().consolidate()

    def rows(self) -> Batch:
        """All records, equal ones perhaps in several rows; none waits afterwards."""
        whole = Batch.concat(self._batches, self._schema)
        self._hold([])
        return whole

    @property
    def size(self) -> int:
        """Bytes that wait, about: as if texts of all rows were as long as those that came last."""
        last = next((batch.frame for batch in reversed(self._batches) if len(batch)), None)
        return 0 if last is None else self._rows * bytes_of_row(last)

    def __bool__(self) -> bool:
        return bool(self._batches)

    def _hold(self, batches: list[Batch]) -> None:
        self._batches, self._rows = batches, sum(map(len, batches))
        self._most = max(MAX_WAITING_ROWS, 2 * self._rows)


class Tally:
    """Weights that wait, by identity.

    With compiled kernels every row is hashed and added up as it comes, in several threads where there are many: each
    has sums of its own, which are joined in the end. Without them, or where weights are wide, equal records are first
    added up by Polars, because NumPy hashes slowly; identities and sums are the same.

    Args:
        schema: The columns of a record.
        key: The key of identities.
        threads: How many may add up.
    """

    def __init__(self, schema: Schema, key: bytes, threads: int | None = None) -> None:
        self._schema, self._key = schema.expanded(), key
        self._sums = Sums(kernels.LIB, LIMIT) if kernels.LIB is not None else None
        self._threads = cores() if threads is None else threads
        self._workers: Workers | None = None
        self._shares: list[Sums] = []
        self._rows = self._turn = 0
        self._waiting = Waiting(schema)
        self._added: list[tuple[Ids, Weights]] = []

    def add(self, ids: Ids, weights: Weights) -> None:
        """Add weights of distinct identities, in order."""
        if self._sums is not None and weights.dtype == np.int64:
            self._join()
            self._sums.add_sorted(ids, weights)
        else:
            self._added.append((ids, weights))

    def absorb(self, batch: Batch) -> None:
        """Add the weights of a batch."""
        if self._sums is None or batch.frame[WEIGHT].dtype != pl.Int64:
            self._waiting.absorb(batch)
            return
        self._rows += len(batch)
        if self._workers is None and self._rows > FEW and self._threads > 1:
            self._workers = Workers(self._threads)
            self._shares = [self._sums, *(self._sums.another() for _ in range(self._threads - 1))]
        if self._workers is None:
            self._count(self._sums, batch)
        else:
            self._turn = (self._turn + 1) % self._threads
            self._workers.hand(self._turn, self._count, self._shares[self._turn], batch)

    @property
    def size(self) -> int:
        """How many identities wait, those not counted that wait as records."""
        self._join()
        return sum(len(ids) for ids, _ in self._added) + (self._sums.size if self._sums is not None else 0)

    def take(self) -> tuple[Ids, Weights]:
        """Distinct identities in order with their weights, as `combine` gives them; nothing waits afterwards."""
        self._join()
        parts = self._others()
        if self._sums is not None:
            if not parts:
                return self._sums.take()
            parts.append(self._sums.take())
        ids, weights = zip(*parts or [(np.empty((0, 2), np.uint64), np.empty(0, np.int64))], strict=True)
        return combine(np.concatenate(ids), np.concatenate(weights))[1:]

    def blocks(self) -> Iterator[tuple[Ids, Weights]]:
        """The same piece by piece, so that little memory is needed beside what waits."""
        self._join()
        if self._sums is None or self._added or self._waiting:
            yield self.take()
        else:
            yield from self._sums.blocks()

    def _others(self) -> list[tuple[Ids, Weights]]:
        """What waits as records, or was added apart."""
        added, self._added = self._added, []
        if self._waiting:
            batch = self._waiting.take()
            added.append((self._ids(batch), batch.weights))
        return added

    def _count(self, sums: Sums, batch: Batch) -> None:
        batch = batch.expand(batch.schema.ranged)
        for frame in batch.frame.iter_slices(ROWS_PER_PASS):
            piece = Batch(frame, batch.schema)
            sums.add(self._ids(piece), piece.weights)

    def _join(self) -> None:
        """Wait for the threads, and have one sum of theirs."""
        if self._workers is not None and self._sums is not None:
            self._workers.finish()
            for share in self._shares[1:]:
                self._sums.join(share)
            self._workers, self._shares, self._rows = None, [], 0

    def _ids(self, batch: Batch) -> Ids:
        return identities(batch.frame, self._schema, self._key)
