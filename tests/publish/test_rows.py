"""The records of a period are the period, whatever files hold them: growing, rotated, compressed, with late lines."""

import datetime as dt
import gzip
import threading
import warnings

import pytest

from tests.publish.test_release import given
from wpinq.apps.publish import ChangedError, Release
from wpinq.core.ledger import Ledger
from wpinq.errors import PlanError, SourceError

NOW = dt.datetime(2026, 12, 2, 6, tzinfo=dt.UTC)
QUESTION = {"name": "v", "sql": "SELECT page, COUNT(DISTINCT host) AS v FROM data GROUP BY page",
            "keys": ["/a", "/b", "/c"], "epsilon": 1, "plot": False}  # fmt: skip
WHERE = "time >= '{start}' and time < '{end}'"


def line(day, month="Oct", host="10.0.0.1", page="/a"):
    return f'{host} - - [{day:02}/{month}/2026:10:00:00 +0000] "GET {page} HTTP/1.1" 200 1 "-" "M"\n'


OCTOBER = [line(1 + one % 30, host=f"10.0.0.{one % 200}", page="/" + "abc"[one % 3]) for one in range(2000)]


class Site:
    """A log, a release over it and a clock."""

    def __init__(self, home):
        self.home, self.log, self.now = home, home / "logs" / "access.log", NOW
        self.log.parent.mkdir()
        self.log.write_text("".join(OCTOBER))

    def release(self, **changes):
        data = {"source": "logs/access.log*", "where": WHERE, "ledger": "ledger",
                "unit": {"column": "host", "at_most": 20, "per": {"page": 1}}} | changes.pop("data", {})  # fmt: skip
        data = {name: one for name, one in data.items() if one is not None}
        file = given(data=data, budget={"epsilon": 12}, period={"every": "month"} | changes.pop("period", {}),
                     question=[QUESTION], sink=[{"directory": "pub/{date}"}])  # fmt: skip
        return Release(file | changes, "site", self.home, clock=lambda: self.now)

    def run(self, period="2026-10", **words):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            done = self.release().run(period, **words).done
        return done, [str(one.message) for one in told]

    def verified(self, period="2026-10"):
        return self.release().verify(period)

    def append(self, *lines):
        with self.log.open("a") as file:
            file.write("".join(lines))

    def zip(self, path):
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes())
        path.unlink()

    def state(self):
        """What a program that copies what was published would see, and what lies beside the ledger."""
        files = [path for path in self.home.rglob("*") if path.is_file() and "logs" not in path.parts]
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


AGAIN = ("was published before", [])


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_what_is_of_another_period_or_another_file_is_nothing(site):
    assert site.run() == ("published", [])
    site.append(line(1, "Nov"))
    assert site.run() == AGAIN
    assert site.verified() == []
    site.log.rename(site.log.with_name("access.log.1"))
    site.append(line(2, "Nov"))
    assert site.run() == AGAIN
    site.zip(site.log.with_name("access.log.1"))
    assert site.run() == AGAIN
    assert site.verified() == []
    with gzip.open(site.log.with_name("access.log.1.gz")) as file:
        half = file.read().splitlines(keepends=True)
    site.log.with_name("access.log.1.gz").unlink()
    site.log.with_name("access.log.2").write_bytes(b"".join(half[1000:]))  # other files, and another order
    site.log.with_name("access.log.3").write_bytes(b"".join(reversed(half[:1000])))
    site.zip(site.log.with_name("access.log.3"))
    assert site.run() == AGAIN
    assert site.verified() == []
    assert site.run("2026-11") == ("published", [])


def test_a_log_that_grows_meanwhile_is_read_as_it_was_when_it_was_opened(site):
    stop = threading.Event()

    def grow():
        while not stop.wait(0.002):
            site.append(line(1, "Nov") * 3)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        assert site.run() == ("published", [])
        assert site.run() == AGAIN
    finally:
        stop.set()
        thread.join()
    assert site.verified() == []


