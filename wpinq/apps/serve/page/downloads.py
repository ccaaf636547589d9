"""Downloads: what a page shows, as CSV, Parquet, or a picture."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import polars as pl
from starlette.responses import Response

from wpinq.apps.serve.page.request import Visit
from wpinq.errors import PlanError

KINDS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet", "png": "image/png"}
DRAWING = threading.Lock()
"""Fonts of matplotlib are shared."""

Ends = Mapping[str, tuple[pl.Series, pl.Series]]


def framed(
    columns: Mapping[str, Sequence[Any]], ends: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
) -> pl.DataFrame:
    """Columns, and after each that is noisy the ends of its intervals; no name is there twice."""
    series: dict[str, pl.Series] = {}

    def add(name: str, values: Sequence[Any]) -> None:
        while name in series:
            name += "_"
        try:
            series[name] = pl.Series(name, values)
        except (TypeError, pl.exceptions.PolarsError):  # values of several types: as text
            series[name] = pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)

    for name, values in columns.items():
        add(name, values)
        for word, end in zip(("low", "high"), ends.get(name, ()), strict=False):
            add(f"{name}_{word}", end)
    return pl.DataFrame(list(series.values()))


async def saved(visit: Visit, name: str, frame: pl.DataFrame, draw: Callable[[], Any]) -> Response:
    """What was asked for, as a file.

    Args:
        visit: The request, which says what kind of file.
        name: What the file is called.
        frame: What it holds.
        draw: Draws it.

    Raises:
        PlanError: There is no such kind of file.
    """
    kind = visit.fields.get("as", "")
    if kind not in KINDS:
        raise PlanError(f"as: there are {', '.join(KINDS)}.")

    def made() -> bytes:
        if kind == "png":
            with DRAWING:
                picture: bytes = draw()._repr_png_()
                return picture
        file = io.BytesIO()
        frame.write_csv(file) if kind == "csv" else frame.write_parquet(file)
        return file.getvalue()

    content = await visit.site.desk.quoted(visit.grant.analyst, made)
    return attached(content, f"{name}.{kind}", KINDS[kind])


def attached(content: bytes, name: str, kind: str = "application/octet-stream") -> Response:
    """A file to keep, which no browser shows as a page."""
    return Response(content, headers={"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"},
                    media_type=kind)  # fmt: skip
