"""The next version of served data is opened when the clock names it, and never because a file changed."""

import datetime as dt
import threading
import time
from contextlib import contextmanager
from fractions import Fraction
from types import SimpleNamespace

import pytest
from serving import CONFIG, serving, written

from wpinq.apps.serve import turning
from wpinq.apps.serve.catalogue import opened
from wpinq.apps.serve.config import read
from wpinq.apps.serve.refusals import refusal
from wpinq.core.ledger import Ledger

HEAD = "user,page,size\n"
OWN = CONFIG.replace('[data.hidden]\nsource = "views.csv"', '[data.hidden]\nsource = "hidden.csv"')
DAILY = OWN.replace('dataflow = "script.py"', 'version = "{date}"\ndataflow = "script.py"', 1)
ONE = {"query": "SELECT page, COUNT(*) AS c FROM views GROUP BY page", "keys": ["p1"], "epsilon": "0.1"}
OTHER = {**ONE, "query": "SELECT COUNT(*) AS c FROM hidden", "keys": None}
OBSERVE = "/api/measurements/views.pages/observe"
DAY, TENTH = dt.timedelta(days=1), Fraction(1, 10)


@pytest.fixture
def site(tmp_path, clock):
    (tmp_path / "hidden.csv").write_text(HEAD + "bob,p1,3\n")
    with serving(written(tmp_path, DAILY)) as site:
        yield site


def today(days=0):
    return f"{dt.datetime.now(dt.UTC) + days * DAY:%Y-%m-%d}"


def spent(site):
    return Ledger.existing(site.place / "ledger").spent()[0]


def asked(site, token, **more):
    return site.ask(token, "POST", "/api/sql", {**ONE, "dry": False, **more})


def observed(site, token):
    return site.ask(token, "POST", OBSERVE, {"bins": [f"p{number}" for number in range(40)]})


@pytest.mark.parametrize("changed", [False, True])
def test_a_turn_opens_the_next_version_whether_the_file_changed_or_not(site, clock, changed):
    token = site.token(cap=50)
    first, bins = asked(site, token), observed(site, token)
    assert first.body["about"]["version"] == today() and asked(site, token, dry=True).body["price"]["free"]
    if changed:
        (site.place / "views.csv").write_text(HEAD + "ann,p1,3\n" * 9)
    before = spent(site)
    clock.set(clock.now + DAY)
    assert spent(site) == before + 3  # the script, for the next version
    assert not asked(site, token, dry=True).body["price"]["free"]
    second = asked(site, token)
    assert second.body["about"]["version"] == today(1) and spent(site) == before + 3 + TENTH
    assert observed(site, token).body["values"] != bins.body["values"]
    assert site.ask(token, "GET", "/api/fits/degrees").status == 200
    if changed:
        assert abs(observed(site, token).body["values"][1] - 4) < 60  # four records of ann, not 58 of many


def test_a_file_that_changes_is_opened_at_no_other_time(site, clock):
    token = site.token(cap=50)
    assert asked(site, token).status == 200
    before = spent(site)
    (site.place / "views.csv").write_text(HEAD + "ann,p1,3\n")
    for now in (clock.now, clock.now - 3 * DAY, clock.now):
        clock.set(now)
        assert asked(site, token).status == asked(site, token, name="next").status == 503 and spent(site) == before


@contextmanager
def measured(place, memory):
    """A server that keeps so many bytes of answers, a token, and what measures a plan, and observes one of its bins."""
    (place / "hidden.csv").write_text(HEAD + "bob,p1,3\n")
    with serving(written(place, f"{DAILY}\n[limits]\nmemory = {memory}\n")) as site:
        token = site.token(cap=50)
        plan = {"plan": [{"do": "table", "name": "views"}], "epsilon": "0.1", "dry": False}

        def measure():
            return site.ask(token, "POST", "/api/measure", plan)

        path = f"/api/measurements/{measure().body['measurement']['name']}/observe"
        yield site, token, measure, lambda: site.ask(token, "POST", path, {"bins": [["u1", "p1", 1]]})


@pytest.mark.parametrize("memory", [1, 10**8])
def test_which_answers_are_kept_does_not_show_where_a_file_was_replaced(tmp_path, clock, memory):
    """Which are kept follows from how large they are, so from records: all are refused, and later all are free."""
    with measured(tmp_path, memory) as (site, token, measure, observe):

        def again():
            return [asked(site, token), observe(), measure()]

        first, fit, before = again(), site.ask(token, "GET", "/api/fits/degrees").raw, spent(site)
        file = tmp_path / "views.csv"
        times = file.stat()
        file.rename(tmp_path / "kept.csv")
        file.write_text(HEAD + "ann,p1,3\n")
        assert [answer.status for answer in again()] == [503] * 3
        assert observed(site, token).status == 200 and site.ask(token, "GET", "/api/fits/degrees").raw == fit
        (tmp_path / "kept.csv").replace(file)
        assert file.stat().st_mtime_ns == times.st_mtime_ns
        assert [answer.raw for answer in again()] == [answer.raw for answer in first] and spent(site) == before


def test_a_clock_that_is_set_back_opens_nothing(site, clock):
    token = site.token(cap=50)
    clock.set(clock.now + DAY)
    second = asked(site, token)
    clock.set(clock.now - DAY)
    assert asked(site, token).raw == second.raw and second.body["about"]["version"] == today(1)


