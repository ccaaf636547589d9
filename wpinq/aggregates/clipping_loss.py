"""Loss: a charged count of what a bound on contributions leaves out, and of whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.arguments import COLLECTION, takes
from wpinq.core.measurements.answer import About, Answer, Released
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.unit_key import ByUnit
from wpinq.core.plan.node import Record, Weighted, sources, steps
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.values import encode
from wpinq.core.runs.epochs import log_of
from wpinq.core.state.states import State
from wpinq.errors import PlanError
from wpinq.exact import Amount

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.plan.node import Builder

PEOPLE, RECORDS = 0, 1
"""Bins of what is measured."""
TIMES = 10
"""So many times the bound is counted of what one person lost, where nothing is said."""
MOST = 10**6
USER, PLACE = ("\0user0", "\0user1"), ("\0place0", "\0place1")


@takes(collection=COLLECTION)
def loss(
    collection: Builder[Any], epsilon: Amount, *, at_most: int | None = None, name: str | None = None,
    analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for how much the bound on contributions leaves out: of how many people, and how many records.

    Both are counted before any other step, and share epsilon equally. One person may have lost any number of records,
    so no more than `at_most` are counted of each: noise grows with it, and what is beyond is missing.

    Args:
        collection: Any that reads one source whose unit is `users(..., at_most=...)`.
        epsilon: What it costs a person, exact.
        at_most: How many lost records are counted of one person; by default ten times the bound.
        name: Tells repetitions apart, and names the charge in the ledger.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Returns:
        Two rows: `people` who lost records, and `records` that they lost.

    Raises:
        PlanError: Nothing is left out by a bound on people, there are several sources, or one is live.
        BudgetError, LedgerError, ExactnessError: See `measure`.

    >>> from wpinq import loss, protect, users
    >>> views = protect([("ann",)] * 50, budget=900, columns={"user": str}, unit=users("user", at_most=20))
    >>> loss(views, epsilon=900, at_most=100).rows
    (('people', 1.0), ('records', 30.0))
    """
    return ask_loss(collection, epsilon, at_most=at_most, name=name, analyst=analyst).charge(collection)


def ask_loss(
    self: Builder[Any],
    epsilon: Amount,
    *,
    at_most: int | None = None,
    name: str | None = None,
    analyst: str | None = None,
) -> QuotedAggregate:
    """Quote what `loss` charges for."""
    entered = [node for node in steps(self._node) if isinstance(node, Bound)]
    if len(entered) != 1:
        raise PlanError("loss: takes a collection over one source whose unit is wpinq.users(..., at_most=...).")
    return ask_loss_of(self, entered[0], epsilon, at_most=at_most, name=name, analyst=analyst)


def ask_loss_of(
    self: Builder[Any],
    entered: Bound,
    epsilon: Amount,
    *,
    at_most: int | None = None,
    name: str | None = None,
    analyst: str | None = None,
) -> QuotedAggregate:
    """Quote what one of the bounds of a collection leaves out, which its own source pays."""
    if log_of(sources(entered)) is not None:
        raise PlanError("loss: answers at once, and a live source when an epoch closes; give a file of the past.")
    most = int(TIMES * entered.most) if at_most is None else at_most
    if isinstance(most, bool) or not isinstance(most, int) or not 0 < most <= MOST:
        raise PlanError(f"loss(at_most=...): give a whole number from 1 to {MOST:,}.")
    quote = self._then(Dropped(entered.source, most)).quote(epsilon, name, analyst=analyst)
    return QuotedAggregate(quote, lambda made, _: loss_answer(made, most))


def loss_answer(made: Measurement, most: int) -> Answer:
    """The answer of charged losses, of at most so many records of each person."""
    (column,) = (unit.column for unit in (data.unit for data in made.quote.sources))
    about = About("loss", (made,), bias=(f"records beyond {most} that one {column} lost are not in it",))

    def released(level: Fraction, simultaneous: bool) -> Released:
        half = made.interval(level, bins=2 if simultaneous else 1)
        factors = np.array([1.0, most])
        values = made.observe_many([PEOPLE, RECORDS]) * factors
        cells = pl.DataFrame({"lost": ["people", "records"], "count": values})
        return cells, {"count": (cells["count"] - half * factors, cells["count"] + half * factors)}

    return Answer(about, released)


