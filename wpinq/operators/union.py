"""Union: the larger of two weights. Its node is that of `intersect` too: both of one pair cost as much as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from wpinq.batch import WEIGHT, Batch, weight_type
from wpinq.operators.lattice import Align, aligned
from wpinq.plan import Collection as Weighted
from wpinq.plan import Keyed, Node, Record, Shape, State, fingerprints
from wpinq.schema import Kind, Schema
from wpinq.state.pointwise import Points, Pointwise
from wpinq.state.table import Ids, Weights
from wpinq.state.waiting import Waiting

if TYPE_CHECKING:
    from wpinq.collection import Collection


def union(self: Collection, other: Collection) -> Collection:
    """Take the larger weight of each record.

    Weights:    out[x] = max(self[x], other[x]); a record that is absent weighs 0
    Stability:  1 for each input, and the union and the intersection of one pair move by no more together: when one of
                two numbers moves by d, their maximum or their minimum moves by d in all, because max + min is their
                sum and both are monotone. So measurements of the two cost the larger of them (privacy rule 25).
    Source:     Proserpio, Goldberg, McSherry, PVLDB 7(8), 2014 ("Union"); wPINQ in Rust (`min_max`).

    Args:
        other: A collection with as many columns; they are matched by position and named as in this one.

    Raises:
        PlanError: The numbers of columns differ.

    >>> pages = protected(page="text")
    >>> evaluate(pages.union(pages.filter(lambda page: page == "a")), [("a",), ("b",), ("b",)])
    {('a',): 1, ('b',): 2}
    """
    left, right = aligned([self._node, other._node], "union")
    return self._then(Extreme(left, right, larger=True))


@dataclass(frozen=True, eq=False)
class Extreme(Node):
    """Plan node of `union` and `intersect`."""

    left: Node
    right: Node
    larger: bool

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Both."""
        return (self.left, self.right)

    @property
    def schema(self) -> Schema:
        """The columns of both, written out."""
        return self.left.schema.expanded()

    @property
    def lattice(self) -> int:
        """The lattice of both."""
        return self.left.lattice

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return "union" if self.larger else "intersect"

    @property
    def part(self) -> tuple[str, str] | None:
        """The pair, in either order, and which of the two it is; a pair that cannot be told costs the sum."""
        pair = [one.source if isinstance(one, Align) else one for one in self.inputs]
        digests = fingerprints(*pair)
        known = sorted(digest for digest in map(digests.get, pair) if digest is not None)
        return (f"pair {sha256(b''.join(known)).hexdigest()}", self.title) if len(known) == 2 else None

    @property
    def identity(self) -> tuple[bytes | None, ...]:
        """Which of the two."""
        return (self.title.encode(),)

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """The whole record is the key."""
        names = frozenset(self.schema.names)
        return (names, names)

    def lower(self, needed: frozenset[str]) -> Shape:
        """A record meets only itself."""
        names = self.schema.names
        keep = tuple(name for name in names if name in needed) or names[:1]
        points = Points(self.schema, keep, 2, self.lattice, self.lattice, self._choose)
        return Keyed((names, names), lambda key: Extremes(points, self.larger, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Record by record."""
        choose = max if self.larger else min
        zero = Fraction(0)
        return {x: choose(inputs[0].get(x, zero), inputs[1].get(x, zero)) for x in {**inputs[0], **inputs[1]}}

    def _choose(self, weights: Sequence[Weights], ids: Ids) -> Weights:
        chosen: Weights = (np.maximum if self.larger else np.minimum)(*weights)
        return chosen


SIDES = ["\0left", "\0right"]


class Extremes(State):
    """The first change is compared in columns, many times faster; identities are made when a second one comes."""

    def __init__(self, points: Points, larger: bool, key: bytes) -> None:
        self._points, self._key = points, key
        self._choose = pl.max_horizontal if larger else pl.min_horizontal
        self._pending = [Waiting(points.schema) for _ in SIDES]
        self._compared: list[Batch] = []
        floats = any(column.kind is Kind.FLOAT for column in points.schema)  # 0.0 and -0.0 are one value
        self._table = Pointwise(points, key) if floats else None

    def absorb(self, port: int, batch: Batch) -> None:
        """Keep the change until it is asked for."""
        (self._table.absorb if self._table else self._in_columns)(port, batch)

    def emit(self) -> Batch:
        """How the output moved with the pending changes."""
        if self._table:
            return self._table.emit()
        changes = [waiting.take() for waiting in self._pending]
        if self._compared:
            return self._settled(changes)
        self._compared = changes if any(len(change) for change in changes) else []
        return self._extremes(changes)

    def _in_columns(self, port: int, batch: Batch) -> None:
        self._pending[port].absorb(batch)

    def _settled(self, changes: Sequence[Batch]) -> Batch:
        """Take in by identity what was compared in columns, and from now on all."""
        self._table = Pointwise(self._points, self._key)
        for batches in (self._compared, changes):
            for port, batch in enumerate(batches):
                self._table.absorb(port, batch)
            found = self._table.emit()
        self._compared = []
        return found

    def _extremes(self, changes: Sequence[Batch]) -> Batch:
        kind, names, keep = weight_type(self._points.lattice), self._points.schema.names, self._points.keep
        zero, own = pl.lit(0, kind), pl.col(WEIGHT).cast(kind)
        sides = [
            change.frame.lazy().select(
                *names, *((own if place == port else zero).alias(name) for place, name in enumerate(SIDES))
            )
            for port, change in enumerate(changes)
        ]
        sums = pl.concat(sides).group_by(names).agg(pl.col(SIDES).sum())
        found = sums.select(*keep, self._choose(SIDES).alias(WEIGHT)).filter(pl.col(WEIGHT) != 0)
        return Batch(found.collect(), self._points.schema.select(keep))
