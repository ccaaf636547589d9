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
from wpinq.core.records.batch import WEIGHT, Batch, rows_of
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Schema, in_columns
from wpinq.core.state.table import Rows, Table, Weights, grouped
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
        arrived, self._waiting = Batch.concat(self._waiting, self._schema), []
        kept, weights = self.chosen(arrived.frame, arrived.weights)
        rows = rows_of(in_columns(arrived.frame[name] for name in self._keep), kept)
        return Batch(in_columns([*rows.get_columns(), pl.Series(WEIGHT, weights)]), self._schema.select(self._keep))

    def chosen(self, frame: pl.DataFrame, weights: Weights, epochs: Weights | None = None) -> tuple[Rows, Weights]:
        """Which of some records there is room for, and with which weights; they are kept.

        Equal records of an epoch are kept as one is that weighs what they do together: they follow each other. Only
        of a user for whom there is room for some records and not for all it matters which of them come first.

        Args:
            frame: The records.
            weights: Their weights.
            epochs: In which epochs they came, where these are several: earlier ones come first.
        """
        order, begins = grouped(users := self._unit_key.ids(frame, self._key))
        people, kept = users[order[begins]], weights[order]
        sums, room = _sums(kept, begins), np.maximum(self._most - self._kept.lookup(people), 0)
        over = sums > room
        if over.any() or weights.min(initial=1) < 1:
            sizes, starts = _sizes(begins, kept), begins
            if epochs is not None:
                number = np.repeat(np.arange(len(begins)), sizes)
                key = number * (epochs.max() + 1) + epochs[order]
                sort = np.argsort(key, kind="stable")
                order, kept, starts = order[sort], kept[sort], _starts(key[sort])
                sizes, sums = _sizes(starts, kept), _sums(kept, starts)
                room = _left(sums, number[starts], room)
                over = sums > room
            self._cut(frame, weights, (order, kept), sizes, np.where(over | (room == 0), room, -1))
            kept = np.maximum(kept, 0)
            sums = _sums(kept, begins)
            people, sums, order, kept = people[sums > 0], sums[sums > 0], order[kept > 0], kept[kept > 0]
        self._kept.add(people, sums)
        return order, kept

    def _cut(
        self, frame: pl.DataFrame, weights: Weights, groups: tuple[Rows, Weights], sizes: Rows, room: Weights
    ) -> None:  # fmt: skip
        """Cut the weights of groups of rows to the room that there is for each group, in place.

        Args:
            frame: The records.
            weights: Their weights.
            groups: The rows, of which each group's are side by side, and their weights, in an order that may change.
            sizes: How many rows each group has.
            room: How much there is for each group; less than nothing where there is enough.
        """
        order, kept = groups
        some = room > 0
        kept[np.repeat(room == 0, sizes)] = 0
        if some.any():
            those = np.repeat(some, sizes)
            number = np.repeat(np.arange(some.sum()), sizes[some])
            order[those], kept[those] = self._least(frame, weights, order[those], number, room[some])

    def _least(
        self, frame: pl.DataFrame, weights: Weights, rows: Rows, number: Rows, room: Weights
    ) -> tuple[Rows, Weights]:
        """Rows of some groups in the order of their identities, and the weights that there is room for.

        Args:
            frame: The records.
            weights: Their weights.
            rows: The rows, each group side by side.
            number: The number of the group of each.
            room: How much there is for each group.
        """
        ids = identities(rows_of(frame, rows), self._schema, self._key)
        order = np.lexsort((ids[:, 1], ids[:, 0], number))
        rows = rows[order]
        before = weights[rows].cumsum() - weights[rows]
        before -= before[_starts(number)][number]
        return rows, np.minimum(weights[rows], np.maximum(room[number] - before, 0))


def _starts(numbers: Rows) -> Rows:
    """Where among numbers, of which equal ones are side by side, each begins."""
    return np.flatnonzero(np.concatenate([np.ones(min(len(numbers), 1), bool), numbers[1:] != numbers[:-1]]))


def _sums(weights: Weights, starts: Rows) -> Weights:
    return np.add.reduceat(weights, starts) if len(starts) else weights


def _sizes(starts: Rows, rows: Weights) -> Rows:
    return np.diff(starts, append=len(rows))


def _left(sums: Weights, person: Rows, room: Weights) -> Weights:
    """The room that earlier epochs of a user leave for each; of users in order, the room of each before all of them."""
    before = sums.cumsum() - sums
    before -= before[_starts(person)][person]
    left: Weights = np.maximum(room[person] - before, 0)
    return left
