"""Wikimedia's release of views by page and country, on a small made-up site, with the two faults that it had.

python -m examples.wikimedia_day OUT

Theirs is published each day: of each device the first 10 pages count, Gaussian noise for rho = 0.015 goes to every
declared (page, country), viewed or not, and rows above 90 are released. `tests/benchmarks/bench_wikimedia.py` does it
with 10^8 views and 125 million keys. Once a name of the United States was written otherwise, and seven months of it
were lost; once days were not published, and their raw data were gone. Here both are told before anything is published.
"""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl

from wpinq.apps.publish import Release
from wpinq.errors import WpinqError

COUNTRIES = ["US", "DE", "IN", "BR", "NL", "KE", "FI", "LK"]
PAGES = [f"en.wikipedia/Article_{number}" for number in range(40)]
FILE = """
[data]
source = "views/{date}.parquet"      # columns device, page, country
unit = { column = "device", at_most = 10, per = { page = 1 } }
ledger = "ledger"
[budget]
rho = "0.09"
[period]
every = "day"
first = "2026-03-02"
[[question]]
name = "views"
counts = ["page", "country"]
keys = "keys.parquet"
expect = ["US", "DE", "IN", "BR"]
expect_column = "country"
rho = "0.015"
above = 91
plot = false
[[sink]]
directory = "out/{date}"
"""
NOW = dt.datetime(2026, 3, 9, 6, tzinfo=dt.UTC)


def made_up(path: Path, seed: int, us: str = "US", devices: int = 20_000) -> None:
    """A day's views: some pages of each device, which is in one country."""
    rng = np.random.default_rng(seed)
    views = rng.geometric(0.25, devices)
    shares = 1 / np.arange(1, len(PAGES) + 1)
    page = rng.choice(PAGES, int(views.sum()), p=shares / shares.sum())
    country = rng.choice([us, *COUNTRIES[1:]], devices, p=[0.35, 0.2, 0.15, 0.1, 0.08, 0.06, 0.04, 0.02])
    device = np.repeat(np.arange(devices), views)
    pl.DataFrame({"device": device, "page": page, "country": np.repeat(country, views)}).write_parquet(path)


def told(release: Release, day: str) -> None:
    """Publish a day, and print what became of it."""
    try:
        print(f"{day}: {release.run(day).done}")
    except WpinqError as error:
        print(f"{type(error).__name__}: {error}")


def main(place: Path) -> None:
    """Four days, a day of misspelt names, and keys that lack a country."""
    (place / "views").mkdir(parents=True)
    keys = pl.DataFrame({"page": PAGES}).join(pl.DataFrame({"country": COUNTRIES}), how="cross")
    keys.filter(pl.col("country") != "US").write_parquet(place / "keys.parquet")
    (place / "wikimedia.toml").write_text(FILE)
    made_up(place / "views" / "2026-03-02.parquet", 2)
    release = Release.read(place / "wikimedia.toml", clock=lambda: NOW)
    told(release, "2026-03-02")  # refused: the declared keys lack a country, and nothing was charged

    keys.write_parquet(place / "keys.parquet")
    release = Release.read(place / "wikimedia.toml", clock=lambda: NOW)
    noise = release.plan("2026-03-02").questions[0].expected[0]
    print(f"{noise.mechanism} noise of standard deviation {noise.scale:.2f} for each of {keys.height} keys")
    for day in (2, 3, 4, 5):
        if day > 2:
            made_up(place / "views" / f"2026-03-0{day}.parquet", day)
        told(release, f"2026-03-0{day}")
    shown = pl.read_csv(place / "out" / "2026-03-05" / "views.csv")
    print(f"2026-03-05 shows {shown.height} rows, the least {shown.select(pl.col('count').min()).item()}")

    made_up(place / "views" / "2026-03-06.parquet", 6, us="USA")
    told(release, "2026-03-06")  # held: what was clear every day is almost gone
    for standing in release.status():
        print(standing.period, standing.stage)
    print(release.budget_line())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="A directory that is not there yet.")
    main(parser.parse_args().out)
