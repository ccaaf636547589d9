"""Values as JSON and CSV hold them, where these formats have no such values.

Bytes are Base64 and durations ISO 8601. JSON has no infinity, so there it is the text "Infinity" or "-Infinity", and
NaN is null. All else that JSON lacks is as Python prints it.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl


def json_text(content: Any, indent: int | None = None) -> str:
    """Content as JSON that every reader reads, also with numbers that are not finite.

    >>> json_text([b"a", float("-inf"), float("nan")])
    '["YQ==", "-Infinity", null]'
    """
    try:
        return json.dumps(content, default=_text, allow_nan=False, indent=indent)
    except ValueError:
        return json.dumps(finite(content), default=_text, allow_nan=False, indent=indent)


def json_page(content: Mapping[str, Any]) -> str:
    r"""The same for a file, one line for each entry.

    >>> json_page({"a": [1, 2], "b": None})
    '{\n  "a": [1, 2],\n  "b": null\n}\n'
    """
    lines = (f"  {json.dumps(name)}: {json_text(value)}" for name, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def finite(content: Any) -> Any:
    """Content with words for numbers that are not finite."""
    if isinstance(content, float) and not math.isfinite(content):
        return None if math.isnan(content) else "Infinity" if content > 0 else "-Infinity"
    if isinstance(content, Mapping):
        return {name: finite(value) for name, value in content.items()}
    return [finite(value) for value in content] if isinstance(content, (tuple, list)) else content


def csv_bytes(frame: pl.DataFrame, **layout: Any) -> bytes:
    """A table as CSV, with text for the bytes, durations and Python objects that it has no form for.

    Args:
        frame: The table.
        layout: How it is laid out, as Polars takes it.
    """
    text: str = in_text(frame, pl.Binary, pl.Duration, pl.Object).write_csv(**layout)
    return text.encode()


def in_text(frame: pl.DataFrame, *types: type[pl.DataType]) -> pl.DataFrame:
    """A table with text in its columns of these types, which a format has no form for."""
    odd = [column for column in frame.get_columns() if column.dtype.base_type() in types]
    texts = [[None if value is None else _text(value) for value in column] for column in odd]
    return frame.with_columns(
        pl.Series(column.name, cells, pl.String) for column, cells in zip(odd, texts, strict=True)
    )


def _text(value: Any) -> str:
    """What stands for a value that the format lacks."""
    iso = isinstance(value, (bytes, bytearray, dt.timedelta))
    return str(msgspec.to_builtins(value) if iso else value)
