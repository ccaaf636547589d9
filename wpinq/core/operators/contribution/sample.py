"""Sample: contribution bounding by a uniform sample of each user's records."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import cast

import numpy as np
import polars as pl

from wpinq.core import kernels
from wpinq.core.operators.contribution.preprocess import Derive
from wpinq.core.operators.contribution.reservoirs import Reservoirs
from wpinq.core.operators.contribution.unit_key import ByUnit, UnitKey, Whole, anew, origin
from wpinq.core.operators.resolution import record_ids
from wpinq.core.plan.forms import Unary
from wpinq.core.plan.node import Builder, C, Node, Record, Source, Weighted, rewrite, steps
from wpinq.core.plan.unit import Unit
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.values import encode
from wpinq.core.state.states import State
from wpinq.core.state.table import Table, combine
from wpinq.errors import PlanError

RECORDS_PER_LOT = 1 << 20
"""Records that are ranked at once: at least so many waiting records, at most so many of their copies."""

PLAIN = (
    "there are no compiled kernels, so bounding people's records takes about ten times as long; "
    "install wpinq again where there is a C compiler."
)
COPY, FRESH = "\0copy", "\0fresh"
USER, RANK, PLACE = ("\0user0", "\0user1"), ("\0rank0", "\0rank1"), ("\0place0", "\0place1")


def bounded(source: Node) -> Node:
    """The records of a source as its unit lets them in: all, or of users all, a sample or a share of each.

    Args:
        source: The source, or what is done to each of its records before (`before.py`).
    """
    unit = origin(source).data.unit
    if unit.column is None:
        return source
    if unit.whole:
        return Whole(source)
    if unit.at_most is None:
        from wpinq.core.operators.contribution.share import Share

        return Share(source)
    if kernels.LIB is None:
        warnings.warn(PLAIN, RuntimeWarning, stacklevel=2)
    return BoundBySource(source) if _adds(source) else Bound(source)


def _adds(source: Node) -> bool:
    """Whether columns are computed of each record of a finite source, and none of the source's is computed anew."""
    start, computed = origin(source), [step.name for step in steps(source) if isinstance(step, Derive)]
    return bool(computed) and not start.data.live and not set(computed) & set(start.schema.names)


MOST = 2**31 - 1


def at_most(self: Builder[C], records: int | str, *, per: tuple[str, int] | None = None) -> C:
    """Look at another number of records of each person, in this question.

    The ledger says who is protected, and the question how much of them it looks at: noise grows with its own bound, and
    what it costs is its epsilon. So a count of people can look at one record of each, and a count of views at fifty.

    Weights:    a uniform sample of each person's records, as `users(..., at_most=records, per=per)` keeps it
    Stability:  1 for people, whose bound is now this one. Two bounds of one table are two collections: what one person
                moves by both adds up, and they share no partition (privacy rule 49).
    Source:     the sample is that of `protect`; see `core/operators/contribution/sample.py`.

    Args:
        records: How many records of each person are kept. With "auto" each question that is charged chooses the number
            first, privately, from the records that it is about, for a part of its epsilon: half for one total, less for
            many groups (`aggregates/automatic.py`). It is no more than the number that they were protected with.
        per: A column and a number: of one person's records with the same value of the column, no more are kept.

    Raises:
        PlanError: It does not stand right after `protect` of people and the filters that follow it, a number is no
            whole number above zero, or there is no such column.

    >>> from wpinq import protect, users
    >>> from wpinq.testing import evaluate
    >>> views = protect([], budget=1, columns={"user": str, "page": str}, unit=users("user", at_most=20))
    >>> evaluate(views.at_most(1).map("user"), [("ann", "a"), ("ann", "b")])
    {('ann',): 1}
    """
    node = self._node
    if node.bounds_units is None or not isinstance(node, ByUnit):
        raise PlanError(
            "at_most(...): bounds the records of people where they come in; write it right after protect(...) of people"
            " and the filters that follow it. What comes later is bounded by limit."
        )
    if node.data.live:
        raise PlanError("at_most(...): questions about a stream share one sample; give its bound in live(unit=...).")
    if records is None:
        raise PlanError("at_most(None): takes a whole number of records above zero, or 'auto'.")
    if isinstance(records, str) and records == "auto":
        if per is not None:
            raise PlanError("at_most('auto'): is chosen without per=, which goes with a number.")
        largest = node.data.unit.at_most if node.data.unit.choice is None else None
        unit = replace(node.data.unit, at_most=None, per=None, choice=None, whole=True, auto=largest or MOST)
    else:
        unit = replace(node.data.unit, at_most=cast("int", records), per=per, choice=None, whole=False, auto=0)
    UnitKey(unit, node.schema).check("at_most")
    return self._then(under(node, unit))