def test_a_log_that_is_rotated_while_it_is_read_is_what_it_was(site):
    from wpinq.sources import open_source
    from wpinq.sources.kept import kept

    reader = kept(lambda: open_source(str(site.log)))
    whole = sum(frame.height for frame in reader.batches(["page"]))
    site.append(line(1, "Nov") * 10)
    site.log.rename(site.log.with_name("access.log.1"))
    site.append(line(2, "Nov"))
    site.zip(site.log.with_name("access.log.1"))
    assert sum(frame.height for frame in reader.batches(["page"])) == whole
    reader.check()
    other = kept(lambda: open_source(str(site.log)))
    site.log.write_text("")  # cut: what was there is gone
    with pytest.raises(ChangedError):
        list(other.batches(["page"]))


def test_what_gzip_leaves_beside_its_file_is_not_counted_twice(site):
    assert site.run() == ("published", [])
    site.log.rename(site.log.with_name("access.log.1"))
    with gzip.open(site.log.with_name("access.log.1.gz"), "wb") as file:
        file.write(site.log.with_name("access.log.1").read_bytes())
    site.append(line(2, "Nov"))
    assert site.run() == AGAIN


@pytest.mark.parametrize("late", [line(3), OCTOBER[0].replace(' "M"', ' "N"')], ids=["a line more", "another agent"])
def test_a_late_line_is_told_and_nothing_else_happens(site, late):
    site.run()
    assert site.run() == AGAIN
    before = site.state()
    site.append(late)
    done, told = site.run()
    assert done == "was published before"
    assert [one for one in told if "2026-10" in one and "changed since it was published" in one]
    assert site.state() == before
    assert site.release().late() == ["2026-10"]
    assert site.state() == before
    with pytest.raises(ChangedError, match="other records than were published"):
        site.verified()


def test_before_it_is_published_late_lines_need_a_word(site, monkeypatch):
    from wpinq.apps.publish import publisher

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(publisher, "compose", killed)
        site.run()
    site.append(line(5, "Nov"))  # nothing
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(publisher, "compose", killed)
        site.run()
    rows = len(Ledger.existing(site.home / "ledger").entries())
    site.append(line(5))
    with pytest.raises(ChangedError, match="--again"):
        site.run()
    assert len(Ledger.existing(site.home / "ledger").entries()) == rows
    assert site.run(again=True) == ("published", [])


def test_the_short_form_is_the_long_one_by_the_clocks_of_its_zone(site):
    assert site.release(data={"where": None}, period={"at": "time"}).run("2026-10").done == "published"
    short = (site.home / "pub" / "2026-10" / "v.csv").read_bytes()
    edge = Site(site.home / "other") if (site.home / "other").mkdir() is None else None
    edge.log.write_text(
        '1.1.1.1 - - [30/Sep/2026:21:59:59 +0000] "GET /a HTTP/1.1" 200 1 "-" "M"\n'
        '1.1.1.2 - - [30/Sep/2026:22:00:00 +0000] "GET /a HTTP/1.1" 200 1 "-" "M"\n'
        '1.1.1.3 - - [31/Oct/2026:22:59:59 +0000] "GET /a HTTP/1.1" 200 1 "-" "M"\n'
        '1.1.1.4 - - [31/Oct/2026:23:00:00 +0000] "GET /a HTTP/1.1" 200 1 "-" "M"\n'
    )
    changes = {"data": {"where": "status = 200 -- of all"}, "period": {"at": "time", "zone": "Europe/Amsterdam"}}
    opening = edge.release(**changes)._publisher.opening
    period = edge.release(**changes).period("2026-10")
    reader = opening.rows(period)
    assert [row for frame in reader.batches(["host"]) for row in frame.rows()] == [("1.1.1.2",), ("1.1.1.3",)]
    zoned = edge.release(data={"where": None, "tz": "Europe/Amsterdam"}, period=changes["period"])
    reader = zoned._publisher.opening.rows(period)
    assert [row for frame in reader.batches(["host"]) for row in frame.rows()] == [("1.1.1.2",), ("1.1.1.3",)]
    assert short


