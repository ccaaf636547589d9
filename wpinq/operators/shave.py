"""Shave: cut each record's weight into numbered slices.

The state of a shard is one weight for each identity; the record's own columns pass through and are not kept. When the
only column is ranged (the `index` of an earlier `shave`), the state is a step function, and its size is the number of
distinct weights. Slices of equal thickness leave as one row with a ranged index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
import polars as pl

from wpinq.arguments import TEXT, require
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, positive
from wpinq.operators.align import fit_resolution
from wpinq.plan.builder import Builder, C
from wpinq.plan.forms import Unary
from wpinq.plan.node import Record, Weighted
from wpinq.plan.shapes import Keyed, Shape
from wpinq.records.batch import END, WEIGHT, Batch, weight_series
from wpinq.records.identity import identities
from wpinq.records.schema import Column, Kind, Schema, check_name
from wpinq.records.weights import WeightType
from wpinq.state.histogram import FEW, is_steps, ranges
from wpinq.state.states import Hashed, State
from wpinq.state.steps import Integers, Steps
from wpinq.state.table import Ids, Table, Weights, combine
from wpinq.state.waiting import Tally, Waiting


def shave(self: Builder[C], thickness: Amount | Sequence[Amount] = 1, name: str = "index") -> C:
    """Cut each record into slices `(record, 1), (record, 2), ...` of bounded weight.

    Weights:    out[x, i] = sign(in[x]) * clamp(|in[x]| - t_1 - ... - t_(i-1), 0, t_i), numbered from 1 as the post does
    Stability:  1; each slice is a monotone piece of in[x] and the pieces sum to it, so moving in[x] by d moves the
                slices of x by d in total (privacy rule 20).
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Shave"); McSherry, Things that count, 2018.

    Args:
        thickness: Thickness of every slice, in weight, positive and exact; or a sequence, whose last one repeats.
        name: Name of the new column.

    Raises:
        ExactnessError: A thickness is not positive.
        PlanError: Slices are thicker than weights can be, or so thin that one record makes too many of them, or it is
            no name.

    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(protected(page="text").shave(), [("a",), ("a",)])
    {('a', 1): 1, ('a', 2): 1}
    """
    many = thickness if isinstance(thickness, Sequence) and not isinstance(thickness, str) else [thickness]
    slices = tuple(positive(item, "shave(thickness=...)") for item in many)
    require(name, TEXT, "shave(name=...)")
    check_name(name, "shave(name=...)")
    if not slices:
        raise PlanError("shave(thickness=...): takes a thickness, or a sequence of some; there is none.")
    finest = math.lcm(*(entry.denominator for entry in slices))
    gain = self._node.gain
    if slices[-1] * MAX_SLICES < gain:  # the one that repeats
        raise PlanError(
            f"shave(thickness=...): one record can weigh {decimal(gain)} here and would make too many slices, "
            f"more than {MAX_SLICES:,}; cut them {decimal(gain / MAX_SLICES)} thick or thicker."
        )
    node = Shave(fit_resolution(self._node, finest), slices, name)
    if sum(slices) * node.resolution >= (THICKEST**2 if node.held.wide else THICKEST):
        raise PlanError("shave(thickness=...): no weight is as thick as these slices; make them thinner.")
    return self._then(node)


HeldWeights: TypeAlias = tuple[WeightType, WeightType]
"""How the weights of records and of slices are held."""
MAX_SLICES = 1 << 20
"""Slices of one record: bounded, so that running out of memory cannot reveal that a heavy record exists. It also keeps
the number of any slice below 2^61, since no record weighs more than 2^40 gains."""
SMALL = 1 << 16
"""Weights in units of 1/resolution that are counted in an array."""
THICKEST = 2**62
"""Units of 1/resolution of all given slices together, and its square in 128 bits; a wider sum would overflow where
there is a record, and only there."""


@dataclass(frozen=True, eq=False)
class Shave(Unary):
    """Plan node of `shave`."""

    thickness: tuple[Fraction, ...]
    name: str
    apart = True
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        """The record and the number of its slice."""
        before = self.source.schema if is_steps(self.source.schema) else self.source.schema.expanded()
        return Schema((*before.columns, Column(before.fresh(self.name), Kind.INT, ranged=True)))

    @property
    def resolution(self) -> int:
        """Fine enough for every thickness."""
        return math.lcm(self.source.resolution, *(thickness.denominator for thickness in self.thickness))

    @property
    def record_moves(self) -> Fraction:
        """The thickness of a slice, and twice as much where it can be negative."""
        return max(self.thickness) * (1 if self.source.nonnegative else 2)

    @property
    def title(self) -> str:
        shown = ", ".join(decimal(thickness) for thickness in self.thickness)
        return f"shave({'' if self.thickness == (Fraction(1),) else shown})"

    def lower(self, needed: frozenset[str]) -> Shape:
        """A record meets only itself, so the record is its own key."""
        units = tuple(int(thickness * self.resolution) for thickness in self.thickness)
        held = (self.source.held, self.held)
        if is_steps(self.source.schema):
            return Keyed(((),), lambda key: RangedSlices(self.schema, needed, units, held))
        keep = tuple(name for name in self.source.schema.names if name in needed)
        made = partial(Slices, self.schema, keep, units, held)
        return Keyed((self.source.schema.names,), made, hashed=not keep)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Slice by slice."""
        out: dict[Record, Fraction] = {}
        for record, weight in inputs[0].items():
            rest, index = abs(weight), 0
            while rest > 0:
                cut = min(rest, self.thickness[min(index, len(self.thickness) - 1)])
                index, rest = index + 1, rest - cut
                out[(*record, index)] = cut if weight > 0 else -cut
        return out


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
            slices = moved_slices(before, after, self._units)
        else:
            before, after, times = _alike(before, after)
            slices = moved_slices(before, after, self._units)
            slices["weight"] = slices["weight"] * times[slices["row"]]
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
        slices = moved_slices(before, after, self._units)
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
    if before.dtype == object or len(before) < FEW:
        return before, after, np.ones(len(before), np.int64)
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


