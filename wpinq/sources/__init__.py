"""Sources of records: files, tables and iterables as streams of columns.

Nothing is inferred from records: names and types are declared, or read from a header or a public schema. A field that
is not of its column's type is null; a row that is none is dropped, by itself and uncounted, and changes nothing else.

`streaming/` has live sources, and what they follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from wpinq.core.records.reader import Reader
from wpinq.core.records.schema import Kind
from wpinq.errors import SourceError
from wpinq.sources.form import Columns, Form, Words, declared_form

if TYPE_CHECKING:
    from wpinq.sources.files import Files
    from wpinq.sources.text.csv import TextReader

__all__ = ["Columns", "open_lines", "open_source"]


def open_source(source: object, *, columns: Columns = None, copied: bool = False, **words: Unpack[Words]) -> Reader:
    """Open a source of records; nothing but headers and schemas is read from files.

    Args:
        source: A path, a pattern or a directory of files: `.csv`, `.tsv` (with a header), `.txt` (whitespace-separated,
            `#` comments, no header), `.log` and `_log` (of web servers, also rotated ones), `.jsonl` and `.ndjson`,
            each also as `.gz`; `.parquet`, `.arrow`, `.feather`, `.ipc`; an object with the Arrow C stream protocol
            (Polars, pandas, pyarrow, DuckDB); a Polars LazyFrame; a pyarrow dataset; a DataFrame of Spark; an iterable
            of tuples or of mappings, which is read once, here; or a table of a database, as `postgres` and `sqlite`
            name it, or `postgresql://user@host/database?table=views`, or `sqlite:shop.db?table=views`, or
            `duckdb:shop.duckdb?table=views`.
        columns: Names in order, or names with types. Where the source has names of its own, a sequence picks columns,
            and a mapping gives types to some and keeps all. Without types, text is text and tuples hold any value.
        copied: Whether it is opened to be protected: what its owner could change in memory while it is read is copied,
            and what computes its rows (a query, a view, a lazy table) is run once, so that it fails now if it fails.
        words: Its form, as `protect` explains it.

    Raises:
        SourceError: It cannot be read as records; one line that says why, and nothing of the records.
    """
    form = declared_form(**words)
    reader = _opened(_database(source, form), columns, form)
    if copied and hasattr(reader, "copied"):
        reader = reader.copied()
    if copied and hasattr(reader, "run_once"):
        reader.run_once()
    if form.tz is None:
        return reader
    if all(column.kind is not Kind.INSTANT for column in reader.schema):
        raise SourceError(f"{reader.name}: tz= gives instants as the clocks of a zone show them, and no column is an "
                          "instant; a time without a zone stays as it is written.")  # fmt: skip
    from wpinq.sources.zoned import Zoned

    return Zoned(reader, form.tz)


def _opened(source: object, columns: Columns, form: Form) -> Reader:
    if isinstance(source, (str, Path)):
        return _open_files(source, columns, form)
    if type(source).__module__.startswith("pyspark."):  # first, for it takes any name as that of a column
        return _open_spark(source, columns, form)
    form.only(type(source).__name__, "table" if hasattr(source, "open_reader") else "")
    if hasattr(source, "open_reader"):
        reader: Reader = source.open_reader(columns)
        return reader
    if hasattr(source, "__arrow_c_array__"):
        from wpinq.sources.tables.arrow import as_table

        source = as_table(source)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "collect_batches") or hasattr(source, "scanner"):
        from wpinq.sources.tables.arrow import open_table

        return open_table(source, columns)
    if hasattr(source, "__array_interface__"):
        raise SourceError("a NumPy array is not a source of records; pass map(tuple, array.tolist()), or a data frame.")
    if isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray, dict)):
        from wpinq.sources.tables.tuples import open_tuples

        return open_tuples(source, columns)
    known = "a path, a table with the Arrow C stream protocol, or an iterable of tuples"
    raise SourceError(f"{type(source).__name__} is not a source of records; pass {known}.")


def _open_spark(source: object, columns: Columns, form: Form) -> Reader:
    from wpinq.sources.tables.spark import is_spark, open_spark

    form.only(type(source).__name__)
    if not is_spark(source):
        raise SourceError(f"{type(source).__name__} is not a source of records; pass a DataFrame of Spark's SQL.")
    if form.tz is not None:
        raise SourceError("tz=...: of a DataFrame of Spark, let Spark write clocks: from_utc_timestamp(...).")
    return open_spark(source, columns)


def _database(source: object, form: Form) -> object:
    """What a URL of a database, or its file with a table, stands for."""
    scheme = source.partition(":")[0] if isinstance(source, str) else ""
    if form.table is not None and isinstance(source, (str, Path)):
        form.only(str(source), "table")
        from wpinq.sources.databases import duckdb, sqlite

        ending = Path(source).suffix.lower()
        if ending not in (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db"):
            raise SourceError(f"{source}: table= is for files of DuckDB (.duckdb) and SQLite (.sqlite, .db).")
        return (duckdb.duckdb if ending in (".duckdb", ".ddb") else sqlite.sqlite)(source, table=form.table)
    if scheme in ("postgresql", "postgres"):
        from wpinq.sources.databases import postgres

        return postgres.from_url(str(source))
    if scheme == "sqlite":
        from wpinq.sources.databases import sqlite

        return sqlite.from_url(str(source))
    if scheme == "duckdb":
        from wpinq.sources.databases import duckdb

        return duckdb.from_url(str(source))
    return source


def open_lines(origin: str, columns: Columns, **words: Unpack[Words]) -> TextReader:
    """A reader of lines that come without a file, and without a header: `frames` reads a block of them.

    Args:
        origin: Where they come from, for messages.
        columns: As for `open_source`.
        words: As for `open_source`; by default they are lines of a web log.

    Raises:
        SourceError: The format is not one of lines, or columns are not declared well.
    """
    from wpinq.sources.files import LINES, Files
    from wpinq.sources.form import file_form
    from wpinq.sources.text.csv import TextReader

    form = file_form(words.get("format")) or "log"
    if form not in LINES:
        raise SourceError(f"{origin}: {form} is no format of lines; there are {', '.join(LINES)}, and those of logs.")
    words["header"] = False
    reader = _of_files(Files(origin, form, (), Path()), columns, declared_form(**words))
    assert isinstance(reader, TextReader)  # noqa: S101  which all of them are
    return reader


def _open_files(source: str | Path, columns: Columns, form: Form) -> Reader:
    from wpinq.sources.files import Files
    from wpinq.sources.form import file_form

    return _of_files(Files.find(source, file_form(form.format)).insist_on_once(), columns, form)


def _of_files(source: Files, columns: Columns, form: Form) -> Reader:
    """The reader of files that were found."""
    if source.form in ("csv", "tsv"):
        from wpinq.sources.text.csv import open_csv

        form.only(source.given, "format", "separator", "decimal", "encoding")
        return open_csv(source, columns, form)
    form.only(source.given, "format")
    if source.form in ("parquet", "arrow"):
        from wpinq.sources.tables.hive import open_tables

        return open_tables(source, columns)
    if source.form == "log":
        from wpinq.sources.text.weblog import open_weblog

        return open_weblog(source, columns, None if form.format == "log" else form.format)
    if source.form == "json":
        from wpinq.sources.text.json import open_json

        return open_json(source, columns)
    from wpinq.sources.text.whitespace import open_pairs

    return open_pairs(source, columns)
