"""Arrow types as kinds, and Arrow arrays as canonical columns, value by value.

Types are public. Integers, numbers, texts, booleans, bytes, dates, timestamps and durations are columns of their own
kind; times are counted in microseconds (rounded down), and what does not fit is null. Times of day are durations since
midnight. Decimals are numbers (see below). Unsigned 64-bit integers and nested types are held as canonical values, so
nothing is lost; a record inside a column becomes a tuple. A column without a type is text, all null.

**Decimals** are whole numbers where the type has no places, else the nearest doubles. A double that is nearest to a
decimal of at most 15 digits is that of no other one, and prints as the decimal: 0.07 is what a query writes as 0.07.
Arrow's own cast multiplies by a rounded power of ten, and gives the double beside the nearest one for an eighth of all
prices. Longer decimals may share a double; read them as text to keep all digits, or as whole numbers, which are exact.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.core.records import kinds as values
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Column, Kind, Schema, in_columns, polars_type
from wpinq.core.records.text import parse_column, series, valid_text

if TYPE_CHECKING:
    from decimal import Decimal

    import pyarrow as pa

#: What a declared type may make of a column; a text may become anything.
CASTS = {
    (Kind.INT, Kind.FLOAT), (Kind.INT, Kind.TEXT), (Kind.FLOAT, Kind.INT), (Kind.BOOL, Kind.INT),
    (Kind.DATE, Kind.TIME), (Kind.INSTANT, Kind.TIME),
}  # fmt: skip
VARIANT = {"metadata", "value"}
"""The fields of a record that stands for a VARIANT."""
MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def storage(type_: pa.DataType) -> pa.DataType:
    """The type of the values under dictionaries, runs and extensions."""
    import pyarrow as pa

    while True:
        if isinstance(type_, pa.BaseExtensionType):
            type_ = pa.string_view() if is_uuid(type_) else type_.storage_type
        elif pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
            type_ = type_.value_type
        else:
            return type_


def is_uuid(type_: pa.DataType) -> bool:
    """Whether it is that of UUIDs, which are read as texts."""
    return getattr(type_, "extension_name", None) == "arrow.uuid"


def public_kind(type_: pa.DataType) -> Kind | None:
    """The kind of an Arrow type, or None if it has none."""
    from pyarrow import types

    type_ = storage(type_)
    tests = (
        (Kind.TEXT, (types.is_null, types.is_string, types.is_large_string, types.is_string_view)),
        (Kind.BOOL, (types.is_boolean,)),
        (Kind.ANY, (types.is_uint64, types.is_nested)),
        (Kind.INT, (types.is_integer,)),
        (Kind.FLOAT, (types.is_floating,)),
        (Kind.BYTES, (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)),
        (Kind.DATE, (types.is_date,)),
        (Kind.SPAN, (types.is_duration, types.is_time)),
    )
    if types.is_timestamp(type_):
        return Kind.TIME if type_.tz is None else Kind.INSTANT
    if _ambiguous(type_):
        return None
    if types.is_decimal(type_):
        return decimal_kind(type_)
    return next((kind for kind, checks in tests if any(check(type_) for check in checks)), None)


def _ambiguous(type_: pa.DataType) -> bool:
    """Whether it is or holds a union, a VARIANT of Parquet, whose equal values differ in bytes, or one name twice."""
    from pyarrow import types

    if types.is_union(type_):
        return True
    fields = [type_.field(place) for place in range(type_.num_fields)]
    if types.is_struct(type_):
        names = {field.name: field.type for field in fields}
        if len(names) < len(fields) or (
            len(VARIANT & names.keys()) == 2 and public_kind(names["metadata"]) is Kind.BYTES
        ):
            return True
    return any(_ambiguous(storage(field.type)) for field in fields)


def compatible(type_: pa.DataType | None, kind: Kind) -> bool:
    """Whether a column of this type can be read as this kind."""
    from pyarrow import types

    if type_ is None:
        return True
    native, type_ = public_kind(type_), storage(type_)
    if fits(native, kind):
        return True
    if types.is_uint64(type_):
        return kind in {Kind.INT, Kind.FLOAT, Kind.TEXT}
    return kind is Kind.TEXT and types.is_decimal(type_)


def rounds(type_: pa.DataType | str | None, column: Column) -> bool:
    """Whether two values of this type may be one number in the column."""
    from pyarrow import types

    if type_ is None or isinstance(type_, str) or column.kind is not Kind.FLOAT:
        return column.rounded
    kept = storage(type_)
    return column.rounded or types.is_uint64(kept) or (types.is_decimal(kept) and kept.precision > DISTINCT)


def fits(native: Kind | None, kind: Kind) -> bool:
    """Whether every column of the one kind can be read as the other."""
    return native is kind or native is Kind.TEXT or (native, kind) in CASTS


def frame(batch: pa.RecordBatch, schema: Schema) -> pl.DataFrame:
    """A record batch as canonical columns; a lone column with a dictionary as the values in it and their weights."""
    import pyarrow as pa

    cells = [batch.column(column.name) for column in schema]
    if len(cells) == 1 and pa.types.is_dictionary(cells[0].type):
        return _counted(cells[0], schema.columns[0])
    return in_columns([column(array, item) for array, item in zip(cells, schema, strict=True)])


def _counted(array: pa.DictionaryArray, column_: Column) -> pl.DataFrame:
    import numpy as np

    codes = series(array.indices)
    result, missing = column(array.dictionary, column_), codes.null_count()
    if missing:
        codes, result = codes.drop_nulls(), result.extend_constant(None, 1)
    counts = np.bincount(codes.to_numpy(), minlength=len(result))
    counts[-1:] += missing
    frame = in_columns([result, pl.Series(WEIGHT, counts, dtype=pl.Int64)])
    return frame if counts.all() else frame.filter(pl.col(WEIGHT) != 0)


def column(array: pa.Array, column: Column) -> pl.Series:
    """An Arrow array as a column of a compatible kind."""
    import pyarrow as pa

    array = plain(array)
    type_, kind, native = array.type, column.kind, public_kind(array.type)
    if pa.types.is_null(type_):
        return pl.Series(column.name, [], polars_type(kind)).extend_constant(None, len(array))
    if kind is Kind.ANY:
        return (_unsigned(array) if pa.types.is_uint64(type_) else _codes(array)).alias(column.name)
    if pa.types.is_decimal(type_) and kind is Kind.TEXT:
        return series(array.cast(pa.large_string()), column.name)
    if pa.types.is_decimal(type_) and kind is Kind.INT:
        return whole_decimals(array).alias(column.name)
    if pa.types.is_decimal(type_):
        return decimal_numbers(array).alias(column.name)
    if pa.types.is_uint64(type_):
        return series(array, column.name).cast(polars_type(kind), strict=False)
    if (
        native is Kind.BYTES and kind is not native
    ):  # a file whose schema of Arrow calls them texts (`decode.all_plain`)
        return declared(valid_text(array.cast(pa.large_binary()), column.name), Kind.TEXT, kind)
    return declared(_natural(array, native).alias(column.name), native, kind)


def declared(natural: pl.Series, native: Kind | None, kind: Kind) -> pl.Series:
    """A column of one kind as a column of a compatible kind."""
    if native is kind:
        return natural
    if native is Kind.TEXT:
        return parse_column(natural, kind)
    if native is Kind.FLOAT and kind is Kind.INT:
        natural = natural.set(natural.floor() != natural, None)
    if native is Kind.INSTANT:
        return natural.dt.replace_time_zone(None)  # they are in UTC
    return natural.cast(polars_type(kind), strict=False)


def plain(array: pa.Array) -> pa.Array:
    """The values under dictionaries, runs and extensions; narrow decimals as wide ones, UUIDs as texts."""
    import pyarrow as pa

    while True:
        if isinstance(array, pa.ExtensionArray):
            array = _uuids(array.storage) if is_uuid(array.type) else array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            from pyarrow.compute import run_end_decode

            array = run_end_decode(array)
        elif pa.types.is_decimal32(array.type) or pa.types.is_decimal64(array.type):  # which Arrow does little with
            array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
        else:
            return array


def _uuids(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    return series(array.cast(pa.large_binary()), "uuid").to_frame().select(uuid_text("uuid")).to_series().to_arrow()


def uuid_text(name: str) -> pl.Expr:
    """A column of the bytes of UUIDs as texts, as Python and databases write them."""
    digits = pl.col(name).bin.encode("hex")
    parts = [digits.str.slice(start, end - start) for start, end in pairwise((0, 8, 12, 16, 20, 32))]
    return pl.concat_str(parts, separator="-").alias(name)


def _natural(array: pa.Array, native: Kind | None) -> pl.Series:
    """A column of the type's own kind."""
    import pyarrow as pa

    if native is Kind.TEXT:
        if pa.types.is_large_string(array.type):
            return valid_text(array.view(pa.large_binary()))
        return valid_text(array.view(pa.binary()) if pa.types.is_string(array.type) else array.cast(pa.binary_view()))
    if native is Kind.BYTES:
        return series(array.cast(pa.large_binary()))
    if native is Kind.DATE:
        return series(array.cast(pa.date32(), safe=False))
    if native in (Kind.TIME, Kind.INSTANT, Kind.SPAN):
        narrow = array.type.bit_width == 32
        return _microseconds(
            series(array.cast(pa.int32()) if narrow else array.cast(pa.int64())), array.type.unit
        ).cast(polars_type(native))
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    assert native is not None  # noqa: S101  such a column is not in a schema
    return series(array).cast(polars_type(native))


