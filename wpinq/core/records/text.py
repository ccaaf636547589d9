r"""From what a file or table holds to the canonical Polars columns of a schema, value by value.

A field of a text file, or a text under a declared type, is read so; anything else is null:

- text: UTF-8. An empty field is the empty text, quoted or not.
- integer: `[+-]?[0-9]+` within 64 bits. No blanks, no `1_000`, no `1e3`, no `1.0`; `007` is 7.
- number: a decimal with or without exponent, `inf`, as Polars casts text; `1e400` is infinite. `nan` is null.
- boolean: `true`, `false` in any case, `1`, `0`.
- bytes: the field as it stands.
- date: `2026-12-31`, of the years 1 to 9999.
- timestamp: `2026-12-31 23:59[:59[.123456]]`, with a blank or a `T`. With an offset after it (`Z`, `UTC`, `+01:00`,
  `+0100`, `+01`), or as web servers write it (`31/Dec/2026:23:59:59 +0100`), it is the same instant in UTC.
- timestamp with a zone: the same, and an offset must be there.
- duration: `[-]H:MM:SS[.123456]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.core.records.schema import Column, Kind, polars_type

if TYPE_CHECKING:
    import pyarrow as pa

UTF8 = (
    r"\A(?:[\x00-\x7F]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}"
    r"|\xED[\x80-\x9F][\x80-\xBF]|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}"
    r"|\xF4[\x80-\x8F][\x80-\xBF]{2})*\z"
)
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
FORMAT = 2
"""Of this grammar: the records of what is read by another one are others."""
CLOCK = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
OFFSET = r"(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))$"
SERVER = r"^[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}(?::[0-9]{2}){3} [+-][0-9]{4}$"
"""How web servers write a time."""
SPAN = r"^(-?)([0-9]{1,9}):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6}))?$"


def from_field(field: pa.ChunkedArray, column: Column) -> pl.Series:
    """A column of a text file, from its fields as bytes."""
    if column.kind is Kind.BYTES:
        return series(field, column.name).cast(pl.Binary)
    text = valid_text(field, column.name)
    return text if column.kind is Kind.TEXT else parse_column(text, column.kind)


class _Exported:
    """An Arrow array by its C interface alone: to look at its type Polars would load all of pyarrow.compute."""

    def __init__(self, array: Any) -> None:
        self.__arrow_c_array__ = array.__arrow_c_array__


def series(array: Any, name: str = "") -> pl.Series:
    """An Arrow array as a Polars column."""
    if hasattr(array, "__arrow_c_array__"):
        return pl.Series(_Exported(array)).alias(name)
    column = pl.from_arrow(array)
    assert isinstance(column, pl.Series)  # noqa: S101  an array is never a frame
    return column.alias(name)


def valid_text(array: Any, name: str = "") -> pl.Series:
    """Bytes as text, where they are UTF-8, else null. Those with 32-bit offsets, as files are read, are quickest."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray) and array.num_chunks == 1:
        array = array.chunk(0)
    if isinstance(array, pa.BinaryArray) and _is_ascii(array):
        return series(array.view(pa.string()), name)
    return utf8(series(array, name))


def utf8(column: pl.Series) -> pl.Series:
    """Bytes as text, where they are UTF-8, else null. Under a null lies no byte: Polars would read it as a letter."""
    whole = column.fill_null(b"") if column.null_count() else column
    try:
        text, valid = whole.cast(pl.String), None
    except pl.exceptions.ComputeError:
        import pyarrow as pa
        import pyarrow.compute as pc

        array = whole.to_arrow().cast(pa.large_binary())
        mask = pc.match_substring_regex(array, UTF8)
        text = series(pc.if_else(mask, array, pa.scalar(b"", array.type)).cast(pa.large_string()), column.name)
        valid = series(mask)
    if valid is None and whole is column:
        return text
    missing = column.is_null()
    return text.set(missing if valid is None else missing | ~valid, None)


def _is_ascii(array: pa.BinaryArray) -> bool:
    """Whether all bytes are ASCII, which is UTF-8: seen at once, in a tenth of the time that item by item takes."""
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return False
    first, last = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset)[[0, -1]].tolist()
    whole = np.frombuffer(data, np.uint8)[first // 8 * 8 : last]
    words = whole[: len(whole) // 8 * 8].view(np.uint64)
    bits = int(np.bitwise_or.reduce(words)) | int(np.bitwise_or.reduce(whole[words.nbytes :]))
    return not bits & 0x8080808080808080


def parse_column(text: pl.Series, kind: Kind) -> pl.Series:
    """Texts as values of a declared kind, by the grammar above."""
    if kind in (Kind.INT, Kind.FLOAT):
        return text.cast(polars_type(kind), strict=False)
    if kind is Kind.BYTES:
        return text.cast(pl.Binary)
    column = pl.col(text.name)
    return text.to_frame().select(parsed(column, kind).alias(text.name)).to_series()


def parsed(text: pl.Expr, kind: Kind) -> pl.Expr:
    """The same of a kind of time, a date, a duration or a boolean, as an expression."""
    if kind is Kind.BOOL:
        lower = text.str.to_lowercase()
        return pl.when(lower.is_in(["true", "1"])).then(True).when(lower.is_in(["false", "0"])).then(False)
    if kind is Kind.DATE:
        return pl.when(text.str.contains(DATE)).then(text).str.to_date("%Y-%m-%d", strict=False)
    if kind is Kind.SPAN:
        return _span(text)
    if kind is Kind.INSTANT:
        return _instant(text)
    plain = text.str.contains(CLOCK + "$")
    clean = _whole(pl.when(plain).then(text))
    naive = clean.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
    return pl.coalesce(naive, _instant(pl.when(~plain).then(text)).dt.replace_time_zone(None))


def _instant(text: pl.Expr) -> pl.Expr:
    """A time with its offset; each form has its turn with the texts that no other one takes."""
    usual = text.str.contains(CLOCK + r"(?:Z|[+-][0-9]{2}:[0-9]{2})$")
    rest = pl.when(~usual).then(text)
    short = (
        pl.when(rest.str.contains(CLOCK + OFFSET))
        .then(rest)
        .str.replace(r" ?([+-][0-9]{2}):?([0-9]{2})$", "${1}:$2")
        .str.replace(r" ?([+-][0-9]{2})$", "${1}:00")
        .str.replace(r" ?(?:Z|UTC|GMT)$", "Z")
    )
    clean = _whole(pl.when(usual).then(text).otherwise(short)).str.replace(r"Z$", "+00:00")
    server = pl.when(rest.str.contains(SERVER)).then(rest)
    return pl.coalesce(
        clean.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", time_unit="us", time_zone="UTC", strict=False),
        server.str.to_datetime("%d/%b/%Y:%H:%M:%S %z", time_unit="us", time_zone="UTC", strict=False),
    )


def _whole(text: pl.Expr) -> pl.Expr:
    """Times with a blank between day and clock, and with seconds."""
    return text.str.replace("T", " ", literal=True).str.replace(r"^(.{16})($|Z|[+-])", "${1}:00$2")


def _span(text: pl.Expr) -> pl.Expr:
    sign, hours, minutes, seconds, fraction = (text.str.extract(SPAN, group) for group in range(1, 6))
    whole = (hours.cast(pl.Int64) * 60 + minutes.cast(pl.Int64)) * 60 + seconds.cast(pl.Int64)
    micros = whole * 1_000_000 + fraction.fill_null("0").str.pad_end(6, "0").cast(pl.Int64)
    return pl.when(sign == "-").then(-micros).otherwise(micros).cast(pl.Duration("us"))
