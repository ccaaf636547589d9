"""Numbered shares: the weight that a user's records share, kept up to date by the numbers of records and users."""

from __future__ import annotations

import numpy as np
import polars as pl

from wpinq.core.kernels import Weights
from wpinq.core.kernels.reservoirs import Codes, Numbers
from wpinq.core.operators.contribution.reservoirs import ROWS, Rows
from wpinq.core.operators.contribution.unit_key import UnitKey
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Schema
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