def moved_slices(before: Integers, after: Integers, units: tuple[int, ...]) -> dict[str, Integers]:
    """Slices of the weights after, less the slices of the weights before, as ranges of the index.

    Args:
        before: Weights, in units of 1/resolution.
        after: Weights, in units of 1/resolution, row by row.
        units: Thicknesses of the slices in units of 1/resolution; the last repeats.

    Returns:
        `row`, `start`, `end` (exclusive) and `weight` of each range; ranges that did not move are absent.
    """
    parts = []
    single, last, offset = units[:-1], units[-1], 0
    for index, thickness in enumerate(single, start=1):
        change = _clamp(after, offset, thickness) - _clamp(before, offset, thickness)
        parts.append(_range(np.full(len(after), index), np.full(len(after), index + 1), change))
        offset += thickness
    tops = [np.sign(w) * np.maximum(np.abs(w) - offset, 0) for w in (before, after)]
    whole = [np.abs(top) // last for top in tops]
    # whole slices that stand before and after need not move
    same = np.where(np.sign(tops[0]) == np.sign(tops[1]), np.minimum(*whole), 0)
    first = len(units)
    for sign, top, count in zip((-1, 1), tops, whole, strict=True):
        toward = sign * np.sign(top)
        parts.append(_range(first + same, first + count, toward * last))
        parts.append(_range(first + count, first + count + 1, toward * (np.abs(top) - count * last)))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _clamp(weight: Integers, offset: int, thickness: int) -> Integers:
    clamped: Integers = np.sign(weight) * np.clip(np.abs(weight) - offset, 0, thickness)
    return clamped


def _range(start: Integers, end: Integers, weight: Integers) -> dict[str, Integers]:
    row = np.flatnonzero((end > start) & (weight != 0))
    return {"row": row, "start": start[row].astype(np.int64), "end": end[row].astype(np.int64), "weight": weight[row]}
