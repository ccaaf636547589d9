"""Public tables: read as sources are, whole, into memory. Nobody's secret is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from wpinq.core.records import canonical
from wpinq.core.records.schema import Schema, polars_type
from wpinq.errors import SourceError
from wpinq.sources import open_source

MOST_ROWS, MOST_BYTES = 10_000_000, 1 << 30
"""What a public table may hold: it is kept in memory as a whole, with an index of its keys."""


def public_table(table: Any, what: str) -> tuple[Schema, pl.DataFrame]:
    """Read a public table.

    Args:
        table: Whatever can be protected; alone, or with the types of its columns, `(table, {"page": str})`.
        what: Which it is, for messages: "join: the public table".

    Raises:
        SourceError: It cannot be read, or is too large to look up.
    """
    paired = isinstance(table, tuple) and len(table) == 2 and isinstance(table[1], Mapping)
    source, columns = table if paired else (table, None)
    reader = open_source(source, columns=columns)
    frames = [pl.DataFrame(schema={item.name: polars_type(item.kind) for item in reader.schema})]
    count = size = 0
    for frame in reader.batches(reader.schema.names):
        count, size = count + frame.height, size + int(frame.estimated_size())
        if count > MOST_ROWS or size > MOST_BYTES:
            raise SourceError(
                f"{what} has more than {MOST_ROWS:,} rows, or takes more than {MOST_BYTES >> 20:,} MiB; leave out what "
                "is not needed."
            )
        frames.append(frame)
    return reader.schema, canonical.frame(pl.concat(frames), reader.schema)
