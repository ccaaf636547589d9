"""Answers as files and tables that describe themselves: CSV, Parquet, JSON and Arrow."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.postprocess.degrees.synthesis.writers import replacing

if TYPE_CHECKING:
    import pyarrow as pa


def save(frame: pl.DataFrame, content: dict[str, Any], path: Any, suffixes: tuple[str, ...]) -> None:
    """Write an answer, whole or not at all; see `Answer.save`.

    A CSV file quotes all text, so that no group whose name begins with # is taken for a comment.

    Args:
        frame: The table.
        content: What describes it, and for JSON its rows.
        path: Where.
        suffixes: The endings that are written.

    Raises:
        SourceError: The suffix is none of these, or the place cannot be written.
    """
    with replacing("save", path, suffixes) as file:
        file.write(_written(frame, content, Path(path).suffix.lower()))


def _written(frame: pl.DataFrame, content: dict[str, Any], suffix: str) -> bytes:
    if suffix == ".json":
        return (json.dumps(content, default=str, indent=1) + "\n").encode()
    frame, about, file = _plain(frame), json.dumps(content), io.BytesIO()
    if suffix == ".parquet":
        frame.write_parquet(file, metadata={"wpinq": about})
        return file.getvalue()
    frame.write_csv(file, quote_style="non_numeric")
    return f"# {about}\n".encode() + file.getvalue()


def arrow(frame: pl.DataFrame, about: dict[str, Any]) -> pa.Table:
    """An answer as an Arrow table, with what describes it as JSON in its metadata; see `Answer.to_arrow`."""
    table = _plain(frame).to_arrow(compat_level=pl.CompatLevel.oldest())
    return table.replace_schema_metadata({"wpinq": json.dumps(about)})


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with Python objects as text."""
    odd = [column for column in frame.get_columns() if column.dtype == pl.Object]
    texts = [[None if item is None else str(item) for item in column] for column in odd]
    return frame.with_columns(pl.Series(column.name, text) for column, text in zip(odd, texts, strict=True))
