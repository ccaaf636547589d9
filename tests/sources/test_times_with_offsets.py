"""A time that is written with its offset is taken as UTC under `timestamp`, whatever wrote it; it became null."""

import datetime as dt
import json

import polars as pl
import pyarrow as pa
import pytest

import wpinq
from wpinq.core.records import text as convert
from wpinq.core.records.schema import Kind
from wpinq.sources import open_source

TEN = dt.datetime(2026, 10, 1, 8, 0)
WRITTEN = {
    "2026-10-01 08:00": TEN,
    "2026-10-01T10:00:00+02:00": TEN,
    "2026-10-01T08:00:00Z": TEN,
    "2026-10-01 08:00:00 UTC": TEN,
    "01/Oct/2026:10:00:00 +0200": TEN,
    "10/Oct/2026:13:55:36 +0200": dt.datetime(2026, 10, 10, 11, 55, 36),
    "2026-10-01 10:00:00+0200": TEN,
    "2026-10-01 10:00:00 +0200": TEN,
    "2026-10-01 10:00:00+02": TEN,
    "2026-10-01 08:00:00+00:00": TEN,
    "2026-10-01 08:00:00.250000+00:00": TEN.replace(microsecond=250000),
    "2026-10-01T10:00+02:00": TEN,
    "2026-10-01 10:00+02": TEN,
    "2026-09-30 22:30:00.123456789-09:30": TEN.replace(microsecond=123456),
}
"""Of RFC 3339, web servers, pandas (`to_csv`, `date_format`), PostgreSQL (`COPY`), Ruby and BigQuery."""
NONE = (
    "2026-10-01T10:00:00+2", "2026-10-01T10:00:00+02:0", "2026-10-01T10:00:00 CEST", "10/Oct/2026:13:55:36",
    "2026-10-01+02:00", "10/Okt/2026:13:55:36 +0200", "2026-10-01T10:00:00+02:75", "2026-13-01T10:00:00Z",
    "31/Feb/2026:13:55:36 +0200", "2026-10-01T10:00:00+02:00 ", "2026-10-01 10:00:00  +0200", "", "x",
)  # fmt: skip


def test_a_time_with_an_offset_is_utc_under_timestamp():
    found = convert.parse_column(pl.Series("x", [*WRITTEN]), Kind.TIME)
    assert dict(zip(WRITTEN, found, strict=True)) == WRITTEN


def test_an_instant_takes_the_same_forms_and_none_without_an_offset():
    found = convert.parse_column(pl.Series("x", [*WRITTEN]), Kind.INSTANT)
    aware = {text: time.replace(tzinfo=dt.UTC) for text, time in WRITTEN.items()} | {"2026-10-01 08:00": None}
    assert dict(zip(WRITTEN, found, strict=True)) == aware


@pytest.mark.parametrize("kind", [Kind.TIME, Kind.INSTANT])
def test_what_is_no_time_is_null_by_itself(kind):
    found = convert.parse_column(pl.Series("x", [*NONE, *WRITTEN]), kind).to_list()
    assert found[: len(NONE)] == [None] * len(NONE)
    assert found[len(NONE) :] == convert.parse_column(pl.Series("x", [*WRITTEN]), kind).to_list()


def test_pandas_writes_and_we_read(tmp_path):
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2026-10-01 11:58:20", periods=3, freq="h", tz="Europe/Amsterdam")
    path = tmp_path / "v.csv"
    pd.DataFrame({"user": [1, 2, 3], "at": times}).to_csv(path, index=False)
    (frame,) = open_source(path, columns={"at": "timestamp"}).batches(["at"])
    assert frame["at"].to_list() == [time.tz_convert(None).to_pydatetime() for time in times]


def test_lines_of_json_too(tmp_path):
    path = tmp_path / "v.jsonl"
    path.write_text("".join(json.dumps({"at": text}) + "\n" for text in WRITTEN))
    (frame,) = open_source(path, columns={"at": "timestamp"}).batches(["at"])
    assert frame["at"].to_list() == list(WRITTEN.values())


def test_tables_and_records_with_a_zone_too(tmp_path):
    aware = [time.replace(tzinfo=dt.UTC).astimezone(dt.timezone(dt.timedelta(hours=2))) for time in WRITTEN.values()]
    table = pa.table({"at": pa.array(aware, pa.timestamp("us", "Europe/Amsterdam"))})
    pl.from_arrow(table).write_parquet(tmp_path / "v.parquet")
    for source in (table, tmp_path / "v.parquet", [(time,) for time in aware]):
        (frame,) = open_source(source, columns={"at": "timestamp"}).batches(["at"])
        assert frame["at"].to_list() == list(WRITTEN.values())


def test_what_is_sent_with_a_zone_is_counted():
    live = wpinq.live({"at": "timestamp"}, budget=10**6)
    days = live.map(lambda at: at.day).measure(epsilon=10**5)
    live.send([(TEN.replace(tzinfo=dt.timezone(dt.timedelta(hours=10))),)] * 50)
    live.send(pl.DataFrame({"at": [TEN] * 50}).with_columns(pl.col("at").dt.replace_time_zone("Europe/Amsterdam")))
    live.advance()
    assert (days.observe(30), days.observe(1)) == (50, 50)
    live.close()
