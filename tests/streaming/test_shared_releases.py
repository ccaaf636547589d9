"""A release over a stream that several hosts follow: kept in the database of its ledger. Attacks 13, 38 and 42.

Kinds: what is published compared with what one process publishes; edits and copies of the database by its
administrator; keepers that end or freeze between two acts; and planted mistakes, each of which is found.
"""

from __future__ import annotations

import datetime as dt
import random
import warnings
from contextlib import closing

import polars as pl
import psycopg
import pytest
from depth import thin

from wpinq.apps.cli import main
from wpinq.apps.publish import Release
from wpinq.apps.publish.sinks.directory import Directory
from wpinq.apps.publish.streams import hosts, spool_database
from wpinq.apps.publish.streams.spool_database import Taken
from wpinq.core.ledger import Ledger
from wpinq.core.ledger import ledger as ledgers
from wpinq.core.records.batch import WEIGHT
from wpinq.errors import EngineError, LedgerError, PlanError, SourceError, WpinqError
from wpinq.streaming.shared.abandoned import abandon
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.leases import Holder
from wpinq.streaming.shared.parts import Part
from wpinq.streaming.shared.sources import OfFiles
from wpinq.streaming.shared.worker import Worker

EXACT = 1000
DAY = dt.datetime(2021, 11, 21, tzinfo=dt.UTC)
HOURS = ["2021-11-21T09", "2021-11-21T10", "2021-11-21T11"]
KEYS = ["/a", "/b"]
COLUMNS = {"user": "text", "page": "text", "time": "timestamp"}
SECRET = bytes(range(32)).hex()


@pytest.fixture(autouse=True)
def same_noise(monkeypatch):
    """All ledgers have one secret and one identity, which the noise is a function of."""
    first = ledgers.opening
    monkeypatch.setenv("WPINQ_SECRET", SECRET)
    monkeypatch.setattr(ledgers, "opening", lambda *words: {**first(*words), "id": "37" * 16})


class Host:
    """One host: a directory of its own, and a follower that reads with no processes of its own."""

    def __init__(self, site, name, ledger, workers=0):
        self.site, self.home, self.workers = site, site.place / name, workers
        self.home.mkdir()
        self.ledger = f"{ledger}{self.home}/state" if ledger.endswith("state=") else ledger
        self.follower = None

    @property
    def release(self):
        return Release(self.given, "site", self.home, clock=lambda: self.site.now)

    @property
    def given(self):
        questions = [{"name": name, "counts": ["page"], "keys": KEYS, "epsilon": epsilon, "plot": False}
                     for name, epsilon in (("exact", EXACT), ("noisy", 1))]  # fmt: skip
        return {
            "data": {"source": str(self.site.log), "ledger": self.ledger, "unit": {"column": "user", "at_most": 9},
                     "columns": COLUMNS},
            "stream": {"at": "time", "lateness": 60, **self.site.stream},
            "period": {"every": "hour", "first": HOURS[0]}, "budget": {"epsilon": 20 * EXACT}, "question": questions,
            "sink": [{"directory": "out/{date}"}],
        }  # fmt: skip

    def follow(self):
        if self.follower is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # the anchor of this host is new
                self.follower = self.release.follow(workers=self.workers)
        return self.follower

    def look(self, time):
        """What is said at a time of the day."""
        hour, _, minute = time.partition(":")
        self.site.now = DAY.replace(hour=int(hour), minute=int(minute))
        return [str(one) if isinstance(one, WpinqError) else (one.period, one.done) for one in self.follow().step()]

    def out(self):
        """What was published: each file of tables, by its name."""
        return {f"{path.parent.name}/{path.name}": path.read_bytes()
                for name in ("exact.csv", "noisy.csv") for path in sorted(self.home.glob(f"out/*/{name}"))}  # fmt: skip

    def ends(self):
        if self.follower is not None:
            self.follower.close()
        self.follower = None


