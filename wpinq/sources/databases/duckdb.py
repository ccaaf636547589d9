"""Tables of DuckDB files, read as Arrow batches. The schema is that of the table; the file is only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import polars as pl

from wpinq.core.functions.tree import Node
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.reader import wanted
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import SourceError
from wpinq.sources.databases.conditions import condition, integer, text
from wpinq.sources.databases.counting import counted
from wpinq.sources.databases.postgres import quoted
from wpinq.sources.files import FileReader, Files, ran
from wpinq.sources.form import Columns
from wpinq.sources.tables import arrays
from wpinq.sources.tables.schemas import duckdb_types, schema_of

OF_TABLE = """system.main.lower(table_name) = system.main.lower(?) AND schema_name = system.main.current_schema()
AND database_name = system.main.current_database()"""
STORED = f"""
SELECT 1 FROM system.main.duckdb_tables() WHERE {OF_TABLE}
AND NOT system.main.contains(system.main.upper(sql), 'GENERATED')
"""  # noqa: S608
"""Whether a name is a table without computed columns. A file may hold macros of any name, so functions say whose they
are."""
TYPED = f"SELECT column_name, data_type FROM system.main.duckdb_columns() WHERE {OF_TABLE}"  # noqa: S608
"""The types of all columns, as DuckDB calls them."""
INTEGERS = {f"{sign}{name}" for sign in ("", "U") for name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")}
FINE = frozenset({*INTEGERS, "BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"})
"""Types of which two values are equal only where they are one value; of VARCHAR under the collation C. Those of DOUBLE,
BLOB and others repeat little."""
BYTEWISE = "COLLATE C"
ROWS_PER_LOT = 1 << 20
"""Rows that are counted at a time; on them alone depends how much memory that takes."""
ALONE: Mapping[str, Any] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",  # records are written nowhere: what does not fit in memory is not counted there
    "disabled_optimizers": "statistics_propagation",  # by which the time tells whether a column may hold a value
}


@dataclass(frozen=True, slots=True)
class DuckDb:
    """A table of a DuckDB file, for `protect`."""

    path: Path
    table: str

    def open_reader(self, columns: Columns) -> DuckDbReader:
        """Look at its columns.

        Raises:
            SourceError: It is no DuckDB file, or has no such table or columns, or DuckDB is not installed.
        """
        files = Files.find(self.path, "duckdb")
        log = Path(f"{self.path}.wal")
        if log.exists():  # what was written last and is not in the file yet
            logged = Files.find(log, "duckdb")
            files = Files(files.given, "duckdb", (*files.files, *logged.files), files.path)
        with _connection(self) as connection:
            relation = connection.sql(f"SELECT * FROM {quoted(self.table)} LIMIT 0")  # noqa: S608  names are quoted
            schema = _arrow(relation).schema
            types = duckdb_types(schema, relation)
            stored = bool(connection.execute(STORED, [self.table]).fetchall())
            native = dict(connection.execute(TYPED, [self.table]).fetchall())
        numbered = stored and "rowid" not in map(str.lower, native)  # else it is a column of the table
        fine = {name: type_ for name, type_ in native.items() if numbered and type_ in FINE}
        return DuckDbReader(files, schema_of(types, schema.names, columns, str(self.path)), self, stored, fine)


@dataclass(frozen=True, slots=True)
class DuckDbReader(FileReader):
    """Rows of a table or view of a DuckDB file.

    Attributes:
        source_table: Where they are.
        stored: Whether it is a table of stored cells alone, none of which is computed when it is read.
        fine: The columns by which DuckDB can count rows, with their types, which are in `FINE`; none in a table whose
            rows have no numbers.
    """

    source_table: DuckDb
    stored: bool
    fine: Mapping[str, str] = field(hash=False)

    @property
    def name(self) -> str:
        """The file's and the table's name."""
        return f"{self.source.name}:{self.source_table.table}"

    @property
    def title(self) -> str:
        """The same."""
        return self.name

    @property
    def way(self) -> tuple[object, ...]:
        """The table."""
        return (type(self).__name__, self.source_table.table)

    def content(self, key: bytes = b"") -> None:
        """Its rows tell: a file changes when its log of writes is merged, or it is compacted."""

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. The first share reads everything.

        Of a view all columns are read, whichever are wanted: else a value on which one of them fails would make some
        questions fail and not others.
        """
        schema = wanted(self.schema, columns, self.source.given)
        if share[0]:
            return
        for batch in self.raw(schema if self.stored else self.schema):
            yield arrays.frame(batch, schema)
        if progress is not None:
            progress(self.total_bytes)

    def counted(
        self,
        columns: Sequence[str],
        anyone: Sequence[Node] = (),
        *,
        apart: bool = False,
        share: tuple[int, int] = (0, 1),
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """The same with equal rows counted in DuckDB, where that is quicker; see `Counting` and `counting.py`.

        The integers of one column are counted quicker here (`core/state/counts.py`: `Dense`).
        """
        schema = wanted(self.schema, columns, self.source.given)
        where = condition(anyone, self._compared, _constant)
        apart |= not set(columns) <= self.fine.keys() or (len(columns) == 1 and schema[columns[0]].kind is Kind.INT)
        if apart and where is None:
            yield from self.batches(columns, share=share, progress=progress)
            return
        if share[0]:
            return
        self.check()
        with _connection(self.source_table) as connection:
            yield from _Lots(connection, self, schema, where).frames(apart=apart)
        self.check()
        if progress is not None:
            progress(self.total_bytes)

    def _compared(self, name: str) -> tuple[str, Kind] | None:
        """A column in a condition: integers without a limit, texts byte by byte."""
        native, kind = self.fine.get(name), self.schema[name].kind if name in self.schema else None
        if native in INTEGERS and kind is Kind.INT:
            return f"CAST({quoted(name)} AS HUGEINT)", kind
        return (f"{quoted(name)} {BYTEWISE}", kind) if native == "VARCHAR" and kind is Kind.TEXT else None

    def run_once(self) -> None:
        """Run what may fail on a value, whole, before anything is charged.

        Raises:
            SourceError: It fails.
        """
        if not self.stored:
            ran(self)

    def raw(self, schema: Schema) -> Iterator[Any]:
        """All record batches, as DuckDB gives them."""
        self.check()
        with _rows(self.source_table, ", ".join(map(quoted, schema.names)), "") as (batches, _):
            yield from batches
        self.check()


def duckdb(path: str | Path, *, table: str) -> DuckDb:
    """Name a table of a DuckDB file, for `protect`. Its ledger is that of a file; its rows are its version."""
    return DuckDb(Path(path), table)


def from_url(url: str) -> DuckDb:
    """Read `duckdb:shop.duckdb?table=views`.

    Raises:
        SourceError: It names no table.
    """
    path, _, rest = url.partition(":")[2].partition("?")
    options = dict(parse_qsl(rest, keep_blank_values=True))
    if not path or list(options) != ["table"]:
        raise SourceError("duckdb:...: name the file and its table, duckdb:shop.duckdb?table=views.")
    return duckdb(path, table=options["table"])


@dataclass(frozen=True, slots=True)
class _Lots:
    """Lots of the rows of a table, by their numbers, which DuckDB gives to each row of a snapshot.

    Attributes:
        connection: Sees the snapshot.
        reader: Whose rows they are.
        schema: The columns that are read.
        where: Which rows may be left out; none where it is None.
    """

    connection: Any
    reader: DuckDbReader
    schema: Schema
    where: str | None

    def frames(self, *, apart: bool) -> Iterator[pl.DataFrame]:
        """All rows, counted where that is quicker and they are not to come apart."""
        most = f"SELECT system.main.max(rowid) FROM {quoted(self.reader.source_table.table)}"  # noqa: S608  names are quoted
        ((last,),) = self.connection.execute(most).fetchall()
        lots = range(0, 0 if last is None else last + 1, ROWS_PER_LOT)
        yield from counted(lots, self.count, self.read, apart=apart)

    def count(self, first: int) -> pl.DataFrame | None:
        """The different rows of a lot, with their numbers; None where DuckDB cannot count them."""
        import duckdb as library

        chosen = ", ".join(map(self._grouped, self.schema.names))
        groups = ", ".join(map(str, range(1, len(self.schema) + 1)))
        number = "n" * (1 + max(map(len, self.schema.names)))  # longer than any name of a column
        try:
            whole = self._ran(f"{chosen}, system.main.count(*) AS {number}", first, f"GROUP BY {groups}")
            table = whole.read_all()
        except library.OutOfMemoryException:
            return None
        numbers = pl.Series(WEIGHT, table.column(number), dtype=pl.Int64)
        frames = [arrays.frame(batch, self.schema) for batch in table.to_batches()]
        return pl.concat(frames).with_columns(numbers) if frames else pl.DataFrame()

    def read(self, first: int) -> Iterator[pl.DataFrame]:
        """The rows of a lot."""
        for batch in self._ran(", ".join(map(quoted, self.schema.names)), first, ""):
            yield arrays.frame(batch, self.schema)

    def _grouped(self, name: str) -> str:
        way = BYTEWISE if self.reader.fine[name] == "VARCHAR" else ""
        return f"{quoted(name)} {way} AS {quoted(name)}"

    def _ran(self, columns: str, first: int, rest: str) -> Any:
        table = quoted(self.reader.source_table.table)
        rows = f"rowid >= {first} AND rowid < {first + ROWS_PER_LOT} AND {self.where or 'TRUE'}"
        return _batches(self.connection, f"SELECT {columns} FROM {table} WHERE {rows} {rest}")  # noqa: S608


def _constant(value: int | str) -> str:
    return f"CAST({integer(value)} AS HUGEINT)" if isinstance(value, int) else text(value)


@contextmanager
def _rows(table: DuckDb, columns: str, limit: str) -> Iterator[tuple[Any, Any]]:
    """The rows of a table as batches, and the connection."""
    with _connection(table) as connection:
        query = f"SELECT {columns} FROM {quoted(table.table)} {limit}"  # noqa: S608  names are quoted
        yield _batches(connection, query), connection


def _batches(connection: Any, query: str) -> Any:
    return _arrow(connection.sql(query))


def _arrow(relation: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(relation)


@contextmanager
def _connection(table: DuckDb) -> Iterator[Any]:
    """A connection in a transaction that sees one snapshot, and that reads nothing but the file.

    A view that takes its rows from other files, or from objects in this process, fails.

    Raises:
        SourceError: Instead of any error of DuckDB, which may quote records.
    """
    try:
        import duckdb as library
    except ImportError:
        raise SourceError(f"{table.path}: reading it needs DuckDB: pip install duckdb.") from None
    import pyarrow as pa

    try:
        with closing(library.connect(str(table.path), read_only=True, config=dict(ALONE))) as connection:
            connection.execute("BEGIN TRANSACTION")
            yield connection
    except (library.Error, pa.ArrowException, OSError):  # of a block that is damaged, say, which Arrow's stream tells
        raise SourceError(
            f"{table.path}, table {table.table!r}: cannot be read; is it a DuckDB file that has this table, and that "
            "nobody else writes to?"
        ) from None
