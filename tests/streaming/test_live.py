"""Live sources: epochs, the answers of a finite run, failures that reach the caller. Attacks 25, 40, 41; rule 9."""

import datetime as dt
import re
import threading
import time

import numpy as np
import polars as pl
import processes
import pyarrow as pa
import pytest
from default_engine import flow
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core.engines.job import Job
from wpinq.core.measurements.continual import EveryEpoch
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.runs.timeline import at_epoch
from wpinq.core.state.histogram import Histogram
from wpinq.streaming import running

TYPED = {"user": "text", "page": "text"}
EXACT = 60  # noise is zero but for a probability below e^-59 for each answer


def page(user, page):
    return page


@pytest.fixture
def views():
    source = wpinq.live(TYPED, budget=10_000)
    yield source
    source.close()


def test_attack_40_rule_9_a_measurement_speaks_of_the_first_epoch_that_closes_after_it(views):
    views.send([("ann", "home")])
    assert views.advance() == 1
    pages = views.map(page)
    first = pages.measure(EXACT)
    with pytest.raises(wpinq.NotReadyError, match="epoch 2 of live is still open"):
        first.observe("home")
    views.send([("bob", "home"), ("bob", "news")])
    with pytest.raises(wpinq.NotReadyError):
        first.observe("home")
    assert views.advance() == 2
    views.send([("eve", "home")])
    views.advance()
    assert first.observe_many(["home", "news", "none"]).tolist() == [2, 1, 0], "it keeps the histogram of its epoch"
    assert pages.measure(EXACT).question != first.question


def test_rule_9_another_epoch_is_another_charge_and_the_same_epoch_is_not(views):
    pages = views.map(page)
    ledger = pages._node.source.data.ledger
    one, same = pages.measure("0.25"), pages.measure("0.25")
    assert ledger.spent()[0] == one.epsilon
    views.send([("ann", "home")])
    views.advance()
    assert one.observe("home") == same.observe("home")
    again = pages.measure("0.25")
    assert ledger.spent()[0] == 2 * one.epsilon
    views.advance()
    bins = range(200)
    assert views.map(page).measure("0.25").question != again.question
    assert one.observe_many(map(str, bins)).tolist() != again.observe_many(map(str, bins)).tolist(), "noise of its own"


def test_over_budget_is_refused_and_nothing_is_left_waiting():
    views = wpinq.live(TYPED, budget=1)
    views.map(page).measure("0.75")
    with pytest.raises(wpinq.BudgetError):
        views.map(page).measure("0.5")
    views.send([("ann", "home")])
    assert views.advance() == 1
    views.close()


rows = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=8)


def plans(views):
    """Steps of every kind of state."""
    pages = views.map(page)
    counts = pages.shave().map(lambda page, index: index)
    others = views.filter(lambda user: user != "a").map(page)
    return [
        pages, counts, counts.shave(name="rank").map(lambda index, rank: rank), pages.distinct(), pages.union(others),
        pages.subtract(others), views.group_by("user", len),
    ]  # fmt: skip


@settings(max_examples=often(8))
@given(epochs=st.lists(st.lists(rows, max_size=3), min_size=1, max_size=4), late=st.integers(0, 3))
def test_attack_25_epochs_and_batches_do_not_show_in_what_is_counted(epochs, late):
    """The states' sum of changes is what one finite run over the same epochs finds, also of plans that come later."""
    views = wpinq.live(TYPED, budget=10_000)
    roots = [fit_noise(one._node) for one in plans(views)]
    asked = [one.measure(1) for one in plans(views)][late % 2 :]
    for number, batches in enumerate(epochs):
        if number == late:
            for one in plans(views):
                one.measure(1, name="later")
        for batch in batches:
            views.send(batch)
        views.advance()
    key = views._data.identity_key
    expected = flow.run(Job([at_epoch(root, len(epochs)) for root in roots], key))
    kept = [one.total for one in views._running._plans.values()]
    found = {_content(one) for one in kept}
    views.close()
    assert asked
    assert {_content(one) for one in expected} - found == set()
    assert len(kept) == len(roots)


def _content(histogram):
    ids, weights = histogram.content()
    return ids.tobytes(), weights.tobytes()