def test_what_the_file_says_of_times_must_fit(site):
    with pytest.raises(PlanError, match="is no column of times"):
        site.release(data={"where": None}, period={"at": "page"}).plan("2026-10")
    with pytest.raises(PlanError, match="write the same"):
        site.release(data={"where": None, "tz": "Europe/Rome"}, period={"at": "time"}).plan("2026-10")
    with pytest.raises(PlanError, match=r"\[period\] which column"):
        site.release(data={"where": None})


def test_derived_columns_take_part(site):
    site.log.write_text("".join(OCTOBER).replace("/a ", "/A "))
    data = {"derive": {"page": "lower(page)", "month": "time"}, "where": "month >= '{start}' and month < '{end}' "
            "and page = '/a'"}  # fmt: skip
    release = site.release(data=data)
    reader = release._publisher.opening.rows(release.period("2026-10"))
    found = [row for frame in reader.batches(["page"]) for row in frame.rows()]
    assert found == [("/A",)] * sum(" /a " in one for one in OCTOBER)
    assert release.run("2026-10").done == "published"


def test_a_compressed_log_that_is_cut_off_costs_nothing(site):
    site.zip(site.log)
    path = site.log.with_name("access.log.gz")
    path.rename(site.log.with_name("access.log.1.gz"))
    whole = site.log.with_name("access.log.1.gz").read_bytes()
    site.log.with_name("access.log.1.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match="damaged or cut off"):
        site.run()
    assert all(row.kind != "charge" for row in Ledger.existing(site.home / "ledger").entries())
    site.log.with_name("access.log.1.gz").write_bytes(whole)
    assert site.run() == ("published", [])


def test_a_large_log_is_compared_as_a_whole_though_threads_read_it(site, monkeypatch):
    for place in ("core.engines.select", "core.engines.reading", "core.runs.chosen_rows"):
        monkeypatch.setattr(f"wpinq.{place}.THREADED", 1000)
    for number in range(5):
        site.log.with_name(f"access.log.{number}").write_text(line(2, "Nov", f"10.9.0.{number}") * 2000)
    site.zip(site.log.with_name("access.log.4"))
    assert site.run() == ("published", [])
    monkeypatch.undo()
    assert site.run() == AGAIN
    assert site.verified() == []


def epsilons(site):
    return [row.epsilon for row in Ledger.existing(site.home / "ledger").entries() if row.kind == "charge"]


@pytest.mark.parametrize("late", [True, False])
def test_a_new_question_about_a_period_with_late_lines_waits_for_again_or_a_declared_day(site, late):
    """On a declared day it costs the same and is published the same way, whether or not anything came."""
    site.run()
    if late:
        site.append(line(3, host="10.9.9.9"))
    declared = {"every": "month", "again": ["2026-12-05"]}
    new = {**QUESTION, "name": "w", "sql": "SELECT page, COUNT(*) AS w FROM data GROUP BY page"}

    def asked():
        changes = {"question": [new], "period": declared, "sink": [{"directory": "new/{date}"}]}
        file = site.release(**changes).file
        return Release(file, "later", site.home, clock=lambda: site.now)

    if late:
        with pytest.raises(ChangedError, match="--again"):
            asked().run("2026-10")
        assert epsilons(site) == [1]
    site.now = dt.datetime(2026, 12, 5, 6, tzinfo=dt.UTC)
    assert asked().run("2026-10").done == "published" and epsilons(site) == [1, 1]
    versions = [row.version for row in Ledger.existing(site.home / "ledger").entries() if row.kind == "charge"]
    assert versions[0] != versions[1] and "2026-12-05" in versions[1]
    site.now += dt.timedelta(days=1)
    assert asked().run("2026-10").done == "was published before" and asked().verify("2026-10") == []
    assert site.run()[0] == "was published before" and epsilons(site) == [1, 1]


def test_days_of_again_are_days(site):
    with pytest.raises(PlanError, match=r"period.again: 'soon' is no day"):
        site.release(period={"again": ["soon"]})
