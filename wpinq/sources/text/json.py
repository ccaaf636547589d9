"""Lines of JSON: an object on each, of which the declared keys are read.

The value of a key is read as a field of a text file is, and what lies deeper is its text. A name with dots is a path,
`request.headers.0`, unless an object has a key of that name. A line that is no object is
dropped, by itself and uncounted; of a key that stands twice the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from wpinq.core.records import text as convert
from wpinq.core.records.schema import Kind, Schema, in_columns
from wpinq.errors import SourceError
from wpinq.sources.files import Files
from wpinq.sources.form import Columns, named
from wpinq.sources.text.csv import TextReader
from wpinq.sources.text.grammar import Block, as_lines


@dataclass(frozen=True, slots=True)
class JsonReader(TextReader):
    """Lines of JSON."""

    def frames(self, block: Block, schema: Schema) -> Iterator[pl.DataFrame]:
        """The records of a block of whole lines."""
        text, _ = objects(as_lines(block))
        if len(text):
            yield values(text, schema)


def open_json(source: Files, columns: Columns) -> JsonReader:
    """Open files of lines of JSON.

    Raises:
        SourceError: No columns are declared: nothing is inferred from records.
    """
    if columns is None:
        raise SourceError(f"{source.given}: which keys to read is not inferred from records; pass columns=, for "
                          "example columns={'user': 'text', 'time': 'instant', 'size': int}.")  # fmt: skip
    schema = named(columns, Kind.TEXT, None, source.given)
    check_keys(schema, "columns")
    return JsonReader(source, schema, schema.names, (0,) * len(source.files), "\n")


def check_keys(schema: Schema, where: str) -> None:
    """Refuse names that a path of JSON cannot hold.

    Raises:
        SourceError: One holds a quote or a backslash.
    """
    if any(set(column.name) & set("\"'\\") for column in schema):
        raise SourceError(f"{where}: a key with a quote or a backslash cannot be read; rename it where it is written.")


def objects(lines: Any) -> tuple[pl.Series, pl.Series]:
    """Which lines of bytes are objects, as text, and the mask of them."""
    return objects_of(convert.valid_text(lines, "message"))


def objects_of(text: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The same of lines of text."""
    mask = text.str.json_path_match("$").is_not_null() & text.str.contains(r"^\s*\{").fill_null(value=False)
    return text.filter(mask), mask


def values(text: pl.Series, schema: Schema) -> pl.DataFrame:
    """The values of the keys of objects; of a name with dots, where no key is written so, what lies there."""
    texts = [_value(text, column.name) for column in schema]
    return in_columns(
        [text_ if column.kind is Kind.TEXT else convert.parse_column(text_, column.kind)
         for text_, column in zip(texts, schema, strict=True)]
    )  # fmt: skip


def _value(text: pl.Series, name: str) -> pl.Series:
    key = text.str.json_path_match(f'$["{name}"]').alias(name)
    parts = name.split(".")
    if len(parts) == 1 or "" in parts:
        return key
    path = "$" + "".join(f"[{part}]" if part.isdecimal() and part.isascii() else f'["{part}"]' for part in parts)
    deeper = text.str.json_path_match(path)
    return key.zip_with(key.is_not_null(), deeper)