def test_what_is_sent_before_a_measurement_is_counted_in_it(views):
    pages = views.map(page)
    pages.measure(EXACT)
    for _ in range(3):
        views.send([("ann", "home")])
        views.advance()
    sequence = pages.shave().map(lambda page, index: index).measure(EXACT)
    views.send([("ann", "home")])
    views.advance()
    assert sequence.observe_many(range(1, 6)).tolist() == [1, 1, 1, 1, 0]


def test_every_kind_of_table_and_tuples_are_the_same_records():
    """Columns that were given no type hold values of any type, whichever way they come."""
    views = wpinq.live(("user", "page"), budget=1000)
    bins = [("ann", 1), ("bob", None)]
    found = views.measure(EXACT)
    views.send(bins)
    views.send(pl.DataFrame({"page": [1, None], "user": ["ann", "bob"], "more": [0.5, 0.5]}))
    views.send(pa.table({"user": ["ann", "bob"], "page": pa.array([1.0, None])}))
    views.send([["ann", 1.0], ("bob", None), "no", ("short",), None])
    views.advance()
    assert found.observe_many(bins).tolist() == [4, 4]
    views.close()


def test_what_holds_no_records_is_refused_and_not_taken(views):
    half, wrong_type = pl.DataFrame({"user": ["ann"]}), pa.table({"user": ["a"], "page": pa.array([[1.5]])})
    for wrong in (5, "text", {"user": "ann"}, half, wrong_type):
        with pytest.raises(wpinq.SourceError):
            views.send(wrong)
    m = views.map(page).measure(EXACT)
    views.advance()
    assert m.observe("home") == 0


def test_a_finite_table_can_be_joined(views):
    topics = wpinq.protect([("home", "a"), ("news", "b")], budget=9000, columns={"page": "text", "topic": "text"})
    m = views.join(topics, on="page").map(lambda topic: topic).measure(9000)
    views.send([("ann", "home")])
    views.advance()
    assert m.observe("a") == pytest.approx(0.5, abs=0.02)
    assert m.observe("b") == pytest.approx(0, abs=0.02)


def test_two_live_sources_in_one_plan_are_refused_before_any_charge(views):
    other = wpinq.live(TYPED, budget=1)
    with pytest.raises(wpinq.PlanError, match="two live sources"):
        views.concat(other).measure(1)
    assert views._data.ledger.spent()[0] == 0


def test_people_are_bounded_in_every_epoch():
    views = wpinq.live(TYPED, budget=1000, unit=wpinq.users("user", at_most=2))
    pages = views.map(page)
    for epoch in range(1, 4):
        views.send([("ann", "home")] * 3 + [(f"user {epoch}", "home")])
        m = pages.measure(2 * EXACT)
        views.advance()
        assert m.observe("home") == 2 + epoch
    views.close()


PANIC = pl.exceptions.PanicException("marker")


@pytest.mark.parametrize("error", [RuntimeError("marker"), PANIC, MemoryError("marker")])
def test_a_failing_step_reaches_the_caller_at_once_and_says_nothing_of_the_data(views, monkeypatch, error, capfd):
    views.map(page).measure(1)
    views.send([("marker", "marker")])

    def fail(*_):
        raise error

    monkeypatch.setattr(Histogram, "absorb", fail)
    start = time.monotonic()
    for call in (views.advance, views.advance, lambda: views.send([("a", "b")])):
        with pytest.raises(wpinq.EngineError, match=type(error).__name__) as caught:
            call()
        assert "marker" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert time.monotonic() - start < 5
    assert "marker" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("error", [RuntimeError("marker"), PANIC, SystemExit(3)])
def test_a_failing_engine_reaches_the_caller_at_once(views, monkeypatch, error):
    def fail(*_, **__):
        raise error

    engine = pytest.importorskip("wpinq.core.engines.bytewax.live", reason="needs bytewax", exc_type=ImportError)
    monkeypatch.setattr(engine, "run_main", fail)
    views.map(page).measure(1)
    views.send([("marker", "marker")])
    with pytest.raises((wpinq.EngineError, SystemExit)) as caught:
        views.advance()
    assert "marker" not in str(caught.value)


