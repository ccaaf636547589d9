"""The records of a version by person, in parts: each person's are in one part, in the order of their ranks.

A part has all records where they fit in memory. Where they do not, the records wait on disk, encrypted, and as many
parts are made one after another. Texts are held as numbers of the different ones, so a filter of one column is asked
once for each text, whether any record that is looked at has it or not, and texts are counted by number.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from ctypes import CDLL
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core import kernels
from wpinq.core.kernels import people as loops
from wpinq.core.kernels.people import Numbered, Stays
from wpinq.core.kernels.reservoirs import Numbers
from wpinq.core.operators.contribution.preprocess import Derive
from wpinq.core.operators.contribution.reservoirs import FIRST, ranks_of
from wpinq.core.operators.contribution.unit_key import UnitKey
from wpinq.core.operators.filter import Filter
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.identity import column_identities
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.state.memory import LIMIT
from wpinq.core.state.spill import Disk

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet

PIECE, LOT = 1 << 15, 1 << 18
"""Rows that are hashed at a time, and rows that are handed on at a time."""
ROOM = 4
"""A part takes one in so many bytes of what counting may hold, at the most."""
PARTS = 128
"""Parts of what does not fit in memory at once."""
TOGETHER = 1 << 22
"""Combinations of the values of several columns that are counted by number, at the most."""
ROW = "\0row"
CODED = (Kind.TEXT, Kind.BYTES, Kind.ANY)
"""Kinds of columns that are held as numbers of their different values, however many there are."""
FEW = 1 << 16
"""Different values of other kinds that are numbered, at the most."""

Rows: TypeAlias = npt.NDArray[np.int64]
Places: TypeAlias = npt.NDArray[np.uint32]
Ranks: TypeAlias = npt.NDArray[np.uint64]


class TooLarge(Exception):  # noqa: N818  no failure: there is no index then
    """The records take more memory than an index may."""


class Column:
    """One column: its values, or of texts and the like the number of each row's value.

    Attributes:
        values: The values of all rows, or the different ones, by number.
        numbers: For each row the number of its value; None where values are held row by row.
        different: Whether no value has two numbers; of values that are computed of others, some may be equal.
    """

    def __init__(self, values: pl.Series, numbers: Numbered | None, *, different: bool = True) -> None:
        self.values, self.numbers, self.different = values, numbers, different

    def rows(self, rows: Rows | slice) -> pl.Series:
        """The values of some rows."""
        if self.numbers is None:
            return self.values[rows]
        return self.values.gather(pl.Series(self.numbers[rows]))


class Part:
    """The records of some people.

    Attributes:
        schema: The columns.
        people: For each row the number of its unit; rows of one follow each other.
        columns: The columns, by name; that of the person may have the numbers of units.
    """

    def __init__(self, schema: Schema, people: Numbered, columns: Mapping[str, Column]) -> None:
        self.schema, self.people, self.columns = schema, people, columns

    def __len__(self) -> int:
        return len(self.people)

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        numbers = {
            id(column.numbers): column.numbers.nbytes for column in self.columns.values() if column.numbers is not None
        }
        values = sum(int(column.values.estimated_size()) for column in self.columns.values())
        return values + sum((numbers | {id(self.people): self.people.nbytes}).values())

    def of_some(self, share: tuple[int, int]) -> Part:
        """The records of a share of the people, all of each."""
        if share == (0, 1) or not len(self):
            return self
        edges = [len(self) * edge // share[1] for edge in (share[0], share[0] + 1)]
        low, high = (
            int(np.searchsorted(self.people, self.people[edge])) if edge < len(self) else edge for edge in edges
        )
        return Part(self.schema, self.people[low:high], _Some(self.columns, low, high))

    def frame(self, names: Sequence[str], rows: Rows | slice) -> pl.DataFrame:
        """Some columns of some rows."""
        return pl.DataFrame({name: self.columns[name].rows(rows) for name in names})  # not a list: a name may be empty

    def sample(
        self, before: Sequence[Filter | Derive], most: int, per: tuple[str, int] | None, key: bytes
    ) -> tuple[Part, Stays]:
        """The part with the columns that are computed, and which rows stay: the first few of each person."""
        part, stays = self, np.ones(len(self), np.bool_)
        for step in before:
            if isinstance(step, Filter):
                part.keep(step, stays)
            else:
                part = part.having(step, stays)
        values = None if per is None else part.numbers(per[0], key)
        loops.first(_library(), self.people, most, stays, values=values, per=per[1] if per else 0)
        return part, stays

    def having(self, step: Derive, stays: Stays) -> Part:
        """The part with a column more, which is computed; rows that have no value do not stay.

        Of one column of texts it is computed once for each different text.
        """
        names = step.reads or self.schema.names[:1]
        column = self.columns[names[0]]
        if len(names) == 1 and column.numbers is not None:
            values, there = computed(step, pl.DataFrame({names[0]: column.values}))
            loops.marked(_library(), column.numbers, there, stays)
            made = Column(values, column.numbers, different=False)
        else:
            lots = []
            for start in range(0, len(self), LOT):
                values, there = computed(step, self.frame(names, slice(start, min(start + LOT, len(self)))))
                stays[start : start + LOT] &= there
                lots.append(values)
            made = Column(pl.concat(lots), None)
        return Part(step.schema, self.people, ChainMap({step.name: made}, self.columns))  # type: ignore[arg-type]

    def keep(self, step: Filter, stays: Stays) -> None:
        """Let those rows stay that a filter keeps; of one column of texts it is asked once for each different text."""
        names = step.reads or self.schema.names[:1]
        column = self.columns[names[0]]
        if len(names) == 1 and column.numbers is not None:
            loops.marked(_library(), column.numbers, true(step, pl.DataFrame({names[0]: column.values})), stays)
            return
        for start in range(0, len(self), LOT):
            stays[start : start + LOT] &= true(step, self.frame(names, slice(start, min(start + LOT, len(self)))))

    def numbers(self, name: str, key: bytes) -> Numbered:
        """For each row the number of its value in a column."""
        column = self.columns[name]
        if column.numbers is not None and column.different:
            return column.numbers
        (ids,) = column_identities(pl.DataFrame({name: column.values}), self.schema.select([name]), key)
        numbers = Numbers(_library()).codes(ids)
        return numbers if column.numbers is None else numbers[column.numbers]

    def frames(self, names: Sequence[str], stays: Stays) -> Iterator[pl.DataFrame]:
        """Some columns of the rows that stay: one row each, or each value with its number of rows."""
        columns = [self.columns[name] for name in names]
        sizes = [len(column.values) for column in columns]
        if any(column.numbers is None for column in columns) or (len(names) > 1 and prod(sizes) > TOGETHER):
            for start in range(0, len(self), LOT):
                yield self.frame(names, start + np.flatnonzero(stays[start : start + LOT]))
            return
        numbers: Numbered = columns[0].numbers  # type: ignore[assignment]  # all have numbers
        for column, size in zip(columns[1:], sizes[1:], strict=True):
            numbers = numbers * np.int32(size) + column.numbers  # type: ignore[operator]
        counts = loops.each(_library(), numbers, stays, prod(sizes))
        places = np.flatnonzero(counts)
        for start in range(0, len(places), LOT):
            indices = np.unravel_index(places[start : start + LOT], sizes)
            some = {name: column.values[which] for name, column, which in zip(names, columns, indices, strict=True)}
            yield pl.DataFrame({**some, WEIGHT: counts[places[start : start + LOT]]})


class _Some(Mapping[str, Column]):
    """The columns of some rows."""

    def __init__(self, columns: Mapping[str, Column], low: int, high: int) -> None:
        self._columns, self._low, self._high = columns, low, high

    def __getitem__(self, name: str) -> Column:
        column = self._columns[name]
        if column.numbers is None:
            return Column(column.values.slice(self._low, self._high - self._low), None)
        return Column(column.values, column.numbers[self._low : self._high], different=column.different)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class _Growing:
    """A column that is being read: values are numbered, but for those that are no texts where many differ."""

    def __init__(self, column: Schema, key: bytes) -> None:
        self._column, self._key = column, key
        self._table: Numbers | None = Numbers(_library())
        self._numbers: list[Numbered] = []
        self._values: list[pl.Series] = []
        self._ids: Ranks = np.empty((0, 2), np.uint64)

    def add(self, values: pl.Series, ids: Ranks) -> Numbered | None:
        """Add rows, with the identities of their values, and give the numbers of these."""
        if self._table is None:
            self._values.append(values)
            return None
        known = len(self._table)
        numbers = self._table.codes(ids)
        self._numbers.append(numbers)
        highest = np.maximum.accumulate(numbers)
        first = np.flatnonzero(numbers > np.concatenate([[known - 1], np.maximum(highest[:-1], known - 1)]))
        if len(first):
            self._values.append(values[first])
        if len(self._table) > FEW and self._column.columns[0].kind not in CODED:
            self._values = [pl.concat(self._values).gather(np.concatenate(self._numbers))]
            self._table, self._numbers = None, []
        return numbers

    def end(self) -> None:
        """Nothing comes any more."""
        self._values = [pl.concat(self._values).rechunk()]
        if self._table is not None:
            self._numbers, self._ids = [np.concatenate(self._numbers)], self._table.ids()

    def ids(self, rows: Places) -> Ranks:
        """The identities of the values of some rows."""
        if self._table is not None:
            return self._ids[self._numbers[0][rows]]
        (ids,) = column_identities(self._values[0][rows].to_frame(), self._column, self._key)
        return ids

    def ordered(self, order: Places) -> Column:
        """The column in this order of its rows."""
        (values,) = self._values
        return Column(values[order], None) if self._table is None else Column(values, self._numbers[0][order])


class _Building:
    """A part that is being read."""

    def __init__(self, data: DataSet) -> None:
        self._schema, self._key = data.reader.schema, data.sampling_key
        self._unit = UnitKey(data.unit, self._schema)
        self._units = Numbers(_library())
        self._numbered = self._unit.span is None and self._schema[self._unit.user].kind in CODED
        self._columns = {name: _Growing(self._schema.select([name]), self._key) for name in self._schema.names}
        self._people: list[Numbered] = []
        self._ranks: list[Ranks] = []
        self._left = LIMIT.most // ROOM

    def add(self, piece: pl.DataFrame) -> bool:
        """Add rows, and say whether there is room for more."""
        ids = column_identities(piece, self._schema, self._key)
        self._ranks.append(ranks_of(ids, FIRST, self._key))
        codes = {
            name: self._columns[name].add(piece[name], column)
            for name, column in zip(self._schema.names, ids, strict=True)
        }
        people = codes[self._unit.user] if self._numbered else self._units.codes(self._unit.ids(piece, self._key))
        assert people is not None  # noqa: S101  texts are numbered
        self._people.append(people)
        self._left -= piece.height * (36 + 8 * len(ids))
        return self._left >= 0

    def ended(self) -> Part | None:
        """The part, if there is any row."""
        if not self._people:
            return None
        for column in self._columns.values():
            column.end()
        order = loops.Order(_library(), np.concatenate(self._people), np.concatenate(self._ranks))
        self._people, self._ranks = [], []
        self._number_copies(order)
        rows, people = order.rows, order.people
        del order
        columns = {name: self._columns.pop(name).ordered(rows) for name in self._schema.names}
        if self._numbered:
            columns[self._unit.user].numbers = people  # they are the same
        return Part(self._schema, people, columns)

    def _number_copies(self, order: loops.Order) -> None:
        """Let equal records, which lie together by the rank of a first copy, be ranked as copies from the second on."""
        again = order.sort()
        begins = np.diff(again, prepend=-2) != 1
        numbers = 2 + np.arange(len(again)) - np.maximum.accumulate(np.where(begins, np.arange(len(again)), 0))
        rows = order.rows[again]
        ranks = np.empty((len(again), 2), np.uint64)
        for start in range(0, len(again), LOT):
            some = slice(start, start + LOT)
            ids = [self._columns[name].ids(rows[some]) for name in self._schema.names]
            ranks[some] = ranks_of(ids, numbers[some], self._key)
        order.change(again, ranks)


def parts(data: DataSet, *, disk: bool) -> Iterator[Part]:
    """Read all records of a data set: in one part, or where that is too large and they may wait on disk, in many.

    Raises:
        SourceError: It cannot be read.
        TooLarge: A part would take too much memory, or more than one is needed.
        EngineError: There is no room on the disk.
    """
    building = _Building(data)
    with closing(_pieces(data.batches(data.reader.schema.names))) as pieces:
        whole = all(building.add(piece) for piece in pieces)
    if not whole and not disk:
        raise TooLarge
    if whole:
        part = building.ended()
        yield from [] if part is None else [part]
        return
    del building
    yield from _from_disk(data)


def _from_disk(data: DataSet) -> Iterator[Part]:
    """The same with what waits on disk until its part is made."""
    schema, key, disk = data.reader.schema, data.sampling_key, Disk(LIMIT)
    unit = UnitKey(data.unit, schema)
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]
    for frame in data.batches(schema.names):
        for lot in frame.iter_slices(LOT):
            numbers = unit.ids(lot, key)[:, 1] % np.uint64(PARTS)
            rows = np.argsort(numbers, kind="stable")
            cuts = np.searchsorted(numbers[rows], np.arange(PARTS + 1))
            for number, (low, high) in enumerate(pairwise(cuts)):
                if high > low:
                    waiting[number].append(disk.write(Batch(lot[rows[low:high]], schema)))
    for some in waiting:
        building = _Building(data)
        if not all(building.add(piece) for piece in _pieces(disk.read(*extent) for extent in some)):
            raise TooLarge
        if (part := building.ended()) is not None:
            yield part


def _pieces(frames: Iterator[pl.DataFrame]) -> Generator[pl.DataFrame, None, None]:
    """Records, one row each, a piece at a time."""
    for frame in frames:
        rows = frame
        if WEIGHT in frame.columns:
            rows = frame[np.repeat(np.arange(frame.height), frame[WEIGHT].to_numpy())].drop(WEIGHT)
        yield from (piece for piece in rows.iter_slices(PIECE) if piece.height)


def computed(step: Derive, frame: pl.DataFrame) -> tuple[pl.Series, Stays]:
    """What a step computes of each row of a frame, and of which rows it has a value."""
    rows = step.function.apply(frame.with_row_index(ROW), [ROW]).sort(ROW)  # a function may give them in any order
    (name,) = step.function.output.names
    places = rows[ROW].to_numpy()
    there = np.zeros(frame.height, np.bool_)
    there[places] = True
    if len(places) == frame.height:
        return rows[name].alias(step.name), there
    rank = np.zeros(frame.height, np.int64)
    rank[places] = np.arange(len(places))
    nothing = pl.Series(step.name, [None] * frame.height, dtype=rows.schema[name])
    return (rows[name].gather(rank) if len(places) else nothing).alias(step.name), there


def true(step: Filter, frame: pl.DataFrame) -> Stays:
    """Which rows of a frame a filter keeps."""
    return step.mask(frame).to_numpy()


def _library() -> CDLL:
    assert kernels.LIB is not None  # noqa: S101  without kernels nothing is indexed
    return kernels.LIB