def gone(place):
    (place / "views.csv").unlink()


def damaged(place):
    (place / "views.csv").write_bytes(b"\xff\xfe\x00")


def renamed(place):
    (place / "views.csv").write_text("person,page,size\n" + "ann,p1,3\n")


@pytest.mark.parametrize("spoil", [gone, damaged, renamed])
def test_what_cannot_be_opened_is_stopped_and_shows_nothing_but_that(site, clock, spoil, caplog):
    token, hidden = site.token(cap=50), site.token("eve", data=["hidden"])
    Ledger.existing(site.place / "ledger.hidden").cap("eve", 5)
    asked(site, token)
    good, before = (site.place / "views.csv").read_bytes(), spent(site)
    (listed, *_) = looks = [site.ask(token, "GET", path).raw for path in ("/api/measurements", "/api/history")]
    spoil(site.place)
    clock.set(clock.now + DAY)
    for found in (asked(site, token), asked(site, token, name="x"), observed(site, token)):
        assert found.status == 503 and found.body["error"]["message"] == refusal(503).error.message
    assert site.ask(token, "GET", "/api/fits/degrees").status == 503
    assert spent(site) == before and today(1) in caplog.text
    assert [site.ask(token, "GET", path).raw for path in ("/api/measurements", "/api/history")] == looks
    price = asked(site, token, dry=True)
    assert price.status == 200 and not price.body["price"]["free"]
    assert site.ask(hidden, "POST", "/api/sql", {**OTHER, "dry": False}).status == 200
    (site.place / "views.csv").write_bytes(good)
    clock.set(clock.now)
    assert asked(site, token).status == 503  # nor is it opened because the file changed
    clock.set(clock.now + DAY)
    assert asked(site, token).body["about"]["version"] == today(2) and spent(site) == before + 3 + TENTH
    assert observed(site, token).status == 200 and site.ask(token, "GET", "/api/measurements").raw == listed


def test_a_price_is_the_same_whether_the_next_version_could_be_opened(tmp_path, clock):
    config, prices = f"{DAILY.partition('dataflow')[0]}bounds = {{ size = [0, 100] }}\n", []
    for name in ("opened", "stopped"):
        (tmp_path / name).mkdir()
        with serving(written(tmp_path / name, config)) as site:
            token = site.token(cap=50)
            asked(site, token)
            if name == "stopped":
                gone(site.place)
            clock.set(clock.now + DAY)
            prices.append(asked(site, token, dry=True).raw)
            assert asked(site, token).status == (503 if name == "stopped" else 200)
        clock.now = dt.datetime.now(dt.UTC)
    assert prices[0] == prices[1]


def test_questions_are_answered_from_what_was_opened_until_the_next_is(site, clock, monkeypatch):
    token, go, came, renewed = site.token(cap=50), threading.Event(), threading.Event(), turning.renewed

    def slow(*given):
        came.set()
        go.wait(30)
        return renewed(*given)

    monkeypatch.setattr(turning, "renewed", slow)
    first = asked(site, token)
    clock.now += DAY
    assert came.wait(30)
    assert asked(site, token).raw == first.raw and asked(site, token, name="y").body["about"]["version"] == today()
    go.set()
    end = time.monotonic() + 30
    while asked(site, token).body["about"]["version"] != today(1) and time.monotonic() < end:
        time.sleep(0.02)
    assert asked(site, token).body["about"]["version"] == today(1)


@pytest.mark.parametrize("memory", [1, 10**8])
def test_a_measurement_of_the_version_before_is_not_observed_and_never_charged_for_the_next(tmp_path, clock, memory):
    """It was answered as long as its counts were kept, which follows from records, and where its file was there."""
    with measured(tmp_path, memory) as (site, _, measure, observe):
        name = measure().body["measurement"]["name"]
        assert observe().status == 200
        (tmp_path / "views.csv").write_text(HEAD + "ann,p1,3\n")
        clock.set(clock.now + DAY)
        before = spent(site)
        assert observe().status == 403
        assert measure().body["measurement"]["name"] != name and spent(site) == before + TENTH


def test_the_clock_is_that_of_the_declared_zone(tmp_path):
    """In Tokyo the next day begins at 15:00 UTC."""
    (tmp_path / "views.csv").write_text("user,at\nann,2026-11-24T10:00:00Z\n")
    (tmp_path / "site.toml").write_text(
        '[data.views]\nsource = "views.csv"\nledger = "ledger"\nbudget = 9\nversion = "day {date}"\n'
        'tz = "Asia/Tokyo"\ncolumns = { user = "text", at = "instant" }\n'
    )
    catalogue = opened(read(tmp_path / "site.toml"))
    start = dt.datetime.now(dt.UTC).replace(hour=14, minute=59) + 2 * DAY
    site, times = SimpleNamespace(catalogue=catalogue), [start]
    turns = turning.Turning(site, lambda: times[-1])
    names = []
    for minutes in (0, 1, 9 * 60, 24 * 60 + 1):
        times.append(start + dt.timedelta(minutes=minutes))
        turns.turn()
        names.append(site.catalogue.data["views"].version)
    assert names == [f"day {start:%Y-%m-%d}", *[f"day {start + DAY:%Y-%m-%d}"] * 2, f"day {start + 2 * DAY:%Y-%m-%d}"]
