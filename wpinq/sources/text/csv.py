"""Comma- and tab-separated files, plain or gzipped, one or many."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from wpinq.core.records import text as convert
from wpinq.core.records.reader import listed, wanted
from wpinq.core.records.schema import Column, Kind, Schema, in_columns
from wpinq.errors import SourceError
from wpinq.sources.files import File, FileReader, Files, reading
from wpinq.sources.form import ANEW, SEPARATORS, Columns, Form, check_names, chosen, named
from wpinq.sources.text import grammar
from wpinq.sources.text.grammar import END, Block, blocks

if TYPE_CHECKING:
    import pyarrow as pa

BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
KINDS = {
    b"\x1f\x8b": "compressed by gzip, and its name does not end in .gz",
    b"PAR1": "Parquet, and its name does not end in .parquet",
    b"ARROW1": "an Arrow file, and its name does not end in .arrow",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ\0": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard",
    b"SQLite format 3\0": "an SQLite database",
}
"""What other files begin with. Looked at in a header alone, which is public: without one it would be a record."""
NAMED = "give it the ending of what it is, or write it as text of the form that its name tells"
LINED = "write it anew with line feeds, for example with tr '\\r' '\\n'"
HEADER = 1 << 20  # the longest header line


@dataclass(frozen=True, slots=True)
class TextReader(FileReader):
    """Rows of text files with one kind of delimiter.

    Attributes:
        fields: The names of the fields of a row, in order.
        origins: Where the first row of each file begins.
        delimiter: The byte between fields.
        quotes: Whether fields may be quoted.
        prepare: What happens to a block before it is split into fields.
        decimal: The decimal mark of numbers.
        charset: The encoding, if it is not UTF-8.
    """

    fields: tuple[str, ...]
    origins: tuple[int, ...]
    delimiter: str
    quotes: bool = True
    prepare: Callable[[Block], Block] = grammar.without_returns
    decimal: str = "."
    charset: str | None = None

    @property
    def way(self) -> tuple[object, ...]:
        """The format, how a line is cut into fields, and how these are read."""
        cut = (self.fields, self.origins, self.delimiter, self.quotes)
        return (type(self).__name__, self.source.form, *cut, f"grammar {convert.FORMAT}")

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`."""
        schema = wanted(self.schema, columns, self.source.given)
        for block in self.blocks(share, progress):
            yield from self.frames(block, schema)

    def frames(self, block: Block, schema: Schema) -> Iterator[pl.DataFrame]:
        """The rows of a block of whole lines."""
        take = [self.fields.index(column.name) for column in schema]
        for lines, quotes in grammar.rows(self.prepare(block), self.delimiter, quotes=self.quotes):
            table = grammar.fields(lines, self.delimiter, len(self.fields), take, quotes=quotes)
            if table.num_rows:
                pairs = zip(schema, table.columns, strict=True)
                yield in_columns([self.value(bytes_, column) for column, bytes_ in pairs])

    def value(self, cells: pa.ChunkedArray, column: Column) -> pl.Series:
        """A column, from its fields as bytes."""
        if column.kind is Kind.FLOAT and self.decimal == ",":
            import pyarrow.compute as pc

            point = pc.replace_substring(pc.replace_substring(cells, ".", "x"), ",", ".")  # 1.5 is no number here
            return convert.from_field(point, column)
        return convert.from_field(cells, column)

    def text(self, block: Block) -> Block:
        """The block in UTF-8; a byte that is no character of the encoding stays as it is, which is no UTF-8 either.

        A byte order mark is taken off wherever a line begins with one: taken off the first line alone, what a line says
        would depend on whether another one stands before it.
        """
        if BOM in block:
            block = block.removeprefix(BOM).replace(b"\n" + BOM, b"\n")
        if self.charset is None:
            return block
        return block.decode(self.charset, "surrogateescape").encode("utf-8", "surrogateescape")

    def blocks(self, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None) -> Iterator[Block]:
        """Blocks of whole lines of a share; the share of a file is a range of its bytes."""
        part, parts = share
        low, high = (self.total_bytes * edge // parts for edge in (part, part + 1))
        base = 0
        for file, origin in zip(self.source.files, self.origins, strict=True):
            start, stop = max(low - base, origin), min(high - base, file.size)
            if file.zipped and low <= base < high:
                yield from map(self.text, _read(file, origin, origin, END, progress))
            elif not file.zipped and start < stop:
                yield from map(self.text, _read(file, origin, start, stop, progress))
            base += file.size

    def file_blocks(self, index: int) -> Iterator[Block]:
        """Blocks of whole lines of one of the files."""
        file, origin = self.source.files[index], self.origins[index]
        return map(self.text, _read(file, origin, origin, END if file.zipped else file.size, None))


def open_csv(source: Files, columns: Columns, form: Form) -> TextReader:
    """Open separated files.

    Raises:
        SourceError: A header is missing, unreadable, or not the same in all files, or columns are not declared well, or
            the separator or the encoding is none.
    """
    delimiter, charset = form.delimiter(source.form), form.charset()
    reader = partial(TextReader, decimal="," if form.comma() else ".", charset=charset)
    if not form.header:
        schema = named(columns, Kind.TEXT, None, source.given)
        return reader(source, schema, schema.names, (0,) * len(source.files), delimiter)
    heads = [_header(file, delimiter, charset) for file in source.files]
    names = next((names for names, _ in heads if names), ())
    for file, (other, _) in zip(source.files, heads, strict=True):
        if other and other != names:
            raise SourceError(
                f"{file.given}: the header {listed(other)} is not that of the first file, {listed(names)}."
            )
    if not names and columns is None:
        raise SourceError(f"{source.given}: is empty, not even a header; pass columns=('user', 'page').")
    if names:
        mark = next((mark for mark in SEPARATORS if mark in names[0]), None)
        if len(names) == 1 and mark is not None and form.separator is None:
            raise SourceError(
                f"{source.given}: the header is one column, {listed(names)}; pass separator={mark!r} if that separates "
                f"its fields, or separator={delimiter!r} if this is its name."
            )
        check_names(names, source.given)
        schema = chosen(dict.fromkeys(names, Kind.TEXT), columns, source.given)
    else:
        schema = named(columns, Kind.TEXT, None, source.given)
    return reader(source, schema, names or schema.names, tuple(origin for _, origin in heads), delimiter)


def _read(file: File, origin: int, start: int, stop: int, progress: Callable[[int], None] | None) -> Iterator[Block]:
    """Blocks of one file, which must stay as it is meanwhile."""
    file.check()
    done, last = 0 if start == origin else start, min(stop, file.size)
    with reading(file.given), file.opened() as (stream, raw):
        for block in blocks(stream, origin, start, stop):
            if progress is not None:
                progress(min(raw.tell(), last) - done)
                done = min(raw.tell(), last)
            yield block
    file.check()
    if progress is not None:
        progress(last - done)


def _header(file: File, delimiter: str, charset: str | None) -> tuple[tuple[str, ...], int]:
    """The names in the first line that is not blank, and where the next line begins; no names if there is no line."""
    line = b""
    with reading(file.given), file.opened() as (stream, _):
        origin = len(BOM) if stream.read(len(BOM)) == BOM else 0
        stream.seek(origin)
        while not line.strip(b"\r\n"):
            line = stream.readline(HEADER + 1)
            origin += len(line)
            if not line:
                return (), origin
    if kind := next((kind for start, kind in KINDS.items() if line.startswith(start)), None):
        raise SourceError(f"{file.given}: is {kind}; {NAMED}.")
    first, end, more = line.partition(b"\r")  # where lines end so, records follow
    if line.startswith(UTF16) or (len(first) > 1 and not (any(first[::2]) and any(first[1::2]))):
        raise SourceError(f"{file.given}: its header is in UTF-16; {ANEW}.")
    if end and more != b"\n":
        raise SourceError(f"{file.given}: its lines end in carriage returns; {LINED}.")
    if len(line) > HEADER:
        raise SourceError(f"{file.given}: the first line is too long for a header; is this a text file?")
    try:
        text = line.decode(charset or "utf-8").removesuffix("\n").removesuffix("\r")
        return tuple(next(csv.reader([text], delimiter=delimiter, strict=True))), origin
    except csv.Error:
        raise SourceError(f"{file.given}: the quotes of its header do not match; mend them, or pass header=False if "
                          "the first line is none.") from None  # fmt: skip
    except (UnicodeDecodeError, StopIteration):
        raise SourceError(
            f"{file.given}: the first line is no header in {charset or 'UTF-8'}; pass header=False if there is "
            "none, or encoding= if it is of another encoding."
        ) from None
