"""The people index: the records of a version by person, so that a new question about people is one linear pass.

A bound on people's records needs those of a person together, in the order of their ranks (`contribution/sample.py`).
Neither changes from question to question. So once a second question about a version comes, its records are grouped by
person, in the order of their ranks, and held: filters are asked, and the first records of each person that are left are
the sample. It is the same sample, bit for bit, as without the index, because a filter looks at one record at a time.

Each question passes over all records. Nothing is skipped because a text is in no record or a person is not there: the
time of a question would tell it. The index holds what the source held when it was made, in the memory of this process,
and is gone with it. Where it would take more than a quarter of what counting may hold, there is none.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core import kernels
from wpinq.core.kernels.reservoirs import Numbers
from wpinq.core.operators.contribution.reservoirs import FIRST, ranks_of
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.unit_key import UnitKey
from wpinq.core.operators.filter import Filter
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, Source, fingerprints, steps
from wpinq.core.plan.rewrite import rewrite_all
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.identity import column_identities
from wpinq.core.records.reader import HeldReader, Reader
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.state.memory import LIMIT
from wpinq.failures import redacted

SECOND = 2
"""The question about a version, by number, for which its index is made."""
PIECE, LOT = 1 << 15, 1 << 18
"""Rows that are hashed at a time, and rows that are handed on at a time."""
PART = 4
"""An index takes one in so many bytes of what counting may hold, at the most."""
CODED = (Kind.TEXT, Kind.BYTES, Kind.ANY)
"""Kinds of columns that are held as numbers of their different values."""

Rows: TypeAlias = npt.NDArray[np.int64]
Numbered: TypeAlias = npt.NDArray[np.int32]


def indexed(roots: Sequence[Node]) -> list[Node]:
    """Plans that read the index where there is one, in place of the plans that bound people anew.

    Raises:
        SourceError: A source cannot be read.
        EngineError: A filter failed.
    """
    bounds = [node for node in steps(*roots) if isinstance(node, Bound) and _fits(node)]
    for node in bounds:
        _version(node.data).asked += 1
    made: dict[Hashable, Source] = {}
    kept: dict[Node, Node] = {}
    digests = fingerprints(*bounds)
    for node in bounds:
        version = _version(node.data)
        index = version.index(node.data) if version.asked >= SECOND else None
        if index is not None:
            same = digests[node] or id(node), id(version)
            if same not in made:
                sample = redacted("bounding people", partial(Kept, index, node))
                made[same] = Source(replace(node.data, reader=sample))
            kept[node] = made[same]
    return rewrite_all(roots, lambda node: kept.get(node, node)) if kept else list(roots)


def _fits(node: Bound) -> bool:
    """Whether it bounds people's records of a source that is read whole, after filters alone."""
    data = node.data
    if type(node) is not Bound or data.live or data.retractions or kernels.LIB is None:
        return False
    return not getattr(data.reader, "once", False) and all(
        type(step) in (Source, Filter) for step in steps(node.source)
    )


