"""Attacks on quote and commit: functions that mean another thing later, and charges that are not those of the whole."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from quoting import KINDS, book, entries, opaque, table, waiting

import wpinq
from wpinq.apps.scripts.script import rehearsed
from wpinq.core.measurements.query import commit
from wpinq.core.noise import DiscreteLaplace
from wpinq.errors import BudgetError, PlanError

ROWS = [("ann", "a", 1)] * 5 + [("bob", "b", 2)] * 3
EASY = Fraction(1, 1000)


def measured(quote):
    return commit([quote])[0]


class Box:
    """Holds a name that may change, which no fingerprint covers."""

    def __init__(self):
        self.name = "zed"


@pytest.mark.parametrize("between", ["kept", "forgotten"])
def test_a_quote_that_is_committed_again_is_not_computed_again(between):
    """Else `ann` is refused where she has records, `carl` is free, and nobody pays for that."""
    box = Box()
    views = wpinq.protect(ROWS, budget=10, columns=KINDS)
    found = views.filter(lambda user: user == box.name)
    quote = found.quote(epsilon=1)
    first = found.measure(quote=quote)
    answers = [first.observe(("ann", "a", 1))]
    if between == "forgotten":
        del first
    for box.name in ("carl", "ann", "bob"):
        answers.append(found.measure(quote=quote).observe(("ann", "a", 1)))
    assert len(set(answers)) == 1
    assert book(views).spent()[0] == 1


def test_a_quote_that_was_refused_can_be_committed_once_there_is_budget():
    found, ledger = opaque(budget=1)
    quote = found.quote(epsilon=2)
    with pytest.raises(BudgetError):
        found.measure(quote=quote)
    assert waiting(found) == []
    ledger.raise_budget(Fraction(2))
    assert isinstance(found.measure(quote=quote).observe(("a", 1)), int)


@pytest.mark.parametrize("continual", [False, True])
def test_a_quote_of_a_live_source_is_answered_once_however_often_it_is_committed(continual):
    live = wpinq.live({"k": "text"}, budget=10**6)
    quote = live.quote(epsilon=10**5, continual=continual)
    first, second = live.measure(quote=quote), live.measure(quote=quote)
    live.send([("a",)] * 3)
    live.advance()
    assert (first.observe("a"), second.observe("a")) == (3, 3)
    if continual:
        third = live.measure(quote=quote)
        live.send([("a",)])
        live.advance()
        assert [one.observe("a") for one in (first, second, third)] == [4, 4, 4]
    live.close()


def test_aggregates_that_follow_from_one_measurement_are_charged_once_where_no_fingerprint_tells():
    found, ledger = opaque(budget=10)
    query = "SELECT VAR_POP(n), STDDEV_POP(n), COUNT(*) FROM t"
    answer = wpinq.sql(query, {"t": found}, epsilon=2, bounds={"n": (0, 10)})
    assert ledger.spent()[0] == 2
    assert len(entries(ledger)) == 2
    variance, deviation, _ = answer.rows[0]
    assert deviation == pytest.approx(variance**0.5)


@pytest.mark.parametrize("counts", [False, True])
def test_a_script_is_charged_as_a_whole_or_not_at_all(counts):
    """Half of the budget is spent, so that only the charge, and no rehearsal, finds that it does not fit."""

    def script(views):
        first = views.count(epsilon=1).measurements[0] if counts else views.map("user").measure(epsilon=1)
        return {"first": first, "pages": views.measure(epsilon=2)}

    views = table(budget=4)
    views.measure(epsilon=2, name="before")
    rehearsal = rehearsed(script, table(budget=4))
    assert rehearsal.whole
    with pytest.raises(BudgetError, match="nothing was charged"):
        rehearsal.charge(views)
    assert book(views).spent()[0] == 2


@pytest.mark.parametrize("change", [{"charges": ()}, {"mechanism": DiscreteLaplace(Fraction(1, 1000))}, {}])
@pytest.mark.parametrize("live", [False, True])
def test_a_quote_that_was_altered_by_hand_is_no_quote(change, live):
    """It was refused only at the seal, where it failed what waits with it; or not at all, with another noise."""
    views = wpinq.live({"k": "text"}, budget=10) if live else wpinq.protect(["a"] * 3, budget=10, columns={"k": str})
    quote, honest = views.quote(epsilon=1), views.measure(epsilon=1, name="honest")
    views.measure(quote=quote)
    altered = replace(quote, **change)
    with pytest.raises(PlanError, match="quote again") as told:
        views.measure(quote=altered)
    assert str(told.value).startswith("measure(quote=...): ")
    with pytest.raises(PlanError, match="quote again"):
        altered.publishing("release", Fraction(1, 10**6))
    assert book(views).spent() == (2, 0)
    if live:
        views.send([("a",)])
        views.advance()
    assert isinstance(honest.observe("a"), int)


@pytest.mark.parametrize("again", [lambda m: type(m)(m.quote), lambda m: measured(m.quote.but(delta=EASY))])
def test_a_paid_quote_has_one_query_however_it_is_come_by(again):
    """A second one would be computed anew by a function that may mean another thing by then."""
    box = Box()
    views = wpinq.protect(ROWS, budget=10, delta=EASY, columns=KINDS)
    first = views.filter(lambda user: user == box.name).measure(epsilon=1)
    first.observe(("ann", "a", 1))
    box.name = "ann"
    second = again(first)
    if second is not first:
        with pytest.raises(PlanError, match="not charged"):
            second.observe(("ann", "a", 1))


def test_a_quote_that_a_script_commits_twice_is_one_measurement():
    def script(views):
        quote = views.quote(epsilon=1)
        return {"first": views.measure(quote=quote), "second": views.measure(quote=quote)}

    made = rehearsed(script, table(budget=1000)).charge(table(budget=4))
    assert made["first"] is made["second"]
