"""Groups of any type are published: a format that has no such values holds them as text, and no charge is in vain."""

import datetime as dt
import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.publish.test_release import given
from tests.servers import postgres
from wpinq.apps.publish import Release

PEOPLE = 300
QUERY = "SELECT g, COUNT(*) AS c FROM data GROUP BY g"
GROUPS = {
    "bytes": (pa.array([b"a", b"\xff"]), ["YQ==", "/w=="]),
    "durations": (pa.array([dt.timedelta(0), dt.timedelta(-1)], pa.duration("us")), ["-P1D", "P0D"]),
    "infinities": (pa.array([1.5, float("inf")]), ["1.5", "inf"]),
    "integers beyond 64 bits": (pa.array([1, 2**63 + 1], pa.uint64()), ["1", str(2**63 + 1)]),
    "lists": (pa.array([[1], [2, 3]]), ["(1,)", "(2, 3)"]),
    "days at the ends of the calendar": (pa.array([dt.date.min, dt.date.max]), ["0001-01-01", "9999-12-31"]),
    "zero bytes": (pa.array(["a\0b", ""]), ["a\0b", ""]),
    "times with a zone": (
        pa.array([dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2)], pa.timestamp("us", tz="+05:30")),
        ["2026-01-01T00:00:00.000000+0000", "2026-01-02T00:00:00.000000+0000"],
    ),
}


def site(place, kind, *sinks, plot=True, name="site"):
    """A release of a day, by groups of one kind."""
    values, _ = GROUPS[kind]
    column = values.take(pa.array([person % 2 for person in range(PEOPLE)]))
    people = [f"u{person}" for person in range(PEOPLE)]
    pq.write_table(pa.table({"user": people, "g": column}), place / "v-2026-11-21.parquet")
    file = given(
        data={"source": "v-{date}.parquet", "unit": {"column": "user", "at_most": 1}, "ledger": "ledger"},
        budget={"epsilon": 30, "delta": "0.01"},
        question=[{"name": "q", "sql": QUERY, "delta": "0.001", "epsilon": 10, "plot": plot}],
        page={"title": "Groups"},
        sink=list(sinks),
    )
    return Release(file, name, place, clock=lambda: dt.datetime(2026, 11, 22, 6, tzinfo=dt.UTC))


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("kind", GROUPS)
def test_groups_of_any_type_reach_every_sink(kind, tmp_path):
    directory = {"directory": "out/{date}", "formats": ["csv", "json", "parquet"]}
    made = site(tmp_path, kind, directory, {"sqlite": "out.db"}, {"to": "json:lines"})
    assert made.run("2026-11-21").done == "published"
    assert made.run("2026-11-21").done == "was published before"
    assert made.verify("2026-11-21") == []
    place = tmp_path / "out" / "2026-11-21"
    assert sorted(pl.read_csv(place / "q.csv", infer_schema=False)["g"]) == sorted(GROUPS[kind][1])
    assert pl.read_parquet(place / "q.parquet")["c"].to_list() == pytest.approx([PEOPLE / 2] * 2, abs=5)
    read = json.loads((place / "q.json").read_text(), parse_constant=pytest.fail)
    assert len(read["rows"]) == 2
    for line in (tmp_path / "lines").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


@pytest.mark.slow
def test_groups_of_any_type_reach_postgresql(tmp_path):
    pytest.importorskip("adbc_driver_postgresql")
    with postgres() as url:
        for number, kind in enumerate(GROUPS):
            (place := tmp_path / f"s{number}").mkdir()
            made = site(place, kind, {"directory": "out/{date}"}, {"postgres": url}, plot=False, name=place.name)
            assert made.run("2026-11-21").done == "published", kind
            assert made.verify("2026-11-21") == [], kind
