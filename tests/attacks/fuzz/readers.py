"""Readers on neighbours: a file with and without one record, read whole, in shares and in small blocks.

Nothing but that record's own contribution may differ: every other record decodes to the same values, and whether the
file is refused, and in which words, does not depend on a record.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
from attacks.fuzz.files import Grown, grow
from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.plant import Plant

import wpinq.core.records.text
import wpinq.sources.tables.arrays
from wpinq.errors import InternalError, WpinqError
from wpinq.sources import open_source
from wpinq.sources.text import grammar
from wpinq.sources.text.csv import BOM, TextReader

TIMES = "\0weight"
"""The column of readers that give equal rows once."""
Rows = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class Read:
    """What became of a file: its columns and rows as text, or the error."""

    rows: Rows
    said: str


def read(grown: Grown, home: Path, parts: int = 1) -> Read:
    """Read a file in so many shares."""
    path = grown.write(home)
    rows: Rows = Counter()
    try:
        with patch.object(grammar, "BLOCK", grown.block), patch.object(grammar, "LONGEST", max(grown.block, 128)):
            reader = open_source(path, columns=grown.columns, **grown.words)
            names = reader.schema.names
            for part in range(parts):
                for frame in reader.batches(names, share=(part, parts)):
                    held = frame.with_columns(pl.lit(1).alias(TIMES)) if TIMES not in frame.columns else frame
                    for *row, times in held.select(*map(physical, names), TIMES).rows():
                        rows[tuple(map(repr, row))] += times
        return Read(rows, str(reader.schema))
    except InternalError as error:
        return Read(rows, f"InternalError: {error}")
    except WpinqError as error:
        return Read(Counter(), f"{type(error).__name__}: {error}".replace(str(home), "HOME"))
    except BaseException as error:
        return Read(Counter(), f"raw {type(error).__name__}: {error}"[:300])


def physical(name: str) -> pl.Expr:
    """A column as whole numbers where it is one of times, of which Python's hold fewer."""
    return pl.col(name).to_physical()


def judge(grown: Grown) -> list[str]:
    """What is wrong with how a file and its neighbour are read; nothing where all is well."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        whole, less, alone = (
            read(one, home / name) for one, name in ((grown, "whole"), (grown.without, "less"), (grown.alone, "alone"))
        )
        shares = [read(grown, home / f"shares{parts}", parts) for parts in (2, 5)]
    found = []
    if len({whole.said, less.said, alone.said}) > 1:
        found.append(
            f"A what is said depends on a record: {whole.said!r}, without it {less.said!r}, alone {alone.said!r}"
        )
    elif whole.said.startswith(("raw", "InternalError")):
        found.append(f"B {whole.said}")
    else:
        if whole.rows != less.rows + alone.rows:
            more, gone = whole.rows - less.rows - alone.rows, (less.rows + alone.rows) - whole.rows
            found.append(f"C others decode differently beside it: {dict(more)}, alone: {dict(gone)}")
        if alone.rows.total() > 1:
            found.append(f"D one record is {alone.rows.total()}")
        found += [f"E shares differ: {one.said}" for one in shares if (one.rows, one.said) != (whole.rows, whole.said)]
    return found


def shrink(grown: Grown) -> Grown:
    """The same finding with fewer records."""
    place = 0
    while place < len(grown.pieces):
        if place != grown.removed:
            kept = [one for one in range(len(grown.pieces)) if one != place]
            smaller = grown.kept(kept)
            smaller = type(grown)(**{**vars(smaller), "removed": grown.removed - (place < grown.removed)})
            if judge(smaller):
                grown = smaller
                continue
        place += 1
    return grown


# ---- bugs that are put back


def ragged_block() -> list[Any]:
    """A ragged line drops those beside it."""
    once = grammar._split

    def split(buffer: Any, delimiter: str, number: int, take: Any, *, quotes: bool) -> Any:
        try:
            return once(buffer, delimiter, number, take, quotes=quotes)
        except pa.ArrowInvalid:
            return once(pa.py_buffer(b""), delimiter, number, take, quotes=quotes)

    return [patch.object(grammar, "_split", split)]


def null_column() -> list[Any]:
    """A field that is not of its type makes those beside it null."""
    once = wpinq.core.records.text.from_field

    def field(cells: Any, column: Any) -> pl.Series:
        made = once(cells, column)
        return made.clear(len(made)) if made.null_count() else made

    return [patch.object(wpinq.core.records.text, "from_field", field)]


def strict_text() -> list[Any]:
    """A byte that is no text fails the file."""
    once = wpinq.core.records.text.from_field

    def field(cells: Any, column: Any) -> pl.Series:
        for one in cells.to_pylist():
            (one or b"").decode()
        return once(cells, column)

    return [patch.object(wpinq.core.records.text, "from_field", field)]


def quoted_breaks() -> list[Any]:
    """A quote that is not closed takes the next line."""
    return [patch.object(grammar, "well_quoted", lambda lines, _: pa.array([True] * len(lines), pa.bool_()))]


def first_mark() -> list[Any]:
    """A byte order mark is taken off the first line of a block alone."""
    once = TextReader.text

    def text(self: TextReader, block: Any) -> Any:
        return block.removeprefix(BOM) if self.charset is None else once(self, block)

    return [patch.object(TextReader, "text", text)]


PLANTS = {
    "ragged_block": Plant("a ragged line drops those beside it", ragged_block, 11),
    "null_column": Plant("a wrong field makes those beside it null", null_column, 17),
    "strict_text": Plant("a byte that is no text fails the file", strict_text, 10),
    "quoted_breaks": Plant("a quote that is not closed takes the next line", quoted_breaks, 37),
    "first_mark": Plant("a mark is taken off the first line of each block", first_mark, 49),
}
FUZZER = Fuzzer("readers", grow, judge, PLANTS, shrink=shrink)
