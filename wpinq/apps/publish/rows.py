"""The records of a period, whatever files or tables hold them: those that are left by `where` and `derive`.

What a period is compared by is a digest of these rows, with all of their columns and in any order. So a log may grow,
be rotated and be compressed; a line of another period is nothing; and a line of this one that came late is found.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import polars as pl

from wpinq.core.engines.reading import THREADED, ahead
from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import steps
from wpinq.core.plan.shapes import Stateless
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.reader import ObjectReader, Reader, Steady, wanted
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state.workers import cores
from wpinq.protection import protect

ROW = "row of the batch"
"""A column that says which rows are left."""
LIMITLESS = 10**12


@dataclass(frozen=True)
class PeriodSource:
    """What `protect` opens as the records of a period.

    Attributes:
        opened: Opens the source that holds them.
        where: The condition that says which they are, over the columns and what is computed.
        derive: What is computed of each record first.
    """

    opened: Callable[[], Reader]
    where: str
    derive: Mapping[str, str]

    def open_reader(self, columns: object) -> PeriodReader:
        """The reader.

        Raises:
            SourceError, PlanError: It cannot be read so.
        """
        return PeriodReader(self.opened(), self.where, self.derive)


@dataclass(frozen=True)
class PeriodReader(ObjectReader):
    """The rows of a period.

    Attributes:
        reader: The source.
        where: The condition.
        derive: What is computed first.
        steps: How each batch is cut down, and the columns that are read for it.
    """

    reader: Reader
    where: str
    derive: Mapping[str, str]
    steps: tuple[tuple[Stateless, ...], Schema] = field(init=False, repr=False)
    lasting = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.reader.schema, self.where, self.derive))

    @property
    def schema(self) -> Schema:
        """All columns of the source; what is computed of them is computed again in the plan."""
        return self.reader.schema

    @property
    def name(self) -> str:
        """As the source has it."""
        return self.reader.name

    @property
    def title(self) -> str:
        """As the source has it."""
        return self.reader.title

    @property
    def path(self) -> None:
        """What holds them is not told: it may be elsewhere tomorrow."""

    @property
    def way(self) -> tuple[object, ...]:
        """How the source is read but for where lines begin, which is another thing of each file; and which rows are."""
        own = tuple(one for one in self.reader.way if not _of_files(one))
        return (type(self).__name__, *own, self.where, *(f"{name}: {text}" for name, text in self.derive.items()))

    @property
    def steady(self) -> Steady:
        """Only reading tells whether the rows are the same."""
        return Steady.UNKNOWN

    def check(self) -> None:
        """Refuse a source that is no longer as it was opened."""
        self.reader.check()

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
        kernels, reads = self.steps
        both = [name for name in self.schema.names if name in names or name in reads]
        for frame in self.reader.batches(both, share=share, progress=progress):
            own = canonical.frame(frame.select(reads.names), reads)
            numbered = own.with_columns(pl.int_range(frame.height, dtype=pl.Int64).alias(ROW))
            batch = Batch.of(numbered, Schema((*reads.columns, Column(ROW, Kind.INT))))
            for shape in kernels:
                batch = shape.kernel(batch)
            weight = [WEIGHT] if WEIGHT in frame.columns else []
            yield frame.select(*names, *weight)[batch.frame[ROW]]


def _of_files(one: object) -> bool:
    """Whether it says where the first line of each file begins."""
    return isinstance(one, tuple) and bool(one) and all(isinstance(item, int) for item in one)


def _steps(schema: Schema, where: str, derive: Mapping[str, str]) -> tuple[tuple[Stateless, ...], Schema]:
    """The steps of `where` and `derive`, and the columns that they read.

    Raises:
        PlanError: They do not fit the columns.
    """
    kinds = {column.name: None if column.kind is Kind.ANY else column.kind.value for column in schema}
    made = protect([], LIMITLESS, columns={**kinds, ROW: "int"}, where=where, derive=derive or None)
    walk, needed = steps(made._node), {made._node: frozenset({ROW})}
    for node in reversed(walk):
        needed |= dict(zip(node.inputs, node.required(needed[node]), strict=True))
    kernels = []
    for node in walk:
        if isinstance(node, Linear):
            shape = node.lower(needed[node])
            assert isinstance(shape, Stateless)  # noqa: S101  a linear step is one
            kernels.append(shape)
    reads = [name for name in schema.names if name in needed[walk[0]]]
    return tuple(kernels), schema.select(reads or schema.names[:1])


def condition(at: str, kind: Kind, start: str, end: str) -> str:
    r"""The condition that a record's time is in a period.

    >>> condition("time", Kind.TIME, "2026-10-01 00:00:00", "2026-11-01 00:00:00")
    '"time" >= \'2026-10-01 00:00:00\' and "time" < \'2026-11-01 00:00:00\''
    """
    if kind is Kind.DATE:
        start, end = start[:10], end[:10]
    name = '"' + at.replace('"', '""') + '"'
    return f"{name} >= '{start}' and {name} < '{end}'"
