"""Tables of DuckDB files, read as Arrow batches. The schema is that of the table; the file is only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import polars as pl

from wpinq.core.records.reader import wanted
from wpinq.core.records.schema import Schema
from wpinq.errors import SourceError
from wpinq.sources.columns import Columns
from wpinq.sources.databases.postgres import quoted
from wpinq.sources.files import Files
from wpinq.sources.readers import FileReader, ran
from wpinq.sources.tables import arrays

STORED = (
    "SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower(?) AND schema_name = current_schema() "
    "AND database_name = current_database() AND NOT contains(upper(sql), 'GENERATED')"
)
"""Whether a name is a table without computed columns."""
ALONE: Mapping[str, Any] = {"enable_external_access": "false", "python_enable_replacements": "false"}


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
        with _rows(self, "*", "LIMIT 0") as (batches, connection):
            schema = batches.schema
            stored = connection.execute(STORED, [self.table]).fetchone() is not None
        types = {field.name: field.type for field in schema}
        return DuckDbReader(files, arrays.schema_of(types, schema.names, columns, str(self.path)), self, stored)


@dataclass(frozen=True, slots=True)
class DuckDbReader(FileReader):
    """Rows of a table or view of a DuckDB file.

    Attributes:
        source_table: Where they are.
        stored: Whether it is a table of stored cells alone, none of which is computed when it is read.
    """

    source_table: DuckDb
    stored: bool

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


@contextmanager
def _rows(table: DuckDb, columns: str, limit: str) -> Iterator[tuple[Any, Any]]:
    """The rows of a table as batches, and the connection.

    It reads nothing but the file: a view that takes its rows from other files, or from objects in this process, fails.

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
            query = f"SELECT {columns} FROM {quoted(table.table)} {limit}"  # noqa: S608  names are quoted
            yield pa.RecordBatchReader.from_stream(connection.sql(query)), connection
    except (library.Error, pa.ArrowException, OSError):  # of a block that is damaged, say, which Arrow's stream tells
        raise SourceError(
            f"{table.path}, table {table.table!r}: cannot be read; is it a DuckDB file that has this table, and that "
            "nobody else writes to?"
        ) from None
