"""Slices: what `shave` cuts, its states, and how slices move with weights.

The state of a shard is one weight for each identity; the record's own columns pass through and are not kept. When the
only column is ranged (the `index` of an earlier `shave`), the state is a step function, and its size is the number of
distinct weights. Slices of equal thickness leave as one row with a ranged index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wpinq.arguments import TEXT, require
from wpinq.core.kernels import LIB
from wpinq.core.kernels.repeats import of_ids
from wpinq.core.plan.forms import Unary
from wpinq.core.plan.node import Builder, Record
from wpinq.core.records.batch import END, WEIGHT, Batch, weight_series
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Schema, check_name
from wpinq.core.records.weights import WeightType
from wpinq.core.state.histogram import FEW, Integers, Steps, ranges
from wpinq.core.state.states import Hashed, State
from wpinq.core.state.table import Ids, Table, Weights, combine
from wpinq.core.state.write_buffer import Tally, Waiting
from wpinq.errors import PlanError
from wpinq.exact import decimal

MAX_SLICES = 1 << 20
"""Slices of one record: bounded, so that running out of memory cannot reveal that a heavy record exists. It also keeps
the number of any slice below 2^61, since no record weighs more than 2^40 gains."""
THICKEST = 2**62
"""Units of 1/resolution of all given slices together, and its square in 128 bits; a wider sum would overflow where
there is a record, and only there."""


HeldWeights: TypeAlias = tuple[WeightType, WeightType]
"""How the weights of records and of slices are held."""
SMALL = 1 << 16
"""Weights in units of 1/resolution that are counted in an array."""
LARGEST, ROWS_PER_LOT = 1 << 62, 1 << 16
"""What fits in 64 bits with its neighbours; rows that are cut at a time."""


@dataclass(frozen=True, eq=False)
class Slicing(Unary):
    """A step that cuts the weights of records into slices. What holds of it is claimed by each such step itself."""


def checked_name(name: str) -> None:
    """Refuse what is no name of the column of slices.

    Raises:
        PlanError: It is none.
    """
    require(name, TEXT, "shave(name=...)")
    check_name(name, "shave(name=...)")


def refuse_thin(self: Builder[Any], thinnest: Fraction, argument: str) -> None:
    """Refuse slices so thin that one record makes too many of them.

    Raises:
        PlanError: They are.
    """
    gain = self._node.gain
    if thinnest * MAX_SLICES < gain:
        raise PlanError(
            f"shave({argument}=...): one record can weigh {decimal(gain)} here and would make too many slices, "
            f"more than {MAX_SLICES:,}; cut them {decimal(gain / MAX_SLICES)} thick or thicker."
        )


def sliced(record: Record, weight: Fraction, thickness: Sequence[Fraction]) -> dict[Record, Fraction]:
    """The slices of one record."""
    out: dict[Record, Fraction] = {}
    rest, index = abs(weight), 0
    while rest > 0:
        cut = min(rest, thickness[min(index, len(thickness) - 1)])
        index, rest = index + 1, rest - cut
        out[(*record, index)] = cut if weight > 0 else -cut
    return out


@dataclass(frozen=True)
class Cuts:
    """Where weights are cut, in units of 1/resolution.

    Attributes:
        row: For each slice before the last thickness, which repeats: whose it is.
        index: Its number.
        offset: Where it begins.
        thickness: How thick it is.
        first: The number of the first slice of the last thickness, of all rows or row by row; and so on.
        start: Where that begins.
        last: The last thickness.
    """

    row: NDArray[np.int64]
    index: NDArray[np.int64]
    offset: Integers
    thickness: Integers
    first: int | NDArray[np.int64]
    start: int | Integers
    last: int | Integers

    @classmethod
    def alike(cls, units: tuple[int, ...], rows: int, reach: int | None = None) -> Cuts:
        """Those of rows that are all cut alike; of rows that weigh no more than `reach`, those that they reach."""
        single = np.array(units[:-1], object)
        offset = np.cumsum(single) - single if len(single) else single
        start, last, whole = sum(units[:-1]), units[-1], sum(units)
        if reach is not None and reach < LARGEST:
            reached = offset < reach
            single, offset = np.minimum(single[reached], LARGEST), offset[reached]
            start, last, whole = min(start, LARGEST), min(last, LARGEST), 0
        kind = np.int64 if whole < 2**63 else object
        return cls(
            np.tile(np.arange(rows), len(single)), np.repeat(np.arange(1, len(single) + 1), rows),
            np.repeat(offset, rows).astype(kind), np.repeat(single, rows).astype(kind),
            len(units), start, last,
        )  # fmt: skip


class Slices(State):
    """The weights of records by identity; slices leave as ranges of the index."""

    def __init__(
        self, schema: Schema, keep: tuple[str, ...], units: tuple[int, ...], held: HeldWeights, key: bytes
    ) -> None:
        self._schema, self._units, self._held, self._key = schema, units, held, key
        self._records = Schema(schema.columns[:-1])
        self._keep = keep
        self._table = Table(held[1].array)
        self._pending = Waiting(self._records) if keep else Tally(self._records, key)

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        self._pending.absorb(batch)

    def absorb_hashed(self, records: Hashed) -> None:
        """Keep the change until `emit`; no column of these records is kept."""
        if isinstance(self._pending, Tally):
            self._pending.add(records.ids, records.weights)

    def emit(self) -> Batch:
        """Slices that came or went with the pending changes."""
        records, ids, change = self._changes()
        delta = self._refined(change)
        before = self._table.lookup(ids)
        self._table.add(ids, delta)
        return self._moved(records, before, before + delta)

    def last(self) -> Iterator[Batch]:
        """The same; of a finite source, whose changes are the first, weights are cut as they are added up."""
        if not isinstance(self._pending, Tally) or len(self._table):
            yield self.emit()
            return
        for _, change in self._pending.blocks():
            after = self._refined(change)
            yield self._moved(pl.DataFrame(), np.zeros_like(after), after)

    def _refined(self, change: Weights) -> Weights:
        coarse, fine = self._held
        delta: Weights = np.multiply(change, fine.resolution // coarse.resolution, dtype=fine.array)
        return delta

    def _moved(self, records: pl.DataFrame, before: Weights, after: Weights) -> Batch:
        """Slices that came or went where weights moved."""
        if self._keep:
            slices = moved_alike(before, after, self._units)
        else:
            before, after, times = _alike(before, after)
            slices = moved_slices(before, after, Cuts.alike(self._units, len(after)))
            slices["weight"] = slices["weight"] * times[slices["row"]]
        return self._ranged(records, slices)

    def _ranged(self, records: pl.DataFrame, slices: dict[str, Integers]) -> Batch:
        """Slices as records with a ranged index."""
        name = self._schema.names[-1]
        frame = pl.DataFrame(
            {name: slices["start"], WEIGHT: weight_series(slices["weight"], self._held[1]), END + name: slices["end"]}
        )
        if self._keep:
            frame = pl.concat([records[slices["row"]], frame], how="horizontal")
        return Batch(frame, self._schema.select((*self._keep, name)))

    def _changes(self) -> tuple[pl.DataFrame, Ids, Weights]:
        """Records that changed, as far as they are kept, with their identities and by how much."""
        if isinstance(self._pending, Tally):
            return pl.DataFrame(), *self._pending.take()
        batch = self._pending.take()
        rows, ids, change = combine(identities(batch.frame, self._records, self._key), batch.weights)
        return batch.frame.select(self._keep)[rows], ids, change


class RangedSlices(State):
    """The weights over a ranged column as a step function; slices leave as boxes of the column and the index."""

    def __init__(self, schema: Schema, needed: frozenset[str], units: tuple[int, ...], held: HeldWeights) -> None:
        self._schema, self._needed, self._units, self._held = schema, needed, units, held
        self._steps, self._pending = (Steps(held[1].array) for _ in range(2))

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        self._pending.add(*ranges(batch.refine(*self._held)))

    def emit(self) -> Batch:
        """Slices that came or went with the pending changes."""
        start, end, before, after = self._steps.update(self._pending)
        self._pending = Steps(self._held[1].array)
        slices = moved_slices(before, after, Cuts.alike(self._units, len(after)))
        column, name = self._schema.names
        row = slices["row"]
        frame = pl.DataFrame(
            {
                column: start[row],
                name: slices["start"],
                WEIGHT: weight_series(slices["weight"], self._held[1]),
                END + column: end[row],
                END + name: slices["end"],
            }
        )
        return Batch(frame, self._schema).select(self._needed or self._schema.names)


def _alike(before: Integers, after: Integers) -> tuple[Integers, Integers, Integers]:
    """Each distinct change of a weight, and how many records have it."""
    few = len(before) < FEW
    if before.dtype == object or (few and LIB is None):
        return before, after, np.ones(len(before), np.int64)
    if few and LIB is not None:
        rows, times = of_ids(LIB, np.stack([before, after], axis=1).view(np.uint64), np.ones(len(before), np.int64))
        return before[rows], after[rows], times
    if not before.any():
        after, times = _distinct(after)
        return np.zeros_like(after), after, times
    moves = pl.DataFrame({"before": before, "after": after}).group_by("before", "after").len()
    first, second, times = (moves[name].cast(pl.Int64).to_numpy() for name in moves.columns)
    return first, second, times


def _distinct(weights: Integers) -> tuple[Integers, Integers]:
    """Distinct weights, and how often each occurs; most are small, and need not be sorted to be counted."""
    small = (weights >= 0) & (weights < SMALL)
    counts = np.bincount(weights[small])
    result = np.flatnonzero(counts)
    others, times = np.unique(weights[~small], return_counts=True)
    return np.concatenate([result, others]), np.concatenate([counts[result], times])


def moved_slices(before: Integers, after: Integers, cuts: Cuts) -> dict[str, Integers]:
    """Slices of the weights after, less the slices of the weights before, as ranges of the index.

    Args:
        before: Weights, in units of 1/resolution.
        after: Weights, in units of 1/resolution, row by row.
        cuts: Where they are cut.

    Returns:
        `row`, `start`, `end` (exclusive) and `weight` of each range; ranges that did not move are absent.
    """
    change, was = (_clamp(weights[cuts.row], cuts.offset, cuts.thickness) for weights in (after, before))
    single = _range(cuts.index, cuts.index + 1, change - was)
    parts = [{**single, "row": cuts.row[single["row"]]}]
    first, last = cuts.first, cuts.last
    tops = [np.sign(w) * np.maximum(np.abs(w) - cuts.start, 0) for w in (before, after)]
    whole = [np.abs(top) // last for top in tops]
    # whole slices that stand before and after need not move
    same = np.where(np.sign(tops[0]) == np.sign(tops[1]), np.minimum(*whole), 0)
    for sign, top, count in zip((-1, 1), tops, whole, strict=True):
        toward = sign * np.sign(top)
        parts.append(_range(first + same, first + count, toward * last))
        parts.append(_range(first + count, first + count + 1, toward * (np.abs(top) - count * last)))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def moved_alike(before: Integers, after: Integers, units: tuple[int, ...]) -> dict[str, Integers]:
    """The same of rows that are all cut alike: some rows at a time, and only at the slices that they reach.

    Weights that fit are held in 64 bits meanwhile; slices that are thicker than those hold no weight that ends them.
    """
    parts = []
    for begin in range(0, max(len(after), 1), ROWS_PER_LOT):
        was, now = (weights[begin : begin + ROWS_PER_LOT] for weights in (before, after))
        reach = max((int(np.abs(weights).max(initial=0)) for weights in (was, now)), default=0)
        cuts = Cuts.alike(units, len(now), reach)
        if now.dtype == object and reach < LARGEST:
            was, now = was.astype(np.int64), now.astype(np.int64)
        parts.append(moved_slices(was, now, cuts))
        parts[-1]["row"] = parts[-1]["row"] + begin
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _clamp(weight: Integers, offset: Integers, thickness: Integers) -> Integers:
    clamped: Integers = np.sign(weight) * np.clip(np.abs(weight) - offset, 0, thickness)
    return clamped


def _range(start: Integers, end: Integers, weight: Integers) -> dict[str, Integers]:
    row = np.flatnonzero((end > start) & (weight != 0))
    return {"row": row, "start": start[row].astype(np.int64), "end": end[row].astype(np.int64), "weight": weight[row]}
