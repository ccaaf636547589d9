"""Tuples of Python values, from a list or a generator, kept as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from wpinq.errors import SourceError
from wpinq.records import python as values
from wpinq.records.schema import Kind, Schema, in_columns, polars_type
from wpinq.sources.columns import PAIR, Columns, named, wanted
from wpinq.sources.readers import HeldReader

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

    An item that is no tuple or list is a record of one value. A record of the wrong length is dropped; a value that is
    not of its column's type is null.

    Raises:
        SourceError: The iterable raised an error.
    """
    schema = named(columns, Kind.ANY, PAIR, "the records")
    memos: list[dict[Any, Any]] = [{} for _ in schema]
    frames: list[pl.DataFrame] = []
    rows = proper(records, len(schema))
    while part := list(islice(rows, ROWS_PER_FRAME)):
        cells = zip(schema, zip(*part, strict=True), memos, strict=True)
        frames.append(in_columns([values.column(items, column, memo) for column, items, memo in cells]))
    return kept(frames, schema)


def kept(frames: Iterable[pl.DataFrame], schema: Schema) -> TupleReader:
    """Keep frames of these columns, which may be none."""
    empty = pl.DataFrame(schema={column.name: polars_type(column.kind) for column in schema})
    return TupleReader(schema, pl.concat([empty, *frames]))


def proper(records: Iterable[Any], width: int) -> Iterator[tuple[Any, ...]]:
    """The items that are records of this width.

    Raises:
        SourceError: The iterable raised an error.
    """
    try:
        for record in records:
            row = tuple(record) if isinstance(record, (tuple, list)) else (record,)
            if len(row) == width:
                yield row
    except Exception as error:  # noqa: BLE001  whatever it is, it may quote a record
        raise SourceError(f"the records: the iterable raised {type(error).__name__}; nothing was kept.") from None
