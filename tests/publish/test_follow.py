"""Following a stream: each period that the clock closes is published once, whole, whatever is killed or late."""

import datetime as dt
import json
import sys
from pathlib import Path

import polars as pl
import processes
import pytest
from depth import deep
from ledger.files import killed_while_made
from typer.testing import CliRunner

from wpinq.apps.cli.app import app
from wpinq.apps.publish import BusyError, Release
from wpinq.apps.publish.streams.following import Follower
from wpinq.errors import BudgetError, PlanError, SourceError, WpinqError

EXACT = 1000
START = dt.datetime(2026, 11, 21, 9, tzinfo=dt.UTC)
PAGES = ["/a", "/b"]


class Site:
    """A release over a log that grows, and a clock."""

    def __init__(self, home, source="views.csv", columns=None, **stream):
        self.home, self.now, self.log = home, START, home / "views.csv"
        self.log.write_text("user,page,time\n")
        self.given = {
            "data": {"source": source, "ledger": "ledger", "unit": {"column": "user", "at_most": 9},
                     "columns": columns or {"user": "text", "page": "text", "time": "timestamp"}},
            "stream": {"at": "time", "lateness": 60, **stream}, "period": {"every": "hour", "first": "2026-11-21T09"},
            "budget": {"epsilon": 6 * EXACT},
            "question": [{"name": "views", "counts": ["page"], "keys": PAGES, "epsilon": EXACT, "plot": False}],
            "sink": [{"directory": "out/{date}"}],
        }  # fmt: skip
        self.open = None

    @property
    def release(self):
        return Release(self.given, "site", self.home, clock=lambda: self.now)

    def viewed(self, *views):
        """Append (page, time) of a user each."""
        with self.log.open("a") as log:
            log.writelines(f"u{number},{page},2026-11-21 {time}\n" for number, (page, time) in enumerate(views))

    def look(self, time, day=21):
        """What is said at a time of the day, by the follower that is there, or a new one."""
        hour, _, minute = time.partition(":")
        self.now = START.replace(day=day, hour=int(hour), minute=int(minute))
        self.open = self.open or self.release.follow()
        return [str(one) if isinstance(one, WpinqError) else (one.period, one.done) for one in self.open.step()]

    def away(self):
        """The process ends."""
        if self.open is not None:
            self.open.close()
        self.open = None

    def out(self):
        """What was published."""
        return {path.parent.name[-2:]: dict(pl.read_csv(path).sort("page").select("page", pl.nth(1)).rows())
                for path in sorted(self.home.glob("out/*/views.csv"))}  # fmt: skip


@pytest.fixture
def site(tmp_path):
    one = Site(tmp_path)
    yield one
    one.away()


def test_each_hour_is_published_when_the_clock_has_closed_it(site):
    site.viewed(("/a", "09:10"), ("/a", "09:20"))
    assert site.look("9:30") == []
    site.viewed(("/b", "10:00"), ("/a", "09:59"))
    assert site.look("10:00") == []  # it may still be late
    assert site.look("10:01") == [("2026-11-21T09", "published")]
    assert site.look("10:02") == []
    site.viewed(("/a", "09:30"), ("/b", "10:30"))  # the first is too late
    assert site.look("11:01") == [("2026-11-21T10", "published")]
    assert site.look("12:01") == [("2026-11-21T11", "published")]  # nobody came, and that is published too
    assert site.out() == {"09": {"/a": 3, "/b": 0}, "10": {"/a": 0, "/b": 2}, "11": {"/a": 0, "/b": 0}}
    assert site.release.verify("2026-11-21T10") == []


def test_killed_while_its_ledger_was_made_it_goes_on(site):
    killed_while_made(site.home / "ledger")
    site.viewed(("/a", "09:10"))
    assert site.look("10:01") == [("2026-11-21T09", "published")]
    assert site.out() == {"09": {"/a": 1, "/b": 0}}


def test_no_record_opens_or_closes_a_period(site):
    """One with a wrong time would, if periods followed from records: whether it is there would be told."""
    for wrong in ("1970-01-01 00:00", "2020-11-21 09:00", "2026-11-21 13:10", "2999-01-01 00:00", "", "nonsense"):
        with site.log.open("a") as log:
            log.write(f"u,/a,{wrong}\n")
    assert site.look("9:30") == []
    assert not (site.home / "ledger").exists()
    assert site.look("10:01") == [("2026-11-21T09", "published")]
    assert site.out() == {"09": {"/a": 0, "/b": 0}}


def test_nothing_is_lost_while_the_process_is_away(site):
    site.viewed(("/a", "09:10"))
    site.look("9:30")
    site.away()
    site.viewed(("/a", "09:50"), ("/b", "10:10"), ("/a", "11:10"), ("/a", "12:10"))
    assert [name[-2:] for name, _ in site.look("12:30")] == ["09", "10", "11"]
    site.away()
    assert site.look("13:01") == [("2026-11-21T12", "published")]
    assert [site.out()[hour]["/a"] for hour in ("09", "10", "11", "12")] == [2, 0, 1, 1]


