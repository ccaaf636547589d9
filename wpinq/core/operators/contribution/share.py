"""Share: a contribution bound that leaves out no record: all records of a user share a weight of 1.

`Shares` is the plain state, `NumberedShares` the same over the numbers of records and users.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl

from wpinq.core import kernels
from wpinq.core.kernels import Weights
from wpinq.core.kernels.reservoirs import Codes, Numbers
from wpinq.core.operators.contribution.reservoirs import ROWS, Rows
from wpinq.core.operators.contribution.unit_key import ByUnit, UnitKey, anew
from wpinq.core.plan.node import Record, Weighted
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Schema
from wpinq.core.state.states import State
from wpinq.core.state.summed import Summed


class NumberedShares:
    """The same as `Shares`, which says what that is, many times as fast: only records of users who moved are looked at.

    Args:
        summed: Takes in the records, as columns that are needed later or tell units apart.
        users: Takes in the users.
        unit_key: Whose records share a weight.
        schema: The columns that are needed later.
        resolution: Of a share.
    """

    def __init__(self, summed: Summed, users: Numbers, unit_key: UnitKey, schema: Schema, resolution: int) -> None:
        self._summed, self._users, self._unit_key = summed, users, unit_key
        self._schema, self._resolution = schema, resolution
        self._rows = Rows(Batch.empty(self._schema).frame.drop(WEIGHT))
        self._owners: Codes = np.empty(0, np.int32)
        self._totals: Weights = np.empty(0, np.int64)
        self._emitted: Weights = np.empty(0, np.int64)
        self._moved: list[Codes] = []

    def absorb(self, port: int, batch: Batch) -> None:
        """Add up the weights of records and of users."""
        for frame, _, fresh in self._summed.absorb(port, batch):
            users = self._users.codes(self._unit_key.ids(frame, self._summed.key))
            known, total = len(self._summed) - int(fresh.sum()), len(self._summed)
            if len(self._users) > len(self._totals):
                self._totals.resize(len(self._users) * 5 // 4, refcheck=False)
            if total > len(self._owners):
                self._owners.resize(total * 5 // 4, refcheck=False)
                self._emitted.resize(total * 5 // 4, refcheck=False)
            self._owners[known:total] = users[fresh]
            np.add.at(self._totals, users, frame[WEIGHT].to_numpy())
            self._rows.add(frame.select(self._schema.names).filter(pl.Series(fresh)))
            self._moved.append(np.unique(users))

    def emit(self) -> Batch:
        """The shares of users who moved, less those emitted before."""
        mask = np.zeros(len(self._users), np.bool_)
        for users in self._moved:
            mask[users] = True
        self._moved = []
        pieces = [Batch.empty(self._schema).frame]
        for start in range(0, len(self._summed), ROWS):
            owners = self._owners[start : min(start + ROWS, len(self._summed))]
            moved = start + np.flatnonzero(mask[owners])
            pieces.append(self._change(moved))
        return Batch(pl.concat(pieces), self._schema)

    def _change(self, moved: np.ndarray) -> pl.DataFrame:
        """How the shares of some records change; they are those emitted from now on."""
        shares = self._resolution // np.maximum(self._totals[self._owners[moved]], 1)
        now = self._summed.weights()[moved] * shares
        change, self._emitted[moved] = now - self._emitted[moved], now
        rows = pl.concat(self._rows.take(moved[change != 0].astype(np.uint32)))
        return rows.with_columns(pl.Series(WEIGHT, change[change != 0]))


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
