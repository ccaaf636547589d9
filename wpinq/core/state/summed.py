"""The records of a first change, each once: numbered by identity as they are first seen, and their weights added up.

With compiled kernels this is how a step takes in a finite source, or the first change of a live one: no record is
sorted or compared, and of its columns only those are held that the output needs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core.kernels import Words
from wpinq.core.kernels.reservoirs import Numbers
from wpinq.core.records.batch import Batch
from wpinq.core.records.identity import column_identities, tuple_identities
from wpinq.core.records.schema import Schema
from wpinq.core.state.table import Ids, Weights

PIECE = 1 << 15
"""Rows that are hashed and added up at a time: they stay in the cache."""

Fresh = npt.NDArray[np.bool_]


class Summed:
    """Weights of numbered records at each input.

    Args:
        library: The compiled kernels.
        schema: The columns of a record, none of them ranged.
        key: The key of identities.
        ports: Number of inputs.
    """

    def __init__(self, library: ctypes.CDLL, schema: Schema, key: bytes, ports: int = 1) -> None:
        self._schema, self.key = schema, key
        self._numbers = Numbers(library)
        self._sums: list[Weights] = [np.empty(0, np.int64) for _ in range(ports)]

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return self._numbers.size + sum(sums.nbytes for sums in self._sums)

    def absorb(self, port: int, batch: Batch) -> Iterator[tuple[pl.DataFrame, Sequence[Words], Fresh]]:
        """Add the weights of a batch: in pieces the rows, the identities of their columns, and which were not seen."""
        batch = batch.select(self._schema.names)
        batch = batch.expand(batch.schema.ranged)
        for frame in batch.frame.iter_slices(PIECE):
            piece = Batch(frame, batch.schema)
            columns = column_identities(frame, self._schema, self.key)
            known = len(self)
            codes = self._numbers.codes(self.identity_of(columns))
            self._reserve(port)
            yield frame, columns, self._numbers.add(codes, piece.weights, known, self._sums[port])

    def weights(self, port: int = 0) -> Weights:
        """The sum of each record's weights at an input."""
        self._reserve(port)
        return self._sums[port][: len(self)]

    def identity_of(self, columns: Sequence[Words]) -> Ids:
        """Identities of records, from those of the values in their columns."""
        return columns[0] if len(columns) == 1 else tuple_identities(columns, self.key)

    def ids(self) -> Ids:
        """The identity of each record."""
        return self._numbers.ids()

    def _reserve(self, port: int) -> None:
        size = len(self._sums[port])
        if len(self) > size:
            self._sums[port].resize(len(self) + size // 4 + PIECE, refcheck=False)
