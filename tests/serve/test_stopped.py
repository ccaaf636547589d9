"""Data that are no more what was opened: nothing is charged, and analysts are told what they are told of any stop."""

import json
import re

import polars as pl
import pytest
from serving import Visitor

from wpinq.apps.serve.refusals import refusal
from wpinq.core.ledger import Ledger
from wpinq.core.plan.dataset import DataSet
from wpinq.errors import LedgerError, SourceError

REASON = "views.csv holds other records than those first read as views.csv on 2026-11-20"
ONE = {"query": "SELECT page, COUNT(*) AS c FROM views GROUP BY page", "keys": ["p1"], "epsilon": "0.1"}
PLAN = {"plan": [{"do": "table", "name": "views"}], "epsilon": "0.1"}


@pytest.fixture
def stop(monkeypatch):
    """Stops every data set when it is charged."""

    def stops(error):
        def refuses(self):
            raise error(REASON)

        monkeypatch.setattr(DataSet, "pin", refuses)

    return stops


def asked(site, token, path, body):
    found = site.ask(token, "POST", path, body)
    return found.status, {**found.headers, "content-length": ""}, found.raw


def typed(text):
    """A page without what is drawn anew for each session."""
    return re.sub(r'name="form" value="[^"]+"', "", text)


@pytest.mark.parametrize(("path", "body"), [("/api/sql", ONE), ("/api/measure", PLAN)])
def test_an_analyst_is_told_the_same_whatever_stopped_it_and_pays_nothing(site, stop, path, body, caplog):
    token, found = site.token("stopped", 5), []
    for number, error in enumerate((LedgerError, SourceError)):
        stop(error)
        before = Ledger.existing(site.place / "ledger").spent(), site.ask(token, "GET", "/api/budget").raw
        found.append(asked(site, token, path, {**body, "dry": False, "name": f"s{number}"}))
        after = Ledger.existing(site.place / "ledger").spent(), site.ask(token, "GET", "/api/budget").raw
        assert before == after and REASON in caplog.text  # the reason is in the curator's log
    assert found[0] == found[1] and found[0][0] == 503
    assert json.loads(found[0][2])["error"]["message"] == refusal(503).error.message
    assert site.ask(token, "GET", "/api/history").body["asked"] == []


@pytest.mark.parametrize(("path", "body"), [("/api/sql", ONE), ("/api/measure", PLAN), ("/ask", None)])
def test_a_panic_of_polars_is_a_failure_as_any_other_and_its_text_reaches_nobody(site, stop, path, body, caplog):
    """It is no Exception, so it went to uvicorn, which logged it with a traceback and said so in words of its own."""
    token = site.token("panicking", 5)
    browser = Visitor(site, token)
    stop(pl.exceptions.PanicException)
    if body is None:
        typing = {"query": ONE["query"], "keys": "p1", "epsilon": "0.2", "form": browser.form(), "do": "ask"}
        found = browser.post("/ask", **typing)
        assert found.status == 500
    else:
        found = site.ask(token, "POST", path, {**body, "epsilon": "0.2", "dry": False, "name": "panic"})
        assert found.status == 500
        assert found.body["error"]["message"] == refusal(500).error.message
    assert REASON not in str(found.raw) + caplog.text
    assert "Traceback" not in caplog.text
    assert "PanicException" in caplog.text


@pytest.mark.parametrize(("path", "body"), [("/api/sql", ONE), ("/api/measure", PLAN)])
def test_a_price_is_the_same_before_and_after_the_data_changed(site, stop, path, body):
    token = site.token("priced", 5)
    bodies = [{**body, "name": "p"}, {**body, "name": "p", "dry": True}]
    if path == "/api/sql":
        bodies.append({**body, "query": "EXPLAIN " + body["query"]})
    before = [asked(site, token, path, one) for one in bodies]
    stop(SourceError)
    assert [asked(site, token, path, one) for one in bodies] == before and before[0][0] == 200


def test_a_page_says_the_same(site, stop):
    browser, pages = Visitor(site, site.token("visitor", 5)), []
    typing = {"query": ONE["query"], "keys": "p1", "epsilon": "0.1", "form": browser.form()}
    prices = [browser.post("/ask", **typing).text]
    for error in (LedgerError, SourceError):
        stop(error)
        prices.append(browser.post("/ask", **typing).text)
        pages.append(browser.post("/ask", **typing, do="ask"))
    assert len({(one.status, typed(one.text)) for one in pages}) == 1 and pages[0].status == 503
    assert refusal(503).error.message in pages[0].text and "views.csv" not in pages[0].text
    assert len(set(map(typed, prices))) == 1 and "It costs" in prices[0]


def test_what_was_answered_before_stays_and_nothing_else_is_told(site, stop):
    """Where no file was replaced: what only reading shows is seen by what is computed."""
    token = site.token("early", 5)
    first = site.ask(token, "POST", "/api/sql", {**ONE, "dry": False, "name": "early"})
    looks = ("/api/measurements", "/api/budget", "/api/history", "/api/openapi.json", "/api/fits/degrees")
    before = [site.ask(token, "GET", path).raw for path in looks]
    stop(SourceError)
    assert [site.ask(token, "GET", path).raw for path in looks] == before
    assert site.ask(token, "POST", "/api/sql", {**ONE, "dry": False, "name": "early"}).raw == first.raw
    bins = {"bins": ["p1", "no such page"]}
    assert site.ask(token, "POST", "/api/measurements/views.pages/observe", bins).status == 200


def test_no_version_and_no_number_of_a_row_is_told_to_an_analyst(site):
    token = site.token("plain", 5)
    site.ask(token, "POST", "/api/sql", {**ONE, "dry": False, "name": "plain"})
    (row,) = site.ask(token, "GET", "/api/history").body["asked"]
    assert set(row) == {"at", "name", "analyst", "epsilon", "delta"}
