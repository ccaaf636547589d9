"""A day of Wikimedia's: its release of views by page and country, by our `publish`, at its parameters.

Usage: python tests/benchmarks/bench_wikimedia.py [--rows N] [--keys N] [--memory 4GB] [--at DIR] [--smoke]

The Wikimedia Foundation publishes each day, from some hundred million views, how often each page was viewed in each
country: of a device the first 10 different pages count, noise is Gaussian for rho = 0.015 (so sigma is 18.26, the root
of 10 / 0.03), it is added to all of 125 million (page, country) keys, present or not, and rows above 90 are released
(analytics.wikimedia.org/published/datasets/country_project_page; arXiv 2308.16298). Their day is not public, so one of
that shape is made up: Zipf over pages and over countries, a device in one country, some with thousands of views.

The day is published by a release file: `counts` over keys in Parquet, `rho`, `above`. We bound each device's pages
ourselves. Beside our drop rate (keys above 90 that are not shown), spurious rate (shown rows without a view)
and error stand those of their mechanism by its law, on the same counts. What does not fit in the memory that is stated,
of records that wait to be bounded and of counts, waits on disk: some 8 gigabytes where it is 4.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from flags import flags
from scipy.stats import norm

import wpinq
from wpinq.apps.publish import Release
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.records.bins import bin_blocks

COUNTRIES = 250
ABOVE = 91
RHO = "0.015"
SIGMA = (10 / 0.03) ** 0.5
DAY = "2026-11-21"
NOW = dt.datetime(2026, 11, 22, 6, tzinfo=dt.UTC)
LOT = 2_000_000


def zipf(size: int) -> np.ndarray:
    """Cumulated shares of the k-th most frequent of so many, proportional to 1 / k."""
    total = np.cumsum(1 / np.arange(1, size + 1))
    return total / total[-1]


def named(numbers: np.ndarray, names: pa.Array) -> pa.DictionaryArray:
    """Names by their numbers."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names)


