"""Aggregates over windows and live sources: right for each window or epoch, or refused before anything is charged."""

import datetime as dt
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest

import wpinq
from wpinq import aggregates
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.plan.node import sources

ONE = Secret(bytes(range(32)))
COLUMNS = {"user": "text", "x": "integer", "time": "timestamp"}
NOON = dt.datetime(2026, 7, 31, 12)
LOUD = 1000
BOUNDS = (0, 100)


def at(hours):
    return NOON + dt.timedelta(hours=hours)


ROWS = [(f"u{i % 40}", i * 7 % 100, at(i % 3 + 0.5)) for i in range(900)]
MOMENTS = {
    "count": (lambda c: aggregates.count(c, LOUD), len),
    "count_distinct": (lambda c: aggregates.count_distinct(c, "user", LOUD), None),
    "sum": (lambda c: aggregates.sum(c, "x", BOUNDS, LOUD), np.sum),
    "mean": (lambda c: aggregates.mean(c, "x", BOUNDS, LOUD), np.mean),
    "variance": (lambda c: aggregates.variance(c, "x", BOUNDS, LOUD), np.var),
    "stdev": (lambda c: aggregates.stdev(c, "x", BOUNDS, LOUD), np.std),
}
RANKS = {
    "min": (lambda c: aggregates.min(c, "x", BOUNDS, LOUD), np.min),
    "max": (lambda c: aggregates.max(c, "x", BOUNDS, LOUD), np.max),
    "median": (lambda c: aggregates.median(c, "x", BOUNDS, LOUD), np.median),
    "quantile": (lambda c: aggregates.quantile(c, "x", "0.9", BOUNDS, LOUD), lambda x: np.quantile(x, 0.9)),
}


def truth(which, rows):
    if which == "count_distinct":
        return len({user for user, _, _ in rows})
    return {**MOMENTS, **RANKS}[which][1]([x for _, x, _ in rows])


def finite(**settings):
    return wpinq.protect(ROWS, budget=10**6, secret=ONE, version="1", columns=COLUMNS, delta="0.1", **settings)


def spent(collection):
    return sources(collection._node)[0].ledger.spent()


@pytest.mark.parametrize("which", MOMENTS)
def test_each_window_has_an_answer_and_all_cost_as_one(which):
    views = finite()
    answer = MOMENTS[which][0](views.window("1h", at="time"))
    assert spent(views) == (LOUD, 0)
    for hour in range(3):
        rows = [row for row in ROWS if row[2] == at(hour + 0.5)]
        one = answer.at(at(hour))
        assert one.value == pytest.approx(truth(which, rows), rel=1e-3, abs=0.5)
        low, high = one.interval()
        assert low <= one.value <= high
    assert spent(views) == (LOUD, 0)
    for ask in (lambda: answer.value, answer.interval, answer.table):
        with pytest.raises(wpinq.PlanError, match=r"an answer for each window; take one, .at\(time\)"):
            ask()
    with pytest.raises(wpinq.PlanError, match="has no windows"):
        MOMENTS[which][0](views).at(NOON)


def test_windows_have_groups_too_and_an_empty_one_has_a_noisy_answer():
    views = finite()
    answer = aggregates.sum(views.window("1h", at="time"), "x", BOUNDS, LOUD, by="user", keys=["u3", "nobody"])
    table = answer.at(at(0)).table()
    known = sum(x for user, x, time in ROWS if user == "u3" and time == at(0.5))
    assert table["user"].to_list() == ["u3", "nobody"]
    assert table["value"].to_list() == [pytest.approx(known, abs=2), pytest.approx(0, abs=2)]
    assert 0 <= aggregates.mean(views.window("1h", at="time"), "x", BOUNDS, 1).at(at(9)).value <= 100


@pytest.mark.parametrize("which", [*RANKS, "select", "sql"])
def test_what_has_one_answer_is_refused_over_windows_before_it_is_charged(which):
    views = finite()
    asked = {
        **{one: ask for one, (ask, _) in RANKS.items()},
        "select": lambda c: c.map("user").select(1, "1e-6"),
        "sql": lambda c: wpinq.sql("SELECT COUNT(*) FROM views", {"views": c}, epsilon=1),
    }
    with pytest.raises(wpinq.PlanError, match=f"{which}: there would be an answer for each window"):
        asked[which](views.window("1h", at="time"))
    assert spent(views) == (0, 0)