@dataclass(frozen=True, eq=False)
class Dropped(ByUnit):
    """Plan node of `loss`: people who have more records than the bound keeps, and what they lose.

    Weights:    out[0] = the number of people of whom records are lost; out[1] = the sum over people of min(d, at_most)
                / at_most, with d the number of records that one loses
    Stability:  a person with all records changes each of the two by 1 at the most, and nobody else's: 2 divided by the
                unit's bound. What one loses follows from that person's records alone: of n records, c_v of them with
                the value v of the `per` column, min(at_most, sum of min(c_v, per)) are kept. Where the unit is a user
                in one period, read "user in one period" for "user".
    """

    at_most: int
    shown = "loss"

    @cached_property
    def schema(self) -> Schema:
        """Which of the two."""
        return Schema((Column("lost", Kind.INT),))

    @property
    def resolution(self) -> int:
        """Records are counted as parts of the most that is counted of one person."""
        return self.at_most

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """Of a person, who moves the source by the unit's bound."""
        return (2 / self.most,)

    @cached_property
    def gain(self) -> Fraction:
        """Who weighs anything has two records at the least."""
        return self.source.gain

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """Whose record it is, and what bounds it by value."""
        return (frozenset(self.reads),)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        unit = self.data.unit
        return tuple(dict.fromkeys((*unit.columns, *(unit.per[:1] if unit.per else ()))))

    def state(self, keep: tuple[str, ...], key: bytes) -> State:
        """The number of records of each person."""
        return Losses(self, key)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Person by person."""
        unit, key = self.data.unit, self.unit_key
        position = self.source.schema.names.index(unit.per[0]) if unit.per else None
        counts: dict[bytes, Counter[bytes]] = {}
        for record, weight in inputs[0].items():
            value = b"" if position is None else encode(record[position])
            counts.setdefault(key.of(record), Counter())[value] += int(weight)
        lost = [self.lost(list(values.values())) for values in counts.values()]
        people, records = sum(n > 0 for n in lost), sum(min(n, self.at_most) for n in lost)
        weights = {(PEOPLE,): Fraction(people), (RECORDS,): Fraction(records, self.at_most)}
        return {bin_: weight for bin_, weight in weights.items() if weight}

    def lost(self, counts: list[int]) -> int:
        """How many records one person loses, of so many with each value."""
        unit = self.data.unit
        inside = sum(min(count, unit.per[1]) if unit.per else count for count in counts)
        return sum(counts) - min(inside, int(self.most))


class Losses:
    """How many records each person has, with each value of the column that bounds them."""

    def __init__(self, plan: Dropped, key: bytes) -> None:
        self._plan, self._key = plan, key
        self._schema = plan.source.schema.select(plan.reads)
        self._records, self._emitted = Batch.empty(self._schema), Batch.empty(plan.schema)

    def absorb(self, port: int, batch: Batch) -> None:
        """Count records."""
        few = batch.select(self._schema.names).consolidate()
        self._records = Batch.concat([self._records, few], self._schema).consolidate()

    def emit(self) -> Batch:
        """The losses now, less those of before."""
        before, self._emitted = self._emitted, self._losses()
        return Batch.concat([self._emitted, before.scale(-1)], self._plan.schema).consolidate()

    def _losses(self) -> Batch:
        plan, frame = self._plan, self._records.frame
        unit, weight = plan.data.unit, pl.col(WEIGHT)
        ids = [(USER, plan.unit_key.ids(frame, self._key))]
        if unit.per:
            ids.append((PLACE, identities(frame, self._schema.select([unit.per[0]]), self._key)))
        named = [pl.Series(name, np.ascontiguousarray(words)) for names, both in ids
                 for name, words in zip(names, both.T, strict=True)]  # fmt: skip
        counts = pl.DataFrame([*named, frame[WEIGHT]]).group_by(series.name for series in named).agg(weight.sum())
        inside = weight.clip(upper_bound=unit.per[1]) if unit.per else weight
        each = counts.group_by(USER).agg(weight.sum().alias("all"), inside.sum().alias("inside"))
        lost = each.select(pl.col("all") - pl.col("inside").clip(upper_bound=int(plan.most))).to_series()
        people, records = int((lost > 0).sum()), int(lost.clip(upper_bound=plan.at_most).sum())
        made = {"lost": [PEOPLE, RECORDS], WEIGHT: [people * plan.at_most, records]}
        result = pl.DataFrame(made, schema={"lost": pl.Int64, WEIGHT: plan.held.column})
        return Batch(result.filter(pl.col(WEIGHT) != 0), plan.schema)