def under(node: Unary, unit: Unit) -> Node:
    """The records of people, bounded as another unit of the same people bounds them."""
    data = replace(origin(node).data, unit=unit)
    return bounded(rewrite(node.source, lambda step: Source(data) if isinstance(step, Source) else step))


@dataclass(frozen=True, eq=False)
class Bound(ByUnit):
    """Plan node of `protect(unit=users(..., at_most=...))`: a sample of what each user contributed.

    Weights:    the copies of records with the smallest keyed hash of (all columns, number of the copy): of those of a
                user with one value of the `per` column the first few, of these of a user the first `at_most`; a record
                that weighs less than nothing has no copies
    Stability:  1 for users: what is kept of one user depends on that user's records alone and weighs `at_most` at the
                most, which is the unit's bound. (A record more may push another out, so it is 2-stable for records.)
                Where the unit is a user in one window, read "user in one window" for "user".
    Source:     The sample is fixed by the secret, the same for all questions, whatever the order of records; the hash
                covers all columns, before any of them is dropped.
    """

    shown = "sample({0.unit})"
    silent = True
    bounding = True

    @property
    def unit(self) -> Unit:
        """The unit of the source."""
        return self.data.unit

    @property
    def bias(self) -> str:
        """What is beyond the bound."""
        return self.unit.bias

    @property
    def ranked(self) -> Schema:
        """The columns whose hash ranks a record."""
        return self.schema

    def state(self, keep: tuple[str, ...], key: bytes) -> State:
        sampling_key = self.data.sampling_key
        sample = partial(_sample, self.schema, self.unit, keep, sampling_key, self.ranked)
        if not self.data.retractions:
            return sample()
        return anew(sample, self.schema, self.unit_key.user, keep, self.source.held, sampling_key)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Rank all copies of all records, and go through them once."""
        copies = [(*record, n) for record, weight in inputs[0].items() for n in range(1, int(weight) + 1)]
        ranked = [self.schema.names.index(name) for name in self.ranked.names]
        hashed = [(*(copy[column] for column in ranked), copy[-1]) for copy in copies]
        ranks = record_ids(hashed, _numbered(self.ranked), self.data.sampling_key).tolist()
        unit_key = self.unit_key
        what = self.schema.names.index(self.unit.per[0] if self.unit.per else unit_key.user)
        users, cells, out = Counter[bytes](), Counter[tuple[bytes, bytes]](), Counter[Record]()
        for _, copy in sorted(zip(ranks, copies, strict=True), key=lambda pair: pair[0]):
            user = unit_key.of(copy[:-1])
            cell = user, encode(copy[what])
            if self.unit.per is None or cells[cell] < self.unit.per[1]:
                cells[cell] += 1
                users[user] += 1
                out[copy[:-1]] += users[user] <= int(self.most)
        return {record: Fraction(count) for record, count in out.items()}


@dataclass(frozen=True, eq=False)
class BoundBySource(Bound):
    """Plan node of the same where columns are computed before: a record is ranked by those of the source.

    They tell all that is computed of them, so equal records are those of equal ranks, and whatever questions compute,
    they look at one sample. It moves as little: it is a function of the person's own records (`preprocess.py`).
    """

    @property
    def ranked(self) -> Schema:
        return origin(self).schema


def _sample(schema: Schema, unit: Unit, keep: tuple[str, ...], key: bytes, ranked: Schema) -> State:
    arguments = schema, unit, keep, key, ranked
    return Sample(*arguments) if kernels.LIB is None else Reservoirs(kernels.LIB, *arguments)


class Sample:
    """What is kept of each user, with the ranks that decide it, where there are no compiled kernels.

    `Reservoirs` keeps the same, bit for bit. Records that were pushed out are forgotten.

    Copies of a record are numbered and ranked one by one, a lot at a time, so that the sample is uniform; what was
    counted of a record is its number of copies. A source only adds records, so what was pushed out never comes back:
    the number of records before any record, within both bounds, only grows.
    """

    def __init__(
        self, schema: Schema, unit: Unit, keep: tuple[str, ...], key: bytes, ranked: Schema | None = None
    ) -> None:
        self._schema, self._unit, self._keep, self._key = schema, unit, keep, key
        self._ranks = _numbered(ranked or schema)
        self._unit_key = UnitKey(unit, schema)
        self._copies = Table()
        self._kept: list[pl.DataFrame] = []
        self._out: list[pl.DataFrame] = []
        self._waiting: list[Batch] = []
        self._size = 0

    def absorb(self, port: int, batch: Batch) -> None:
        """Let records compete for a place; in lots that grow with the sample, so that each is sorted a few times."""
        self._waiting.append(batch)
        if sum(map(len, self._waiting)) > max(RECORDS_PER_LOT, self._size):
            self._compete()

    def emit(self) -> Batch:
        """Records that entered the sample since it was last asked, less those that they pushed out."""
        self._compete()
        (kept,) = self._kept
        entered = kept.filter(FRESH).select(*self._keep, pl.lit(1, pl.Int64).alias(WEIGHT))
        left = [out.select(*self._keep, pl.lit(-1, pl.Int64).alias(WEIGHT)) for out in self._out]
        self._kept, self._out = [kept.with_columns(pl.lit(value=False).alias(FRESH))], []
        return Batch(pl.concat([entered, *left]), self._schema.select(self._keep)).consolidate()

    def _compete(self) -> None:
        arrived = Batch.concat(self._waiting, self._schema).consolidate()
        self._waiting = []
        for lot in self._lots(arrived):
            ordered = pl.concat([*self._kept, self._ranked(lot)]).sort([*USER, *RANK])
            stays = self._stays(ordered)
            self._kept = [ordered.filter(stays)]
            self._out.append(ordered.filter(~stays & ~ordered[FRESH]))
        self._size = self._kept[0].height

    def _stays(self, ordered: pl.DataFrame) -> pl.Series:
        """Which of the rows, in the order of user and rank, are within the bounds."""
        inside = pl.lit(value=True)
        if self._unit.per is not None:
            inside = pl.int_range(pl.len()).over([*USER, *PLACE]) < self._unit.per[1]
        order = pl.col("inside").cum_sum().over(USER)
        within = ordered.lazy().with_columns(inside.cast(pl.Int64).alias("inside"))
        return within.select((pl.col("inside") > 0) & (order <= self._unit.at_most)).collect().to_series()

    def _lots(self, batch: Batch) -> Iterator[pl.DataFrame]:
        """Every copy of every record with its number, from 1: at least one lot, none larger than `RECORDS_PER_LOT`."""
        ids = identities(batch.frame, self._schema, self._key)
        known = self._copies.lookup(ids)
        self._copies.add(*combine(ids, batch.weights)[1:])
        ends = np.cumsum(batch.weights)
        starts = ends - batch.weights
        for first in range(0, max(1, int(ends[-1])) if len(ends) else 1, RECORDS_PER_LOT):
            some = slice(np.searchsorted(ends, first, "right"), np.searchsorted(starts, first + RECORDS_PER_LOT))
            begin = pl.Series(1 + known[some] + np.maximum(first - starts[some], 0))
            end = pl.Series(1 + known[some] + np.minimum(first + RECORDS_PER_LOT, ends[some]) - starts[some])
            yield batch.frame[some].with_columns(pl.int_ranges(begin, end).alias(COPY)).explode(COPY)

    def _ranked(self, frame: pl.DataFrame) -> pl.DataFrame:
        """One row for each copy, with the hashes of its user and of itself."""
        hashed = {USER: self._unit_key.ids(frame, self._key)}
        hashed[RANK] = identities(frame, self._ranks, self._key)
        if self._unit.per is not None:
            hashed[PLACE] = identities(frame, self._schema.select([self._unit.per[0]]), self._key)
        hashes = [
            pl.Series(name, np.ascontiguousarray(words))
            for names, ids in hashed.items()
            for name, words in zip(names, ids.T, strict=True)
        ]
        return frame.select(self._keep).with_columns(*hashes, pl.lit(value=True).alias(FRESH))


def _numbered(schema: Schema) -> Schema:
    """The columns of a record and the number of its copy."""
    return Schema((*schema.columns, Column(COPY, Kind.INT)))
