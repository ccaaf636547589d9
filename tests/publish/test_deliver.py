"""What was published is delivered again to sinks that were lost or added: for nothing, from what is kept."""

import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest
from depth import deep

from tests.publish.test_release import PAGES, release, wrote
from tests.servers import postgres
from wpinq.apps.cli import main
from wpinq.apps.publish.files import found
from wpinq.core import Ledger
from wpinq.errors import PlanError, WpinqError

DAY = "2026-11-21"
SINKS = [{"directory": "out/{date}"}, {"sqlite": "out.db"}]
BOTH = "directory out/{date}, sqlite out.db"
QUESTION = {"name": "views", "sql": "SELECT page, COUNT(*) AS views FROM data GROUP BY page", "keys": PAGES,
            "epsilon": 3, "plot": False}  # fmt: skip
FILE = """
[data]
source = "views/{{date}}.csv"
unit = {{ column = "user", at_most = 3 }}
ledger = "ledger"
[budget]
epsilon = 30
[[question]]
name = "views"
sql = "SELECT page, COUNT(*) AS views FROM data GROUP BY page"
keys = ["/p0", "/p1"]
epsilon = 3
plot = false
{sinks}
"""


def made(home, sinks=SINKS, *days):
    for day in days:
        wrote(home, day)
    site = release(home, sink=sinks, question=[QUESTION])
    assert all(one.done == "published" for one in map(site.run, (f"2026-11-{day}" for day in days)))
    return site


def said(outcomes):
    return [one.done if hasattr(one, "done") else str(one) for one in outcomes]


def rows(home):
    with closing(sqlite3.connect(home / "out.db")) as opened, opened:
        return opened.execute("SELECT * FROM site_views ORDER BY rowid").fetchall()


def test_lost_sinks_get_back_what_was_published_without_its_records_for_nothing(tmp_path):
    site = made(tmp_path, SINKS, 20, 21)
    files, before = found(tmp_path / "out" / DAY), rows(tmp_path)
    ledger, register = (tmp_path / "ledger").read_bytes(), site._publisher.register.records()
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out.db").unlink()
    shutil.move(tmp_path / "views", tmp_path / "gone")
    assert [one.price.text for one in site.deliver()] == ["epsilon 0", "epsilon 0"]
    assert said(site.deliver()) == ["is in every sink"] * 2
    assert found(tmp_path / "out" / DAY) == files
    assert rows(tmp_path) == before
    assert ((tmp_path / "ledger").read_bytes(), site._publisher.register.records()) == (ledger, register)
    shutil.move(tmp_path / "gone", tmp_path / "views")
    assert site.verify(DAY) == []


def test_a_sink_that_was_added_gets_what_was_published_before(tmp_path):
    made(tmp_path, SINKS[:1], 20, 21)
    site = release(tmp_path, sink=SINKS, question=[QUESTION])
    assert site.verify(DAY)
    assert said(site.deliver(DAY)) == ["delivered again to sqlite out.db"]
    assert [period for period, *_ in rows(tmp_path)] == [DAY] * len(PAGES)
    assert site.verify(DAY) == []


def test_files_that_are_gone_are_computed_again_as_they_were_for_nothing(tmp_path, monkeypatch):
    """Also where the ledger has gone on meanwhile: what the evidence says of it is of then."""
    site = made(tmp_path, SINKS, 20)
    kept = tmp_path / "ledger.published" / "site" / "2026-11-20"
    files = found(kept)
    wrote(tmp_path, 21)
    assert site.run(DAY).done == "published"
    Ledger.existing(tmp_path / "ledger").raise_budget(Fraction(40))
    spent = Ledger.existing(tmp_path / "ledger").spent()
    for lost in (kept, tmp_path / "out" / "2026-11-20"):
        shutil.rmtree(lost)
    site = release(tmp_path, sink=SINKS, question=[QUESTION], budget={"epsilon": 40})
    assert "delivered again to directory" in said(site.deliver("2026-11-20"))[0]
    assert found(kept) == files
    assert found(tmp_path / "out" / "2026-11-20").items() <= files.items()
    assert Ledger.existing(tmp_path / "ledger").spent() == spent
    assert site.verify("2026-11-20") == []
    shutil.rmtree(kept)
    with monkeypatch.context() as patch:
        patch.setattr("platform.python_version", lambda: "4.0.0")
        assert "another wpinq, Python or library" in said(site.deliver("2026-11-20"))[0]
    assert not kept.exists()
    other = release(tmp_path, sink=SINKS, question=[{**QUESTION, "epsilon": 2}], budget={"epsilon": 40})
    assert "missing or were changed" in said(other.deliver("2026-11-20"))[0]
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "holds", lambda *_: False)
        assert "others than were charged" in said(site.deliver("2026-11-20"))[0]
    assert Ledger.existing(tmp_path / "ledger").spent() == spent
    path = tmp_path / "views" / "2026-11-20.csv"
    path.write_text(path.read_text() + "new,/p1\n")
    assert "other records than were published" in said(site.deliver("2026-11-20"))[0]
    assert not kept.exists()