class Site:
    """Two hosts that follow a log, which a worker in this process reads; and a clock."""

    def __init__(self, place, ledger, **stream):
        self.place, self.now, self.stream, self.log = place, DAY, stream, place / "views.csv"
        self.log.write_text("user,page,time\n")
        base = ledger.partition("&state=")[0]
        self.hosts = [Host(self, name, f"{base}&state=") for name in ("one", "two")]
        self.alone = Host(self, "alone", "ledger", workers=None)
        self.home = self.hosts[0].follow().host.home
        self.holder, self.connected = Holder(self.home, 3600), self.home.connected()
        self.source = OfFiles(str(self.log), self.home.columns, {}, history=True)
        self.worker = Worker(self.home, self.source, self.holder, self.connected.__enter__())

    def viewed(self, *views):
        """Append (page, time), those that are equal of the same user, and read them."""
        with self.log.open("a") as log:
            log.writelines(f"u{time[-1]}{page},{page},2021-11-21 {time}\n" for page, time in views)
        self.worker.look()

    def run(self, statement, *values):
        with self.home.connected() as connection:
            done = connection.execute(self.home.sql(statement), values)
            return done.fetchall() if done.description else []

    def counts(self, host, hour):
        frame = pl.read_csv(host.out()[f"{hour}/exact.csv"])
        return dict(frame.sort("page").select("page", pl.nth(1)).rows())

    def close(self):
        for host in (*self.hosts, self.alone):
            host.ends()
        self.holder.close()
        self.source.close()
        self.connected.__exit__(None, None, None)


@pytest.fixture
def site(shared_ledger, tmp_path):
    with closing(Site(tmp_path, shared_ledger)) as result:
        yield result


def test_the_next_host_publishes_the_rest_with_the_bytes_of_one_process(site):
    one, two = site.hosts
    draw = random.Random(37)
    assert one.look("09:30") == []
    for hour in (9, 10, 11):
        views = [(draw.choice(KEYS), f"{hour:02}:{draw.randrange(60):02}") for _ in range(40)]
        site.viewed(*views[:20], *views[:20])
        keeper = two if hour == 11 else one
        keeper.look(f"{hour:02}:40")
        assert keeper.follower.waits is None
        if hour == 9:
            assert two.look("09:45") == []
            assert "keeps this stream, on " in two.follower.waits
        if hour == 11:
            site.viewed(*views[20:])
            continue
        site.viewed(*views[20:])
        assert one.look(f"{hour + 1:02}:01") == [(HOURS[hour - 9], "published")]
        if hour == 10:
            one.ends()
    assert two.look("12:01") == [(HOURS[2], "published")]
    assert [period for period, _ in site.alone.look("12:01")] == HOURS
    assert {**one.out(), **two.out()} == site.alone.out()
    assert len(one.out()) == 4
    assert len(two.out()) == 2
    assert site.run("SELECT count(*) FROM {parts}") == [(0,)]


def story(site):
    """Two hours over two hosts, of which the second keeps the stream from the middle of the second hour on."""
    one, two = site.hosts
    one.look("09:30")
    site.viewed(("/a", "09:10"), ("/a", "09:10"), ("/b", "09:20"), ("/b", "10:30"))
    one.look("09:40")
    site.viewed(("/a", "09:59"))
    one.look("10:01")
    one.ends()
    site.viewed(("/a", "10:10"))
    two.look("10:30")
    two.look("11:01")
    assert site.counts(one, HOURS[0]) == {"/a": 3, "/b": 1}
    assert site.counts(two, HOURS[1]) == {"/a": 1, "/b": 1}


def frozen_keeper(site):
    """One that goes on after its lease has passed on: nothing that it does is written, whatever the other did."""
    one, two = site.hosts
    one.look("09:30")
    site.viewed(("/a", "09:10"))
    site.run("UPDATE {leases} SET ends = '-infinity' WHERE name = 'keeper'")
    kept = two.follow().host.keep("time", site.now, late=False)[0]
    with pytest.raises(EngineError, match=r"another process has taken over.*Nothing was written"):
        one.look("09:40")
    kept.release()


def acted_and_put_back(site, names):
    """The first host acts and ends, and an administrator puts back what these tables held before."""
    one = site.hosts[0]
    for name in names:
        site.run(f"CREATE TABLE wpinq_views.copy_{name} AS SELECT * FROM wpinq_views.{name}")
    one.look("09:40")
    one.ends()
    for name in names:
        overriding = "OVERRIDING SYSTEM VALUE" if name == "stream_parts" else ""
        site.run(f"DELETE FROM wpinq_views.{name}")
        site.run(f"INSERT INTO wpinq_views.{name} {overriding} SELECT * FROM wpinq_views.copy_{name}")
        site.run(f"DROP TABLE wpinq_views.copy_{name}")


