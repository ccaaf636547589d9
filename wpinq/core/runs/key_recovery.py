"""The names of published bins: the dataflow runs once more and keeps the records of the published identities.

A histogram holds identities, so a name leaves the dataflow only after it was decided that it may be published. The
second run must compute the same records as the first. A plan with a fingerprint does, unless its source changed, and
then the source is refused for every query alike. A plan without one may compute something else by then, and whether
that is noticed would depend on records; so it is refused before anything is charged, unless the histogram holds the
bins themselves, as it does for numbers of slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import polars as pl

from wpinq.core.operators.contribution.unit_key import ByUnit
from wpinq.core.operators.distinct import Distinct
from wpinq.core.operators.slices import Slicing
from wpinq.core.plan.forms import Linear, Unary
from wpinq.core.plan.node import Node, Record, Weighted, rewrite, sources, steps
from wpinq.core.plan.shapes import Shape, Stateless
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Schema
from wpinq.core.runs.run import compute
from wpinq.core.state.histogram import Histogram, is_steps
from wpinq.core.state.table import Ids, Table, Weights, combine
from wpinq.errors import EngineError, PlanError

BINS_PER_LOT = 1 << 20
"""Bins that are processed at once."""

Bins: TypeAlias = tuple["Ids | Weights", Ids, Weights]
"""What is needed to name bins (integers or identities), their identities, their true weights."""
CHANGED = "release: the source gave other records when it was read again; protect a copy of it."


def named(node: Node, ids: Ids) -> pl.DataFrame:
    """Find the bins of these identities, in their order.

    Raises:
        EngineError: The source does not hold them any more.
        SourceError, LedgerError: It cannot be read again, or changed.
    """
    frame, places = found_in(node, ids)
    if len(places) != len(ids):
        raise EngineError(CHANGED)
    return frame


def found_in(node: Node, ids: Ids) -> tuple[pl.DataFrame, np.ndarray]:
    """Those bins of these identities that a plan gives, and their places among them, in order.

    Raises:
        SourceError, LedgerError: See `named`.
    """
    if not len(ids):
        return Batch.empty(node.schema).frame.select(node.schema.names), np.empty(0, np.int64)
    tap = Tap(wider(node), sources(node)[0].identity_key, ids)
    compute([tap], here=True)  # what it finds stays in this process
    return tap.recovered()


def wider(node: Node) -> Node:
    """The plan without the steps that give no record of their own: its bins and perhaps more, found in less time.

    That holds where the plan is a chain of steps in which more weight gives the same records and perhaps more: those
    that look at each record alone, and `shave`. A group, or a difference, of more records is another record.
    """
    chain = [node]
    while chain[-1].inputs and isinstance(chain[-1], (Linear, Slicing, ByUnit, Distinct)):
        chain.extend(chain[-1].inputs)
    if chain[-1].inputs:
        return node

    def passed(step: Node) -> Node:
        fewer = isinstance(step, (ByUnit, Distinct)) and step.schema == step.source.schema
        return step.inputs[0] if fewer else step

    result = rewrite(node, passed)
    try:
        for step in steps(result):
            _ = step.held
    except PlanError:  # what is not bounded may weigh more than can be held
        return node
    return result


@dataclass(frozen=True, eq=False)
class Tap(Unary):
    """Keeps the records with some identities, and passes nothing on: the histogram of the run that finds names."""

    key: bytes = field(repr=False)
    wanted: Ids = field(repr=False)
    seen: list[pl.DataFrame] = field(default_factory=list, repr=False)
    shown = "release"

    def lower(self, needed: frozenset[str]) -> Shape:
        """Each record by itself."""
        order, distinct, _ = combine(self.wanted, np.ones(len(self.wanted), np.int64))
        places = Table()
        places.add(distinct, order.astype(np.int64) + 1)
        return Stateless(lambda batch: self._note(batch, places))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Nothing."""
        return {}

    def recovered(self) -> tuple[pl.DataFrame, np.ndarray]:
        """The bins that were seen and their places among the identities, in that order."""
        empty = Batch.empty(self.schema.expanded()).frame.drop(WEIGHT).with_columns(pl.lit(0).alias("\0place"))
        frame = pl.concat([empty, *self.seen], how="vertical_relaxed").unique("\0place").sort("\0place")
        return frame.drop("\0place"), frame["\0place"].to_numpy() - 1

    def _note(self, batch: Batch, places: Table) -> Batch:
        written = canonical.distinct(batch.expand(batch.schema.ranged).frame.drop(WEIGHT), batch.schema)
        position = places.lookup(identities(written, self.schema.expanded(), self.key))
        self.seen.append(written.with_columns(pl.Series("\0place", position)).filter(pl.col("\0place") > 0))
        return Batch.empty(batch.schema)


def present(histogram: Histogram, node: Node) -> Iterator[Bins]:
    """All bins of non-zero weight, in lots, in an order that follows from the histogram alone."""
    ids, _ = histogram.content()
    if not is_steps(node.schema):
        for first in range(0, len(ids), BINS_PER_LOT):
            some = ids[first : first + BINS_PER_LOT]
            yield some, some, histogram.lookup(pl.DataFrame(), some)
        return
    starts, ends = ids.view(np.int64)[:, 0], ids.view(np.int64)[:, 1]
    past = np.cumsum(ends - starts)
    for first in range(0, int(past[-1]) if len(past) else 0, BINS_PER_LOT):
        number = np.arange(first, min(first + BINS_PER_LOT, int(past[-1])))
        piece = np.searchsorted(past, number, "right")
        integers: Weights = (ends[piece] - (past[piece] - number)).astype(np.int64)
        frame = pl.DataFrame({node.schema.names[0]: integers})
        yield (
            integers,
            identities(frame, node.schema.expanded(), sources(node)[0].identity_key),
            histogram.lookup(frame, ids),
        )


def names_of(node: Node, chosen: list[Ids | Weights]) -> pl.DataFrame:
    """The bins that were chosen, as columns."""
    schema: Schema = node.schema
    if is_steps(schema):
        return pl.DataFrame({schema.names[0]: np.concatenate([np.empty(0, np.int64), *chosen])})
    return named(node, np.concatenate([np.empty((0, 2), np.uint64), *chosen]))
