"""A live source that runs for ever: what it holds is bounded, and what it lets go of is refused, not answered wrong."""

import datetime as dt
import gc
import tracemalloc
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core.runs.prefix_sums import Changes

TYPED = {"user": "text", "page": "text"}
TIMED = {"page": "text", "time": "timestamp"}
NOON = dt.datetime(2026, 7, 31, 12)
EXACT = 500


def page(page):
    return page


def minutes(number):
    return NOON + dt.timedelta(minutes=number)


def test_memory_does_not_grow_with_what_is_sent():
    """Each epoch sends a thousand users that were never seen before, of ten pages; and keeps six epochs of them."""
    views = wpinq.live(TYPED, budget=10**6, keep=3)
    sequence = views.map(page).shave().map(lambda page, index: index).measure(EXACT)
    total = views.map(page).measure(EXACT, continual=True)
    sizes = []
    for epoch in range(120):
        users = pl.Series([f"a name that is not short {epoch} {i}" for i in range(1000)])
        views.send(pl.DataFrame({"user": users, "page": (np.arange(1000) % 10).astype(str)}))
        views.advance()
        if epoch == 60:
            tracemalloc.start()
        if epoch in (80, 119):
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert len(views._log._epochs) == 6
    assert sum(one.frame.estimated_size() for one in views._log._epochs) < 1_000_000
    assert sizes[1] - sizes[0] < 300_000, "39 epochs more, of 40 kB and more each in any form"
    assert sum(len(level.kept) for level in total.times.changes._levels) < 60
    assert total.observe("3") == 12_000
    assert sequence.observe(1) == 10
    views.close()


def test_a_plan_that_is_up_goes_on_and_another_one_is_refused_before_it_is_charged():
    views = wpinq.live(TYPED, budget=10**6, keep=2)
    views.map(page).measure(EXACT)
    for _ in range(9):
        views.send([("ann", "home")])
        views.advance()
    again, users = views.map(page).measure(EXACT), views.map(lambda user: user)
    spent = views._data.ledger.spent()
    for continual in (False, True):
        with pytest.raises(wpinq.PlanError, match=r"let go of its first ones"):
            users.measure(EXACT, continual=continual)
    assert views._data.ledger.spent() == spent
    views.send([("ann", "home")])
    views.advance()
    assert again.observe("home") == 10, "it counts all that was ever sent"
    views.close()


def test_before_anything_is_let_go_every_plan_counts_from_the_start():
    views = wpinq.live(TYPED, budget=10**6, keep=2)
    for _ in range(4):
        views.send([("ann", "home")])
        views.advance()
    m = views.map(page).measure(EXACT)
    views.send([("ann", "home")])
    views.advance()
    assert m.observe("home") == 5
    views.close()


def test_windows_are_asked_for_as_long_as_they_are_kept_and_never_change_their_answer():
    views = wpinq.live(TIMED, budget=10**6, keep=3)
    one, other = (views.window("1m", at="time").map(page).measure(EXACT, name=n) for n in ("one", None))
    for number in range(20):
        views.send([("home", minutes(number - late)) for late in range(7)])
        epoch = views.advance(until=minutes(number + 1))
        assert [moment.window[0] for moment in one.times.moments(epoch)] == ([minutes(number)] if number else [])
        assert one.observe("home", minutes(number)) == 1
        if number >= 3:
            asked = [minutes(number - late) for late in range(3)]
            assert other.observe_many(["home"], asked).tolist() == [[1]] * 3, "late records are in no window"
            with pytest.raises(wpinq.NotReadyError, match="keeps no more"):
                other.observe("home", minutes(number - 3))
    again = views.window("1m", at="time").map(page).measure(EXACT)
    assert again.observe("home", minutes(17)) == 1, "windows that are kept can be measured at any time"
    views.close()


def test_a_window_counts_what_was_sent_in_the_kept_epochs_up_to_its_closing():
    """However early it is asked for: else its answer would tell when, or its second one be refused."""
    for ask_late in (False, True):
        views = wpinq.live(TIMED, budget=10**6, keep=2)
        m = views.window("1h", at="time").map(page).measure(EXACT)
        for number in range(4):
            views.send([("home", minutes(number))])
            views.advance(until=minutes(60) if number == 3 else None)
        if ask_late:
            views.advance()
        assert m.observe("home", NOON) == 2
        views.close()


def test_a_continual_measurement_answers_for_the_kept_epochs():
    views = wpinq.live(TYPED, budget=10**6, keep=5)
    m = views.map(page).measure(EXACT, continual=True)
    for epoch in range(1, 200):
        views.send([("ann", "home")])
        views.advance()
        assert m.observe("home", epoch=max(1, epoch - 4)) == max(1, epoch - 4)
    with pytest.raises(wpinq.NotReadyError, match="last 5 epochs"):
        m.observe("home", epoch=194)
    views.close()


@settings(max_examples=often(20))
@given(st.integers(1, 300), st.integers(1, 40))
def test_sums_of_changes_are_the_same_when_old_ones_were_let_go(epochs, keep):
    class One:
        def __init__(self):
            self.total = 0

        def merge(self, other):
            self.total += other.total

        def lookup(self, bins, ids):
            return np.array([self.total])

    changes, ids = Changes(One), np.zeros((1, 2), np.uint64)
    for epoch in range(1, epochs + 1):
        one = One()
        one.total = epoch
        changes.append(one)
        changes.forget(epoch - keep + 1)
        for asked in range(max(1, epoch - keep + 1), epoch + 1):
            assert changes.lookup(asked, pl.DataFrame(), ids) == [asked * (asked + 1) // 2]
    for asked in range(1, epochs - keep + 1):  # half of a prefix would be another answer under the same noise
        with suppress(wpinq.NotReadyError):
            assert changes.lookup(asked, pl.DataFrame(), ids) == [asked * (asked + 1) // 2]
    assert sum(len(level.kept) for level in changes._levels) <= keep + 2 * 16 * len(changes._levels)


def test_measurements_that_nobody_holds_are_told_nothing_more():
    views = wpinq.live(TYPED, budget=10**6)
    m = views.map(page).measure(EXACT, continual=True)
    views.advance()
    (kept,) = views._running._plans.values()
    assert len(kept.followers) == 1
    del m
    gc.collect()
    assert len(kept.followers) == 0
    again = views.map(page).measure(EXACT, continual=True)
    views.send([("ann", "home")])
    views.advance()
    assert again.observe("home") == 1
    views.close()


@pytest.mark.parametrize("keep", [0, -1, 1.5, "3", True])
def test_what_is_no_number_of_epochs_is_refused(keep):
    with pytest.raises(wpinq.PlanError, match="keep"):
        wpinq.live(TYPED, budget=1, keep=keep)