def make(place: Path, rows: int, keys: int) -> None:
    """Write a day's views and the declared keys."""
    rng, devices = np.random.default_rng(7), rows // 5
    pages = pa.array([f"en.wikipedia/Article_{number}" for number in range(keys // COUNTRIES)])
    countries = pa.array([f"{chr(65 + number // 26)}{chr(65 + number % 26)}" for number in range(COUNTRIES)])
    of_pages, of_countries = zipf(len(pages)), zipf(COUNTRIES)
    writer = None
    for start in range(0, rows, LOT):
        size = min(LOT, rows - start)
        device = (devices * rng.random(size) ** 2).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        share = (device >> np.uint64(11)).astype(np.float64) / 2**53
        views = pa.table({
            "device": pa.array(device.view(np.int64)),
            "page": named(np.searchsorted(of_pages, rng.random(size)), pages),
            "country": named(np.searchsorted(of_countries, share), countries),
        })  # fmt: skip
        writer = writer or pq.ParquetWriter(place / f"{DAY}.parquet", views.schema)
        writer.write_table(views)
    if writer is not None:
        writer.close()
    writer = None
    for start in range(0, len(pages), 1 << 12):
        some = pages[start : start + (1 << 12)]
        pairs = pa.table({
            "page": named(np.repeat(np.arange(len(some)), COUNTRIES), some),
            "country": named(np.tile(np.arange(COUNTRIES), len(some)), countries),
        })  # fmt: skip
        writer = writer or pq.ParquetWriter(place / "keys.parquet", pairs.schema, compression="zstd")
        writer.write_table(pairs)
    if writer is not None:
        writer.close()


def release(place: Path) -> Release:
    """The release file of their day."""
    return Release({
        "data": {"source": "{date}.parquet", "ledger": "ledger",
                 "unit": {"column": "device", "at_most": 10, "per": {"page": 1}}},
        "budget": {"rho": RHO},
        "question": [{"name": "views", "counts": ["page", "country"], "keys": "keys.parquet", "rho": RHO,
                      "above": ABOVE, "plot": False}],
        "sink": [{"directory": "out/{date}", "formats": ["parquet"]}],
    }, "wikimedia", place, clock=lambda: NOW)  # fmt: skip


def processor() -> float:
    """Seconds of processor time so far, of all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Watch:
    """Notes when a measurement has counted, and which one it is; the noise is what follows."""

    def __init__(self) -> None:
        self.counted, self.measurement, self.used = 0.0, None, 0.0
        inner = Measurement.observe_many

        def watched(one: Any, bins: Any) -> np.ndarray:
            if self.measurement is None:
                one._settled()
                self.counted, self.measurement, self.used = time.perf_counter(), one, processor()
            return inner(one, bins)

        Measurement.observe_many = watched  # type: ignore[method-assign]


def compared(one: Any, place: Path) -> dict[str, tuple[float, float]]:
    """Ours, as it came, and theirs, by its law, on the counts of devices' first pages."""
    rng = np.random.default_rng(8)
    wanted = shown = lost = spurious = 0
    expected = np.zeros(3)  # shown, lost and spurious by their law
    errors: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    sizes: list[np.ndarray] = []
    for block in bin_blocks(pl.scan_parquet(place / "keys.parquet"), one.node.schema):
        true, noise = one._parts(block)
        above, passes = true >= ABOVE, true + noise >= ABOVE
        chance = norm.sf(ABOVE - 0.5, true, SIGMA)
        wanted, shown = wanted + int(above.sum()), shown + int(passes.sum())
        lost, spurious = lost + int((above & ~passes).sum()), spurious + int((passes & (true == 0)).sum())
        expected += chance.sum(), (1 - chance)[above].sum(), chance[true == 0].sum()
        sizes.append(true[above])
        errors[0].append(noise[above])
        errors[1].append(np.rint(rng.normal(0, SIGMA, int(above.sum()))))
    size = np.concatenate(sizes)
    ours, theirs = (np.abs(np.concatenate(one)) for one in errors)
    return {
        "rows shown": (shown, expected[0]),
        "drop rate": (lost / wanted, expected[1] / wanted),
        "spurious rows": (spurious, expected[2]),
        "spurious rate": (spurious / shown, expected[2] / expected[0]),
        "mean error, views": (ours.mean(), theirs.mean()),
        "median error, share": (np.median(ours / size), np.median(theirs / size)),
    }


def main(rows: int, keys: int, place: Path) -> None:
    """Make the day if it is not there, publish it, and say what it took."""
    if not (place / "keys.parquet").exists():
        subprocess.run([sys.executable, __file__, "--make", str(place), "--rows", str(rows), "--keys", str(keys)],
                       check=True)  # in a process of its own, whose memory is not ours  # fmt: skip
    watch, begin = Watch(), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=place) as home:
        for name in ("keys.parquet", f"{DAY}.parquet"):
            os.link(place / name, Path(home) / name)
        day = release(Path(home))
        day.run(DAY)
        end, used = time.perf_counter(), processor()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        out = pl.read_parquet(Path(home) / "out" / DAY / "views.parquet")
    print(f"{rows:,} views, {keys:,} keys: {out.height:,} rows released")
    print(f"read, bounded, counted {watch.counted - begin:.1f} s, processor {watch.used:.1f} s")
    print(f"noise and release {end - watch.counted:.1f} s, processor {used - watch.used:.1f} s; peak {peak:.2f} GB")
    print(f"\n{'':20}{'ours':>14}{'by their law':>14}")
    for name, (ours, theirs) in compared(watch.measurement, place).items():
        print(f"{name:20}{ours:14,.6g}{theirs:14,.6g}")


if __name__ == "__main__":
    parser = flags(__doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**8)
    parser.add_argument("--keys", type=lambda text: int(float(text)), default=125_000_000)
    parser.add_argument("--memory", default="4GB", help="what bounding and counting may hold")
    parser.add_argument("--at", type=Path, help="where the day is made, and kept; by default it goes away again")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make is not None:
        make(given.make, given.rows, given.keys)
        raise SystemExit
    wpinq.limit_memory(given.memory)
    if given.smoke:
        given.rows, given.keys = 300_000, 200_000
    if given.at is not None:
        given.at.mkdir(parents=True, exist_ok=True)
        main(given.rows, given.keys, given.at)
    else:
        with tempfile.TemporaryDirectory() as there:
            main(given.rows, given.keys, Path(there))