def put_back(site):
    """What an administrator puts back by one act, and the parts with it: records of it would be counted again."""
    one, two = site.hosts
    one.look("09:30")
    site.viewed(("/a", "09:10"))
    acted_and_put_back(site, ["stream_epochs", "stream_parts", "stream_notes"])
    with pytest.raises(SourceError, match="are not those that its ledger knows of"):
        two.look("09:45")


def restored(site):
    """The whole database is put back by one act: whoever has seen that act refuses it."""
    one = site.hosts[0]
    one.look("09:30")
    site.viewed(("/a", "09:10"))
    names = [name for (name,) in site.run("SELECT tablename FROM pg_tables WHERE schemaname = 'wpinq_views'")]
    acted_and_put_back(site, names)
    with pytest.raises(LedgerError, match="was restored"):
        one.look("09:45")


def no_fence(monkeypatch):
    monkeypatch.setattr(Holder, "check", lambda *words: None)


def parts_stay(monkeypatch):
    sql = Home.sql
    monkeypatch.setattr(
        Home,
        "sql",
        lambda home, text: sql(
            home,
            text.replace("{parts} WHERE stream = %s AND number =", "{parts} WHERE false AND stream = %s AND number ="),
        ),
    )


def no_head(monkeypatch):
    monkeypatch.setattr(spool_database, "_head", lambda number, sealed: "0")


def no_weights(monkeypatch):
    monkeypatch.setattr(Part, "records", property(lambda part: part.frame.drop(WEIGHT)))


def positions_stay(monkeypatch):
    monkeypatch.setattr(Taken, "positions", lambda taken: {})


def closes_unread(monkeypatch):
    monkeypatch.setattr(hosts.Host, "until", lambda host, now: now)


def unread(site):
    """A host that was away finds the clock past the end of an hour, whose records nobody has read yet."""
    one, two = site.hosts
    one.look("09:30")
    site.viewed(("/a", "09:10"))
    one.look("09:40")
    one.ends()
    assert two.look("10:30") == []
    site.viewed(("/a", "09:50"))
    assert two.look("10:31") == [(HOURS[0], "published")]
    assert site.counts(two, HOURS[0]) == {"/a": 2, "/b": 0}


@pytest.mark.parametrize("tale", [story, frozen_keeper, put_back, restored, unread])
def test_attacks_13_38_and_42_each_record_is_in_one_period_and_who_is_late_is_refused(site, tale):
    tale(site)


@thin(2)
@pytest.mark.parametrize(("tale", "planted"), [
    (frozen_keeper, no_fence), (story, parts_stay), (put_back, no_head), (story, positions_stay), (story, no_weights),
    (unread, closes_unread),
])  # fmt: skip
def test_what_the_code_leaves_out_is_found(site, monkeypatch, tale, planted):
    planted(monkeypatch)
    with pytest.raises((AssertionError, WpinqError, pytest.fail.Exception, KeyError)):
        tale(site)


EDITS = {
    "a piece is gone": "DELETE FROM {epochs} WHERE stream LIKE '% 2021-11-21T10' AND number = 0",
    "the last piece is gone": "DELETE FROM {epochs} WHERE stream LIKE '% 2021-11-21T10' AND number = 1",
    "a piece is there again": "INSERT INTO {epochs} SELECT stream, 2, frame FROM {epochs}"
                              " WHERE stream LIKE '% 2021-11-21T10' AND number = 1",
    "pieces change places": "UPDATE {epochs} AS t SET frame = s.frame FROM {epochs} AS s WHERE t.stream = s.stream"
                            " AND t.number IN (0, 1) AND s.number = 1 - t.number AND t.stream LIKE '% 2021-11-21T10'",
    "a piece is another's": "UPDATE {epochs} SET frame = (SELECT frame FROM {epochs} WHERE number = 0 AND stream LIKE"
                            " '% 2021-11-21T09') WHERE number = 0 AND stream LIKE '% 2021-11-21T10'",
    "what is known is gone": "DELETE FROM {notes}",
    "all pieces are gone": "DELETE FROM {epochs}",
    "the keeper's lease is another's": "UPDATE {leases} SET fence = fence + 1 WHERE name = 'keeper'",
}  # fmt: skip


