"""Read the bins of an observation as the columns of a measured collection.

Types are public, so a bin that the collection could never hold is refused with a hint; a bin that it could hold is
answered, whether it exists or not. Bins are equal as in `values.py`: the bin NaN is the bin None.

Many bins are read from a lazy frame in blocks, and never held together. A block is a frame of the schema's columns, as
`bin_frame` gives it. So a question about 100 million bins, of which few are shown, takes the memory of one million.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.records.kinds import fitted
from wpinq.core.records.schema import Column, Kind, Schema, in_columns, polars_type
from wpinq.core.records.values import NULL, decode, encode
from wpinq.errors import BinError, SourceError

HELD: dict[Kind, frozenset[type[pl.DataType]]] = {
    Kind.INT: frozenset([pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32]),
    Kind.TEXT: frozenset([pl.String, pl.Categorical, pl.Enum]),
    Kind.BOOL: frozenset([pl.Boolean]),
    Kind.BYTES: frozenset([pl.Binary]),
}
"""Types of Polars columns of which every value is one of the kind, so that nobody needs to look."""
SIMPLE = frozenset([Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.TEXT, Kind.BYTES, Kind.ANY])
"""Kinds of which a column holds whatever value can be encoded."""

OBSERVE = "observe"
"""What messages name where nothing else is said."""


def bin_frame(bins: Any, schema: Schema, call: str = "") -> pl.DataFrame:
    """Read bins as columns.

    Args:
        bins: Values, or tuples of values where the collection has several columns: any iterable, a range, a NumPy
            array, a Polars series or frame, an Arrow table.
        schema: The columns of the collection.
        call: What messages name, where it is no observation that takes them.

    Raises:
        BinError: A bin has another type, or another number of values, than the collection's records.
    """
    many, single = call or "observe_many(bins)", call or OBSERVE
    if type(bins).__module__.partition(".")[0] == "pyarrow" and hasattr(bins, "schema"):
        bins = pl.DataFrame(pl.from_arrow(bins))
    if isinstance(bins, (str, bytes)) or not isinstance(bins, Iterable) or getattr(bins, "ndim", 1) == 0:
        raise BinError(f"{many}: {type(bins).__name__} is one value; put bins into a list.")
    if len(schema) == 1 and not isinstance(bins, pl.DataFrame):
        return in_columns([_column(bins, schema.columns[0], single)])
    parts: list[Any]
    if isinstance(bins, pl.DataFrame):
        parts = list(bins.get_columns())
    else:
        rows = list(bins)
        if not all(isinstance(row, (tuple, list)) and len(row) == len(schema) for row in rows):
            raise BinError(f"{single}: a bin of {schema} is a tuple of {len(schema)} values.")
        parts = [[row[i] for row in rows] for i in range(len(schema))]
    if len(parts) != len(schema):
        raise BinError(f"{many}: {len(parts)} columns were given; a bin of {schema} has {len(schema)}.")
    return in_columns([_column(part, column, single) for part, column in zip(parts, schema, strict=True)])


def held_as(dtype: pl.DataType, column: Column) -> bool:
    """Whether every value of this Polars type is one of the column's kind."""
    return dtype.base_type() in HELD.get(column.kind, ())


def bin_codes(bin_: Any, schema: Schema) -> list[bytes] | None:
    """Read one bin as the encodings of its values, without a frame.

    Returns:
        One encoding for each column; None where a column is of a kind that only `bin_frame` reads.

    Raises:
        BinError: As `bin_frame`.
    """
    if not SIMPLE.issuperset(column.kind for column in schema):
        return None
    if len(schema) == 1:
        return [_code(bin_, schema.columns[0])]
    if not isinstance(bin_, (tuple, list)) or len(bin_) != len(schema):
        raise BinError(f"{OBSERVE}: a bin of {schema} is a tuple of {len(schema)} values.")
    return [_code(value, column) for value, column in zip(bin_, schema, strict=True)]


def _code(value: Any, column: Column) -> bytes:
    if value is None:
        return NULL
    if type(value) is str and column.kind is Kind.TEXT:  # what most bins are, and what `fitted` decodes them to again
        try:
            return encode(value)
        except BinError:
            raise _misfit("str", column, OBSERVE) from None
    checked = _checked(value, column, OBSERVE)
    return (checked or NULL) if column.kind is Kind.ANY else encode(checked)


def _column(values: Any, column: Column, call: str) -> pl.Series:
    if column.kind is Kind.INT:
        quick = _integers(values)
        if quick is not None:
            return pl.Series(column.name, quick, dtype=pl.Int64)
    if isinstance(values, pl.Series) and held_as(values.dtype, column):
        return values.alias(column.name).cast(polars_type(column.kind))
    try:
        listed = list(values)
    except (ValueError, OverflowError):  # a Polars column of times that Python does not have
        raise _misfit("a time outside of the years 1 to 9999", column, call) from None
    read = [None if value is None else _checked(value, column, call) for value in listed]
    try:
        return pl.Series(column.name, read, dtype=polars_type(column.kind))
    except (pl.exceptions.PolarsError, OverflowError, TypeError):
        raise BinError(f"{call}: a bin lies beyond what a column of the type {column.kind.value} can hold.") from None


def _integers(values: Any) -> np.ndarray | None:
    """The common case, without a loop: a range, or an array of integers."""
    if isinstance(values, range) and all(-(2**63) <= edge < 2**63 for edge in (values.start, values.stop)):
        return np.arange(values.start, values.stop, values.step, dtype=np.int64)
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "ib":
        return values.astype(np.int64)
    return None


def _checked(value: Any, column: Column, call: str) -> Any:
    try:
        result = fitted(value, column.kind)
        if isinstance(result, float) and type(value) is not float:
            _insist_on_exact(result, value if isinstance(value, Decimal) else decode(encode(value)))
    except (BinError, ValueError, TypeError, ArithmeticError):
        raise _misfit(type(value).__name__, column, call) from None
    return result


def _insist_on_exact(number: float, exact: Any) -> None:
    """A number that no double is would be answered as another bin, so it is refused.

    A decimal is the double that prints as it does: so decimals of a table are read.
    """
    if isinstance(exact, Decimal) and Decimal(repr(number)) == exact:
        return
    if math.isfinite(number) and Fraction(number) != Fraction(exact):
        raise TypeError


def _misfit(what: str, column: Column, call: str) -> BinError:
    hint = f"bins of column {column.name!r} are of the type {column.kind.value}"
    several = "; several are asked by observe_many" if what in ("list", "range", "ndarray") else ""
    return BinError(f"{call}: {what} does not fit; {hint}{several}.")


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


def bin_blocks(bins: Any, schema: Schema, call: str = "") -> Blocks:
    """Read bins as `bin_frame` does; a lazy frame of plain types (text, integers, booleans, bytes) block by block.

    What it holds must stay as it is, as the bytes of a file do that nobody writes to: it is read each time that it is
    gone through.

    Raises:
        BinError: A bin has another type, or another number of values, than the collection's records.
        SourceError: A lazy frame cannot be read.
    """
    if not isinstance(bins, pl.LazyFrame):
        return in_blocks(bin_frame(bins, schema, call))
    try:
        types = bins.collect_schema()
        if len(types) != len(schema) or not all(map(held_as, types.dtypes(), schema)):
            return in_blocks(bin_frame(bins.collect(), schema, call))
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
