"""The files that `bench_speed.py` reads, made from a seed: Zipf's pages and users, as three libraries write them."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
from speed_works import SMALL

GROUP = 122_700
"""Rows of a row group, as Polars and DuckDB write them by default; pyarrow writes 2^20."""


def numbers(rows: int) -> pl.DataFrame:
    """Users and pages, numbered."""
    rng = np.random.default_rng(7)

    def zipf(distinct: int, power: float) -> np.ndarray:
        share = np.cumsum(1 / np.arange(1, distinct + 1) ** power)
        return rng.permutation(distinct)[np.searchsorted(share / share[-1], rng.random(rows))]

    return pl.DataFrame({"user": zipf(max(rows // 10, 1), 0.8), "page": zipf(max(rows // 40, 1), 1.0)})


def write(frame: pl.DataFrame, path: Path, writer: str) -> None:
    """Parquet as a library writes it when it is told nothing else."""
    if writer == "polars":
        frame.write_parquet(path, row_group_size=GROUP)
    elif writer == "pyarrow":
        pq.write_table(frame.to_arrow(compat_level=pl.CompatLevel.oldest()), path)
    else:
        duckdb.sql(f"copy frame to '{path}' (format parquet)")


def charges(folder: Path, count: int) -> None:
    """A ledger of many charges."""
    import wpinq

    (folder / "ledger").mkdir()
    views = wpinq.protect(folder / "small.csv", budget=10**9, ledger=folder / "ledger" / "of")
    pages = views.map("page")
    for first in range(0, count, 1000):
        pages._commit([pages.quote(1, str(number)) for number in range(first, min(first + 1000, count))])


def make(folder: Path, rows: int, wanted: set[str]) -> None:
    """Make the wanted files that are not there."""
    wanted = {name for name in wanted if not (folder / name.partition("/")[0]).exists()}
    if not wanted:
        return
    integer = numbers(rows)
    text = integer.select(pl.format("user{}", "user").alias("user"), pl.format("page/{}", "page").alias("page"))
    for kind, frame in (("text", text), ("integer", integer)):
        for writer in ("polars", "pyarrow", "duckdb"):
            if f"{kind}_{writer}.parquet" in wanted:
                write(frame, folder / f"{kind}_{writer}.parquet", writer)
    few = text.head(10_000)
    makers = {
        "text.csv": text.write_csv,
        "few.parquet": lambda path: write(text.head(min(SMALL, rows)), path, "polars"),
        "live.parquet": lambda path: write(text.head(min(300_000, rows)), path, "polars"),
        "small.parquet": lambda path: write(few, path, "polars"),
        "small.csv": few.write_csv,
        "pages.parquet": lambda path: write(
            text.select("page").unique(maintain_order=True).with_row_index("category").with_columns(
                pl.col("category").cast(pl.Int64) % 100
            ), path, "polars"
        ),
        "distinct.parquet": lambda path: write(
            pl.DataFrame({"user": 0, "page": np.random.default_rng(8).permutation(5 * rows)}), path, "polars"
        ),
        "ledger": lambda _: charges(folder, max(1, rows // 200)),
    }  # fmt: skip
    for name, maker in makers.items():
        if name in wanted:
            maker(folder / name)
    if "ten/*.parquet" in wanted:
        (folder / "ten").mkdir()
        for number in range(10):
            os.link(folder / "text_polars.parquet", folder / "ten" / f"{number}.parquet")
