"""Answers as files that describe themselves: CSV, Parquet and JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import polars as pl

from wpinq.postprocess.synthesis.writers import replacing


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
    odd = [column for column in frame.get_columns() if column.dtype == pl.Object]
    texts = [[None if one is None else str(one) for one in column] for column in odd]
    frame = frame.with_columns(pl.Series(column.name, text) for column, text in zip(odd, texts, strict=True))
    about, file = json.dumps(content), io.BytesIO()
    if suffix == ".parquet":
        frame.write_parquet(file, metadata={"wpinq": about})
        return file.getvalue()
    frame.write_csv(file, quote_style="non_numeric")
    return f"# {about}\n".encode() + file.getvalue()
