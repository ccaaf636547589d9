"""Bins in blocks: many are read from a lazy frame a block at a time, and never held together.

A block is a frame of the schema's columns, as `bin_frame` gives it. So what is asked of 100 million bins, of which few
are shown, takes the memory of one million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from wpinq.core.records.bins import HELD, bin_frame, held_as
from wpinq.core.records.schema import Schema, in_columns, polars_type
from wpinq.errors import SourceError

ROWS = 1 << 20
"""Rows of a block."""


@dataclass(frozen=True)
class Blocks:
    """Some bins, block by block, as often as they are gone through.

    Attributes:
        rows: How many there are; one that stands twice counts twice.
        read: Gives them.
    """

    rows: int
    read: Callable[[], Iterator[pl.DataFrame]]

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """At least one block, each of `ROWS` rows or fewer."""
        return self.read()

    @property
    def whole(self) -> pl.DataFrame:
        """All of them together."""
        return pl.concat(list(self))


def in_blocks(frame: pl.DataFrame) -> Blocks:
    """The bins of a frame that is there already."""
    return Blocks(frame.height, lambda: frame.iter_slices(ROWS) if frame.height else iter([frame]))


def together(frame: pl.DataFrame) -> Blocks:
    """All bins of a frame as one block."""
    return Blocks(frame.height, lambda: iter([frame]))


def plain(schema: Schema) -> bool:
    """Whether all columns are of the types that are read block by block."""
    return all(column.kind in HELD for column in schema)


def bin_blocks(bins: Any, schema: Schema) -> Blocks:
    """Read bins as `bin_frame` does; a lazy frame of plain types (text, integers, booleans, bytes) block by block.

    What it holds must stay as it is, as the bytes of a file do that nobody writes to: it is read each time that it is
    gone through.

    Raises:
        BinError: A bin has another type, or another number of values, than the collection's records.
        SourceError: A lazy frame cannot be read.
    """
    if not isinstance(bins, pl.LazyFrame):
        return in_blocks(bin_frame(bins, schema))
    try:
        types = bins.collect_schema()
        if len(types) != len(schema) or not all(map(held_as, types.dtypes(), schema)):
            return in_blocks(bin_frame(bins.collect(), schema))
        rows = int(bins.select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(error) from None
    named = [pl.col(old).cast(polars_type(new.kind)).alias(new.name) for old, new in zip(types, schema, strict=True)]
    wanted = bins.select(named)

    def read() -> Iterator[pl.DataFrame]:
        read_rows = 0
        try:
            for block in wanted.collect_batches(chunk_size=ROWS, maintain_order=True):
                read_rows += block.height
                yield from block.iter_slices(ROWS)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _unreadable(error) from None
        if not read_rows:
            yield in_columns([pl.Series(column.name, [], polars_type(column.kind)) for column in schema])

    return Blocks(rows, read)


def _unreadable(error: BaseException) -> SourceError:
    why = getattr(error, "strerror", None) or f"it is no table that Polars reads ({type(error).__name__})"
    return SourceError(f"keys: the lazy frame cannot be read: {why}.")
