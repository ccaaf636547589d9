"""Share: let all records of a user share one weight, so that nothing has to be cut off."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from wpinq.batch import WEIGHT, Batch
from wpinq.errors import PlanError
from wpinq.identity import identities
from wpinq.plan import Collection as Weighted
from wpinq.plan import Keyed, Node, Record, Shape, Source, Unary
from wpinq.schema import Schema

LATTICE = 720_720
"""The least common multiple of 1 to 16: up to 16 records share a weight without any rounding."""


def share(source: Source) -> Node:
    """Let the records of each user share a weight of 1.

    Weights:    out[x] = in[x] * floor(L / n) / L for the n records of x's user; L = 720,720, and beyond L records 0
    Stability:  1 for users: a user's records weigh n * floor(L / n) / L <= 1, and nobody else's move (privacy rule
                27). It is not stable for records, and not for continual release, where old shares would shrink.

    Raises:
        PlanError: The unit names a column that is not there.
    """
    if source.data.unit.column not in source.schema:
        names = ", ".join(source.schema.names)
        raise PlanError(f"protect(unit=...): no column {source.data.unit.column!r}; there are {names}.")
    return Share(source)


@dataclass(frozen=True, eq=False)
class Share(Unary):
    """Plan node of `protect(unit=users(..., shared=True))`."""

    source: Source

    @property
    def column(self) -> str:
        """The column that names the user."""
        return str(self.source.data.unit.column)

    @property
    def lattice(self) -> int:
        """Fine enough for shares."""
        return LATTICE

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return f"share({self.column})"

    @property
    def identity(self) -> tuple[bytes | None, ...]:
        """The column."""
        return (self.column.encode(),)

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later, and who it was."""
        return (needed | {self.column},)

    def lower(self, needed: frozenset[str]) -> Shape:
        """A user's records meet each other."""
        names = self.schema.names
        keep = tuple(name for name in names if name in needed) or names[:1]
        return Keyed(((self.column,),), lambda key: Shares(self.schema, self.column, keep, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """User by user."""
        place = self.schema.names.index(self.column)
        count: dict[object, Fraction] = defaultdict(Fraction)
        for record, weight in inputs[0].items():
            count[record[place]] += weight
        return {
            record: weight * Fraction(int(LATTICE // count[record[place]]), LATTICE)
            for record, weight in inputs[0].items()
        }


class Shares:
    """The records of each user, which all move when one comes."""

    def __init__(self, schema: Schema, column: str, keep: tuple[str, ...], key: bytes) -> None:
        self._schema, self._column, self._keep, self._key = schema, column, keep, key
        self._records: Batch | None = None
        self._given: list[Batch] = []
        self._pending: list[Batch] = []

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        self._pending.append(batch.consolidate())

    def emit(self) -> Batch:
        """The shares now, less the shares that were given before."""
        columns = self._schema.select({*self._keep, self._column})
        known = [self._records] if self._records is not None else []
        self._records = Batch.concat(
            [*known, *(one.select(columns.names) for one in self._pending)], columns
        ).consolidate()
        self._pending = []
        shares = self._shared(self._records).select(self._keep).consolidate()
        moved = Batch.concat([shares, *(one.scale(-1) for one in self._given)], shares.schema).consolidate()
        self._given = [shares]
        return moved

    def _shared(self, batch: Batch) -> Batch:
        who = identities(batch.frame, batch.schema.select([self._column]), self._key)
        user = [pl.Series("\0user0", who[:, 0].copy()), pl.Series("\0user1", who[:, 1].copy())]
        total = pl.col(WEIGHT).sum().over("\0user0", "\0user1")
        weight = pl.col(WEIGHT) * (pl.lit(LATTICE, pl.Int64) // total)
        return Batch(
            batch.frame.with_columns(*user).with_columns(weight.alias(WEIGHT)).drop("\0user0", "\0user1"), batch.schema
        )