@thin(3)
@pytest.mark.parametrize("edit", EDITS)
def test_attack_38_an_administrator_who_edits_a_period_is_noticed(site, edit):
    """Nothing is published of it but all that was read; or it is refused."""
    one, two = site.hosts
    site.viewed(("/a", "09:10"), ("/b", "10:10"))
    one.look("09:40")
    site.viewed(("/a", "10:20"))
    one.look("10:20")
    site.run(EDITS[edit].replace("%", "%%"))
    said = []
    for host, time in ((one, "11:01"), (two, "11:02"), (two, "11:03")):
        try:
            said += host.look(time)
        except WpinqError as error:
            said.append(str(error))
        site.viewed()
    published = [host for host in site.hosts if f"{HOURS[1]}/exact.csv" in host.out()]
    assert all(site.counts(host, HOURS[1]) == {"/a": 1, "/b": 1} for host in published)
    assert published or "edited" in str(said) or "taken over" in str(said), said


def test_what_has_waited_long_is_taken_in_by_several_acts(site, monkeypatch):
    """A memory's full of pieces at a time; a keeper that ends between two of them leaves the rest as parts."""
    monkeypatch.setattr(spool_database, "MANY", 1)
    monkeypatch.setattr(spool_database, "LARGE", 0)
    one, two = site.hosts
    for minute in range(5):
        site.viewed(("/a", f"09:1{minute}"), ("/b", "09:20"))
    acts, act = [], spool_database.Database._act

    def ends(store, *words, **more):
        if len(acts) == 3:
            raise EngineError("it ends here")
        acts.append(act(store, *words, **more))

    with monkeypatch.context() as patched:
        patched.setattr(spool_database.Database, "_act", ends)
        with pytest.raises(EngineError, match="it ends here"):
            one.look("09:40")
    assert site.run("SELECT count(*) FROM {parts}") == [(3,)]  # the first act began the stream
    two.look("09:41")
    site.viewed()
    two.look("10:01")
    assert site.counts(two, HOURS[0]) == {"/a": 5, "/b": 5}


def test_a_host_that_died_holds_periods_back_until_it_is_let_go(site):
    one = site.hosts[0]
    one.look("09:30")
    dead = Holder(site.home, 3600)
    with site.home.connected() as connection:
        dead.balance(connection, ["files dead /views.csv"], moving=False)
    dead._stop.set()
    site.run("UPDATE {leases} SET ends = '-infinity' WHERE name LIKE 'files dead%%'")
    site.viewed(("/a", "09:10"))
    assert one.look("10:01") == []
    abandon(Ledger.path(one.ledger, one.home), "files dead")
    site.viewed()
    assert one.look("10:02") == [(HOURS[0], "published")]


def test_what_the_database_holds_of_a_release_says_nothing_of_records(site):
    site.viewed(("/marker", "09:10"))
    site.hosts[0].look("09:40")
    site.viewed(("/marker", "09:20"))
    for table in ("epochs", "parts", "leases", "notes"):
        rows = site.run(f"SELECT * FROM {{{table}}}")
        assert rows
        values = [bytes(cell) if isinstance(cell, memoryview) else cell for row in rows for cell in row]
        assert b"marker" not in repr(values).encode()


def test_records_are_forgotten_on_every_host_and_in_the_database(site):
    site.stream["keep"] = 1
    one, two = site.hosts
    for hour in (9, 10):
        site.viewed(("/a", f"{hour:02}:10"))
        one.look(f"{hour:02}:40")
        site.viewed()
        one.look(f"{hour + 1:02}:01")
    one.ends()
    (files,) = one.home.rglob("state/*.stream/site")
    (files / f"{spool_database.DRAFT}killed").mkdir()
    (files / f"{spool_database.DRAFT}killed/2.parquet").write_bytes(b"records")
    site.viewed()
    two.look("11:40")
    site.viewed()
    two.look("12:01")
    kept = {name for (name,) in site.run("SELECT DISTINCT right(stream, 13) FROM {epochs}")}
    assert kept == {HOURS[2]}
    assert not list(two.home.rglob("state/*.stream/site/2021-11-21T10"))
    assert list(one.home.rglob("state/*.stream/site/2021-11-21T10"))
    one.look("12:02")
    assert one.follower.waits
    assert not list(one.home.rglob("state/*.stream/site/2021-11-21T10"))
    assert not list(one.home.rglob("2.parquet")), "a process that was killed while it wrote them had left records"
    assert site.counts(one, HOURS[1]) == {"/a": 1, "/b": 0}


