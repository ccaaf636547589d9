"""Attacks on the names of bins, which are found by computing a plan once more after it was decided what to publish."""

from __future__ import annotations

from fractions import Fraction

import pytest
from default_engine import flow
from quoting import KINDS, book, opaque

import wpinq
from wpinq.core.measurements.select import select
from wpinq.core.plan.node import fingerprints
from wpinq.errors import EngineError, PlanError

DELTA = Fraction(1, 1000)
ROWS = [("ann", "a", 1)] * 500 + [("bob", "b", 2)] * 300


class Box:
    """Holds a name that may change, which no fingerprint covers."""

    name = "ann"


def watched(live=False):
    """A plan that means another thing once the name in the box has changed."""
    box = Box()
    settings = {"columns": KINDS, "budget": 100, "delta": "1/2"}
    views = wpinq.live(**settings) if live else wpinq.protect(ROWS, **settings)
    found = views.map(lambda user: user if user == box.name else "other", columns={"who": str})
    assert fingerprints(found._node)[found._node] is None
    return views, found, box


@pytest.mark.parametrize("live", [False, True])
def test_whether_a_release_fails_does_not_tell_about_records(live):
    """`ann` is published where she has records; with another name by then she was missed, or not, for one delta."""
    outcomes = []
    for name in ("ann", "carl", "bob"):
        views, found, box = watched(live)
        measured = found.measure(epsilon=20)
        if live:
            views.send(ROWS)
            views.advance()
        measured.observe("ann")
        box.name = name
        spent = book(views).spent()
        with pytest.raises((PlanError, EngineError)) as told:
            measured.release(delta=DELTA)
        outcomes.append((type(told.value), str(told.value), book(views).spent() == spent))
    assert outcomes == [(PlanError, outcomes[0][1], True)] * 3


def test_what_cannot_be_named_is_refused_with_what_to_do_before_anything_is_charged_or_computed(monkeypatch):
    views, found, _ = watched()
    measured = found.measure(epsilon=1, name="before")
    spent = book(views).spent()
    monkeypatch.setattr(flow, "run", lambda *_: pytest.fail("something was computed"))
    query = "SELECT who, COUNT(*) FROM t GROUP BY who"
    for call, ask in {
        "release": lambda: measured.release(delta=DELTA),
        "select": lambda: select(found, 1, DELTA),
        "sql": lambda: wpinq.sql(query, {"t": found}, epsilon=1, delta=DELTA),
    }.items():
        with pytest.raises(PlanError, match=r"map.* no fingerprint.*keys=.*Nothing was charged") as told:
            ask()
        assert str(told.value).startswith(f"{call}")
        assert "\n" not in str(told.value)
    assert book(views).spent() == spent


def test_what_can_be_named_without_a_second_run_is_published():
    """Keys that are given, and numbers of slices, which the histogram holds as they are."""
    found, _ = opaque(budget=100, delta="1/2")
    pages = found.map(lambda page: page)
    assert list(pages.measure(epsilon=20).release(keys=["a"])) == [("a", 20)]
    answer = wpinq.sql("SELECT page, COUNT(*) FROM t GROUP BY page", {"t": found}, epsilon=20, keys=["a"])
    assert answer.rows == (("a", 20),)
    slices = pages.shave().map(lambda index: index)
    assert fingerprints(slices._node)[slices._node] is None
    assert len(slices.measure(epsilon=20).release(delta=DELTA)) == 20
    assert select(slices, 20, DELTA).bins.height == 20


def test_explain_shows_which_step_has_no_fingerprint(capsys):
    views, found, _ = watched()
    text = found.filter(lambda who: who == "ann").explain()
    (line,) = [line for line in text.splitlines() if "fingerprint" in line]
    assert "map" in line
    assert "fingerprint" not in views.map("user").explain()