def killed(*options):
    """What kills_follow.py finds: a look at a time is killed (SIGKILL) at some durable steps, and begun again."""
    command = [sys.executable, Path(__file__).with_name("kills_follow.py"), "--together", *options]
    done = processes.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout)["kills"]


def test_killed_at_durable_steps_it_publishes_each_hour_once():
    """A few of them, over a log; the long mode has all, and random moments."""
    assert killed("--stride", "29") >= 4


@deep
@pytest.mark.slow
def test_killed_at_durable_steps_it_publishes_each_hour_of_a_topic_once():
    pytest.importorskip("confluent_kafka", reason="wpinq[kafka] is not installed")
    assert killed("--topic", "--stride", "35") >= 3


def test_a_budget_that_ends_is_said_once_and_records_are_kept(site):
    said = [site.look(f"{hour}:01") for hour in range(10, 19)]
    assert [len(one) for one in said] == [1, 1, 1, 1, 1, 1, 1, 0, 0]
    assert "epsilon" in said[6][0]
    assert len(site.out()) == 6
    assert [one.stage for one in site.release.status()].count("refused") == 1
    with pytest.raises(BudgetError):
        site.release.run("2026-11-21T16")


def test_records_are_kept_for_as_many_periods_as_the_file_says(tmp_path):
    site = Site(tmp_path, keep=1)
    for hour in (10, 11, 12):
        site.look(f"{hour}:01")
    site.away()
    assert [one.name for one in (tmp_path / "ledger.stream" / "site").glob("2*")] == ["2026-11-21T11"]


def test_a_clock_that_jumps_closes_nothing(site):
    """A year ahead would close, and charge for, 8,760 hours in which nobody came."""
    ticks = [0.0]
    site.open = Follower(site.release._publisher, ticks=lambda: ticks[0])
    site.viewed(("/a", "09:10"))
    assert site.look("9:30") == []
    for day in (20, 25):
        with pytest.raises(SourceError, match=r"from 2026-11-21 09:30 to 2026-11-\d+ 10:01 within 0 seconds; nothing"):
            site.look("10:01", day=day)
    assert not (site.home / "ledger").exists()
    ticks[0] += 31 * 60
    assert site.look("10:01") == [("2026-11-21T09", "published")]


def test_one_process_follows(site):
    site.look("9:30")
    with pytest.raises(BusyError, match="another process follows"):
        site.release.follow()


def test_a_log_that_goes_away_is_said_and_read_on_when_it_is_back(site):
    site.viewed(("/a", "09:10"))
    site.look("9:30")
    site.log.rename(site.home / "aside")
    with pytest.raises(SourceError):
        site.look("9:31")
    (site.home / "aside").rename(site.log)
    site.viewed(("/a", "09:20"))
    site.look("10:01")
    assert site.out()["09"]["/a"] == 2


@pytest.mark.parametrize(("change", "message"), [
    ({"stream": {"at": "page"}}, "no column of times"),
    ({"stream": {"at": "when"}}, "no column of times"),
    ({"stream": {"every": 0}}, "every is above zero"),
    ({"stream": {"lateness": -1}}, "lateness is from 0 to 31,622,400 seconds"),
    ({"stream": {"lateness": 1e30}}, "lateness is from 0 to"),
    ({"stream": {"every": float("inf")}}, "lateness is from 0 to"),
    ({"stream": {"keep": -1}}, "keep is not negative"),
    ({"data": {"source": "a\0b", "ledger": "ledger"}}, "holds a NUL"),
    ({"stream": None}, "every period would read the same"),
    ({"stream": None, "data": {"source": "kafka://b:1/t", "ledger": "ledger"}}, "a topic is followed"),
    ({"data": {"source": "{date}.csv", "ledger": "ledger"}}, "no query, table or"),
    ({"alerts": {"webhook": "ftp://host/x"}}, "alerts.webhook: write http"),
    ({"alerts": {"webhook": "http:///x"}}, "alerts.webhook: write http"),
    ({"alerts": {"webhook": "https://host/x", "below": 1}}, "between 0 and 1"),
])  # fmt: skip
def test_what_cannot_be_followed_is_refused(site, change, message):
    with pytest.raises(PlanError, match=message):
        Release(site.given | change, "site", site.home, clock=lambda: START).follow()


def test_a_release_without_a_stream_is_not_followed(site):
    given = site.given | {"stream": None, "data": {"source": "{date}.csv", "ledger": "ledger"}}
    with pytest.raises(PlanError, match=r"no \[stream\]"):
        Release(given, "site", site.home).follow()


def test_prices_are_told_before_there_is_a_record(site):
    assert site.release.plan().price.epsilon == EXACT


