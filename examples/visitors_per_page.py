"""How many people saw each page: what a bound loses, and what asking before the bound brings back.

python -m examples.visitors_per_page

The log is made up, so the truth may be shown. Every page that a visitor opens loads two static files, and some pages
come with a query that names a newsletter. Of each visitor 20 records are kept. One question is asked in two ways, each
at epsilon 1, in two ledgers in memory:

- late: the bound comes first. Static files take most of its 20 places, so pages lose visitors. It is no noise: no
  interval holds it, and no epsilon mends it.
- early: `where` drops what is not asked about and `derive` takes the query off, both before the bound, and
  `per=("page", 1)` keeps one record of a visitor and a page, so that each counts once and 20 pages have room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

import wpinq
from wpinq.ledger.secret import Secret

PAGES = ["/", "/about", "/news", "/contact", *(f"/article/{number}" for number in range(40))]
SHOWN = 6


def made_up(visitors: int = 6000, seed: int = 6) -> pl.DataFrame:
    """A web log: who loaded what."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, len(PAGES) + 1) ** 1.1
    opened = 1 + rng.poisson(rng.lognormal(1.2, 1.1, visitors))
    hosts = np.repeat(np.arange(visitors), opened)
    names = np.array(PAGES)[rng.choice(len(PAGES), len(hosts), p=popularity / popularity.sum())]
    query = pl.Series(rng.random(len(hosts)) < 0.3)
    views = pl.DataFrame({"host": hosts, "page": names}).with_columns(
        page=pl.when(query).then(pl.format("{}?utm_source=nl&u={}", "page", "host")).otherwise("page")
    )
    files = [views.with_columns(page=pl.lit(f"/static/{name}")) for name in ("app.js", "main.css")]
    return pl.concat([views, *files])


def without_query(page: str) -> str:
    """The path of a page."""
    return page.split("?", maxsplit=1)[0]


def truth(log: pl.DataFrame, pages: Sequence[str]) -> list[int]:
    """How many visitors each page had."""
    opened = log.with_columns(pl.col("page").str.split("?").list.first()).unique()
    return [opened.filter(pl.col("page") == page).height for page in pages]


def late(log: pl.DataFrame, secret: Secret | None = None) -> wpinq.Measurement:
    """Bound a visitor's records, then drop and compute."""
    views = wpinq.protect(log, budget=1, unit=wpinq.users("host", at_most=20), secret=secret)
    opened = views.filter("page not like '/static/%'")
    visits = opened.map(lambda host, page: (host, page.split("?")[0]), columns={"host": int, "page": str})
    return visits.distinct().map("page").measure(epsilon=1)


def early(log: pl.DataFrame, secret: Secret | None = None) -> wpinq.Measurement:
    """Drop and compute, then bound a visitor's records."""
    person = wpinq.users("host", at_most=20, per=("page", 1))
    steps = {"derive": {"page": lambda page: page.split("?")[0]}, "where": "page not like '/static/%'"}
    views = wpinq.protect(log, budget=1, unit=person, secret=secret, **steps)  # type: ignore[arg-type]
    return views.map("page").measure(epsilon=1)


def main() -> None:
    """Ask in both ways, and print the answers beside the truth."""
    log, pages = made_up(), PAGES[:SHOWN]
    first, second = late(log), early(log)
    print(f"{log.height:,} made-up records; noise moves each answer by at most {second.interval(0.95):g} (95%)\n")
    print(f"{'visitors of':<14}{'truth':>7}{'late':>7}{'early':>7}")
    answers = zip(pages, truth(log, pages), first.observe_many(pages), second.observe_many(pages), strict=True)
    for page, true, cut, kept in answers:
        print(f"{page:<14}{true:>7,}{cut:>7,}{kept:>7,}")


if __name__ == "__main__":
    main()
