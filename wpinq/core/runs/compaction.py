"""Merge: one epoch in the place of many, from which a restarted stream goes on with the same answers.

A live source that keeps n epochs answers of those alone: continual measurements at the last n, windows that the last n
closed, from records of the 2 n last ones, and single measurements, which are made before a restart takes anything in,
of the first epoch. So of the epochs from the second on up to one that is no longer held nothing is asked any more but
what they leave behind in continual measurements. These epochs can be replaced by one, M, whose records are

- where the unit is a record: all their records, equal ones added up;
- where it is a person: those that `First` kept of them, in the order of epochs, after those of the first;

with the columns alone that a continual plan, or the bound, reads; the others are null.

*Why every later answer is the same, bit for bit.* A continual plan is linear for each record above the bound
(`refuse_unless_linear`), so its histogram is the sum over records of weight times image, and an image is made of the
columns that the plan reads. Without a bound the histogram after M therefore equals the one after the last merged epoch,
and linear steps have no other state. With a bound, let k(u) be the weight that `First` has kept of a unit u. By
definition what it kept in the first epoch and in the merged ones is k(u) <= at_most together, so when M comes there is
room for all of M's records of u, in whatever order they are ranked: `First` keeps them all, passes all of them on, and
remembers k(u), which is all that it ever remembers. Its output summed over epochs is that of before, hence so are the
histograms of the plans above; and as its state is that of before, so is all that it does later. Several records may
become one below the bound (`protect(derive=)`), since nothing above tells them apart: what is kept is what there is
room for of all of them together.

The noise of a continual measurement is a function of secret, epoch and bin, and that of windows is bound to the records
that they count (privacy rules 5 and 7): both are what they were. What a merge leaves out changes no later answer and
reaches no one, so it is no release and costs nothing.

A plan that reads other columns, or keeps others of a person's records, would count too few: it is refused before it is
charged (`refuse_merged`), and a single measurement's plan is not measured again (`Running.take`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from wpinq.core.operators.contribution.first import First
from wpinq.core.plan.forms import each_record
from wpinq.core.plan.node import Node, Source, fingerprints, rewrite, steps
from wpinq.core.records import kinds as values
from wpinq.core.records.batch import WEIGHT, Batch, rows_of
from wpinq.core.records.log import Epoch, Log, Merged, records_in
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.runs.timeline import Timeline
from wpinq.core.state.table import Weights
from wpinq.errors import PlanError

ROW = "\0row"
ROWS = 1 << 17
"""Rows of epochs that are looked at together: to begin costs more than many small epochs do."""


def covers(merged: Merged, root: Node) -> bool:
    """Whether a plan has after merged epochs the histogram that it has after the epochs themselves.

    It must be linear above the bound, as continual plans are; others are never asked about again.
    """
    bound = _bound_of([root])
    return bound is not None and bound[1] == merged.bound and _read([root]) <= set(merged.columns)


def refuse_merged(log: Timeline, root: Node) -> None:
    """Refuse a continual plan that needs more of the merged epochs than there is.

    Raises:
        PlanError: It does.
    """
    if log.merged is not None and not covers(log.merged, root):
        what = ", ".join(log.merged.columns) or "no column"
        raise PlanError(
            f"measure(continual=True): {log.name} has merged what came before epoch {log.merged.last + 1} to what was "
            f"measured then: {what}, with the same bound and the same steps before it. This would count too few; "
            "leave it out, or begin anew with another directory. Nothing was charged."
        )


def mergeable(roots: Sequence[Node]) -> bool:
    """Whether epochs can be merged for some continual plans: they keep the same records, in ways that have a name."""
    return _bound_of(roots) is not None


def merge(roots: Sequence[Node], schema: Schema, epochs: Iterable[Epoch], last: int) -> Epoch:
    """The epoch that stands for the others after the first.

    Args:
        roots: The continual plans; `mergeable` holds for them.
        schema: The columns of the source.
        epochs: All epochs from the first on, in order.
        last: The number of the last of them.
    """
    bound, name = _bound_of(roots) or (None, "")
    columns = schema.kept(_read(roots))
    keeper = None if bound is None else _Keeper(bound)
    parts: list[pl.DataFrame] = []
    watermark, records = None, 0
    for number, lot in enumerate(_lots(epochs)):
        frame = pl.concat([epoch.frame for epoch in lot])
        if keeper is not None:
            frame = keeper.kept(frame, np.repeat(np.arange(len(lot)), [epoch.frame.height for epoch in lot]))
        if not number:  # the first epoch, which stays as it is
            continue
        parts.append(_added(frame, schema, columns))
        watermark = lot[-1].watermark
        records += sum(epoch.merged.records if epoch.merged else records_in(epoch.frame) for epoch in lot)
    frame = parts[0] if len(parts) == 1 else _added(pl.concat(parts), schema, columns)
    return Epoch(_with_nulls(frame, schema), watermark, Merged(last, records, columns, name))


def _lots(epochs: Iterable[Epoch]) -> Iterator[list[Epoch]]:
    """The first epoch alone, then the others, as many at a time as have `ROWS` rows."""
    lot: list[Epoch] = []
    first, rows = True, 0
    for epoch in epochs:
        lot.append(epoch)
        rows += epoch.frame.height
        if first or rows >= ROWS:
            yield lot
            lot, first, rows = [], False, 0
    if lot:
        yield lot


def _bound_of(roots: Sequence[Node]) -> tuple[First | None, str] | None:
    """The bound on users below plans, and its fingerprint; None where they have several, or none is known."""
    bounds: dict[str, First] = {}
    for node, digest in fingerprints(*roots).items():
        if isinstance(node, First):
            if digest is None:
                return None
            bounds[digest.hex()] = node
    direct = any(not any(isinstance(node, First) for node in steps(root)) for root in roots)
    if len(bounds) + direct > 1:
        return None
    return next(((node, name) for name, node in bounds.items()), (None, ""))


def _read(roots: Sequence[Node]) -> frozenset[str]:
    """The columns of the source that plans read; a bound needs those alone that name the unit (see above)."""
    needed: dict[Node, frozenset[str]] = {root: frozenset(root.schema.names) for root in roots}
    columns: frozenset[str] = frozenset()
    for node in reversed(steps(*roots)):
        names = needed.get(node, frozenset())
        if isinstance(node, Source):
            columns |= names
            continue
        required = (names | set(node.unit.columns),) if isinstance(node, First) else node.required(names)
        for source_node, more in zip(node.inputs, required, strict=True):
            needed[source_node] = needed.get(source_node, frozenset()) | more
    return columns


def _added(frame: pl.DataFrame, schema: Schema, columns: Sequence[str]) -> pl.DataFrame:
    """Records of some columns, equal ones added up."""
    if not columns:
        return frame.select(pl.col(WEIGHT).sum())
    return Batch(frame.select(*columns, WEIGHT), schema.select(columns)).consolidate().frame


def _with_nulls(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """All columns of the source, null where they were left out."""
    empty = [values.column([None], column) for column in schema if column.name not in frame.columns]
    return frame.with_columns(null.new_from_index(0, frame.height) for null in empty).select(*schema.names, WEIGHT)


class _Keeper:
    """Tells which records of a source `First` keeps, epoch by epoch."""

    def __init__(self, bound: First) -> None:
        self._schema, self._key = bound.schema, bound.data.sampling_key
        self._state = bound.state(bound.schema.names, self._key)
        source, *before = steps(rewrite(bound.source, _numbered))
        self._read, self._before = source.schema, each_record(before)

    def kept(self, frame: pl.DataFrame, epochs: Weights) -> pl.DataFrame:
        """The rows that are kept, each with the weight that is kept of it.

        Args:
            frame: Records of one epoch, or of several that follow each other.
            epochs: In which of them each came.
        """
        numbered = frame.with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int64))
        batch = self._before(Batch(numbered, self._read))
        rows, entered = batch.frame[ROW].to_numpy(), batch.select(self._schema.names)
        kept, weights = self._state.chosen(entered.frame, entered.weights, epochs[rows])
        return rows_of(frame.drop(WEIGHT), rows[kept]).with_columns(pl.Series(WEIGHT, weights, pl.Int64))


def _numbered(node: Node) -> Node:
    """A source as one whose records say in which row they stand."""
    if not isinstance(node, Source):
        return node
    rows = Log(Schema((*node.schema, Column(ROW, Kind.INT))), node.data.name)
    return Source(replace(node.data, reader=rows))
