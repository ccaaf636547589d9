"""A site owner asks a web log how many people came, and publishes a table.

python -m examples.site_owner OUT

Two months of a log are made up, so the truth may be shown: IPv4 and IPv6, bots, static files, pages that are not there,
queries that name a newsletter, handshakes that are no requests, and torn lines. Of each visitor 20 records are kept.
The visitors of June's pages are asked for in two ways, each at epsilon 1, with a ledger of its own:

- late: the bound comes first, since the filter stands after another step. Static files take most of its 20 places, so
  pages lose visitors. It is no noise: no interval holds it, and no epsilon mends it.
- early: `where` drops what is not asked about, as a `filter` right after `protect` does, and `derive` takes the query
  off, both before the bound; `per=("page", 1)` keeps one record of a visitor and a page, so that each counts once and
  20 pages have room.
"""

from __future__ import annotations

import argparse
import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

import wpinq

PAGES = ["/", "/about", "/news", "/contact", *(f"/article/{number}" for number in range(40))]
SHOWN, BERLIN = PAGES[:6], ZoneInfo("Europe/Berlin")
HOUR = pl.col("time").dt.convert_time_zone("Europe/Berlin").dt.hour()
OPENED = "status = 200 and page not like '/static/%' and agent not like '%bot%'"
ASKED: dict[str, Any] = {"where": OPENED, "derive": {"page": lambda page: page.split("?")[0], "hour": HOUR}}
AGENTS = ["Mozilla/5.0 (X11; Linux)", "Браузер/1.0", "() { :; }; echo shock", "Mozilla/5.0 (iPhone)"]
COUNT = "SELECT COUNT(*) AS records FROM log"


def made_up(path: Path, month: int, visitors: int = 3000) -> pl.DataFrame:
    """Write a month's log, and return the visits in it that the owner means: who opened what, and when."""
    rng = np.random.default_rng(month)
    popularity = 1 / np.arange(1, len(PAGES) + 1) ** 1.1
    hosts = np.repeat(np.arange(visitors), 1 + rng.poisson(rng.lognormal(1.2, 1.1, visitors)))
    pages = rng.choice(len(PAGES), len(hosts), p=popularity / popularity.sum())
    moments = 24 * rng.integers(0, 30, len(hosts)) + rng.normal(15, 4, len(hosts)).clip(0, 23.9)
    visits, lines, start = [], list[str](), dt.datetime(2026, month, 1, tzinfo=BERLIN)
    for host, page, hours in zip(hosts.tolist(), pages.tolist(), moments.tolist(), strict=True):
        name = f"2001:db8::{host:x}" if host % 10 < 3 else f"10.0.{host // 200}.{host % 200}"
        when = start + dt.timedelta(hours=hours)
        query = f"?utm_source=nl&u={host}" if rng.random() < 0.3 else ""
        visits.append((name, PAGES[page], when.hour, month))
        for loaded in (PAGES[page] + query, "/static/app.js", "/static/main.css", "/static/logo.svg"):
            lines.append(line(name, when, f"GET {loaded} HTTP/1.1", 200, AGENTS[host % 4]))
    for number in range(3000):
        when, bot = start + dt.timedelta(minutes=14 * number), f"192.0.2.{number % 20}"
        request = ("GET / HTTP/1.1", "GET /wp-login.php HTTP/1.1", "\\x16\\x03\\x01")[number % 3]
        lines.append(line(bot, when, request, (200, 404, 400)[number % 3], "Somebot/2.1"))
        if number % 600 == 0:
            lines.append(lines[-1][:60])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return pl.DataFrame(visits, ["host", "page", "hour", "month"], orient="row")


def line(host: str, when: dt.datetime, request: str, status: int, agent: str) -> str:
    """A line of the log in the combined format."""
    return f'{host} - - [{when:%d/%b/%Y:%H:%M:%S %z}] "{request}" {status} 512 "-" "{agent}"'


def people(visits: pl.DataFrame, *columns: str) -> dict[Any, int]:
    """How many visitors there truly were of each value."""
    counts = visits.group_by(columns).agg(pl.col("host").n_unique()).rows()
    return {key[0] if len(key) == 1 else tuple(key): number for *key, number in counts}


