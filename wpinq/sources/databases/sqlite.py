"""SQLite tables and queries. The schema is that of the table's declaration; what does not fit it is null, cell by cell.

In SQLite a cell may hold any type, and a column's type is only an affinity. So each column is selected with a test of
each cell's own type, and a cell of another type changes no other cell. Columns without a declared type, and computed
ones, hold any value. Booleans are 0 and 1; dates and timestamps are read from text, by the grammar of text files.

Below the reader: cells of whatever types, as columns of one kind.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import polars as pl

from wpinq.arguments import NAME, NOTHING, PATH, takes
from wpinq.core.functions.tree import Node
from wpinq.core.records import kinds as values
from wpinq.core.records import text as convert
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.reader import Steady, wanted
from wpinq.core.records.schema import Column, Kind, Schema, in_columns, polars_type
from wpinq.errors import ChangedError, SourceError
from wpinq.sources.databases.conditions import condition, integer, text
from wpinq.sources.databases.counting import counted
from wpinq.sources.databases.postgres import quoted
from wpinq.sources.files import CHANGED, plain, ran, state
from wpinq.sources.form import Columns, check_names, chosen
from wpinq.sources.tables import arrays

ROWS_PER_FETCH = 1 << 16  # rows fetched at a time
BYTEWISE = "COLLATE BINARY"
VIRTUAL = re.compile(rb"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A table or query of an SQLite file, for `protect`."""

    path: Path
    table: str | None = None
    query: str | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"{self.path}, table {self.table!r}" if self.table is not None else f"{self.path}, query"

    def open_reader(self, columns: Columns) -> SqliteReader:
        """Look at its columns.

        Raises:
            SourceError: It is no SQLite file, or has no such table or columns.
        """
        with _connection(self) as cursor:
            opened = _version(self.path.resolve())
            result = cursor.execute(f"PRAGMA main.table_info({quoted(self.table)})" if self.table is not None
                                   else "PRAGMA temp.table_info(wpinq_rows)").fetchall()  # fmt: skip
            kinds = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND lower(name) = lower(?)"
            stored = cursor.execute(kinds, (self.table,)).fetchone()
            plain = stored is not None and not VIRTUAL.match(stored[0] or b"")
            number = _number(cursor, self.table) if plain and self.table is not None else None
        names = [str(row[1], "utf-8", "replace") for row in result]
        if not names:
            raise SourceError(f"{self.where}: there is no such table.")
        check_names(names, self.where)
        types = {name: str(row[2], "utf-8", "replace") for name, row in zip(names, result, strict=True)}
        native = {name: kind_of(type_) for name, type_ in types.items()}
        schema = Schema(tuple(_rounded(one, types[one.name]) for one in chosen(native, columns, self.where)))
        for column in schema:
            kind = native[column.name]
            if (
                column.kind is not kind
                and kind not in (Kind.ANY, Kind.TEXT)
                and (kind, column.kind) not in arrays.CASTS
            ):
                raise SourceError(f"{self.where}: the column {column.name!r} is {kind.value} and cannot be read as "
                                  f"{column.kind.value}.")  # fmt: skip
        return SqliteReader(schema, self, native, self.path.resolve(), opened, plain, number)


@takes(path=PATH, table=NAME | NOTHING, query=NAME | NOTHING)
def sqlite(path: str | Path, *, table: str | None = None, query: str | None = None) -> Sqlite:
    """Name a table or a query of an SQLite file, for `protect`. Its ledger is that of a file; its rows are its version.

    Args:
        path: The file.
        table: A table or view, spelled exactly.
        query: One SELECT instead.

    Raises:
        SourceError: Neither or both are given.

    >>> from wpinq import sqlite
    >>> sqlite("shop.db", table="views")
    Sqlite(path=PosixPath('shop.db'), table='views')
    """
    if (table is None) == (query is None):
        raise SourceError("sqlite(...): give either table='views' or query='SELECT ...'.")
    return Sqlite(Path(path), table, query)


def from_url(url: str) -> Sqlite:
    """Read `sqlite:shop.db?table=views` (or `?query=...`).

    Raises:
        SourceError: It names no table.
    """
    path, _, rest = url.partition(":")[2].partition("?")
    options = dict(parse_qsl(rest, keep_blank_values=True))
    if not path or options.keys() - {"table", "query"} or len(options) != 1:
        raise SourceError("sqlite:...: name the file and its table, sqlite:shop.db?table=views.")
    return sqlite(path, table=options.get("table"), query=options.get("query"))


