"""Records of edge cases, on which a function is tried when the plan is written (privacy rule 23)."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from wpinq.core.functions.function import ROW, Constant
from wpinq.core.records.kinds import series, write
from wpinq.core.records.schema import Kind, Schema, in_columns

STAMPS = (dt.datetime.min, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1),
          dt.datetime(2000, 2, 29, 12, 30, 45, 1), dt.datetime(2026, 12, 31, 23), dt.datetime.max)  # fmt: skip
VALUES: dict[Kind, tuple[Any, ...]] = {
    Kind.INT: (None, 0, 1, -1, 2, 7, -7, 10, 1000, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)),
    Kind.FLOAT: (None, 0.0, -0.0, 1.0, -1.5, 0.1, 1e308, -1e308, 5e-324, 2.0**53, math.inf, -math.inf, math.nan),
    Kind.TEXT: (
        None,
        "",
        "a",
        "B",
        "Aa",
        " a\t",
        "/a/B",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "Σας",
        "ǅ",
        "\x1c x\x85",
        "\u2003",
        "😀b",
        "a\0b",
        "$1",
        "%s",
        "A" * 40,
    ),
    Kind.BOOL: (None, True, False),
    Kind.BYTES: (None, b"", b"a", b"\0\xff"),
    Kind.DATE: (None, *(stamp.date() for stamp in STAMPS)),
    Kind.TIME: (None, *STAMPS),
    Kind.INSTANT: (None, *(stamp.replace(tzinfo=dt.UTC) for stamp in STAMPS)),
    Kind.SPAN: (None, dt.timedelta(0), dt.timedelta(microseconds=-1), dt.timedelta(days=1)),
    Kind.ANY: (None, 1, "a", 0.5, (1, "b")),
}


def probe_frame(schema: Schema, names: Sequence[str], constants: Sequence[Constant] = ()) -> pl.DataFrame:
    """Rows of edge cases for these columns, each with a number in `ROW`.

    Args:
        schema: All columns.
        names: The columns that are read.
        constants: What a function compares or computes with, whose neighbours are edge cases too.
    """
    pools = [_pool(schema[name].kind, constants) for name in names]
    height = 1 + 4 * max(map(len, pools), default=1)
    columns = [
        series(
            name,
            [pool[(row + row // len(pool) * (3 * index + 1)) % len(pool)] for row in range(height)],
            schema[name].kind,
        )
        for index, (name, pool) in enumerate(zip(names, pools, strict=True))
    ]
    return in_columns([*columns, pl.Series(ROW, range(height), dtype=pl.UInt32)])


def _pool(kind: Kind, constants: Sequence[Constant]) -> list[Any]:
    """The probe values of a kind as stored, with the neighbours of the constants of that kind."""
    stored = [write(value, kind) for value in VALUES[kind]]
    near = (neighbour for of, value in constants if of is kind for neighbour in _neighbours(value, kind))
    return list(dict.fromkeys([*stored, *near]))


def _neighbours(value: Any, kind: Kind) -> list[Any]:
    if kind is Kind.TEXT:
        return [
            value,
            value + "x",
            "x" + value,
            value + value,
            value[:-1],
            value[1:],
            value.swapcase(),
            f"a{value}b{value}c",
        ]
    if kind in (Kind.INT, Kind.DATE, Kind.TIME, Kind.INSTANT, Kind.SPAN):
        return [neighbour for neighbour in (value - 1, value, value + 1) if -(2**63) <= neighbour < 2**63]
    return [value]
