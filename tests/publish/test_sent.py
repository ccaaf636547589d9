"""Periods are handed to the sinks of streams, too: each number as a row, once by its key."""

import json

import polars as pl
import pytest
from posting import service_at

from tests.publish.test_release import PAGES, release, wrote
from wpinq.apps.publish.files import found
from wpinq.errors import SourceError

DAY = "2026-11-21"
SQL = "SELECT page, COUNT(*) AS views, COUNT(DISTINCT user) AS people FROM data GROUP BY page"
QUESTION = {"name": "views", "sql": SQL,
            "keys": PAGES, "epsilon": 3, "plot": False, "loss": 0.05}  # fmt: skip


@pytest.fixture
def service():
    with service_at() as server:
        yield server


def made(home, *sinks, **words):
    return release(home, question=[{**QUESTION, **words}], sink=[*sinks])


def test_each_number_is_a_row_with_its_interval_once(tmp_path):
    wrote(tmp_path, 20)
    wrote(tmp_path, 21)
    site = made(tmp_path, {"to": "json:out.json"})
    for day in ("2026-11-20", DAY, DAY):
        site.run(day)
    assert [outcome.done for outcome in site.deliver()] == ["is in every sink"] * 2, "what is there cannot be asked"
    rows = [json.loads(line) for line in (tmp_path / "out.json").read_text().splitlines()]
    assert len({row["key"] for row in rows}) == len(rows)
    assert {(row["stream"], row["level"], row["window_start"][:10]) for row in rows} == {
        ("site", 0.95, "2026-11-20"), ("site", 0.95, DAY)}  # fmt: skip
    kept = tmp_path / "ledger.published" / "site" / DAY
    table = pl.read_csv(kept / "views.csv")
    for column in ("views", "people"):
        mine = [row for row in rows if row["measurement"] == f"views.{column}" and row["window_start"].startswith(DAY)]
        assert [(row["bin"], row["value"]) for row in mine] == list(zip(table["page"], table[column], strict=True))
        assert [row["half_width"] for row in mine] == list(table[f"{column}_high"] - table[column])
    evidence = json.loads((kept / "evidence.json").read_text())
    assert {(row["unit"], row["protects"]) for row in rows} == {(evidence["unit"], evidence["protects"])}
    assert {row["epsilon"] for row in rows if row["measurement"].startswith("views.")} == {3.0}
    assert site.verify(DAY) == []


def test_a_service_that_refuses_leaves_the_period_computed_and_gets_the_same_later(tmp_path, service):
    wrote(tmp_path, 21)
    service.statuses = [503]
    site = made(tmp_path, {"to": f"http://me:word@127.0.0.1:{service.server_port}/days"}, {"directory": "out/{date}"})
    with pytest.raises(SourceError, match="says 503") as refusal:
        site.run(DAY)
    assert "word" not in str(refusal.value)
    assert [each.stage for each in site.status()] == ["computed"]
    assert not (tmp_path / "out" / DAY).exists()
    assert site.run(DAY).done == "published"
    first, second = service.calls
    assert first == second
    assert first.key.startswith("site-")
    assert found(tmp_path / "out" / DAY)


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ({"to": "ftp://there"}, r"\[\[sink\]\] to = ftp: there are json:FILE"),
        ({"to": "json:"}, "there are json:FILE"),
        ({"to": "postgresql://me:word@host/db"}, "name the table"),
        ({"to": "http:///path"}, "names no host"),
        ({"to": "json:a", "sqlite": "b"}, "give one of directory, sqlite, postgres, to"),
    ],
)
def test_a_sink_that_is_none_is_refused_in_the_words_of_the_file(sink, words, tmp_path):
    with pytest.raises(Exception, match=words) as refusal:
        made(tmp_path, sink)
    assert "word@" not in str(refusal.value)
    assert "--to" not in str(refusal.value)
