"""When dataflows run: once for all that wait, and no question fails or waits because of another one's plan."""

import threading
from functools import partial

import pytest
from default_engine import flow

import wpinq
from wpinq.core.engines import local
from wpinq.errors import EngineError, SourceError

ROWS = [("ann", "home"), ("bob", "home"), ("bob", "news")]


def protect(**more):
    return wpinq.protect(ROWS, budget=10**6, columns={"user": str, "page": str}, **more)


@pytest.fixture
def runs(monkeypatch):
    """What each run computes; plans of the marked steps fail."""
    found, bad = [], set()

    def run(true, job, *plan):
        found.append(list(job.roots))
        if bad.intersection(job.roots):
            raise EngineError("a step failed with ValueError; please report this.")
        return true(job, *plan)

    for engine in {flow, local}:
        monkeypatch.setattr(engine, "run", partial(run, engine.run))
    return found, bad


@pytest.mark.parametrize("first", ["bad", "good", "other"])
def test_a_plan_that_fails_fails_alone(runs, first):
    found, bad = runs
    views = protect()
    asked = {
        "good": views.map("page").measure(900),
        "bad": views.map("user").measure(900),
        "other": views.distinct().map("page").measure(900),
    }
    bad.add(asked["bad"].node)
    for name in (first, "good", "other", "bad", "bad"):
        if name == "bad":
            with pytest.raises(EngineError, match="ValueError"):
                asked[name].observe("home")
        else:
            assert asked[name].observe("home") == 2
    assert len(found) == 4 + 2, "one for all, one for each, and one each time that the bad one is asked alone"
    assert views.map("page").measure(900, name="later").observe("home") == 2
    assert len(found[-1]) == 1, "what failed no longer runs with others"
    bad.clear()
    assert asked["bad"].observe("bob") == 2, "it can be tried again, at no charge"


def test_what_cannot_be_read_is_not_tried_plan_by_plan(runs, tmp_path):
    path = tmp_path / "views.csv"
    path.write_text("user,page\nann,home\n")
    views = wpinq.protect(path, budget=10)
    for column in ("user", "page"):
        asked = views.map(column).measure(1)
    path.write_text("user,page\nann,home\nbob,home\n")
    with pytest.raises(SourceError, match="changed"):
        asked.observe("home")
    assert not runs[0], "its bytes are compared before anything runs"


def test_questions_of_another_data_set_and_answered_ones_do_not_wait(monkeypatch):
    """One data set is being read, and everything else goes on."""
    slow, quick = protect(name="slow"), protect(name="quick")
    answered = slow.map("page").measure(900)
    assert answered.observe("home") == 2
    begun, go_on, true = threading.Event(), threading.Event(), flow.run

    def run(job, *plan):
        if job.roots[0] is late.node:
            begun.set()
            assert go_on.wait(60)
        return true(job, *plan)

    late = slow.map("user").measure(900)
    monkeypatch.setattr(flow, "run", run)
    found = []
    threads = [threading.Thread(target=lambda: found.append(late.observe("bob"))) for _ in range(2)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    others = []

    def ask():
        others.append(answered.observe("news"))
        others.append(quick.map("page").measure(900).observe("home"))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(30)
    waited = asking.is_alive()
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert not waited
    assert (others, found) == ([1, 2], [2, 2])


def test_a_run_has_so_many_plans_and_one_of_each_analyst_in_turn(runs, monkeypatch):
    """Who asks many questions at once does not make another wait for more than a run."""
    found, _ = runs
    monkeypatch.setattr("wpinq.core.runs.run.TOGETHER", 4)
    views = protect()
    many = [views.filter(f"page <> 'x{n}'").measure(1, analyst="ann") for n in range(7)]
    few = [views.filter(f"user <> 'x{n}'").measure(1, analyst="ben") for n in range(2)]
    again = views.filter("page <> 'x0'").measure(1, name="again", analyst="cem")
    many[0].observe(("bob", "home"))
    assert [len(roots) for roots in found] == [4] and found[0][0] is many[0].node
    assert len({one.node for one in few} & set(found[0])) >= 1, "one of each analyst in turn"
    for one in [*many, *few, again]:
        one.observe(("bob", "home"))
    assert max(map(len, found)) == 4 and sum(map(len, found)) == 10, "each plan was computed once"