def _microseconds(ticks: pl.Series, unit: str) -> pl.Series:
    ticks = ticks.cast(pl.Int64)
    if unit == "ns":
        return ticks // 1_000
    factor = MICROSECONDS[unit]
    most = (2**63 - 1) // factor
    return ticks.set(~ticks.is_between(-most, most), None) * factor


def _codes(array: pa.Array) -> pl.Series:
    """The canonical encodings of values, one for each distinct value where Arrow can tell."""
    import pyarrow as pa

    column = Column("", Kind.ANY)
    if pa.types.is_nested(array.type):
        return values.column((_value(item) for item in array), column)
    distinct = array.dictionary_encode()
    return values.column(distinct.dictionary.to_pylist(), column).gather(series(distinct.indices))


def _value(item: Any) -> Any:
    try:
        return _as_tuple(item.as_py())
    except (ValueError, OverflowError):  # a text that is no UTF-8, a time out of Python's range
        return None


def _as_tuple(value: Any) -> Any:
    """Lists and records of nested columns as tuples."""
    if isinstance(value, dict):
        return tuple(_as_tuple(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(_as_tuple(item) for item in value)
    return value


def _unsigned(array: pa.Array) -> pl.Series:
    """The canonical encodings of unsigned integers: as integers, as doubles where these are exact, else as digits."""
    import numpy as np
    import pyarrow as pa

    numbers = series(array)
    small = numbers.cast(pl.Int64, strict=False)
    words = np.full((len(array), 9), ord("i"), np.uint8)
    words[:, :8] = small.fill_null(0).to_numpy().astype("<i8").view(np.uint8).reshape(-1, 8)
    codes = series(pa.FixedSizeBinaryArray.from_buffers(pa.binary(9), len(array), [None, pa.py_buffer(words)]))
    large = numbers.is_not_null() & small.is_null()
    if not large.any():
        return codes.cast(pl.Binary).set(numbers.is_null(), None)
    exact = values.column(numbers.filter(large).to_list(), Column("", Kind.ANY))
    codes = codes.cast(pl.Binary).set(numbers.is_null(), None)
    return codes.scatter(large.arg_true(), exact)


WHOLE = 18
"""Digits that 64 bits hold."""
DISTINCT = 15
"""Digits of decimals that are different doubles where they differ."""
PLACES = 22
"""Powers of ten up to this are doubles."""
EXACT = 1 << 53
"""Whole numbers up to this are doubles, so that one division rounds once."""


def decimal_kind(type_: pa.DataType) -> Kind:
    """The kind of a decimal type."""
    return Kind.INT if type_.scale == 0 and type_.precision <= WHOLE else Kind.FLOAT


def whole_decimals(array: pa.Array) -> pl.Series:
    """An array of decimals of 128 or 256 bits as integers; what is none of 64 bits is null."""
    if array.type.bit_width != 128 or array.type.scale != 0:
        return pl.Series([_whole(number) for number in array.to_pylist()], dtype=pl.Int64)
    low, high = _words(array)
    fit = array.is_valid().to_numpy(zero_copy_only=False) & (high == low >> 63)
    return pl.Series(low).set(pl.Series(~fit), None)


def _whole(number: Decimal | None) -> int | None:
    whole = None if number is None else int(number)
    return whole if whole is not None and whole == number and -(2**63) <= whole < 2**63 else None


def decimal_numbers(array: pa.Array) -> pl.Series:
    """An array of decimals of 128 or 256 bits as the nearest doubles."""
    type_ = array.type
    if type_.bit_width != 128 or not 0 <= type_.scale <= PLACES:
        numbers = array.to_pylist()
        return pl.Series([None if number is None else float(number) for number in numbers], dtype=pl.Float64)
    low, high = _words(array)
    held = pl.Series(array.is_valid().to_numpy(zero_copy_only=False))
    quotients = low / 10.0**type_.scale
    far = np.flatnonzero(held.to_numpy() & ((high != low >> 63) | (np.abs(low) > EXACT)))
    if len(far):
        quotients[far] = [float(array[index].as_py()) for index in far.tolist()]
    return pl.Series(quotients).set(~held, None)


def _words(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high word of each number of 128 bits; of what is null, anything."""
    if not len(array):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    words = np.frombuffer(array.buffers()[1], "<i8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words[:, 0], words[:, 1]
