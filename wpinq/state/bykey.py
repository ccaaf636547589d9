"""State of a step whose output is found key by key: join, group_by, semijoin.

It holds, for each input, the records of each key by identity with their weights, and of their columns only those that
the output needs. A change touches some keys; what those gave before is taken back, and what they give now is emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from wpinq.batch import WEIGHT, Batch, weight_type
from wpinq.identity import identities
from wpinq.schema import Kind, Schema

KEY = ["\0key 0", "\0key 1"]
RECORD = ["\0record 0", "\0record 1"]


@dataclass(frozen=True)
class Port:
    """One input of a step.

    Attributes:
        schema: The columns of a record.
        keys: Those that make its key, in order.
        keep: Those that the output needs.
        coarse: Lattice of its weights.
        fine: Lattice that the step computes on.
    """

    schema: Schema
    keys: tuple[str, ...]
    keep: tuple[str, ...]
    coarse: int
    fine: int


class ByKey:
    """Records by key at each input.

    Args:
        ports: The inputs.
        compute: From the rows of some whole keys at each input (`KEY`, `RECORD`, the kept columns, `WEIGHT`) to the
            output's columns and `WEIGHT`.
        schema: The columns of the output.
        key: The key of identities.
    """

    def __init__(
        self,
        ports: Sequence[Port],
        compute: Callable[[Sequence[pl.DataFrame]], pl.DataFrame],
        schema: Schema,
        key: bytes,
    ) -> None:
        self._ports, self._compute, self._schema, self._key = ports, compute, schema, key
        self._pending: list[list[Batch]] = [[] for _ in ports]
        self._rows = [self._change(port, []) for port in ports]

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        self._pending[port].append(batch.expand(batch.schema.ranged).consolidate())

    def emit(self) -> Batch:
        """How the output moved with the pending changes."""
        changes = [self._change(port, pending) for port, pending in zip(self._ports, self._pending, strict=True)]
        self._pending = [[] for _ in self._ports]
        if all(rows.is_empty() for rows in self._rows):
            self._rows = changes
            return Batch(self._compute(changes), self._schema)
        touched = pl.concat([change.select(KEY) for change in changes]).unique()
        before = [rows.join(touched, on=KEY, how="semi") for rows in self._rows]
        after = [_add(old, change) for old, change in zip(before, changes, strict=True)]
        self._rows = [
            pl.concat([rows.join(touched, on=KEY, how="anti"), new])
            for rows, new in zip(self._rows, after, strict=True)
        ]
        gone = self._compute(before).with_columns(pl.col(WEIGHT) * -1)
        return Batch(pl.concat([self._compute(after), gone]), self._schema).consolidate()

    def _change(self, port: Port, pending: list[Batch]) -> pl.DataFrame:
        """Pending records, each once, as rows of the state."""
        batch = Batch.concat(pending, port.schema)
        if len(pending) > 1:
            batch = batch.consolidate()
        batch = batch.refine(port.coarse, port.fine)
        key = Schema(tuple(batch.schema[name] for name in port.keys))
        words = [
            pl.Series(name, column)
            for names, schema in ((KEY, key), (RECORD, batch.schema))
            for name, column in zip(names, identities(batch.frame, schema, self._key).T, strict=True)
        ]
        rows = batch.frame.select(*port.keep, pl.col(WEIGHT).cast(weight_type(port.fine))).with_columns(words)
        alike = any(column.kind is Kind.FLOAT for column in port.schema)  # 0.0 and -0.0 are one value in two rows
        return _merged(rows) if alike else rows


def _add(rows: pl.DataFrame, change: pl.DataFrame) -> pl.DataFrame:
    return _merged(pl.concat([rows, change]))


def _merged(rows: pl.DataFrame) -> pl.DataFrame:
    """Add up the weights of equal records and drop what cancels."""
    others = [name for name in rows.columns if name not in (*RECORD, WEIGHT)]
    merged = rows.group_by(RECORD).agg(*(pl.col(name).first() for name in others), pl.col(WEIGHT).sum())
    return merged.select(rows.columns).filter(pl.col(WEIGHT) != 0)
