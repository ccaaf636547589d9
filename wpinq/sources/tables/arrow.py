"""Tables in memory, and other objects with the Arrow stream protocol: Polars, pandas, pyarrow, DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import polars as pl
import polars.selectors as cs

from wpinq.core.records import kinds as values
from wpinq.core.records.reader import ObjectReader, Steady, listed, wanted
from wpinq.core.records.schema import Column, Schema, in_columns
from wpinq.errors import SourceError
from wpinq.sources.files import ran
from wpinq.sources.form import Columns, check_names
from wpinq.sources.tables import arrays
from wpinq.sources.tables.schemas import duckdb_types, schema_of, unquoted
from wpinq.sources.tables.tuples import TupleReader, held_frames

ROWS_PER_FRAME = 1 << 19  # rows of a frame
LACKED = re.compile(r"\bObject\b|\bU?Int128\b")
"""Types of Polars that Arrow lacks, also inside of others. Integers of 128 bits are read as texts, by themselves."""
WHERE = "the table"


@dataclass(frozen=True, slots=True)
class TableReader(ObjectReader):
    """Records of a table.

    Attributes:
        schema: All columns with their kinds.
        table: The object that was given.
        once: Whether it can be read only once.
        first: The stream that was opened to see the schema, if that was needed.
    """

    schema: Schema
    table: Any = field(repr=False)
    once: bool = False
    first: list[Any] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        return f"TableReader{self.schema}"

    @property
    def name(self) -> str:
        """Objects have no name of their own."""
        return "records"

    @property
    def steady(self) -> Steady:
        """What computes its rows may compute others the next time; a stream is read only once."""
        return Steady.MEMORY if self.once or _is_fixed(self.table) else Steady.UNKNOWN

    def copied(self) -> TableReader | TupleReader:
        """What stays as it is: columns of a Polars frame never change, but may be put in another one's place.

        A pandas frame is copied. So is a stream, since each question is charged before it reads anything.
        """
        if _is_pandas(self.table) or self.once:
            return held_frames(self.batches(self.schema.names), self.schema)
        return replace(self, table=self.table.clone()) if isinstance(self.table, pl.DataFrame) else self

    def run_once(self) -> None:
        """Run what computes its rows each time, and may fail on a value, whole, before anything is charged.

        Raises:
            SourceError: It fails.
        """
        if not self.once and not _is_fixed(self.table):
            ran(self)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`.

        A table in memory is shared out in slices. What computes its rows may not give them in the same order twice, so
        the first share reads it alone.
        """
        schema = wanted(self.schema, columns, WHERE)
        part, parts = share
        if not _is_fixed(self.table):
            if part:
                return
            parts = 1
        for number, cells in enumerate(self.raw(schema)):
            if number % parts == part:
                with redacted():
                    frame = in_columns([column_of(cells[column.name], column) for column in schema])
                yield frame

    def raw(self, schema: Schema) -> Iterator[dict[str, Any]]:
        """The columns of at most ROWS rows each: Arrow arrays, or lists of Python objects."""
        with redacted():
            yield from self._slices(list(schema.names))

    def _slices(self, names: list[str]) -> Iterator[dict[str, Any]]:
        if _is_pandas(self.table):
            return _pandas_slices(self.table, names)
        if _is_lazy(self.table):
            frames = self.table.select(names).collect_batches(maintain_order=False)
            return _arrow_slices(chain.from_iterable(frame.to_arrow().to_batches() for frame in frames), names)
        if isinstance(self.table, pl.DataFrame):
            parts = (part.rechunk().to_arrow() for part in self.table.select(names).iter_slices(ROWS_PER_FRAME))
            return _arrow_slices(chain.from_iterable(part.to_batches() for part in parts), names)
        if _is_dataset(self.table):
            return _arrow_slices(self.table.to_batches(columns=names), names)
        if _is_fixed(self.table):
            return _arrow_slices(_whole_batches(self.table.select(names)), names)
        return _arrow_slices(self._stream(), names)

    def _stream(self) -> Any:
        import pyarrow as pa

        if self.first:
            return self.first.pop()
        if self.once:
            raise SourceError("the stream was read before and can be read only once; pass a table or a file.")
        return pa.RecordBatchReader.from_stream(self.table)


def open_table(table: Any, columns: Columns) -> TableReader:
    """Open a table. Its schema is public; columns of Python objects hold any value, unless their type is declared.

    Raises:
        SourceError: It has no readable schema, or columns are not declared well.
    """
    if hasattr(table, "to_frame") and type(table).__name__ == "Series":  # of Polars or pandas
        table = table.to_frame()
    if _is_pandas(table):
        table = _with_index(table)
    elif isinstance(table, (pl.DataFrame, pl.LazyFrame)):
        table = table.with_columns(cs.by_dtype(pl.Int128, pl.UInt128).cast(pl.String))  # no other column holds them all
    first: list[Any] = []
    with redacted():
        names, types = _types(table, first)
    schema = schema_of(types, names, columns, WHERE)
    again = _is_fixed(table) or _is_lazy(table) or _is_duckdb(table) or _is_dataset(table)
    return TableReader(schema, table, not again, [] if again else first)


def as_table(source: Any) -> Any:
    """An Arrow array of structs as the batch that it is, less what is null in it; what is a stream too as it was.

    Raises:
        SourceError: It is an Arrow array of something else.
    """
    if hasattr(source, "__arrow_c_stream__"):
        return source
    import pyarrow as pa

    with redacted():
        return pa.RecordBatch.from_struct_array(pa.array(source).drop_null())


