"""One record with a far time stops no question: under `tz=` Polars panicked of it, after the charge.

So one record decided whether a question was answered, and the panic was printed on standard error.
"""

import datetime as dt

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import thin

import wpinq
from wpinq.sources.databases.duckdb import duckdb as database_of

FAR = {
    "the last of 64 bits": 2**63 - 1,
    "the first of 64 bits": -(2**63) + 1,
    "beyond what Polars reads": 8_210_298_412_800_000_000,
    "before what Polars reads": -8_334_601_228_800_000_001,
    "the year 10000": 253_402_300_800_000_000,
    "the year 0": -62_135_596_800_000_001,
    "the last hour of 9999": 253_402_300_799_000_000,
    "the first hour of the year 1": -62_135_596_800_000_000,
}
ZONES = ["Europe/Amsterdam", "America/New_York", "Pacific/Apia"]
NOON = dt.datetime(1970, 1, 1, 12)


def instants(far, *, null):
    """Noon in UTC three times, and a far time, which may lie under a null."""
    values = pa.array([NOON.hour * 3_600_000_000] * 3 + [far], pa.int64())
    valid = pa.py_buffer(bytes([0b0111 if null else 0b1111]))
    return pa.Array.from_buffers(pa.timestamp("us", "UTC"), 4, [valid, values.buffers()[1]])


def table(far, *, null=False):
    return pa.table({"user": ["a", "b", "c", "d"], "at": instants(far, null=null)})


def kept(form, rows, place):
    """The rows as a source of this form."""
    if form == "table":
        return rows
    path = place / f"rows.{form}"
    if form == "parquet":
        pq.write_table(rows, path)
    elif form == "arrow":
        with pa.ipc.new_file(str(path), rows.schema) as file:
            file.write_table(rows)
    else:
        with duckdb.connect(str(path)) as database:
            database.register("given", rows)
            database.execute("CREATE TABLE t AS SELECT * FROM given")
        return database_of(path, table="t")
    return path


def noon(zone):
    from zoneinfo import ZoneInfo

    return NOON.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


@thin(3)
@pytest.mark.parametrize("form", ["table", "parquet", "arrow", "duckdb"])
@pytest.mark.parametrize("far", FAR)
def test_a_far_time_is_null_as_the_clocks_of_a_zone_show_it(tmp_path, capfd, form, far):
    zone = ZONES[len(far) % len(ZONES)]
    source = kept(form, table(FAR[far]), tmp_path)
    rows = wpinq.protect(source, budget=200, tz=zone, ledger=tmp_path / "ledger")
    times = rows.map("at").measure(50)
    assert times.observe(noon(zone)) == 3
    assert rows.map("user").measure(50).observe("d") == 1
    assert rows.filter("at IS NOT NULL").map("user").measure(50).observe("a") == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("far", FAR)
def test_what_lies_under_a_null_is_not_looked_at(tmp_path, capfd, far, zone):
    rows = wpinq.protect(table(FAR[far], null=True), budget=200, tz=zone, ledger=tmp_path / "ledger")
    times = rows.map("at").measure(50)
    assert (times.observe(noon(zone)), times.observe(None)) == (3, 1)
    assert capfd.readouterr() == ("", "")
