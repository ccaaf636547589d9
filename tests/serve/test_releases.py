"""Published releases over HTTP: each period that `wpinq publish` has closed and published, and none before."""

import datetime as dt
import json
import re

import polars as pl
import pytest
from serving import CONFIG, Visitor, serving, written

import wpinq
from wpinq.apps.publish import Release
from wpinq.errors import SourceError

FILE = """
name = "hourly"
[data]
source = "log.csv"
ledger = "books"
unit = { column = "user", at_most = 9 }
columns = { user = "text", page = "text", time = "timestamp" }
[stream]
at = "time"
[period]
every = "hour"
first = "2026-11-21T09"
[budget]
epsilon = 100
[[question]]
name = "views"
sql = "SELECT page, COUNT(*) AS views FROM data GROUP BY page"
keys = ["a", "b"]
epsilon = 10
plot = false
[[sink]]
directory = "out/{date}"
"""
START = dt.datetime(2026, 11, 21, 9, tzinfo=dt.UTC)


class Stream:
    """A log that grows, followed by its release; a clock."""

    def __init__(self, place):
        self.now, self.log = START, place / "log.csv"
        self.log.write_text("user,page,time\n")
        (place / "hourly.toml").write_text(FILE)
        self.release = Release.read(place / "hourly.toml", clock=lambda: self.now)
        self.follower = self.release.follow()

    def hour(self, number, *pages):
        """An hour goes by, in which these were viewed, and is closed."""
        with self.log.open("a") as log:
            log.writelines(f"u{at},{page},2026-11-21 {number:02}:10\n" for at, page in enumerate(pages))
        self.now = START.replace(hour=number, minute=30)
        list(self.follower.step())
        self.now = START.replace(hour=number + 1, minute=2)
        return [one.period for one in self.follower.step()]


SITE = CONFIG + '[release.site]\nfile = "hourly.toml"\ndata = "views"\n'


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A server of a release of which three hours were published."""
    place = written(tmp_path_factory.mktemp("releases"), SITE)
    stream = Stream(place)
    stream.hour(9, "a"), stream.hour(10, "b"), stream.hour(11)
    with serving(place) as asker:
        asker.stream = stream
        yield asker
    stream.follower.close()


def test_windows_are_served_as_they_close(tmp_path):
    stream = Stream(written(tmp_path, SITE))
    with serving(tmp_path) as site:
        comes(site, stream)
    stream.follower.close()


def comes(site, stream):
    release = wpinq.connect(site.url, site.token()).releases["site"]
    assert release.periods == [] and release.windows("views") == {}
    assert stream.hour(9, "a", "a", "b") == ["2026-11-21T09"]
    (period,) = release.periods
    assert (period.period, period.tables) == ("2026-11-21T09", ["views"])
    assert dt.datetime.fromisoformat(period.end) - dt.datetime.fromisoformat(period.start) == dt.timedelta(hours=1)
    following = release.follow("views", every=0)
    name, first = next(following)
    published = pl.read_csv(site.place / "out" / "2026-11-21T09" / "views.csv")
    assert (
        name == "2026-11-21T09"
        and first.frame.equals(published.rename({"views_low": "low", "views_high": "high"}))
        and first.about["start"] == period.start
    )
    low, high = first.intervals[0][1]
    assert first.intervals[0][0] is None and low < first.rows[0][1] < high
    assert stream.hour(10, "b") == ["2026-11-21T10"] and stream.hour(11) == ["2026-11-21T11"]
    assert [next(following)[0], next(following)[0]] == ["2026-11-21T10", "2026-11-21T11"]  # and each once
    assert list(release.windows("views", after="2026-11-21T10")) == ["2026-11-21T11"]
    assert release.windows("views", after="2026-11-21T11") == {}
    assert json.loads(release.file("2026-11-21T10", "evidence.json"))["period"]["name"] == "2026-11-21T10"


def test_long_answers_come_in_pieces(followed, monkeypatch):
    site = followed
    monkeypatch.setattr("wpinq.apps.serve.releases.WINDOWS", 2)
    release = wpinq.connect(site.url, site.token()).releases["site"]
    told = site.ask(site.token(), "POST", "/api/releases/site/windows", {"table": "views"}).body
    assert len(told["windows"]) == 2 and told["more"] is True
    assert len(release.windows("views")) == 3


def test_a_page_shows_windows_and_files(followed):
    visitor = Visitor(followed, followed.token())
    told = followed.ask(visitor.token, "POST", "/api/releases/site/windows", {"table": "views"}).body["windows"]
    page = visitor.get("/releases/site", table="views", group="b").text
    shown = re.findall(r"<td[^>]*>(2026[^<]*)</td><td[^>]*>([ab])</td><td[^>]*>(-?\d+) ±", page)
    wanted = [(one["period"], group, str(count)) for one in told[::-1] for group, count in one["rows"]]
    assert shown == wanted and "<option selected>b</option>" in page and "<polyline" in page
    path = "/releases/site/2026-11-21T09/views.csv"
    assert path in page and visitor.get(path).headers["content-disposition"].startswith("attachment")
    assert visitor.get("/releases/site", table="none").status == 403


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("site/windows", {"table": "none"}, 403),
        ("site/windows", {"table": "../ledger"}, 403),
        ("site/windows", {"table": "views", "before": "x"}, 422),
        ("site/windows", {"table": "views", "after": "zzz"}, 200),
        ("nope/windows", {"table": "views"}, 403),
        ("site/2026-11-21T09/..%2f..%2fledger", None, 404),
        ("site/..%2f..%2f/views.csv", None, 404),
        ("site/2026-11-21T09/%2e%2e", None, 403),
        ("site/../ledger", None, 403),
        ("site/2026-11-21T23/views.csv", None, 403),
        ("site/2026-11-21T09/.hidden", None, 403),
    ],
)
def test_what_was_not_published_is_not_served(followed, path, body, status):
    found = followed.ask(followed.token(), "GET" if body is None else "POST", f"/api/releases/{path}", body)
    assert found.status == status and b"books" not in found.raw


def test_a_release_is_for_tokens_of_its_data_set_and_its_files_are_those_that_were_published(followed):
    site = followed
    site.stream.hour(12, "a")
    assert site.ask(site.token(data=("hidden",)), "GET", "/api/releases/site").status == 403
    place = site.place / "books.published" / "hourly" / "2026-11-21T12" / "views.csv"
    place.write_bytes(place.read_bytes().replace(b"a,", b"a,9"))
    release = wpinq.connect(site.url, site.token()).releases["site"]
    with pytest.raises(SourceError):
        release.file("2026-11-21T12", "views.csv")
    with pytest.raises(SourceError):
        release.windows("views", after="2026-11-21T11")
