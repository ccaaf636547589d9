"""Rows of a source that a condition leaves: what is compared where the records of a period lie in something larger.

A digest of them is over all columns and in any order. So a log may grow, be rotated and be compressed; a line that the
condition leaves out is nothing; and one that it leaves in and that came late is found.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, cast

import polars as pl

from wpinq.core.engines.reading import THREADED, ahead
from wpinq.core.operators.contribution.preprocess import before
from wpinq.core.operators.contribution.unit_key import ByUnit
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.forms import Linear, each_record
from wpinq.core.plan.node import Node, Source, steps
from wpinq.core.plan.unit import Unit
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.reader import ObjectReader, Reader, Steady, passed, wanted
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state.workers import cores

ROW = "\0row"
"""A column that says which rows are left."""


@dataclass(frozen=True)
class ChosenRows(ObjectReader):
    """The rows of a source that a condition leaves.

    Attributes:
        reader: The source.
        where: The condition.
        derive: What is computed first.
        steps: How each batch is cut down, and the columns that are read for it.
    """

    reader: Reader
    where: str
    derive: Mapping[str, str]
    steps: tuple[Callable[[Batch], Batch], Schema] = field(init=False, repr=False)
    schema, name, title, check = passed("schema", "name", "title", "check")
    """All columns are there: what is computed of them is computed again in the plan."""
    lasting = True

    @staticmethod
    def derived(schema: Schema, derive: Mapping[str, str]) -> Schema:
        """The columns of a source with those that are computed.

        Raises:
            PlanError: These do not fit the columns.
        """
        return before(schema, Unit(), None, derive or None, "data").schema

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.reader.schema, self.where, self.derive))

    @property
    def path(self) -> None:
        """What holds them is not told: it may be elsewhere tomorrow."""

    @property
    def way(self) -> tuple[object, ...]:
        """How the source is read but for where lines begin, which is another thing of each file; and which rows are."""
        own = tuple(part for part in self.reader.way if not _of_files(part))
        return (type(self).__name__, *own, self.where, *(f"{name}: {text}" for name, text in self.derive.items()))

    @property
    def steady(self) -> Steady:
        """Only reading tells whether the rows are the same."""
        return Steady.UNKNOWN

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. The first share reads all, since only all is compared."""
        names = wanted(self.schema, columns, self.name).names
        if share[0]:
            return
        threads = cores() if (self.reader.total_bytes or 0) >= THREADED else 1
        streams = [self._share(names, (thread, threads), progress) for thread in range(threads)]
        with ahead(streams) if threads > 1 else closing(streams[0]) as frames:
            yield from frames

    def _share(
        self, names: Sequence[str], share: tuple[int, int], progress: Callable[[int], None] | None
    ) -> Generator[pl.DataFrame, None, None]:
        cut, reads = self.steps
        both = [name for name in self.schema.names if name in names or name in reads]
        for frame in self.reader.batches(both, share=share, progress=progress):
            records = canonical.frame(frame.select(reads.names), reads)
            numbered = records.with_columns(pl.int_range(frame.height, dtype=pl.Int64).alias(ROW))
            batch = cut(Batch.of(numbered, Schema((*reads.columns, Column(ROW, Kind.INT)))))
            weight = [WEIGHT] if WEIGHT in frame.columns else []
            yield frame.select(*names, *weight)[batch.frame[ROW]]


def _of_files(part: object) -> bool:
    """Whether it says where the first line of each file begins."""
    return isinstance(part, tuple) and bool(part) and all(isinstance(item, int) for item in part)


@dataclass(frozen=True)
class _Named(ObjectReader):
    """Columns without records, to make a plan over."""

    schema: Schema


def _steps(schema: Schema, where: str, derive: Mapping[str, str]) -> tuple[Callable[[Batch], Batch], Schema]:
    """The steps of `where` and `derive`, and the columns that they read.

    Raises:
        PlanError: They do not fit the columns.
    """
    both = Schema((*schema.columns, Column(ROW, Kind.INT)))
    data = DataSet(cast("Any", _Named(both)), cast("Any", None), "rows", "", Unit())
    made = before(both, Unit(), where, derive or None, "data").over(Source(data))
    walk, needed = steps(made), {made: frozenset({ROW})}
    for node in reversed(walk):
        needed |= dict(zip(node.inputs, node.required(needed[node]), strict=True))
    cut = each_record((node for node in walk if isinstance(node, Linear)), needed)
    reads = [name for name in schema.names if name in needed[walk[0]]]
    return cut, schema.select(reads or schema.names[:1])


def columns_read(nodes: Sequence[Node]) -> list[str]:
    """The columns of the records that plans ask about, in order.

    A bound draws a person's records by all of their columns, which is no reason to name those that nobody asks for.
    """
    needed: dict[Node, frozenset[str]] = {node: frozenset(node.schema.names) for node in nodes}
    for node in reversed(steps(*nodes)):
        names_needed = needed.get(node, frozenset())
        unit = node.data.unit if isinstance(node, ByUnit) else None
        bound = node.required(names_needed) if unit is None else [names_needed | {*unit.columns, *(unit.per or ())[:1]}]
        for source, names in zip(node.inputs, bound, strict=True):
            needed[source] = needed.get(source, frozenset()) | names
    return sorted({name for node, names in needed.items() if isinstance(node, Source) for name in names})
