"""A live page of a web log: views arrive, hours close, and of each hour the degree distribution is drawn with its band.

python -m examples.live_web_log OUT

A web server (made up here) appends to its log. We follow the log while our dataflow stays up; when an hour is over we
close it, and ask two questions of it: how many pages have at least k views, and how often was the r-th page viewed.
All hours together cost each view 0.3 once, because a view lies in one hour. Totals that run on, at every quarter of
an hour and for ever, cost another 0.1; to last, they need more noise than one answer would, and nine in ten are within
what "give or take" says. Columns called "truth" could not be shown by a real curator.
"""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import wpinq
from examples import sample

HOURS, QUARTERS = 3, 4
VIEWS = 3000  # in each quarter of an hour
START = dt.datetime(2026, 7, 31, 9, tzinfo=dt.UTC)
QUARTER, HOUR = dt.timedelta(minutes=15), dt.timedelta(hours=1)
COLUMNS = {"user": "text", "page": "text", "time": "instant"}


def main(out: Path) -> None:
    """Follow the log, and leave a picture of each hour in `out`."""
    log = out / "access.log"
    log.unlink(missing_ok=True)
    views = wpinq.live(COLUMNS, budget="0.4", name="access.log")
    hours = views.window("1h", at="time").map(lambda page: page)
    cdf = wpinq.degrees.cdf(hours).measure(epsilon="0.2", name="cdf of each hour")
    sequence = wpinq.degrees.sequence(hours).measure(epsilon="0.1", name="sequence of each hour")
    running = views.map(lambda page: page).measure(epsilon="0.1", name="page views so far", continual=True)
    print("The budget is epsilon 0.4: 0.2 and 0.1 for every hour there will be, 0.1 for the page views so far.\n")
    print("until   /page/1 so far   give or take   truth   | pages and views in the hour, fitted   truth")
    truth = np.zeros(sample.PAGES + 1, int)
    for number in range(HOURS * QUARTERS):
        truth += serve(log, number)
        views.follow(log)
        now = START + (number + 1) * QUARTER
        views.advance(until=now)
        line = f"{now:%H:%M}   {running.observe('/page/1'):>14,}{running.interval(0.9):>15.0f}{truth[1]:>8,}"
        print(f"{line}   | {close_hour(cdf, sequence, now, out)}" if now.minute == 0 else line)
    views.close()
    print("\nNothing more can be asked of this log, except for more bins of what was asked, which cost nothing.")


def serve(log: Path, number: int) -> npt.NDArray[np.int64]:
    """Be the web server for a quarter of an hour, and count what it serves."""
    users, pages = sample.sample(VIEWS, seed=number)
    times = [START + number * QUARTER + view * (QUARTER / VIEWS) for view in range(VIEWS)]
    with log.open("a") as file:
        for user, page, time in zip(users.tolist(), pages.tolist(), times, strict=True):
            request = f'"GET /page/{page} HTTP/1.1" 200 512'
            file.write(f"10.0.0.1 - user{user} [{time:%d/%b/%Y:%H:%M:%S} +0000] {request}\n")
    return np.bincount(pages, minlength=sample.PAGES + 1)


def close_hour(cdf: Any, sequence: Any, now: dt.datetime, out: Path) -> str:
    """Draw the degree distribution of the hour that has just ended, and say how large it was."""
    hour = now - HOUR
    fit = wpinq.degrees.reconcile(cdf.at(hour), sequence.at(hour))
    first = round((hour - START) / QUARTER)
    true = np.bincount(np.concatenate([sample.sample(VIEWS, seed=first + i)[1] for i in range(QUARTERS)]))
    degrees = np.sort(true)[::-1]
    true_cdf = (degrees[:, None] >= np.arange(1, degrees[0] + 1)).sum(axis=0)
    path = out / f"degrees-{hour:%H}.png"
    fit.plot(path, truth=true_cdf, title=f"{hour:%H:%M} to {now:%H:%M}")
    return f"{fit.distinct:,} pages, {fit.records:,} views   {np.count_nonzero(true):,}, {true.sum():,}   {path.name}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="directory for the log and the pictures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    main(options.out)
