"""State of a step whose output is found key by key: join, group_by, semijoin.

For each input it holds the records of each key by identity with their weights, and only the columns that the output
needs. For the keys that a change touches, the earlier output is subtracted and the new output is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from wpinq.core.records.batch import WEIGHT, Batch, weight_series
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.records.weights import WeightType
from wpinq.core.state.states import Hashed
from wpinq.core.state.table import Ids
from wpinq.core.state.write_buffer import Waiting

KEY = ["\0key 0", "\0key 1"]
RECORD = ["\0record 0", "\0record 1"]


@dataclass(frozen=True)
class Port:
    """One input of a step.

    Attributes:
        schema: The columns of a record.
        keys: Those that make its key, in order.
        keep: Those that the output needs.
        coarse: How its weights are held.
        fine: How the step holds them.
    """

    schema: Schema
    keys: tuple[str, ...]
    keep: tuple[str, ...]
    coarse: WeightType
    fine: WeightType


class ByKey:
    """Records by key at each input.

    Args:
        ports: The inputs.
        compute: From the rows of some whole keys at each input (`KEY`, `RECORD`, the kept columns, `WEIGHT`) to the
            output's columns and `WEIGHT`, in pieces.
        schema: The columns of the output.
        key: The key of identities.
    """

    def __init__(
        self,
        ports: Sequence[Port],
        compute: Callable[[Sequence[pl.DataFrame]], Iterable[pl.DataFrame]],
        schema: Schema,
        key: bytes,
    ) -> None:
        self.schema = schema
        self._ports, self._compute, self._key = ports, compute, key
        self._pending = [Waiting(port.schema) for port in ports]
        self._rows = self._taken()

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        self._pending[port].absorb(batch)

    def emit(self) -> Batch:
        """How the output moved with the pending changes."""
        return Batch.concat(self.pieces(), self.schema).consolidate()

    def pieces(self) -> Iterator[Batch]:
        """The same, in pieces whose sum it is."""
        before, changes = self._rows, self._taken()
        if all(rows.is_empty() for rows in before):
            self._rows = changes
            yield from self._computed(changes)
            return
        if all(rows.is_empty() for rows in changes):
            yield Batch.empty(self.schema)
            return
        touched = pl.concat([change.select(KEY) for change in changes]).unique()
        others = [rows.join(touched, on=KEY, how="anti") for rows in before]
        before = [rows.join(touched, on=KEY, how="semi") for rows in before]
        after = [_merged(pl.concat([old, change])) for old, change in zip(before, changes, strict=True)]
        self._rows = [pl.concat([rows, new]) for rows, new in zip(others, after, strict=True)]
        yield from self._computed(after)
        if not all(rows.is_empty() for rows in before):
            yield from (piece.scale(-1) for piece in self._computed(before))

    def last(self) -> Iterator[Batch]:
        """The same, when nothing is asked afterwards."""
        return self.pieces()

    @property
    def size(self) -> int:
        """Bytes of records that wait, about."""
        return sum(waiting.size for waiting in self._pending)

    def begin(self, rows: Sequence[pl.DataFrame]) -> None:
        """Take in a first change, whose output was emitted: rows of the state at each input, records each once."""
        self._rows = [frame.select(state.columns) for frame, state in zip(rows, self._rows, strict=True)]

    def rows(self, port: Port, change: Batch | Hashed) -> pl.DataFrame:
        """A change as rows of the state; records by identity are their own key."""
        if isinstance(change, Batch):
            return self._change(port, change.consolidate())
        return hashed_rows(port, change)

    def _computed(self, rows: Sequence[pl.DataFrame]) -> Iterator[Batch]:
        return (Batch(piece, self.schema) for piece in self._compute(rows))

    def _taken(self) -> list[pl.DataFrame]:
        return [self._change(port, waiting.take()) for port, waiting in zip(self._ports, self._pending, strict=True)]

    def _change(self, port: Port, batch: Batch) -> pl.DataFrame:
        """Records, each once, as rows of the state."""
        batch = batch.refine(port.coarse, port.fine)
        words = [*key_words(port, batch, self._key), *_words(RECORD, identities(batch.frame, batch.schema, self._key))]
        rows = batch.frame.select(*port.keep, pl.col(WEIGHT).cast(port.fine.column)).with_columns(words)
        alike = any(column.kind is Kind.FLOAT for column in port.schema)  # 0.0 and -0.0 are one value in two rows
        return _merged(rows) if alike else rows


def hashed_rows(port: Port, records: Hashed) -> pl.DataFrame:
    """Records by identity, which are their own key, as rows of a state."""
    words = [*_words(KEY, records.ids), *_words(RECORD, records.ids)]
    frame = pl.DataFrame([*words, weight_series(records.weights, port.coarse)]).filter(pl.col(WEIGHT) != 0)
    return Batch(frame, port.schema).refine(port.coarse, port.fine).frame


def key_words(port: Port, batch: Batch, key: bytes) -> list[pl.Series]:
    """The identities of the keys of records."""
    return _words(KEY, identities(batch.frame, Schema(tuple(batch.schema[name] for name in port.keys)), key))


def _words(names: Sequence[str], ids: Ids) -> list[pl.Series]:
    return [pl.Series(name, word) for name, word in zip(names, ids.T, strict=True)]


def _merged(rows: pl.DataFrame) -> pl.DataFrame:
    """Add up the weights of equal records and drop what cancels."""
    others = [name for name in rows.columns if name not in (*RECORD, WEIGHT)]
    merged = rows.group_by(RECORD).agg(*(pl.col(name).first() for name in others), pl.col(WEIGHT).sum())
    return merged.select(rows.columns).filter(pl.col(WEIGHT) != 0)
