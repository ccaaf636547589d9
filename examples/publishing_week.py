"""A week of a site, published day by day, with what goes wrong in a week.

python -m examples.publishing_week OUT

The log is made up. Monday to Thursday are published; a second run of Thursday costs nothing. On Friday half of the log
is missing, and a check holds the day back. On Saturday someone changes Friday's records. On Sunday the budget ends.
"""

from __future__ import annotations

import argparse
import datetime as dt
import warnings
from pathlib import Path

import numpy as np

from wpinq.apps.publish import Release
from wpinq.errors import WpinqError

PAGES = ["/", "/about", "/news", "/contact"]
FILE = """
[data]
source = "views/{date}.csv"
unit = { column = "user", at_most = 3 }
ledger = "ledger"
[budget]
epsilon = 6
[period]
every = "day"
[[question]]
name = "views"
sql = "SELECT page, COUNT(*) AS views FROM data GROUP BY page"
keys = ["/", "/about", "/news", "/contact"]
epsilon = 1
plot = false
[[sink]]
directory = "out/{date}"
[[sink]]
sqlite = "site.sqlite"
"""
DAYS = [f"2026-03-{day:02}" for day in range(2, 9)]
NOW = dt.datetime(2026, 3, 10, 6, tzinfo=dt.UTC)


def made_up(path: Path, seed: int, users: int) -> None:
    """A day's views: three of each user."""
    rng = np.random.default_rng(seed)
    pages = rng.choice(PAGES, (users, 3), p=[0.4, 0.1, 0.3, 0.2]).tolist()
    rows = "".join(f"u{user},{page}\n" for user, own in enumerate(pages) for page in own)
    path.write_text("user,page\n" + rows)


def told(release: Release, day: str) -> None:
    """Publish a day, and print what became of it."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            print(f"{day}: {release.run(day).done}")
        except WpinqError as error:
            print(f"{type(error).__name__}: {error}")
    for note in notes:
        print(f"for the curator: {note.message}")


def main() -> None:
    """Tell the week."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    (out / "views").mkdir(parents=True)
    (out / "site.toml").write_text(FILE)
    for number, day in enumerate(DAYS):
        made_up(out / "views" / f"{day}.csv", number, 300 if number == 4 else 1000)
    release = Release.read(out / "site.toml", clock=lambda: NOW)
    plan = release.plan(DAYS[0])
    print(f"A day costs epsilon {plan.epsilon}; the budget lasts for {plan.lasts} days. {plan.budget}\n")
    for day in [*DAYS[:4], DAYS[3], DAYS[4]]:
        told(release, day)
    print(f"accepted: {release.run(DAYS[4], accept=True).done}")
    made_up(out / "views" / f"{DAYS[4]}.csv", 4, 1000)  # the other half arrives
    for day in DAYS[4:]:
        told(release, day)
    print(f"\n{DAYS[0]} computed anew: {release.verify(DAYS[0]) or 'the same'}")
    for one in release.status()[: len(DAYS)]:
        print(one.period, one.stage)
    print((out / "out" / DAYS[0] / "views.csv").read_text())


if __name__ == "__main__":
    main()