@pytest.mark.parametrize("place", ["digest_after", "digest_of", "merge", "receive"])
def test_an_interrupt_that_tears_an_epoch_ends_the_source(views, monkeypatch, place):
    """Went on, it would answer without some of the records, under the noise that they had with them."""
    pages = views.map(page)
    first, followed = pages.measure(EXACT), pages.measure(1, continual=True)
    views.send([("ann", f"p{number}") for number in range(9)])
    views.advance()
    told = [first.observe("p1"), followed.observe("p1")]
    views.send([("ann", "p1")])
    pages.measure(EXACT)
    with monkeypatch.context() as patch:

        def fail(*_):
            raise KeyboardInterrupt

        if place in ("merge", "receive"):
            patch.setattr(*{"merge": (Histogram, "merge"), "receive": (EveryEpoch, "receive")}[place], fail)
        else:
            patch.setattr(running, place, fail)
        if place == "digest_of":  # the epoch was taken in; only its answer is lacking
            views._running._plans[next(iter(views._running._plans))].digest = None
            patch.setattr(running, "digest_after", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            views.advance()
    assert [first.observe("p1"), followed.observe("p1", epoch=1)] == told
    if place == "digest_of":
        again = pages.measure(EXACT)
        views.advance()
        assert again.observe("p1") == 2
    else:
        for call in (views.advance, lambda: views.send([("a", "b")])):
            with pytest.raises(wpinq.EngineError, match="as a whole"):
                call()


def test_a_joined_file_that_cannot_be_read_again_ends_the_source(views, tmp_path):
    path = tmp_path / "kinds.csv"
    path.write_text("page,kind\nhome,1\n")
    kinds = wpinq.protect(path, budget=10**6)
    pages = views.map(page)
    pages.measure(EXACT)
    views.send([("ann", "home")])
    views.advance()
    views.join(kinds, "page").measure(EXACT)
    path.write_text("page,kind\nhome,1\nnews,2\n")
    with pytest.raises((wpinq.SourceError, wpinq.LedgerError)):
        views.advance()
    pages.measure(EXACT)
    with pytest.raises(wpinq.EngineError, match="as a whole"):
        views.advance()


def test_followers_are_told_what_nobody_changes_any_more(views, monkeypatch):
    """Told before the total took it in, two threads could add it up, each once."""
    followed = views.map(page).measure(1, continual=True)
    told, receive = [], EveryEpoch.receive

    def checked(self, epoch, change):
        told.append(change._coming)
        receive(self, epoch, change)

    monkeypatch.setattr(EveryEpoch, "receive", checked)
    for _ in range(3):
        views.send([("ann", "home")])
        views.advance()
    assert followed.settled and told == [None] * 3


def test_a_closed_source_takes_nothing_more_and_still_answers(views):
    m = views.map(page).measure(EXACT)
    views.send([("ann", "home")])
    views.advance()
    views.close()
    views.close()
    assert m.observe("home") == 1
    for call in (views.advance, lambda: views.send([("ann", "home")])):
        with pytest.raises(wpinq.EngineError, match="closed"):
            call()


def test_an_arrow_array_of_structs_holds_records_and_other_arrays_are_refused(views):
    """They were dropped without a word, each item being no tuple."""
    counts = views.map(page).measure(EXACT)
    struct = pa.array([{"page": "home", "user": "ann"}, None, {"page": "home", "user": None}])
    views.send(struct)
    views.send(struct.slice(1))
    for array in (pa.array(["home"]), np.array([["ann", "home"]])):
        with pytest.raises(wpinq.SourceError, match=r"TypeError|NumPy"):
            views.send(array)
    views.advance()
    assert counts.observe("home") == 3


def test_a_function_cannot_send_or_advance(views):
    def naughty(user, page):
        views.send([("spy", page)])
        return page

    m = views.map(naughty).measure(EXACT)
    views.send([("ann", "home")])
    views.advance()
    assert m.observe("home") == 0, "the function failed on its record, which was dropped"
    total = views.map(lambda user: user).measure(EXACT)
    views.advance()
    assert total.observe("spy") == 0


def test_threads_may_send_and_advance_at_once(views):
    m = views.map(lambda user: user).measure(500, continual=True)

    def work(who):
        for _ in range(20):
            views.send([(who, "home")])
            views.advance()

    threads = [threading.Thread(target=work, args=(str(who),)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert views.epoch == 80
    assert 1 <= m.observe_many(map(str, range(4)), epoch=1).sum() <= 4, "sent by others before the first epoch closed"
    assert m.observe_many(map(str, range(4))).tolist() == [20] * 4


def test_an_idle_source_costs_nothing(views):
    views.map(page).measure(1)
    views.send([("ann", "home")])
    views.advance()
    before = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - before < 0.01, "under one hundredth of a core"


def test_a_script_may_end_without_closing_its_source():
    code = (
        "import wpinq\n"
        "views = wpinq.live({'user': 'text'}, budget=1)\n"
        "m = views.measure(1)\n"
        "views.send([('ann',)]); views.advance(); m.observe('ann')\n"
    )
    assert not processes.printed("-c", code)


def test_bins_of_an_epoch_and_of_a_window_are_released_by_a_threshold():
    live = wpinq.live({"page": "text", "time": "timestamp"}, budget=10_000, delta="3e-6")
    noon = dt.datetime(2026, 7, 31, 12)
    pages = live.map(lambda page, time: page).measure(EXACT)
    hours = live.window("1h", at="time").map(lambda page, time: page).measure(EXACT)
    live.send([("often", noon)] * 50 + [("once", noon)])
    live.advance(until=noon + dt.timedelta(hours=2))
    assert pages.release(delta="1e-6").rows == (("often", 50),)
    assert hours.at(noon).release(delta="1e-6").rows == (("often", 50),)
    with pytest.raises(wpinq.PlanError, match=r"\.at\(time\)\.release"):
        hours.release(delta="1e-6")
    with pytest.raises(wpinq.BudgetError, match="delta"):
        pages.release(delta="2e-6")
    live.close()


def test_degrees_of_what_has_not_closed_are_refused_before_the_charge():
    live = wpinq.live({"page": "text", "time": "timestamp"}, budget=10)
    for pages in (live, live.window("1h", at="time")):
        with pytest.raises(wpinq.PlanError, match="once they have closed"):
            wpinq.degrees.release(pages.map(lambda page, time: page), epsilon=1)
    assert live._data.ledger.spent() == (0, 0)
    live.close()


def test_nothing_of_the_records_shows(views):
    views.send([("marker", "marker")] * 17)
    views.map(page).measure(1)
    views.advance()
    for thing in (views, views._log, views._data, views._running, views._node):
        assert "marker" not in repr(thing)
        assert "17" not in re.sub("0x[0-9a-f]+", "", repr(thing))


def test_a_finite_source_before_a_live_one_is_counted_and_released():
    live = wpinq.live({"k": str}, budget=10**6, delta="1/10")
    finite = wpinq.protect([("a",)] * 500, columns={"k": str}, budget=10**6, delta="1/10", name="finite")
    asked = [one.measure(epsilon=1000) for one in (finite.concat(live), live.concat(finite), finite.union(live))]
    live.send([("a",)] * 3)
    live.advance()
    assert [one.observe("a") for one in asked] == [503, 503, 500]
    assert [list(one.release(delta=1e-6)) for one in asked] == [[("a", 503)], [("a", 503)], [("a", 500)]]
    live.close()


@pytest.mark.parametrize("steps", [
    lambda c: c.group_by("w", lambda group: 2 * len(group)).map(lambda value: value + 0, columns={"v": int}),
    lambda c: c.group_by("w", len).map("value AS v"),
    lambda c: c.map("w AS v").distinct(),
])  # fmt: skip
def test_ranks_of_what_comes_in_pieces_are_those_of_a_table(steps):
    """A rank reads ranges of a fine grid; what a step emits piece by piece had lost where each of them ends."""
    rows = [(float(number % 7),) for number in range(40)] + [(2.0,)] * 9
    live = wpinq.live({"w": "number"}, budget=10**7)
    answer = steps(live).median("v", bounds=(0, 100), epsilon=10**6)
    live.send(rows)
    live.advance()
    table = wpinq.protect(rows, budget=10**7, columns={"w": "number"})
    assert answer.value == pytest.approx(steps(table).median("v", bounds=(0, 100), epsilon=10**6).value, abs=0.01)
    live.close()