def test_rows_that_were_lost_come_back_and_some_that_are_there_are_left(tmp_path):
    site = made(tmp_path, SINKS, 20, 21)
    before = rows(tmp_path)
    for change in (f"DELETE FROM site_views WHERE period = '{DAY}'", "DROP TABLE site_views"):
        with closing(sqlite3.connect(tmp_path / "out.db")) as opened, opened:
            opened.execute(change)
        opened.close()
        assert "delivered again to sqlite out.db" in said(site.deliver())
        assert sorted(rows(tmp_path)) == sorted(before)
    with closing(sqlite3.connect(tmp_path / "out.db")) as opened, opened:
        opened.execute(f"DELETE FROM site_views WHERE period = '{DAY}' AND page = '/p1'")
    opened.close()
    left = rows(tmp_path)
    (other, refused) = said(site.deliver())
    assert other == "is in every sink"
    assert "other rows in site_views" in refused
    assert rows(tmp_path) == left


def test_what_cannot_be_delivered_stops_no_other_sink_and_no_other_period(tmp_path):
    site = made(tmp_path, SINKS, 20, 21)
    (tmp_path / "out.db").unlink()
    (tmp_path / "out" / "2026-11-20" / "views.csv").write_text("mine")
    first, second = said(site.deliver())
    assert "holds other files than were published" in first
    assert second == "delivered again to sqlite out.db"
    assert len(rows(tmp_path)) == 2 * len(PAGES)
    kept = tmp_path / "ledger.published" / "site" / DAY / "views.csv"
    kept.write_text(kept.read_text() + "\n")
    shutil.rmtree(tmp_path / "out" / DAY)
    assert "missing or were changed" in said(site.deliver())[1]
    assert not (tmp_path / "out" / DAY).exists()


def test_what_was_not_published_is_not_delivered(tmp_path):
    site = made(tmp_path, SINKS, 21)
    (refused,) = site.deliver("2026-11-20")
    assert isinstance(refused, PlanError)
    assert "was not published" in str(refused)
    assert said(release(tmp_path / "other", question=[QUESTION]).deliver()) == []


def test_a_damaged_database_is_refused_in_one_line(tmp_path):
    site = made(tmp_path, SINKS[1:], 21)
    path, (place,), edition = tmp_path / "out.db", site._publisher.places, site._publisher.edition(site.period(DAY))
    whole = path.read_bytes()
    start = whole.index(b"CREATE TABLE")  # where SQLite keeps what its tables are
    for at in [*range(60), *range(start - 40, len(whole[:4096]), 5)]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        for call in (place.differs, place.deliver, lambda _: place.check(site.period(DAY), fresh=False)):
            try:
                told = call(edition)
            except WpinqError as error:
                told = str(error)
            assert told is None or "\n" not in told


def test_the_command_delivers_and_says_where(tmp_path, capsys):
    wrote(tmp_path, 21)
    path = tmp_path / "site.toml"
    directory, database = '[[sink]]\ndirectory = "out/{date}"\n', '[[sink]]\nsqlite = "out.db"\n'
    path.write_text(FILE.format(sinks=directory))

    def command(*more):
        code, said = main(["publish", "run", str(path), *more]), capsys.readouterr()
        return code, said.out + said.err

    assert command("--period", DAY)[0] == 0
    path.write_text(FILE.format(sinks=directory + database))
    assert command("--deliver") == (0, f"{DAY}: delivered again to sqlite out.db, epsilon 0.\n")
    assert command("--deliver", "--period", DAY) == (0, f"{DAY}: is in every sink, epsilon 0.\n")
    code, text = command("--deliver", "--again")
    assert (code, text.count("\n")) == (2, 1)
    assert "--deliver: publishes and charges nothing" in text
    assert command("--deliver", "--period", "2026-11-20")[0] == 2


@deep
@pytest.mark.slow
def test_lost_tables_of_postgresql_come_back(tmp_path):
    from adbc_driver_postgresql import dbapi

    with postgres() as url:
        site = made(tmp_path, [{"postgres": url}], 21)
        for change in ("DELETE FROM site_views", "DROP TABLE site_views", "DROP TABLE site_views, wpinq_published"):
            with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
                cursor.execute(change)
            assert site.verify(DAY)
            assert said(site.deliver()) == [f"delivered again to {site._publisher.places[0].name}"]
            assert site.verify(DAY) == []
            assert said(site.deliver()) == ["is in every sink"]