def late(log: Path, ledger: Path) -> wpinq.Measurement:
    """Bound a visitor's records, then drop and compute."""
    views = wpinq.protect(log, budget=1, unit=wpinq.users("host", at_most=20), ledger=ledger)
    loaded = views.map("host, page, status, agent").filter(OPENED)
    visits = loaded.map(lambda host, page: (host, page.split("?")[0]), columns={"host": str, "page": str})
    return visits.distinct().map("page").measure(epsilon=1)


def early(log: Path, ledger: Path) -> wpinq.Measurement:
    """Drop and compute, then bound a visitor's records."""
    unit = wpinq.users("host", at_most=20, per=("page", 1))
    return wpinq.protect(log, budget=1, unit=unit, ledger=ledger, **ASKED).map("page").measure(epsilon=1)


def by_hour(log: Path, ledger: Path) -> wpinq.Measurement:
    """The visitors of each hour of the day, by the clocks of Berlin."""
    unit = wpinq.users("host", at_most=20, per=("hour", 1))
    return wpinq.protect(log, budget=1, unit=unit, ledger=ledger, **ASKED).map("hour").measure(epsilon=1)


def by_month(logs: Path, ledger: Path) -> wpinq.Measurement:
    """The visitors of each month and page: what a person did in one month is protected, so two months cost as one."""
    unit = wpinq.users("host", at_most=20, per=("page", 1), period="1mo", at="time", zone="Europe/Berlin")
    views = wpinq.protect(logs, budget=1, unit=unit, ledger=ledger, **ASKED)
    months = views.map(lambda time, page: (time.astimezone(BERLIN).month, page), columns={"month": int, "page": str})
    return months.measure(epsilon=1)


def show(title: str, keys: list[Any], truth: dict[Any, int], **asked: wpinq.Measurement) -> None:
    """Print answers beside the truth, with what their intervals say."""
    print(f"\n{title:<22}{'truth':>7}" + "".join(f"{name:>16}" for name in asked))
    answers = [(one.observe_many(keys).tolist(), one.interval(0.95)) for one in asked.values()]
    for number, key in enumerate(keys):
        noisy = "".join(f"{values[number]:>9,} +- {give:<3.0f}" for values, give in answers)
        print(f"{key!s:<22}{truth[key]:>7,}{noisy}")


def main(out: Path) -> None:
    """Make both logs, ask, print the answers beside the truth, and leave a table to publish."""
    june, july = out / "access-2026-06.log", out / "access-2026-07.log"
    visits = made_up(june, 6)
    whole = sum(line.endswith('"') for line in june.read_text(encoding="utf-8").splitlines())
    print(f"$ wpinq sql '{COUNT}' ... of {whole:,} whole lines")
    words = ["--from", f"log={june}", "--unit", "host", "--at-most", "20", "--epsilon", "1", "--show-loss", "1"]
    command = [sys.executable, "-m", "wpinq", "sql", COUNT, *words, "--budget", "2", "--ledger", str(out / "sql")]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603  our own command

    truth, kept = people(visits, "page"), early(june, out / "early")
    show("visitors of", SHOWN, truth, late=late(june, out / "late"), early=kept)
    kept.release(keys=SHOWN).save(out / "visitors.csv")
    print(f"{out / 'visitors.csv'} says what it is of; a dashboard needs neither log nor secret.")
    hours = people(visits, "hour")
    show("visitors at the hour", sorted(hours)[8:20:2], hours, early=by_hour(june, out / "hours"))

    (out / "moved").mkdir(exist_ok=True)
    moved = june.rename(out / "moved" / june.name)
    moved.touch()
    again = early(moved, out / "early").observe_many(SHOWN).tolist()
    same = again == kept.observe_many(SHOWN).tolist()
    print(f"\nThe file was moved and touched, and is asked again: {'the same answers, at no cost' if same else again}.")

    both = people(pl.concat([visits, made_up(july, 7)]), "month", "page")
    moved.rename(june)
    keys = [(month, page) for month in (6, 7) for page in SHOWN[:3]]
    truth = {key: both[key] for key in keys}
    show("visitors in a month of", keys, truth, early=by_month(out / "access-*.log", out / "months"))
    print("Epsilon 1 for both months together: it protects what one visitor did in one month.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="a new directory for logs, ledgers and the table")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    main(options.out)
