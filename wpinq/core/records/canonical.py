"""Canonical values: what a column may hold, enforced after every reader and every function.

- A number is never NaN, which is null, and never -0.0, which is 0.0. So numbers are equal where their bits are.
- A time lies in the years that Python has, 1 to 9999; another one is null.
- A null is Polars' null, in a column of any values too, and under it lies zero or nothing. Polars computes with what
  lies there: the letters of a text that is no UTF-8 crash `to_uppercase`, a far date makes `month_start` panic.

Polars joins and sorts NaN in different ways, so rows are compared by `bits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import polars as pl

from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.core.records.values import DAY, FIRST, LAST, MICROSECOND, encode

BOUNDS: dict[Kind, tuple[int, int]] = {
    Kind.DATE: (FIRST // (DAY // MICROSECOND), LAST // (DAY // MICROSECOND)),
    Kind.TIME: (FIRST, LAST),
    Kind.INSTANT: (FIRST, LAST),
}
"""The first and the last time of a kind, as columns store it."""
EMPTY: dict[Kind, object] = {Kind.TEXT: "", Kind.BYTES: b"", Kind.ANY: b""}
HELD, KNOWN = "\0held", "\0known"

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
Value = TypeVar("Value")


def _when(test: Any, value: Any, otherwise: Any = None) -> Any:
    return pl.when(test).then(value).otherwise(otherwise)


def canonical(value: Value, kind: Kind, when: Callable[..., Value] = _when) -> Value:
    """A value that a column of this kind may hold; what lies under its nulls does not matter.

    Args:
        value: An expression, of Polars or as a tree.
        kind: The kind.
        when: One value where a test holds, and another elsewhere, null if none is given.
    """
    number: Any = value
    if kind is Kind.FLOAT:
        return when(number == 0, 0.0, when(number.is_not_nan(), number))
    return when(_within(number, kind), number) if kind in BOUNDS else value


def column(series: pl.Series, kind: Kind) -> pl.Series:
    """A column of this kind, with null for what it may not hold; itself, if all is well."""
    if not series.null_count() and kind is not Kind.FLOAT and kind not in BOUNDS:
        return series
    held = series.alias(HELD).to_frame()
    if kind is Kind.FLOAT:
        odd = (pl.col(HELD).is_nan() | (pl.col(HELD) == 0)).any()  # a zero may be the negative one
        return held.select(canonical(pl.col(HELD), kind)).to_series().alias(series.name) if _one(held, odd) else series
    if not series.null_count() and _all_within(series, kind):
        return series
    known = _within(pl.col(HELD), kind) if kind in BOUNDS else pl.col(HELD).is_not_null()
    held = held.with_columns(known.fill_null(value=False).alias(KNOWN))
    zero = pl.lit(EMPTY.get(kind, 0)).cast(polars_type(kind))
    whole = held.select(pl.when(KNOWN).then(HELD).otherwise(zero)).to_series()
    return whole.set(~held[KNOWN], None).alias(series.name)


def frame(rows: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """A frame with canonical values in the columns of the schema; its other columns stay."""
    pairs = ((before, column(before, item.kind)) for item in schema for before in [rows[item.name]])
    changed = [after for before, after in pairs if after is not before]
    return rows.with_columns(changed) if changed else rows


def bits(rows: Frame) -> Frame:
    """The same rows with numbers as their bits, to be compared with others; `numbers` undoes it."""
    if isinstance(rows, pl.DataFrame) and pl.Float64 not in rows.dtypes:
        return rows
    return rows.with_columns(pl.col(pl.Float64).reinterpret(dtype=pl.Int64()))


def numbers(rows: Frame, columns: Iterable[Column]) -> Frame:
    """The rows whose numbers were written as bits."""
    floats = [item.name for item in columns if item.kind is Kind.FLOAT]
    return rows.with_columns(pl.col(floats).reinterpret(dtype=pl.Float64())) if floats else rows


def distinct(rows: pl.DataFrame, columns: Iterable[Column]) -> pl.DataFrame:
    """Each row once, in the order in which they come first."""
    return numbers(bits(rows).unique(maintain_order=True), columns)


def encoded(series: pl.Series, kind: Kind) -> pl.Series:
    """A column of a kind as a column of any values: canonical bytes, found one distinct value at a time."""
    if kind is Kind.ANY:
        return series
    rows = bits(series.alias(HELD).to_frame())
    once = rows.unique()
    (values,) = numbers(once, [Column(HELD, kind)])
    codes = [None if value is None else encode(value) for value in values]
    lookup = once.with_columns(pl.Series("\0code", codes, dtype=pl.Binary))
    result = rows.join(lookup, on=HELD, how="left", nulls_equal=True, maintain_order="left")
    return result["\0code"].alias(series.name)


def _within(value: Any, kind: Kind) -> Any:
    return value.to_physical().cast(pl.Int64).is_between(*BOUNDS[kind])


def _all_within(series: pl.Series, kind: Kind) -> bool:
    """Whether all times of a column are canonical: what `_within` says of each, without a query of Polars."""
    stored = series.cast(pl.Int64)
    least, most = BOUNDS[kind]
    return not len(stored) or bool(least <= stored.min() and stored.max() <= most)  # type: ignore[operator]


def _one(held: pl.DataFrame, test: pl.Expr) -> bool:
    return bool(held.select(test).item())
