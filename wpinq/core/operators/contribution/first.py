"""First: keep the first records of each user, so that a bound over a live source never removes a counted record."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.unit_key import UnitKey
from wpinq.core.operators.resolution import record_ids
from wpinq.core.plan.node import Node, Record, Weighted
from wpinq.core.plan.unit import Unit
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Schema
from wpinq.core.state.table import Ids, Rows, Table, Weights, combine
from wpinq.errors import PlanError


def first(node: Node) -> Node:
    """The plan for continual release: a bound on users keeps their first records instead of a sample of all.

    Weights:    of the records of a user, in the order of their epochs, the first `at_most`; in one epoch in the order
                of a keyed hash of all columns
    Stability:  1 for users: what is kept of one user depends on that user's records alone, and weighs `at_most` over
                all epochs together. A sample (`Bound`) would replace records that were counted before, so the sum of
                its changes would grow with every epoch.
    Source:     Dwork, Naor, Pitassi, Rothblum, STOC 2010: under continual observation records are only added.

    Raises:
        PlanError: The unit also bounds the records that share a value, which is not kept over epochs.
    """
    if type(node) is not Bound:
        return node
    if node.unit.per is not None:
        raise PlanError(
            "measure(continual=True): users(per=...) is not kept over epochs; leave it out, or use windows."
        )
    return First(node.source)


@dataclass(frozen=True, eq=False)
class First(Bound):
    """Plan node of a bound on users that never removes a record that it has kept."""

    shown = "first({0.unit})"
    lasting = True

    def state(self, keep: tuple[str, ...], key: bytes) -> Firsts:
        return Firsts(self.schema, self.unit, keep, self.data.sampling_key)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """All in one epoch: each user's records one by one, in the order of their hashes."""
        records = list(inputs[0])
        ranks = record_ids(records, self.schema, self.data.sampling_key).tolist()
        unit_key = self.unit_key
        left: dict[bytes, Fraction] = {}
        out = {}
        for _, record in sorted(zip(ranks, records, strict=True), key=lambda pair: pair[0]):
            user = unit_key.of(record)
            room = left.get(user, self.most)
            out[record] = min(room, inputs[0][record])
            left[user] = room - out[record]
        return out


class Firsts:
    """How much was kept of each user. What was kept is not remembered, since it never changes."""

    def __init__(self, schema: Schema, unit: Unit, keep: tuple[str, ...], key: bytes) -> None:
        self._schema, self._keep, self._key = schema, keep, key
        self._unit_key = UnitKey(unit, schema)
        self._most = int(unit.bound or 0)
        self._kept = Table()
        self._waiting: list[Batch] = []

    def absorb(self, port: int, batch: Batch) -> None:
        """Take in records of an epoch."""
        self._waiting.append(batch)

    def emit(self) -> Batch:
        """The records of the epoch that there is room for."""
        arrived, self._waiting = Batch.concat(self._waiting, self._schema).consolidate(), []
        ids = identities(arrived.frame, self._schema, self._key)
        kept, weights = self.chosen(arrived.frame, ids, arrived.weights)
        rows = arrived.frame.select(self._keep)[pl.Series(kept, dtype=pl.UInt32)]
        weight = pl.Series(WEIGHT, weights, pl.Int64)
        return Batch(rows.with_columns(weight), self._schema.select(self._keep)).consolidate()

    def chosen(self, frame: pl.DataFrame, ids: Ids, weights: Weights) -> tuple[Rows, Weights]:
        """Which of the different records of an epoch there is room for, and with which weights; they are kept.

        Args:
            frame: The records.
            ids: Their identities, in whose order those of a user are kept.
            weights: Their weights.
        """
        users = self._unit_key.ids(frame, self._key)
        room = np.maximum(self._most - self._kept.lookup(users), 0)
        order = np.lexsort((*ids.T[::-1], *users.T[::-1]))
        users, weights = users[order], weights[order]
        other = (users[1:] != users[:-1]).any(axis=1)  # than the user of the record before
        begins = np.flatnonzero(np.concatenate([np.ones(min(len(users), 1), bool), other]))
        before = weights.cumsum() - weights
        before -= np.repeat(before[begins], np.diff(np.append(begins, len(users))))
        weights = np.minimum(weights, np.maximum(room[order] - before, 0))
        kept = np.flatnonzero(weights > 0)
        self._kept.add(*combine(users[kept], weights[kept])[1:])
        return order[kept], weights[kept]