@dataclass(frozen=True, slots=True)
class SqliteReader:
    """Rows of an SQLite table or query.

    Attributes:
        schema: All columns with their kinds.
        rows_of: Where they are.
        native: The kinds that the columns are declared with.
        path: The file itself, where links end.
        opened: The version that was opened.
        plain: Whether it is a table whose cells are stored, so that to read one cannot fail on what it holds. What is
            computed may: a column of a query, a view or a virtual table. Columns that a table computes are not read.
        number: What SQL calls the number of a row, where the rows of such a table have one.
    """

    schema: Schema
    rows_of: Sqlite
    native: dict[str, Kind] = field(repr=False)
    path: Path
    opened: str = field(repr=False)
    plain: bool
    number: str | None

    @property
    def name(self) -> str:
        """The file's and the table's name."""
        return plain(f"{self.path.name}:{self.rows_of.table or 'query'}")

    @property
    def title(self) -> str:
        """The same."""
        return self.name

    @property
    def way(self) -> tuple[object, ...]:
        """The table or the query."""
        return (type(self).__name__, self.rows_of.table, self.rows_of.query)

    @property
    def total_bytes(self) -> None:
        """Progress is not known: rows are fetched, not bytes."""

    @property
    def steady(self) -> Steady:
        """A file that changed is refused when it is read."""
        return Steady.FILES

    def version(self) -> str:
        """Path, size, modification time and number of changes of the file, and of its log of writes."""
        return self.opened

    def check(self) -> None:
        """Refuse a file that is no longer as it was opened."""
        with _connection(self.rows_of):
            self._check()

    def _check(self) -> None:
        if _version(self.path) != self.opened:
            raise ChangedError(CHANGED.format(self.rows_of.where))

    def state(self) -> str | None:
        """Path, inode, size and times of the file and of its log of writes now."""
        return state(_files(self.path))

    def content(self, key: bytes = b"") -> None:
        """Its rows tell: a file changes when its log of writes is merged, or it is compacted."""

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """All of its rows are read for their digest."""

    def run_once(self) -> None:
        """Run what may fail on a value, whole, before anything is charged.

        Raises:
            SourceError: It fails.
        """
        if not self.plain:
            ran(self)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. The first share reads everything.

        Of a query or a view all columns are read, whichever are wanted: else a value on which one of them fails would
        make some questions fail and not others.

        Raises:
            SourceError: It cannot be read, or is not what was opened; checked inside the transaction that reads it.
        """
        schema = wanted(self.schema, columns, self.rows_of.where)
        if share[0]:
            return
        read = schema if self.plain else self.schema
        with _connection(self.rows_of) as cursor:
            self._check()
            for frame in self._selected(cursor, read, ""):
                yield frame.select(schema.names)

    def counted(
        self,
        columns: Sequence[str],
        anyone: Sequence[Node] = (),
        *,
        apart: bool = False,
        share: tuple[int, int] = (0, 1),
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """The same with equal rows counted in SQLite, where that is quicker; see `Counting` and `counting.py`.

        Raises:
            SourceError: As above.
        """
        schema = wanted(self.schema, columns, self.rows_of.where)
        where = condition(anyone, self._compared, _constant)
        if self.number is None or (apart and where is None):
            yield from self.batches(columns, share=share, progress=progress)
            return
        if share[0]:
            return
        with _connection(self.rows_of) as cursor:
            self._check()
            cursor.execute("PRAGMA temp_store = MEMORY")  # records are written nowhere

            def count(lot: str) -> pl.DataFrame | None:
                return self._counted(cursor, schema, lot)

            def read(lot: str) -> Iterator[pl.DataFrame]:
                return self._selected(cursor, schema, lot)

            lots = (lot if where is None else f"{lot} AND {where}" for lot in self._lots(cursor))
            yield from counted(lots, count, read, apart=apart)

    def _compared(self, name: str) -> tuple[str, Kind] | None:
        """A column in a condition: what is read of it, texts byte by byte."""
        kind = self.native.get(name)
        if kind not in (Kind.INT, Kind.TEXT) or name not in self.schema or self.schema[name].kind is not kind:
            return None
        return f"{selected(self.schema[name], kind)[0]} {BYTEWISE}", kind

    def _lots(self, cursor: sqlite3.Cursor) -> Iterator[str]:
        """Conditions that cut the rows of the table, by their numbers, into lots of `ROWS_PER_FETCH`, the last fewer.

        Numbers may lie anywhere between -2^63 and 2^63 - 1, which only their order tells.
        """
        number, rows = self.number, self._rows
        step = f"SELECT {number} FROM {rows} WHERE {number} >= ? ORDER BY {number} LIMIT 1 OFFSET ?"  # noqa: S608
        first = -(1 << 63)
        while after := cursor.execute(step, (first, ROWS_PER_FETCH)).fetchone():
            yield f"WHERE {number} >= {integer(first)} AND {number} < {integer(after[0])}"
            first = after[0]
        yield f"WHERE {number} >= {integer(first)}"

    def _selected(self, cursor: sqlite3.Cursor, read: Schema, where: str) -> Iterator[pl.DataFrame]:
        chosen = ", ".join(", ".join(selected(column, self.native[column.name])) for column in read)
        cursor.execute(f"SELECT {chosen} FROM {self._rows} {where}")  # noqa: S608  names are quoted, the query is the curator's
        while result := cursor.fetchmany(ROWS_PER_FETCH):
            yield self._frame(list(zip(*result, strict=True)), read)

    def _counted(self, cursor: sqlite3.Cursor, read: Schema, where: str) -> pl.DataFrame | None:
        """The different rows of a lot, with their numbers; None where there is no memory for them.

        A value and how it is stored are the group, byte by byte: 1 is equal to 1.0 in SQLite, and a column may compare
        its texts by another collation. What is selected by a CASE has no collation, and one is named all the same.
        """
        parts = [part for column in read for part in selected(column, self.native[column.name])]
        groups = ", ".join(f"{part} {BYTEWISE}" for part in parts if part != NOTHING_MORE)
        query = f"SELECT {', '.join(parts)}, COUNT(*) FROM {self._rows} {where} GROUP BY {groups}"  # noqa: S608
        try:
            cells = list(zip(*cursor.execute(query).fetchall(), strict=True))
        except MemoryError:
            return None
        if not cells:
            return pl.DataFrame()
        return self._frame(cells, read).with_columns(pl.Series(WEIGHT, cells[-1], dtype=pl.Int64))

    def _frame(self, cells: Sequence[Sequence[Any]], read: Schema) -> pl.DataFrame:
        return in_columns(
            [decoded(cells[2 * index : 2 * index + 2], column, self.native[column.name])
             for index, column in enumerate(read)]
        )  # fmt: skip

    @property
    def _rows(self) -> str:
        """What stands after FROM."""
        return quoted(self.rows_of.table) if self.rows_of.table is not None else "temp.wpinq_rows"


def _number(cursor: sqlite3.Cursor, table: str) -> str | None:
    """What SQL calls the numbers of the rows of a table; None where they have none, or columns took all names."""
    rows = cursor.execute(f"PRAGMA main.table_xinfo({quoted(table)})").fetchall()
    taken = {str(row[1], "utf-8", "replace").lower() for row in rows}
    free = next((name for name in ("rowid", "oid", "_rowid_") if name not in taken), None)
    try:
        if free is not None:
            cursor.execute(f"SELECT {free} FROM {quoted(table)} LIMIT 0")  # noqa: S608
    except sqlite3.OperationalError:  # it is WITHOUT ROWID
        return None
    return free


def _constant(value: int | str) -> str:
    return integer(value) if isinstance(value, int) else text(value)


def _files(path: Path) -> list[Path]:
    log = path.with_name(path.name + "-wal")
    return [path, *([log] if log.exists() and log.stat().st_size else [])]


def _version(path: Path) -> str:
    """What tells a file from what it was before, asked for inside of a transaction.

    Writers without a log count changes in the file's header: two changes may be of one size
    and fall into one tick of the clock. A log grows with each change.
    """
    stats = [(str(item), item.stat().st_size, item.stat().st_mtime_ns) for item in _files(path)]
    with path.open("rb") as file:
        changes = int.from_bytes(file.read(28)[24:], "big")
    return plain("\n".join([*(" ".join(map(str, stat)) for stat in stats), str(changes)]))


@contextmanager
def _connection(table: Sqlite) -> Iterator[sqlite3.Cursor]:
    """A cursor in a transaction of a connection that cannot write; text comes as bytes, which need not be UTF-8.

    Raises:
        SourceError: Instead of any other error, which may quote records.
    """
    if not table.path.is_file():
        raise SourceError(f"{table.path}: no such file.")
    try:
        with closing(
            sqlite3.connect(f"file:{quote(os.fsencode(table.path.resolve()))}?mode=ro", uri=True)
        ) as connection:
            connection.text_factory = bytes
            connection.isolation_level = None
            cursor = connection.cursor()
            if table.query is not None:
                cursor.execute(f"CREATE TEMP VIEW wpinq_rows AS {table.query}")
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1 FROM sqlite_schema").fetchone()  # only from the first look on it stays as it is
            yield cursor
    except (sqlite3.Error, sqlite3.Warning, OSError, OverflowError, UnicodeDecodeError) as error:
        raise SourceError(f"{table.where}: it cannot be read ({type(error).__name__}); is it an SQLite file that holds "
                          "what is asked for?") from None  # fmt: skip


WORDS = (  # the first that occurs in a declared type decides, as SQLite does it
    ("INT", Kind.INT), ("BOOL", Kind.BOOL), ("CHAR", Kind.TEXT), ("CLOB", Kind.TEXT), ("TEXT", Kind.TEXT),
    ("BLOB", Kind.BYTES), ("REAL", Kind.FLOAT), ("FLOA", Kind.FLOAT), ("DOUB", Kind.FLOAT), ("DATETIME", Kind.TIME),
    ("TIMESTAMP", Kind.TIME), ("DATE", Kind.DATE), ("NUM", Kind.FLOAT), ("DEC", Kind.FLOAT),
)  # fmt: skip
STORED = {Kind.INT: "integer", Kind.BYTES: "blob"}
TEXTS = (Kind.TEXT, Kind.DATE, Kind.TIME)


def kind_of(declared: str) -> Kind:
    """The kind that a declared type stands for."""
    return next((kind for word, kind in WORDS if word in declared.upper()), Kind.ANY)


def _rounded(column: Column, declared: str) -> Column:
    """A column of numbers of which only those are doubles in the file that are declared so."""
    return replace(column, rounded=column.kind is Kind.FLOAT and not re.search("REAL|FLOA|DOUB", declared.upper()))


NOTHING_MORE = "0"


def selected(column: Column, stored_kind: Kind) -> tuple[str, str]:
    """Two cells: the value, null unless it is stored as its column's type, and how it is stored, if that matters."""
    name = quoted(column.name)
    if stored_kind is Kind.ANY:
        return name, f"typeof({name})"
    if stored_kind in TEXTS:
        return f"CASE typeof({name}) WHEN 'text' THEN {name} END", NOTHING_MORE
    if stored_kind is Kind.FLOAT and column.kind is Kind.INT:
        whole = f"CAST({name} AS INTEGER)"
        return f"CASE WHEN typeof({name}) IN ('integer', 'real') AND {name} = {whole} THEN {whole} END", NOTHING_MORE
    if stored_kind is Kind.FLOAT:
        return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN CAST({name} AS REAL) END", NOTHING_MORE
    if stored_kind is Kind.BOOL:
        return f"CASE WHEN typeof({name}) = 'integer' AND {name} IN (0, 1) THEN {name} END", NOTHING_MORE
    return f"CASE typeof({name}) WHEN '{STORED[stored_kind]}' THEN {name} END", NOTHING_MORE


def decoded(cells: Sequence[Sequence[Any]], column: Column, native: Kind) -> pl.Series:
    """A column from what was selected for it."""
    import pyarrow as pa

    result, stored = cells
    if native is Kind.ANY:
        return values.column(map(_value, result, stored), column)
    if native in TEXTS:
        text = pa.chunked_array([pa.array(result, pa.binary())])
        return convert.from_field(text, Column(column.name, column.kind))
    if native is Kind.FLOAT and column.kind is Kind.INT:
        native = Kind.INT
    series = pl.Series(column.name, result, dtype=polars_type(Kind.INT if native is Kind.BOOL else native))
    return series.cast(polars_type(native)).cast(polars_type(column.kind), strict=False)


def _value(cell: Any, stored: bytes) -> Any:
    if stored != b"text":
        return cell
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None
