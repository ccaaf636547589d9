"""Group sizes: how many records each key has, from the numbers of records and keys and not from records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl

from wpinq.core.kernels import Weights
from wpinq.core.kernels.reservoirs import Codes, Numbers
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.state.bykey import KEY, RECORD, ByKey, Port
from wpinq.core.state.summed import Fresh, Summed

OWNER, TIMES = "\0owner", "\0times"


class GroupSizes:
    """Of the first change the weights of numbered records, and whose they are; of all changes records by key.

    Args:
        summed: Takes in the records.
        keys: Takes in the keys.
        port: The input.
        compute: From rows of some whole keys (what tells keys apart, `WEIGHT`, and of how many records, `TIMES`) and
            the names of the columns that tell them apart, to these columns, sizes and `WEIGHT`.
        by_key: Makes the state for all changes.
    """

    def __init__(
        self,
        summed: Summed,
        keys: Numbers,
        port: Port,
        compute: Callable[[Sequence[pl.DataFrame], Sequence[str]], pl.DataFrame],
        by_key: Callable[[], ByKey],
    ) -> None:
        self._summed, self._keys, self._port, self._compute, self._by_key = summed, keys, port, compute, by_key
        self._places = [port.schema.names.index(name) for name in port.keys]
        self._owners: list[Codes] = [np.empty(0, np.int32)]
        self._kept = [Batch.empty(port.schema).frame.select(port.keep)]
        self._emitted = False
        self._later: ByKey | None = None

    def absorb(self, port: int, batch: Batch) -> None:
        """Add weights up, or keep a later change until it is asked for."""
        if self._emitted:
            self._later = self._later or self._records()
            self._later.absorb(port, batch)
            return
        for frame, columns, fresh in self._summed.absorb(port, batch):
            known = len(self._keys)
            ids = self._summed.identity_of([columns[index] for index in self._places])
            self._owners.append(self._keys.codes(ids[fresh]))
            if self._port.keep:
                rows = frame.select(self._port.keep).filter(pl.Series(fresh))
                self._kept.append(rows.filter(pl.Series(_first_occurrences(self._owners[-1], known))))

    def emit(self) -> Batch:
        """How the sizes moved with the pending changes."""
        if self._later is not None:
            return self._later.emit()
        if self._emitted:
            return self._by_key().emit()
        self._emitted = len(self._summed) > 0
        self._owners, self._kept = [np.concatenate(self._owners)], [pl.concat(self._kept, rechunk=True)]
        sizes = self._compute([_alike(self._owners[0], self._summed.weights())], [OWNER])
        named = sizes.with_columns(self._kept[0][sizes[OWNER]].get_columns()) if self._port.keep else sizes
        schema = self._by_key().schema
        return Batch(named.select(*schema.names, WEIGHT), schema).consolidate()

    @property
    def size(self) -> int:
        """Bytes that are held of a finite source, about."""
        return self._summed.size + self._keys.size + 4 * len(self._summed) + 16 * len(self._port.keep) * len(self._keys)

    def last(self) -> Iterator[Batch]:
        """The same as `emit`; nothing is asked afterwards."""
        yield self.emit()

    def _records(self) -> ByKey:
        """The first change as records by key."""
        (owners,), (keys,), weights = self._owners, self._kept, self._summed.weights()
        words = zip((*KEY, *RECORD), (*self._keys.ids()[owners].T, *self._summed.ids().T), strict=True)
        columns = [pl.Series(name, np.ascontiguousarray(word)) for name, word in words]
        kept = keys[owners].get_columns() if self._port.keep else []
        rows = pl.DataFrame({column.name: column for column in (*kept, pl.Series(WEIGHT, weights), *columns)})
        later = self._by_key()
        later.begin([rows.filter(pl.col(WEIGHT) != 0)])
        return later


def _alike(owners: Codes, weights: Weights) -> pl.DataFrame:
    """How many records of each weight everyone has. Those of the least weight, which are many, are not sorted."""
    least = weights.min(initial=1)
    heavy = np.flatnonzero(weights != least)
    counts = np.bincount(owners) - np.bincount(owners[heavy], minlength=owners.max(initial=-1) + 1)
    some = np.flatnonzero(counts)
    values = np.unique(weights[heavy])
    pairs = np.sort(owners[heavy].astype(np.int64) * len(values) + np.searchsorted(values, weights[heavy]))
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    rest = pairs[starts]
    columns = {
        OWNER: [some, rest // max(len(values), 1)],
        WEIGHT: [np.full(len(some), least), values[rest % max(len(values), 1)]],
        TIMES: [counts[some], np.diff(starts, append=len(pairs))],
    }
    frame = pl.DataFrame({name: np.concatenate(parts) for name, parts in columns.items()})
    return frame.with_columns(pl.col(OWNER).cast(pl.Int32))


def _first_occurrences(codes: Codes, known: int) -> Fresh:
    """Which rows have a number that no row before had; so many numbers were known before."""
    before = np.maximum.accumulate(np.concatenate([np.array([known - 1], np.int32), codes]))
    return codes > before[:-1]