@pytest.mark.parametrize("which", RANKS)
def test_parts_by_the_hour_have_ranks_and_cost_as_one(which):
    views = finite()
    hours = views.partition(lambda time: time.hour, parts=[12, 13, 14])
    for hour, part in hours.items():
        found = RANKS[which][0](part).value
        assert found == pytest.approx(truth(which, [row for row in ROWS if row[2].hour == hour]), abs=2)
    assert spent(views) == (LOUD, 0)


def test_a_window_is_published_by_its_own_threshold_and_delta():
    views = finite()
    users = views.window("1h", at="time").map("user").measure(LOUD)
    assert {user for user, _ in users.at(at(0)).release(delta="1e-3")} == {user for user, _, _ in ROWS}
    assert spent(views) == (LOUD, Fraction(1, 1000))
    users.at(at(1)).release(delta="1e-3")
    assert spent(views) == (LOUD, Fraction(2, 1000))
    with pytest.raises(wpinq.PlanError, match="each window is released by itself"):
        users.release(delta="1e-3")
    assert spent(views) == (LOUD, Fraction(2, 1000))


@pytest.mark.parametrize("which", [*MOMENTS, *RANKS])
def test_a_live_source_answers_for_the_next_epoch_that_closes(which):
    with closing(wpinq.live(COLUMNS, 10**6, secret=ONE)) as views:
        ask = {**MOMENTS, **RANKS}[which][0]
        first = ask(views)
        views.send(ROWS[:450])
        with pytest.raises(wpinq.NotReadyError):
            _ = first.value
        views.advance()
        views.send(ROWS[450:])
        second = ask(views)
        views.advance()
        assert first.value == pytest.approx(truth(which, ROWS[:450]), rel=1e-3, abs=2)
        assert second.value == pytest.approx(truth(which, ROWS), rel=1e-3, abs=2)
        low, high = second.interval()
        assert low <= second.value <= high
        assert spent(views) == (2 * LOUD, 0)


def test_live_windows_have_answers_when_they_close():
    with closing(wpinq.live(COLUMNS, 10**6, secret=ONE)) as views:
        answer = aggregates.mean(views.window("1h", at="time"), "x", BOUNDS, LOUD)
        views.send(ROWS)
        with pytest.raises(wpinq.NotReadyError):
            answer.at(at(0))
        views.advance(until=at(1))
        rows = [row for row in ROWS if row[2] == at(0.5)]
        assert answer.at(at(0)).value == pytest.approx(truth("mean", rows), abs=0.1)
        with pytest.raises(wpinq.NotReadyError):
            answer.at(at(1))
        assert spent(views) == (LOUD, 0)


def test_live_people_are_protected_in_aggregates():
    unit = wpinq.users("user", at_most=50)
    with closing(wpinq.live(COLUMNS, 10**6, secret=ONE, unit=unit)) as views:
        total = aggregates.sum(views, "x", BOUNDS, LOUD)
        views.send(ROWS)
        views.advance()
        assert total.value == pytest.approx(sum(x for _, x, _ in ROWS), abs=100)
        assert spent(views) == (LOUD, 0)


def test_what_a_live_source_cannot_answer_at_once_is_refused_before_it_is_charged():
    with closing(wpinq.live(COLUMNS, 10, delta=0, secret=ONE)) as views:
        with pytest.raises(wpinq.PlanError, match="a live source when an epoch closes"):
            wpinq.sql("SELECT COUNT(*) FROM views", {"views": views}, epsilon=1)
        people = wpinq.live(COLUMNS, 10, secret=ONE, unit=wpinq.users("user", at_most=5))
        with closing(people), pytest.raises(wpinq.PlanError, match="suggest_bound: answers at once"):
            aggregates.suggest_bound(people, 1)
        assert spent(people) == (0, 0)
        with pytest.raises(wpinq.BudgetError, match="delta"):
            views.map("user").select(1, "1e-6")
        assert spent(views) == (0, 0)
