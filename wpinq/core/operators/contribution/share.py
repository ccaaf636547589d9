"""Share: contribution bounding without leaving out records: all records of a user share a weight of 1."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl

from wpinq.core import kernels
from wpinq.core.kernels.reservoirs import Numbers
from wpinq.core.operators.contribution.numbered_shares import NumberedShares
from wpinq.core.operators.contribution.recompute import anew
from wpinq.core.operators.contribution.unit_key import ByUnit, UnitKey
from wpinq.core.plan.node import Record, Weighted
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Schema
from wpinq.core.state.states import State
from wpinq.core.state.summed import Summed

RESOLUTION = 720_720
"""The least common multiple of 1 to 16: up to 16 records share a weight without any rounding."""

RECORDS_PER_LOT = 1 << 20
"""The least number of records that are added up at once."""

USER = ("\0user0", "\0user1")


@dataclass(frozen=True, eq=False)
class Share(ByUnit):
    """Plan node of `protect(unit=users(..., shared=True))`: the records of each user share a weight of 1.

    Weights:    out[x] = max(in[x], 0) * floor(L / n) / L for the n such records of x's user; L = 720,720, and beyond L
                records 0
    Stability:  1 for users: a user's records weigh n * floor(L / n) / L <= 1, and no other user's weights change. It is
                not stable for records, and not for continual release, where earlier shares would shrink. Where the unit
                is a user in one window, read "user in one window" for "user".
    """

    shown = "share({0.unit_key.user})"
    silent = True
    bounding = True
    resolution = RESOLUTION

    @property
    def bias(self) -> str:
        """That records weigh less than 1."""
        return self.unit_key.unit.bias

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later, and who it was; whole records where one may weigh less than nothing."""
        return super().required(needed) if self.data.retractions else (needed | frozenset(self.unit_key.unit.columns),)

    def state(self, keep: tuple[str, ...], key: bytes) -> State:
        if not self.data.retractions:
            return self._shares(keep, key)
        return anew(partial(self._shares, keep, key), self.schema, self.unit_key.user, keep, self.source.held, key)

    def _shares(self, keep: tuple[str, ...], key: bytes) -> State:
        held = self.schema.select({*keep, *self.unit_key.unit.columns})
        if kernels.LIB is None:
            return Shares(held, self.unit_key, keep, key)
        summed, users = Summed(kernels.LIB, held, key), Numbers(kernels.LIB)
        return NumberedShares(summed, users, self.unit_key, self.schema.select(keep), RESOLUTION)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """User by user."""
        unit_key = self.unit_key
        positive = {record: weight for record, weight in inputs[0].items() if weight > 0}
        count: dict[bytes, Fraction] = defaultdict(Fraction)
        for record, weight in positive.items():
            count[unit_key.of(record)] += weight
        return {
            record: weight * Fraction(int(RESOLUTION // count[unit_key.of(record)]), RESOLUTION)
            for record, weight in positive.items()
        }


class Shares:
    """The records of each user, which all move when one comes, where there are no compiled kernels.

    Held as the columns that are needed later and the user, so that what differs elsewhere is one row.
    """

    def __init__(self, schema: Schema, unit_key: UnitKey, keep: tuple[str, ...], key: bytes) -> None:
        self._unit_key, self._keep, self._key = unit_key, keep, key
        self._records = Batch.empty(schema)
        self._emitted = Batch.empty(schema.select(keep))
        self._waiting: list[Batch] = []

    def absorb(self, port: int, batch: Batch) -> None:
        """Add records, in lots that grow with what is held."""
        self._waiting.append(batch.select(self._records.schema.names))
        if sum(map(len, self._waiting)) > max(RECORDS_PER_LOT, len(self._records)):
            self._gather()

    def emit(self) -> Batch:
        """The shares now, less those emitted before."""
        self._gather()
        before, self._emitted = self._emitted, self._shares()
        return Batch.concat([self._emitted, before.scale(-1)], before.schema).consolidate()

    def _gather(self) -> None:
        self._records = Batch.concat([self._records, *self._waiting], self._records.schema).consolidate()
        self._waiting = []

    def _shares(self) -> Batch:
        batch = self._records
        who = self._unit_key.ids(batch.frame, self._key)
        user = [pl.Series(name, np.ascontiguousarray(words)) for name, words in zip(USER, who.T, strict=True)]
        share = pl.lit(RESOLUTION, pl.Int64) // pl.col(WEIGHT).sum().over(USER)
        frame = batch.frame.with_columns(user).with_columns((pl.col(WEIGHT) * share).alias(WEIGHT)).drop(USER)
        return Batch(frame, batch.schema).select(self._keep).consolidate()
