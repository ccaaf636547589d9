"""A question that takes too much is refused by the process in which it is priced first, and nobody else notices.

Kinds: planted questions that never end, take all memory, or end the process; what the process is told.
"""

import datetime as dt
import os
import time
from pathlib import Path
from subprocess import Popen

import msgspec
import pytest
from serving import serving, written

from wpinq.apps.remote.wire import Sql
from wpinq.apps.serve import rehearsal
from wpinq.apps.serve.refusals import RefusedError
from wpinq.apps.serve.rehearsal import Rehearsal, staged
from wpinq.apps.serve.tokens import Grant

SQL = "SELECT page, COUNT(*) AS views FROM views GROUP BY page"
GRANT = Grant("", "ann", ("views",), dt.datetime.now(dt.UTC), dt.datetime.now(dt.UTC))
ASKED = {"query": SQL, "epsilon": "1", "keys": ["/a"], "dry": True}


def children():
    """The processes of rehearsals that this one has begun."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words, status = place.read_bytes(), place.with_name("stat").read_text()
        except OSError:
            continue
        if b"rehearsing" in words and status.rpartition(")")[2].split()[1] == str(os.getpid()):
            found.append(int(place.parent.name))
    return found


@pytest.fixture
def site(tmp_path):
    with serving(written(tmp_path)) as asker:
        yield asker


@pytest.fixture
def apart(site, monkeypatch):
    """Rehearsals are processes of their own, as everywhere but in tests (`processes.py`)."""
    monkeypatch.setattr(rehearsal, "Popen", Popen)


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.setattr(rehearsal, "MODULE", "rehearsing_planted")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.parametrize("way", ["slow", "large", "dies"])
def test_what_takes_too_much_is_refused_and_the_next_is_answered(way, planted, site):
    token = site.token(cap=10)
    assert site.ask(token, "POST", "/api/sql", ASKED).status == 200
    for query in (f"SELECT COUNT(*) AS {way} FROM views", f"EXPLAIN SELECT COUNT(*) AS {way} FROM views"):
        for dry in (True, False):
            begun = time.process_time()
            answer = site.ask(token, "POST", "/api/sql", {"query": query, "epsilon": "1", "dry": dry})
            assert (answer.status, answer.body["error"]["message"]) == (413, rehearsal.TOO_MUCH)
            assert time.process_time() - begun < 0.9, "the server never began it"
    assert site.ask(token, "GET", "/api/budget").body["data"][0]["own"] == "10", "nothing was charged"
    assert site.ask(token, "POST", "/api/sql", ASKED).status == 200


def test_one_process_prices_all_and_ends_with_the_server(tmp_path, monkeypatch):
    before = children()
    with serving(written(tmp_path)) as site:
        monkeypatch.setattr(rehearsal, "Popen", Popen)
        token = site.token(cap=10)
        assert children() == before, "it begins with the first question"
        plan = {"plan": [{"do": "table", "name": "views"}], "epsilon": "1", "dry": True}
        for path, body in (("/api/sql", ASKED), ("/api/sql", {**ASKED, "query": f"EXPLAIN {SQL}"}),
                           ("/api/measure", plan), ("/api/sql", {**ASKED, "query": "SELECT nothing"})):  # fmt: skip
            site.ask(token, "POST", path, body)
            assert len(children()) == len(before) + 1
        (mine,) = set(children()) - set(before)
        os.kill(mine, 9)
        settled(before)
        assert site.ask(token, "POST", "/api/sql", ASKED).status == 200, "another one is begun"
    settled(before)


def settled(before):
    """Wait until there are these processes and no other."""
    until = time.monotonic() + 60
    while children() != before:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.usefixtures("apart")
def test_who_has_no_cap_begins_no_process(site):
    before = children()
    assert site.ask(site.token("bob"), "POST", "/api/sql", ASKED).status == 409
    assert children() == before


@pytest.mark.usefixtures("apart")
def test_it_is_told_names_and_types_and_nothing_else(site, monkeypatch):
    text = msgspec.json.encode(staged(site.catalogue)).decode()
    assert '"columns":{"user":"text","page":"text","size":"integer"}' in text
    assert not any(word in text for word in ("ledger", "views.csv", "tokens", "script.py", str(site.place)))
    monkeypatch.setenv("WPINQ_SECRET", "5e" * 32)
    with Rehearsal() as process:
        process.insist(site.catalogue, GRANT, Sql(query=SQL, epsilon="1", keys=["/a"]))
        environment = Path(f"/proc/{process._process.pid}/environ").read_bytes()
    assert b"WPINQ_SECRET" not in environment


def test_what_is_priced_and_then_asked_is_rehearsed_once_for_each_analyst(site, monkeypatch):
    """By the time of a price nobody shall learn what another analyst asked."""
    lines, answers = [], Rehearsal._answers
    monkeypatch.setattr(Rehearsal, "_answers", lambda self, line: (lines.append(line), answers(self, line))[1])
    for name in ("ann", "bob"):
        token = site.token(name, cap=10)
        for dry in (True, False, True):
            assert site.ask(token, "POST", "/api/sql", {**ASKED, "dry": dry}).status == 200
        assert site.ask(token, "POST", "/api/sql", {**ASKED, "epsilon": "2"}).status == 200
    _stage, *questions = lines
    assert len(questions) == 4 and len(set(questions)) == 2


@pytest.mark.usefixtures("apart")
def test_a_process_that_cannot_begin_refuses_all(site, monkeypatch):
    monkeypatch.setattr(rehearsal, "MODULE", "no_such_module")
    with Rehearsal() as process, pytest.raises(RefusedError) as refusal:
        process.insist(site.catalogue, GRANT, Sql(query=SQL, epsilon="1"))
    assert refusal.value.status == 503