def test_a_period_that_one_host_computed_is_delivered_by_the_next(site, monkeypatch):
    """Its files are computed again there, for nothing, from the same bytes; so its ledger knows the version."""
    one, two = site.hosts
    site.viewed(("/a", "09:10"), ("/b", "09:10"), ("/a", "09:10"))
    one.look("09:40")
    site.viewed()
    with monkeypatch.context() as patched:
        patched.setattr(Directory, "deliver", lambda *words: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            one.look("10:01")
    spent = Ledger.existing(Ledger.path(one.ledger, one.home)).spent()
    one.ends()
    site.viewed()
    assert two.look("10:02") == [(HOURS[0], "published")]
    assert Ledger.existing(Ledger.path(one.ledger, one.home)).spent() == spent
    assert site.counts(two, HOURS[0]) == {"/a": 2, "/b": 1}


def test_a_question_that_cannot_be_asked_is_refused_before_a_ledger_is_made(shared_ledger, tmp_path):
    """Of a budget of rho, too, by which others can be."""
    log = tmp_path / "views.csv"
    log.write_text("user,page,time\n")
    question = {"name": "views", "counts": ["page"], "keys": KEYS, "rho": "0.1", "plot": False}
    given = {
        "data": {"source": str(log), "ledger": shared_ledger, "columns": {"page": "text", "time": "timestamp"}},
        "stream": {"at": "time"}, "budget": {"rho": 1}, "question": [{**question, "counts": ["nothing"]}],
        "sink": [{"directory": "out/{date}"}],
    }  # fmt: skip
    with pytest.raises(WpinqError, match="nothing"):
        Release(given, "site", tmp_path).follow(workers=0)
    assert not Ledger.exists(Ledger.path(shared_ledger, tmp_path))
    follower = Release({**given, "question": [question]}, "site", tmp_path).follow(workers=0)
    assert list(follower.step()) == []
    follower.close()
    assert Ledger.existing(Ledger.path(shared_ledger, tmp_path)).spent() == (0, 0)


def test_what_cannot_be_followed_by_several_is_refused(site, tmp_path, monkeypatch, capsys):
    assert main(["publish", "follow", "site.toml", "--once", "--workers", "1"]) == 2
    assert "--once: leave it out beside --workers" in capsys.readouterr().err
    with pytest.raises(PlanError, match=r"data\.ledger the URL of a PostgreSQL"):
        site.alone.release.follow(workers=0)
    sent = site.alone.given | {"data": {"listen": "127.0.0.1:0", "ledger": site.hosts[0].ledger, "columns": COLUMNS},
                               "stream": None}  # fmt: skip
    with pytest.raises(PlanError, match="records that are sent are taken by one process"):
        Release(sent, "sent", tmp_path).follow(workers=1)
    with pytest.raises(PlanError, match=r"follow\(workers=-1\): takes a number of processes, from 0 to 256"):
        site.hosts[1].release.follow(workers=-1)
    assert not (site.alone.home / "ledger").exists()
    for host in site.hosts:
        host.look("09:30")
    with pytest.raises(PlanError, match="give --workers"):
        site.hosts[1].release.follow()
    monkeypatch.setattr(spool_database, "FORMAT", 2)
    site.hosts[1].ends()
    site.hosts[1].workers = 1
    with pytest.raises(SourceError, match=r"another version of wpinq, of format 1, and this one has 2"):
        site.hosts[1].look("09:31")
    assert site.hosts[1].follower.host._workers is None, "they would write what the other version cannot read"


def test_one_that_followed_alone_goes_on_alone(shared_ledger, site):
    host = site.hosts[1]
    host.ledger = host.ledger.replace("ledger=views", "ledger=others")
    try:
        alone = host.release.follow()
        list(alone.step())
        alone.close()
        with pytest.raises(PlanError, match="followed alone"):
            list(host.release.follow(workers=0).step())
    finally:
        with psycopg.connect(site.home.address.conninfo, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS wpinq_others CASCADE")
