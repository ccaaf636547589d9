"""Under `tz=` a table of a database shows the clocks of the zone, as any other source does.

A database counted its rows, and left rows out, by instants: such a question was answered wrongly, or failed.
"""

import datetime as dt
import sqlite3
from contextlib import closing

import duckdb
import pytest

import wpinq
from wpinq.sources.databases.duckdb import duckdb as database_of

ROWS = [(f"u{number % 9}", f"2026-03-{28 + number % 3} {number % 24:02}:30:00+00:00") for number in range(72)]
INSTANT = "timestamp with time zone"


def shown(text):
    from zoneinfo import ZoneInfo

    return dt.datetime.fromisoformat(text).astimezone(ZoneInfo("Europe/Amsterdam")).replace(tzinfo=None)


def source(form, place):
    path = place / f"rows.{form}"
    if form == "duckdb":
        with duckdb.connect(str(path)) as database:
            database.execute('CREATE TABLE t (user_ VARCHAR, "at" TIMESTAMPTZ)')
            database.executemany("INSERT INTO t VALUES (?, ?)", ROWS)
        return database_of(path, table="t"), None
    if form == "sqlite":
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE t (user_ TEXT, at TEXT)")
            database.executemany("INSERT INTO t VALUES (?, ?)", ROWS)
            database.commit()
        return wpinq.sqlite(path, table="t"), {"user_": str, "at": INSTANT}
    return [(user, dt.datetime.fromisoformat(text)) for user, text in ROWS], {"user_": str, "at": INSTANT}


@pytest.mark.parametrize("unit", [None, wpinq.users("user_", at_most=8)], ids=["records", "people"])
@pytest.mark.parametrize("form", ["duckdb", "sqlite", "tuples"])
def test_days_and_conditions_are_those_of_the_zone(tmp_path, form, unit):
    given, columns = source(form, tmp_path)
    rows = wpinq.protect(
        given, budget=1000, columns=columns, tz="Europe/Amsterdam", unit=unit, ledger=tmp_path / "ledger", name="rows"
    )
    epsilon = 50 if unit is None else 400
    times = rows.map("at").measure(epsilon)
    first = shown(ROWS[0][1])
    assert times.observe(first) == sum(shown(text) == first for _, text in ROWS)
    night = rows.filter("at >= TIMESTAMP '2026-03-29 00:00:00'").filter("at < TIMESTAMP '2026-03-30 00:00:00'")
    sunday = sum(shown(text).date() == dt.date(2026, 3, 29) for _, text in ROWS)
    assert night.map(lambda user_, at: 1).measure(epsilon).observe(1) == sunday
