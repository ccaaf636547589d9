"""The names of bins that are known by identity: the dataflow runs once more, and only what is published is kept.

A histogram holds identities, so a name leaves the dataflow only after it was decided that it may.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import polars as pl

from wpinq.errors import EngineError
from wpinq.measurements.run import compute
from wpinq.plan.node import Node, Record, Shape, Stateless, Unary, Weighted, sources
from wpinq.records import canonical
from wpinq.records.batch import WEIGHT, Batch
from wpinq.records.identity import identities
from wpinq.state.table import Ids, Table, combine


def named(node: Node, ids: Ids) -> pl.DataFrame:
    """Find the bins of these identities, in their order.

    Raises:
        EngineError: The source does not hold them any more.
        SourceError, LedgerError: It cannot be read again, or changed.
    """
    if not len(ids):
        return Batch.empty(node.schema).frame.select(node.schema.names)
    tap = Tap(node, sources(node)[0].identity_key, ids)
    compute([tap])
    return tap.found()


@dataclass(frozen=True, eq=False)
class Tap(Unary):
    """The same collection, of which it notes the records of some identities."""

    key: bytes = field(repr=False)
    wanted: Ids = field(repr=False)
    seen: list[pl.DataFrame] = field(default_factory=list, repr=False)

    @property
    def title(self) -> str:
        """How errors call it."""
        return "release"

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """All columns of the bins."""
        return (frozenset(self.schema.names),)

    def lower(self, needed: frozenset[str]) -> Shape:
        """Each record by itself."""
        order, distinct, _ = combine(self.wanted, np.ones(len(self.wanted), np.int64))
        places = Table()
        places.add(distinct, order.astype(np.int64) + 1)
        return Stateless(lambda batch: self._note(batch, places))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Nothing moves."""
        return dict(inputs[0])

    def found(self) -> pl.DataFrame:
        """The bins, in the order of their identities."""
        frame = pl.concat(self.seen).unique("\0place").sort("\0place") if self.seen else pl.DataFrame()
        if frame.height != len(self.wanted):
            raise EngineError("release: the source gave other records when it was read again; protect a copy of it.")
        return frame.drop("\0place")

    def _note(self, batch: Batch, places: Table) -> Batch:
        written = canonical.distinct(batch.expand(batch.schema.ranged).frame.drop(WEIGHT), batch.schema)
        place = places.lookup(identities(written, self.schema.expanded(), self.key))
        self.seen.append(written.with_columns(pl.Series("\0place", place)).filter(pl.col("\0place") > 0))
        return batch