class Version:
    """What is known of one version in this process.

    Attributes:
        reader: Its records; a data set that reads others, such as what was merged of a stream, is another version.
        asked: How many questions about people came.
        indexes: Its indexes, by whose records they group; None where one does not fit.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader, self.asked = reader, 0
        self.indexes: dict[Hashable, PeopleIndex | None] = {}

    def index(self, data: DataSet) -> PeopleIndex | None:
        """The index of the records by the unit of a data set, made when it is first asked for."""
        unit = data.unit
        key = unit.column, unit.period, unit.zone, data.sampling_key
        if key not in self.indexes:
            self.indexes[key] = PeopleIndex.of(data)
        return self.indexes[key]


def _version(data: DataSet) -> Version:
    known: Version | None = data.made.get("people")
    if known is None or known.reader is not data.reader:
        known = data.made["people"] = Version(data.reader)
    return known


class Column:
    """One column of the index: its values, or of texts and the like the number of each row's value.

    Attributes:
        values: The values of all rows, or the different ones, by number.
        numbers: For each row the number of its value; None where values are held row by row.
    """

    def __init__(self, values: pl.Series, numbers: Numbered | None) -> None:
        self.values, self.numbers = values, numbers

    def rows(self, rows: Rows | slice) -> pl.Series:
        """The values of some rows."""
        if self.numbers is None:
            return self.values[rows]
        return self.values.gather(pl.Series(self.numbers[rows]))

    @property
    def size(self) -> int:
        """Bytes, about."""
        return int(self.values.estimated_size()) + (0 if self.numbers is None else self.numbers.nbytes)


class _Growing:
    """A column that is being read."""

    def __init__(self, coded: bool, library: object) -> None:
        self._table = Numbers(library) if coded else None  # type: ignore[arg-type]
        self._numbers: list[Numbered] = []
        self._values: list[pl.Series] = []

    def add(self, values: pl.Series, ids: npt.NDArray[np.uint64]) -> None:
        """Add rows, with the identities of their values."""
        if self._table is None:
            self._values.append(values)
            return
        known = len(self._table)
        numbers = self._table.codes(ids)
        self._numbers.append(numbers)
        new = np.flatnonzero(numbers >= known)
        if len(new):
            self._values.append(values[new[np.unique(numbers[new], return_index=True)[1]]])

    def ended(self, order: Rows) -> Column:
        """The column in this order of its rows."""
        values = pl.concat(self._values)
        if self._table is None:
            return Column(values[order], None)
        return Column(values.rechunk(), np.concatenate(self._numbers)[order])


class PeopleIndex:
    """The records of one version, grouped by the unit that they are of, those of each in the order of their ranks.

    Attributes:
        schema: The columns.
        people: For each row the number of its unit; rows of one follow each other.
        columns: The columns, by name.
    """

    def __init__(self, schema: Schema, people: Numbered, columns: dict[str, Column]) -> None:
        self.schema, self.people, self.columns = schema, people, columns

    @classmethod
    def of(cls, data: DataSet) -> PeopleIndex | None:
        """Read all records of a data set; None where they would take too much memory.

        Raises:
            SourceError: It cannot be read.
        """
        schema, key, library = data.reader.schema, data.sampling_key, kernels.LIB
        assert library is not None  # noqa: S101  without kernels nothing is indexed
        copies, units, unit_key = Numbers(library), Numbers(library), UnitKey(data.unit, schema)
        columns = {column.name: _Growing(column.kind in CODED, library) for column in schema}
        people: list[Numbered] = []
        ranks: list[npt.NDArray[np.uint64]] = []
        room = LIMIT.most // PART
        for piece in _pieces(data):
            ids = column_identities(piece, schema, key)
            ranks.append(_ranks(ids, copies, key))
            people.append(units.codes(unit_key.ids(piece, key)))
            for name, column_ids in zip(schema.names, ids, strict=True):
                columns[name].add(piece[name], column_ids)
            room -= piece.height * (28 + 8 * len(columns))
            if room < 0:
                return None
        if not people:
            return None
        order = _order(np.concatenate(people), np.concatenate(ranks))
        del ranks
        index = cls(schema, np.concatenate(people)[order], {name: one.ended(order) for name, one in columns.items()})
        if not LIMIT.take(index.size):
            return None
        weakref.finalize(index, LIMIT.give, index.size)
        return index

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return self.people.nbytes + sum(column.size for column in self.columns.values())

    def frame(self, names: Sequence[str], rows: Rows | slice) -> pl.DataFrame:
        """Some columns of some rows."""
        return pl.DataFrame({name: self.columns[name].rows(rows) for name in names})  # not a list: a name may be empty

    def mask(self, step: Filter) -> npt.NDArray[np.bool_]:
        """Which rows a filter keeps; of one column of texts it is asked once for each different text."""
        names = step.reads or self.schema.names[:1]
        column = self.columns[names[0]]
        if len(names) == 1 and column.numbers is not None:
            return _true(step, pl.DataFrame({names[0]: column.values}))[column.numbers]
        starts = range(0, len(self.people), LOT)
        return np.concatenate([_true(step, self.frame(names, slice(start, start + LOT))) for start in starts])

    def numbers(self, name: str, key: bytes) -> Numbered:
        """For each row the number of its value in a column."""
        column = self.columns[name]
        if column.numbers is not None:
            return column.numbers
        assert kernels.LIB is not None  # noqa: S101  without kernels nothing is indexed
        (ids,) = column_identities(pl.DataFrame({name: column.values}), self.schema.select([name]), key)
        return Numbers(kernels.LIB).codes(ids)


class Kept(HeldReader):
    """What a bound keeps of people's records after its filters, from the index."""

    __slots__ = ("_bound", "_index", "_rows", "name", "schema")

    def __init__(self, index: PeopleIndex, node: Bound) -> None:
        self._bound = node
        self._index, self.schema, self.name = index, node.schema, node.data.reader.name
        stays = np.ones(len(index.people), np.bool_)
        for step in steps(node.source):
            if isinstance(step, Filter):
                stays &= index.mask(step)
        rows = np.flatnonzero(stays)
        if node.unit.per is not None:
            name, most = node.unit.per
            values = index.numbers(name, node.data.sampling_key)[rows].astype(np.int64)
            rows = rows[_first(index.people[rows].astype(np.int64) << 32 | values, most)]
        people = index.people[rows]
        self._rows = rows[_places(people) < int(node.most)]

    def bounds(self, columns: frozenset[str]) -> Fraction | None:
        """What records that agree in these columns weigh at the most, as after the bound: joins rest on it."""
        return self._bound.bounds(columns, None)

    @property
    def total_bytes(self) -> int:  # type: ignore[override]  # it can tell
        """As many as the kept rows take, about."""
        return self._index.size * len(self._rows) // max(1, len(self._index.people))

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns, a lot at a time."""
        part, parts = share
        for start in range(part * LOT, len(self._rows), parts * LOT):
            yield self._index.frame(columns, self._rows[start : start + LOT])


def _pieces(data: DataSet) -> Iterator[pl.DataFrame]:
    """The records of a data set, one row each, a piece at a time."""
    for frame in data.batches(data.reader.schema.names):
        rows = frame
        if WEIGHT in frame.columns:
            rows = frame[np.repeat(np.arange(frame.height), frame[WEIGHT].to_numpy())].drop(WEIGHT)
        yield from (piece for piece in rows.iter_slices(PIECE) if piece.height)


def _ranks(ids: Sequence[npt.NDArray[np.uint64]], copies: Numbers, key: bytes) -> npt.NDArray[np.uint64]:
    """The ranks of records, each with the number of its copy."""
    result = ranks_of(ids, FIRST, key)
    numbers = 1 + copies.count(result)
    again = np.flatnonzero(numbers > 1)
    result[again] = ranks_of([column[again] for column in ids], numbers[again], key)
    return result


def _order(people: Numbered, ranks: npt.NDArray[np.uint64]) -> Rows:
    """The order of rows by unit, and in a unit by rank: by half a word of the rank, and where that is equal by all."""
    word = people.astype(np.uint64) << np.uint64(32) | ranks[:, 0] >> np.uint64(32)
    order = np.argsort(word)
    word = word[order]
    equal = np.flatnonzero(word[1:] == word[:-1])
    if len(equal):
        tied = np.union1d(equal, equal + 1)
        rows = order[tied]
        order[tied] = rows[np.lexsort((ranks[rows, 1], ranks[rows, 0], people[rows]))]
    return order


def _true(step: Filter, frame: pl.DataFrame) -> npt.NDArray[np.bool_]:
    return step.mask(frame).to_numpy()


def _places(groups: npt.NDArray[np.signedinteger]) -> Rows:
    """For each of some rows how many of its group come before it; rows of one group follow each other."""
    rows = np.arange(len(groups))
    begins = np.ones(len(groups), np.bool_)
    begins[1:] = groups[1:] != groups[:-1]
    return rows - np.maximum.accumulate(np.where(begins, rows, 0))


def _first(groups: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.bool_]:
    """Which rows are among the first few of their group, in the order of rows."""
    order = np.argsort(groups, kind="stable")
    result = np.empty(len(groups), np.bool_)
    result[order] = _places(groups[order]) < most
    return result
