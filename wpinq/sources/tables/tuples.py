"""Tuples of Python values, from a list or a generator, kept as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from os import PathLike
from typing import Any

import polars as pl

from wpinq.core.records import kinds as values
from wpinq.core.records.reader import HeldReader, wanted
from wpinq.core.records.schema import Kind, Schema, in_columns, polars_type
from wpinq.errors import SourceError
from wpinq.sources.form import PAIR, Columns, named

ROWS_PER_FRAME = 1 << 16  # rows turned into columns at a time


@dataclass(frozen=True, slots=True)
class TupleReader(HeldReader):
    """Records that are kept as columns.

    Attributes:
        schema: All columns with their kinds.
        frame: The records.
    """

    schema: Schema
    frame: pl.DataFrame

    def __repr__(self) -> str:
        return f"TupleReader{self.schema}"

    @property
    def name(self) -> str:
        """Objects have no name of their own."""
        return "records"

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`."""
        frame = self.frame.select(wanted(self.schema, columns, self.name).names)
        for number, part in enumerate(frame.iter_slices(1 << 19)):
            if number % share[1] == share[0] and part.height:
                yield part


def open_tuples(records: Iterable[Any], columns: Columns) -> TupleReader:
    """Read tuples, once. Values are of any kind unless `columns` gives types.

    An item that is no tuple, list or mapping is a record of one value. Of a mapping the keys that are columns are read,
    and a key that is not there is null. A record of the wrong length is dropped; a value that is not of its column's
    type is null.

    Where no columns are declared, the shape of the first item is the declaration, as a header would be: what is no pair
    is refused. Its values are not looked at, and with columns its shape is not either.

    Raises:
        SourceError: The iterable raised an error, or begins with something else than a pair and has no columns.
    """
    schema = named(columns, Kind.ANY, PAIR, "the records")
    memos: list[dict[Any, Any]] = [{} for _ in schema]
    frames: list[pl.DataFrame] = []
    items = _items(records)
    rows = _rows(items if columns is not None else _of_pairs(items), schema.names)
    while part := list(islice(rows, ROWS_PER_FRAME)):
        cells = zip(schema, zip(*part, strict=True), memos, strict=True)
        frames.append(in_columns([values.column(items, column, memo) for column, items, memo in cells]))
    return held_frames(frames, schema)


def held_frames(frames: Iterable[pl.DataFrame], schema: Schema) -> TupleReader:
    """Keep frames of these columns, which may be none."""
    empty = pl.DataFrame(schema={column.name: polars_type(column.kind) for column in schema})
    return TupleReader(schema, pl.concat([empty, *frames]))


@dataclass(frozen=True, slots=True)
class NoRecords:
    """A source of these columns that has no record, to be protected: mistakes and prices show in it.

    Attributes:
        schema: The columns, as another source has them.
    """

    schema: Schema

    def open_reader(self, _: Columns = None) -> TupleReader:
        """A reader that has nothing to read."""
        return held_frames([], self.schema)


def _of_pairs(rest: Iterator[Any]) -> Iterator[Any]:
    """The same items, of which the first is a pair.

    Raises:
        SourceError: It is something else.
    """
    for first in rest:
        if isinstance(first, Mapping):
            raise SourceError("the records: the first is a mapping; name the keys to read, columns=('user', 'page').")
        if not isinstance(first, (tuple, list)):
            path = " Files are read by a pattern, such as 'views*.csv'." if isinstance(first, (str, PathLike)) else ""
            raise SourceError("the records: the first is no tuple, and without columns= records are pairs (user, "
                              f"page); name the column of single values, columns=('page',).{path}")  # fmt: skip
        if len(first) != len(PAIR):
            raise SourceError(f"the records: the first has {len(first)} values, and without columns= records are pairs "
                              "(user, page); name the columns, columns=('user', 'page', 'time').")  # fmt: skip
        return chain([first], rest)
    return rest


def _items(records: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from records
    except Exception as error:  # noqa: BLE001  whatever it is, it may quote a record
        raise SourceError(f"the records: the iterable raised {type(error).__name__}; nothing was kept.") from None


def proper(records: Iterable[Any], names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The items that are records of these columns.

    Raises:
        SourceError: The iterable raised an error.
    """
    return _rows(_items(records), names)


def _rows(items: Iterator[Any], names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for record in items:
        row = _values(record, names)
        if len(row) == len(names):
            yield row


def _values(record: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """The values of a record; none at all where it cannot tell them."""
    try:
        if isinstance(record, Mapping):
            return tuple(record.get(name) for name in names)
        return tuple(record) if isinstance(record, (tuple, list)) else (record,)
    except Exception:  # noqa: BLE001  a class of one's own may raise anything, and it concerns this record alone
        return ()
