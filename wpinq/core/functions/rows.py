"""A public table as a function of one record: the row that has the record's key."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from wpinq.core.functions.function import Columnwise, columns_code
from wpinq.core.records.schema import Column, Schema
from wpinq.core.records.values import digest
from wpinq.errors import PlanError

KEY = "\0row key"
TWICE = "join: the key is not unique in the public table, so a record would count many times; join on what is unique."


@dataclass(frozen=True, eq=False)
class Rows(Columnwise):
    """The row of a public table.

    Attributes:
        table: The key, `KEY`, which is unique and never null, and the columns of the output.
        outer: Whether a record without a row has nulls, rather than being dropped.
    """

    table: pl.DataFrame
    outer: bool

    def apply(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:  # noqa: D102
        (key,) = self.reads
        how: Literal["left", "inner"] = "left" if self.outer else "inner"
        joined = frame.select(pl.col(key).alias(KEY), *keep).join(self.table, on=KEY, how=how)
        return joined.select(*self.output.names, *keep)


def rows(key: Column, table: pl.DataFrame, output: Schema, *, outer: bool, note: str, twice: str = TWICE) -> Rows:
    """Look a column up in a public table.

    Args:
        key: The column of a record.
        table: `KEY`, of the key's type and without nulls, and the columns of the output, all of them canonical.
        output: Those columns.
        outer: Whether a record without a row has nulls, rather than being dropped.
        note: How `explain` shows it.
        twice: What is said where a key is not unique.

    Raises:
        PlanError: A key is not unique.
    """
    content = hashlib.blake2b()
    table = table.select(KEY, *output.names).sort(KEY, multithreaded=False)  # in any order; threads take twice the work
    keys = table[KEY]
    if (keys == keys.shift()).any():
        raise PlanError(twice)
    for start in range(0, table.height, 1 << 16):
        file = io.BytesIO()
        table[start : start + (1 << 16)].write_ipc(file, compression="uncompressed")
        content.update(file.getvalue())
    schema = Schema((key,))
    meaning = (pl.__version__, content.digest(), outer, columns_code(schema, (key.name,)), columns_code(output))
    return Rows(
        schema=schema,
        reads=(key.name,),
        output=output,
        projection=None,
        note=note,
        fingerprint=digest("rows", *meaning),
        table=table,
        outer=outer,
    )