def test_a_topic_is_published_by_the_time_of_its_records(tmp_path):
    confluent = pytest.importorskip("confluent_kafka", reason="wpinq[kafka] is not installed")
    producer = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0})
    broker = next(f"{one.host}:{one.port}" for one in producer.list_topics(timeout=10).brokers.values())

    def sent(*views):
        for number, (page, time) in enumerate(views):
            producer.produce("views", json.dumps({"user": f"u{number}", "page": page, "time": f"2026-11-21 {time}"}))
        assert producer.flush(10) == 0

    site = Site(tmp_path, source=f"kafka://{broker}/views")
    sent(("/a", "09:10"), ("/a", "10:10"))
    assert site.look("9:30") == []
    site.away()
    sent(("/a", "09:50"))
    assert site.look("10:01") == [("2026-11-21T09", "published")]
    site.away()
    assert site.look("11:01") == [("2026-11-21T10", "published")]
    site.away()
    assert [site.out()[hour]["/a"] for hour in ("09", "10")] == [2, 1]


def test_the_command_says_lines_of_json_and_writes_figures(tmp_path):
    log = tmp_path / "views.csv"
    log.write_text("user,page,time\nann,/a,2026-01-05 10:00:00\n")
    (tmp_path / "site.toml").write_text("""
[data]
source = "views.csv"
ledger = "ledger"
columns = { user = "text", page = "text", time = "timestamp" }
[stream]
at = "time"
[budget]
epsilon = 2
[period]
every = "year"
first = "2025"
[[question]]
name = "views"
counts = ["page"]
keys = ["/a"]
epsilon = 2
plot = false
[[sink]]
directory = "out/{date}"
""")
    unnamed = tmp_path / "unnamed.toml"
    unnamed.write_text((tmp_path / "site.toml").read_text().replace('first = "2025"\n', ""))
    words = ["publish", "follow", str(unnamed), "--once"]
    assert (
        f"The first period is {dt.datetime.now(dt.UTC).year}; no earlier record"
        in CliRunner().invoke(app, words).output
    )
    assert "The first period" not in CliRunner().invoke(app, words).output
    fresh = tmp_path / "fresh.toml"
    fresh.write_text(unnamed.read_text().replace("[data]", 'name = "fresh"\n[data]').replace('"ledger"', '"other"'))
    (line,) = CliRunner().invoke(app, ["publish", "follow", str(fresh), "--once", "--log-json"]).output.splitlines()
    assert json.loads(line)["message"].startswith("The first period is")
    figures = tmp_path / "figures.prom"
    done = CliRunner().invoke(
        app, ["publish", "follow", str(tmp_path / "site.toml"), "--once", "--log-json", "--metrics-file", str(figures)]
    )
    assert done.exit_code == 0, done.output
    first = json.loads(done.output.splitlines()[0])
    assert (first["release"], first["event"], first["period"]) == ("site", "published", "2025")
    assert 'wpinq_publish_periods{release="site",stage="published"} 1.0' in figures.read_text()
    assert 'wpinq_publish_budget_left{release="site"} 0.0' in figures.read_text()


def test_a_log_without_a_header_loses_and_shows_no_record(tmp_path, capsys):
    site = Site(tmp_path)
    site.given["data"]["header"] = False
    site.log.write_text("")
    site.viewed(("/a", "09:10"), ("/b", "09:20"))
    assert site.look("10:01") == [("2026-11-21T09", "published")]
    assert site.out() == {"09": {"/a": 1, "/b": 1}}
    site.away()
    assert "u0" not in "".join(capsys.readouterr())


def test_what_was_rotated_before_the_first_start_is_filled_in(site):
    import gzip

    head = "user,page,time\n"
    with gzip.open(site.home / "views.csv.2.gz", "wb") as old:
        old.write((head + "a,/a,2026-11-21 09:01\nb,/a,2026-11-21 08:59\n").encode())
    (site.home / "views.csv.1").write_text(head + "c,/b,2026-11-21 09:02\nd,/a,2026-11-21 10:01\n")
    site.viewed(("/a", "10:30"))
    assert site.look("11:05") == [("2026-11-21T09", "published"), ("2026-11-21T10", "published")]
    assert site.out() == {"09": {"/a": 1, "/b": 1}, "10": {"/a": 2, "/b": 0}}
    site.away()
    site.viewed(("/b", "11:10"))
    assert site.look("12:05") == [("2026-11-21T11", "published")]
    assert site.out()["11"] == {"/a": 0, "/b": 1}


def test_late_records_are_counted_in_the_next_period_where_that_was_said(site):
    site.given["stream"]["late"] = "next"
    site.viewed(("/a", "09:10"))
    assert site.look("10:05") == [("2026-11-21T09", "published")]
    site.viewed(("/a", "09:50"), ("/b", "08:50"), ("/a", "10:10"))  # what was before the first period never counts
    assert site.look("11:05") == [("2026-11-21T10", "published")]
    assert site.out()["10"] == {"/a": 2, "/b": 0}
    site.given["data"]["unit"] |= {"period": "1h", "at": "time"}
    with pytest.raises(PlanError, match="counts records of one period in another"):
        _ = site.release