def _types(table: Any, first: list[Any]) -> tuple[list[str], dict[str, Any]]:
    """The names and Arrow types of all columns; None is a column of Python objects, a text what is left out."""
    import pyarrow as pa

    if _is_pandas(table):
        names = [str(name) for name in table.columns]
        empty = table.iloc[:0]
        return names, {name: _pandas_type(_dense(empty.iloc[:, place])) for place, name in enumerate(names)}
    if isinstance(table, (pl.DataFrame, pl.LazyFrame)):
        polars_schema = table.collect_schema()
        check_names(polars_schema.names(), WHERE)  # of a NUL in one Arrow knows no way out but a panic
        lacked = {name: str(dtype) for name, dtype in polars_schema.items() if LACKED.search(unquoted(str(dtype)))}
        known = {name: dtype for name, dtype in polars_schema.items() if name not in lacked}
        arrow_schema = pl.DataFrame(schema=known).to_arrow().schema if known else pa.schema([])
        return polars_schema.names(), {**{item.name: item.type for item in arrow_schema}, **lacked}
    if _is_duckdb(table):  # a stream held open would end with the connection's next query
        arrow_schema = pa.RecordBatchReader.from_stream(table.limit(0)).schema
        return arrow_schema.names, duckdb_types(arrow_schema, table)
    if _is_dataset(table):
        arrow_schema = table.schema
    else:
        first.append(pa.RecordBatchReader.from_stream(table))
        arrow_schema = first[0].schema
    return arrow_schema.names, {item.name: item.type for item in arrow_schema}


@contextmanager
def redacted() -> Iterator[None]:
    """Turn errors of a table into one line that quotes nothing of it.

    Raises:
        SourceError: Instead of any other error.
    """
    try:
        yield
    except SourceError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001  it may quote a record
        raise SourceError(f"{WHERE}: reading it raised {type(error).__name__}; check it, and pass it again.") from None


def column_of(cells: Any, column: Column) -> pl.Series:
    """A column from an Arrow array or a list of Python objects."""
    return values.column(cells, column) if isinstance(cells, list) else arrays.column(cells, column)


def _arrow_slices(batches: Any, names: list[str]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_PER_FRAME):
            part = batch.slice(start, ROWS_PER_FRAME)
            yield {name: part.column(name) for name in names}


def _whole_batches(table: Any) -> Iterator[Any]:
    """Batches of ROWS rows, however small the pieces are that a table is made of."""
    import pyarrow as pa

    whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    for start in range(0, whole.num_rows, ROWS_PER_FRAME):
        yield from whole.slice(start, ROWS_PER_FRAME).combine_chunks().to_batches()


def _pandas_slices(table: Any, names: list[str]) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    positions = {str(name): position for position, name in enumerate(table.columns)}
    for start in range(0, len(table), ROWS_PER_FRAME):
        part = table.iloc[start : start + ROWS_PER_FRAME]
        cells = {}
        for name in names:
            column = _dense(part.iloc[:, positions[name]])
            if _holds_objects(column.dtype):
                column = column.astype(object)
                with suppress(ArithmeticError):  # of a decimal that is a signalling NaN
                    column = column.where(column.notna(), None)
                cells[name] = column.tolist()
            else:
                array = pa.Array.from_pandas(column)
                cells[name] = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        yield cells


def _pandas_type(column: Any) -> Any:
    import pyarrow as pa

    if _holds_objects(column.dtype):
        return None
    try:
        return pa.Array.from_pandas(column).type
    except pa.ArrowException:  # of complex numbers, say
        return str(column.dtype)


def _dense(column: Any) -> Any:
    """A pandas column with all of its values, which Arrow takes of a sparse one no other way."""
    return column.sparse.to_dense() if type(column.dtype).__name__ == "SparseDtype" else column


def _holds_objects(dtype: Any) -> bool:
    """Whether a pandas column's type is known only from its records."""
    return str(getattr(getattr(dtype, "categories", dtype), "dtype", dtype)) == "object"


def _is_pandas(table: Any) -> bool:
    return _library(table) == "pandas" and hasattr(table, "iloc")


def _with_index(table: Any) -> Any:
    """A pandas frame with the levels of its index that have names, or are times, as columns: what they hold is data.

    Raises:
        SourceError: A column has the name of a level.
    """
    named = any(name is not None for name in table.index.names)
    if not named and type(table.index).__name__ not in ("DatetimeIndex", "PeriodIndex", "TimedeltaIndex"):
        return table
    names = ["index" if name is None and not named else name for name in table.index.names]
    both = [str(name) for name in names if name in table.columns]
    if both:
        raise SourceError(f"{WHERE}: {listed(both)} names a level of the index and a column; rename one of them.")
    left = [level for level, name in enumerate(names) if name is None]
    return (table.droplevel(left) if left else table).reset_index(names=[name for name in names if name is not None])


def _is_dataset(table: Any) -> bool:
    return _library(table) == "pyarrow" and hasattr(table, "scanner")


def _is_duckdb(table: Any) -> bool:
    return _library(table) in {"duckdb", "_duckdb"} and hasattr(table, "limit")


def _is_lazy(table: Any) -> bool:
    return isinstance(table, pl.LazyFrame)


def _is_fixed(table: Any) -> bool:
    """Whether it lies in memory, with its rows in order."""
    import pyarrow as pa

    return isinstance(table, (pl.DataFrame, pa.Table, pa.RecordBatch)) or _is_pandas(table)


def _library(table: Any) -> str:
    return type(table).__module__.partition(".")[0]
