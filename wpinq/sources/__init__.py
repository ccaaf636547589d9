"""Sources of records: files, tables and iterables as streams of columns.

Nothing is inferred from records: names and types are declared, or read from a header or a public schema. A field that
is not of its column's type is null; a row that is none is dropped, by itself and uncounted, and changes nothing else.

`streaming/` has live sources, and what they follow.

`README.md` says what each file knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from wpinq.errors import SourceError
from wpinq.sources.columns import Columns, Reader

__all__ = ["Columns", "Reader", "open_source"]


def open_source(source: object, *, columns: Columns = None, header: bool = True, copied: bool = False) -> Reader:
    """Open a source of records; nothing but headers and schemas is read from files.

    Args:
        source: A path or pattern of `.csv`, `.tsv` (with a header), `.txt` (whitespace-separated, `#` comments, no
            header), `.log` (of web servers, see `weblog`), each also as `.gz`, or `.parquet`; an object with the Arrow
            C stream protocol (Polars, pandas, pyarrow, DuckDB); a Polars LazyFrame; an iterable of tuples, which is
            read once, here; or a table of a database, as `postgres` and `sqlite` name it, or
            `postgresql://user@host/database?table=views`, or `sqlite:shop.db?table=views`.
        columns: Names in order, or names with types. Where the source has names of its own, a sequence picks columns,
            and a mapping gives types to some and keeps all. Without types, text is text and tuples hold any value.
        header: Whether the first line of a CSV or TSV file gives the names of its columns.
        copied: Whether to copy what its owner could change in memory while it is read.

    Raises:
        SourceError: It cannot be read as records; one line that says why, and nothing of the records.
    """
    source = _database(source)
    if hasattr(source, "open_reader"):
        reader: Reader = source.open_reader(columns)
        return reader
    if isinstance(source, (str, Path)):
        return _open_files(source, columns, header)
    if hasattr(source, "__arrow_c_array__"):
        from wpinq.sources.tables.arrow import as_table

        source = as_table(source)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "collect_batches"):
        from wpinq.sources.tables.arrow import open_table

        table = open_table(source, columns)
        return table.copied() if copied else table
    if hasattr(source, "__array_interface__"):
        raise SourceError("a NumPy array is not a source of records; pass map(tuple, array.tolist()), or a data frame.")
    if isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray, dict)):
        from wpinq.sources.tables.tuples import open_tuples

        return open_tuples(source, columns)
    known = "a path, a table with the Arrow C stream protocol, or an iterable of tuples"
    raise SourceError(f"{type(source).__name__} is not a source of records; pass {known}.")


def _database(source: object) -> object:
    """What a URL of a database stands for."""
    scheme = source.partition(":")[0] if isinstance(source, str) else ""
    if scheme in ("postgresql", "postgres"):
        from wpinq.sources.databases import postgres

        return postgres.from_url(str(source))
    if scheme == "sqlite":
        from wpinq.sources.databases import sqlite

        return sqlite.from_url(str(source))
    return source


def _open_files(source: str | Path, columns: Columns, header: bool) -> Reader:
    from wpinq.sources.files import Files

    result = Files.find(source)
    if result.form == "parquet":
        from wpinq.sources.tables.parquet import open_parquet

        return open_parquet(result, columns)
    if result.form == "log":
        from wpinq.sources.text.weblog import open_weblog

        return open_weblog(result, columns)
    if result.form == "pairs":
        from wpinq.sources.text.whitespace import open_pairs

        return open_pairs(result, columns)
    from wpinq.sources.text.csv import open_csv

    return open_csv(result, columns, header)
