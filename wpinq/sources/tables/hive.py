"""Directories of tables, where the names of directories hold columns: `views/year=2026/month=06/part.parquet`.

The columns in the paths are texts, unless their types are declared: nothing is inferred from values. Every file must
have the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import polars as pl

from wpinq.core.records import text as convert
from wpinq.core.records.reader import Reader, listed, wanted
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import SourceError
from wpinq.sources.files import File, FileReader, Files
from wpinq.sources.form import Columns, chosen, keeps_all

if TYPE_CHECKING:
    from wpinq.sources.tables.ipc import ArrowReader
    from wpinq.sources.tables.parquet import ParquetReader

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class HiveReader(FileReader):
    """Rows of files of which some columns stand in their paths.

    Attributes:
        inner: A reader of each file.
        values: The columns in its path.
    """

    inner: tuple[ParquetReader | ArrowReader, ...] = field(repr=False)
    values: tuple[Mapping[str, str | None], ...] = field(repr=False)

    @property
    def way(self) -> tuple[object, ...]:
        """The format, and the columns in the paths."""
        return (type(self).__name__, self.source.form, *self.values[0])

    def content(self, key: bytes = b"") -> bytes:
        """That of the files, and of the values in their paths, which are data as well."""
        paths = hashlib.blake2b(repr([list(values.items()) for values in self.values]).encode(), key=key)
        return (FileReader.content(self, key) or b"") + paths.digest()

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """Each file by itself."""
        for reader in self.inner:
            reader.prove(share)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. Of each file a share is read."""
        schema = wanted(self.schema, columns, self.source.given)
        for reader, values in zip(self.inner, self.values, strict=True):
            inside = [name for name in schema.names if name not in values] or [reader.schema.names[0]]
            columns_in_path = [in_path(schema[name], value) for name, value in values.items() if name in schema]
            for frame in reader.batches(inside, share=share, progress=progress):
                height = frame.height
                filled = [column.new_from_index(0, height) for column in columns_in_path]
                yield frame.with_columns(filled).select(schema.names)


def open_tables(source: Files, columns: Columns) -> Reader:
    """Open Parquet or Arrow files, with the columns in the paths of those below a directory.

    Raises:
        SourceError: One cannot be read, they differ in their columns, or columns are not declared well.
    """
    from wpinq.sources.tables.ipc import open_arrow
    from wpinq.sources.tables.parquet import open_parquet

    open_one = open_arrow if source.form == "arrow" else open_parquet
    values = tuple(_in_path(source, file) for file in source.files)
    for file, named in zip(source.files, values, strict=True):
        if list(named) != list(values[0]):
            raise SourceError(f"{file.given}: its path has the columns {listed(named)}, and that of the first file "
                              f"{listed(values[0])}.")  # fmt: skip
    if not values[0]:
        return open_one(source, columns)
    in_paths = dict.fromkeys(values[0], Kind.TEXT)
    whole = open_one(source, None).schema
    both = [name for name in in_paths if name in whole]
    if both:
        raise SourceError(f"{source.given}: the columns {listed(both)} stand in the paths and in the files.")
    schema = chosen({column.name: column.kind for column in whole} | in_paths, columns, source.given)
    inside = {column.name: column.kind.value for column in schema if column.name not in in_paths and column.kind is not
              Kind.ANY and column.kind is not whole[column.name].kind}  # fmt: skip
    readers = tuple(open_one(replace(source, files=(file,)), inside or None) for file in source.files)
    within = {column.name: column for column in readers[0].schema}
    left_out = whole.left_out if keeps_all(columns) else ()
    return HiveReader(source, Schema(tuple(within.get(one.name, one) for one in schema), left_out), readers, values)


def _in_path(source: Files, file: File) -> dict[str, str | None]:
    """The columns in a file's path below the directory that was given."""
    top = Path(source.given)
    if not top.is_dir():
        return {}
    parts = [part.partition("=") for part in Path(file.given).relative_to(top).parts[:-1]]
    return {name: None if value == NO_VALUE else unquote(value) for name, mark, value in parts if mark and name}


def in_path(column: Column, value: str | None) -> pl.Series:
    """A value out of a path, in a column of one row."""
    text = pl.Series(column.name, [value], dtype=pl.String)
    return text if column.kind is Kind.TEXT else convert.parse_column(text, column.kind)
