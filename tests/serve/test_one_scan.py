"""Questions of many analysts: each is charged at once, and one pass answers all that wait."""

import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from unittest.mock import patch

import pytest
from default_engine import flow
from serving import serving, written

from wpinq.core import kernels
from wpinq.core.engines import local
from wpinq.core.ledger import Ledger
from wpinq.core.runs import people_index

ANALYSTS = [f"analyst{number}" for number in range(8)]


def query(number, **more):
    return {"query": f"SELECT page, COUNT(*) AS c FROM views WHERE size > {number} GROUP BY page", "keys": ["p1", "p2"],
            "epsilon": "0.1", "dry": False, **more}  # fmt: skip


def plan(number):
    text = f"page || '{number}'"
    steps = [{"do": "table", "name": "views"}, {"do": "map", "of": 0, "function": {"is": "sql", "text": text}}]
    return {"plan": steps, "epsilon": "0.1", "dry": False}


@pytest.fixture
def runs(monkeypatch):
    """The plans of each run of the dataflow; a run waits while `go` is cleared."""
    plans, began, go = [], threading.Event(), threading.Event()
    go.set()

    def holding(run):
        def held(job, **more):
            plans.append(list(job.roots))
            began.set()
            assert go.wait(60)
            return run(job, **more)

        return held

    for engine in {flow, local}:
        monkeypatch.setattr(engine, "run", holding(engine.run))
    return plans, began, go


def asked(site, ask, began, go):
    """Ask all at once while the first run waits; go on once all are charged."""
    tokens = [site.token(name, cap=5) for name in ANALYSTS]
    ledger = Ledger.existing(site.place / "ledger")
    before = ledger.spent()[0]
    with ThreadPoolExecutor(len(ANALYSTS)) as pool:
        first = pool.submit(site.ask, tokens[0], *ask(0))
        assert began.wait(60)
        others = [pool.submit(site.ask, token, *ask(number)) for number, token in enumerate(tokens[1:], 1)]
        for _ in range(600):
            if ledger.spent()[0] >= before + len(ANALYSTS) * Fraction(1, 10):
                break
            threading.Event().wait(0.05)
        go.set()
        return [one.result() for one in (first, *others)]


@pytest.mark.parametrize(("path", "body"), [("/api/sql", query), ("/api/measure", plan)])
def test_eight_analysts_are_charged_at_once_and_answered_in_two_runs(runs, tmp_path, path, body):
    def ask(number):
        return "POST", path, body(number)

    plans, began, go = runs
    with serving(written(tmp_path, rows=40)) as site:
        before = len(plans)
        go.clear()
        began.clear()
        answers = asked(site, ask, began, go)
        assert [one.status for one in answers] == [200] * 8
        assert [len(roots) for roots in plans[before:]] == [1, 7], "the first, and all that were charged meanwhile"
        spent = Ledger.existing(site.place / "ledger").spent()
        again = [site.ask(site.token(name), *ask(number)) for number, name in enumerate(ANALYSTS)]
        assert [one.body for one in again] == [one.body for one in answers]
        assert Ledger.existing(site.place / "ledger").spent() == spent


@pytest.mark.skipif(kernels.LIB is None, reason="without compiled kernels nothing is indexed")
def test_records_by_person_are_kept_for_the_next_start_where_the_file_says_so(tmp_path):
    answers = []
    for start in range(3):
        written(tmp_path)
        config = tmp_path / "site.toml"
        if start < 2:
            config.write_text(config.read_text().replace("unit =", "index = true\nunit =", 1))
        with patch.object(people_index, "parts", side_effect=people_index.parts) as built, serving(tmp_path) as site:
            answers.append(site.ask(site.token(cap=5), "POST", "/api/sql", query(0)).body["rows"])
        assert built.call_count == (start != 1)
        assert len([path for path in tmp_path.iterdir() if ".people-" in path.name]) == 1
    assert answers[0] == answers[1] == answers[2]
