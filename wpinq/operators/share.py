"""Share: let all records of a user share one weight, so that nothing has to be cut off."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from wpinq.batch import WEIGHT, Batch
from wpinq.errors import PlanError
from wpinq.identity import identities
from wpinq.plan import Keyed, Node, Record, Shape, Source, Unary, Weighted
from wpinq.schema import Schema
from wpinq.values import encode

LATTICE = 720_720
"""The least common multiple of 1 to 16: up to 16 records share a weight without any rounding."""

LOT = 1 << 20
"""Records that are added up at once, at the least."""

USER = ("\0user0", "\0user1")


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

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later, and who it was."""
        return (needed | {self.column},)

    def lower(self, needed: frozenset[str]) -> Shape:
        """A user's records meet each other."""
        keep = self.schema.kept(needed)
        return Keyed(((self.column,),), lambda key: Shares(self.schema, self.column, keep, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """User by user."""
        place = self.schema.names.index(self.column)
        count: dict[bytes, Fraction] = defaultdict(Fraction)
        for record, weight in inputs[0].items():
            count[encode(record[place])] += weight
        return {
            record: weight * Fraction(int(LATTICE // count[encode(record[place])]), LATTICE)
            for record, weight in inputs[0].items()
        }


class Shares:
    """The records of each user, which all move when one comes.

    Held as the columns that are needed later and the user, so that what differs elsewhere is one row.
    """

    def __init__(self, schema: Schema, column: str, keep: tuple[str, ...], key: bytes) -> None:
        self._column, self._keep, self._key = column, keep, key
        self._records = Batch.empty(schema.select({*keep, column}))
        self._given = Batch.empty(schema.select(keep))
        self._waiting: list[Batch] = []

    def absorb(self, port: int, batch: Batch) -> None:
        """Add records, in lots that grow with what is held."""
        self._waiting.append(batch.select(self._records.schema.names))
        if sum(map(len, self._waiting)) > max(LOT, len(self._records)):
            self._gather()

    def emit(self) -> Batch:
        """The shares now, less the shares that were given before."""
        self._gather()
        before, self._given = self._given, self._shares()
        return Batch.concat([self._given, before.scale(-1)], before.schema).consolidate()

    def _gather(self) -> None:
        self._records = Batch.concat([self._records, *self._waiting], self._records.schema).consolidate()
        self._waiting = []

    def _shares(self) -> Batch:
        batch = self._records
        who = identities(batch.frame, batch.schema.select([self._column]), self._key)
        user = [pl.Series(name, np.ascontiguousarray(words)) for name, words in zip(USER, who.T, strict=True)]
        share = pl.lit(LATTICE, pl.Int64) // pl.col(WEIGHT).sum().over(USER)
        frame = batch.frame.with_columns(user).with_columns((pl.col(WEIGHT) * share).alias(WEIGHT)).drop(USER)
        return Batch(frame, batch.schema).select(self._keep).consolidate()
