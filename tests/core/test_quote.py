"""Quotes: what is charged is what was quoted, all of it or nothing, once."""

from __future__ import annotations

from fractions import Fraction

import pytest

import wpinq
from wpinq.errors import BudgetError
from wpinq.plan import fingerprints, sources

ROWS = [("ann", "a", 1), ("bob", "b", 2)] * 20
KINDS = {"user": str, "page": str, "n": int}


class Opaque:
    """Has a method, whose code cannot be covered by a fingerprint."""

    def same(self, text):
        return text


def opaque(budget=1, **more):
    """A collection whose plan cannot be told from others, and what was spent on it."""
    thing = Opaque()
    views = wpinq.protect(ROWS, budget=budget, columns=KINDS, **more)
    found = views.map(lambda page, n: (thing.same(page), n), columns={"page": str, "n": int})
    assert fingerprints(found._node)[found._node] is None
    return found, sources(views._node)[0].ledger


def entries(ledger, kind="charge"):
    return [one for one in ledger.entries() if one.kind == kind]


def test_a_query_over_what_cannot_be_fingerprinted_is_charged_as_a_whole_or_not_at_all():
    """Three answers at 0.5 each, and a budget of 1: two of them would fit."""
    found, ledger = opaque()
    query = "SELECT page, COUNT(*) AS c, SUM(n) AS s, AVG(n) AS m FROM t GROUP BY page"
    with pytest.raises(BudgetError, match="nothing was charged"):
        wpinq.sql(query, {"t": found}, epsilon=1.5, keys=["a"], bounds={"n": (0, 10)})
    assert ledger.spent() == (0, 0)
    answer = wpinq.sql(query, {"t": found}, epsilon=1, keys=["a"], bounds={"n": (0, 10)})
    assert len(answer.rows) == 1
    assert ledger.spent()[0] == 1
    assert len(entries(ledger)) == 3


def test_groups_of_what_cannot_be_fingerprinted_are_published_for_what_was_charged_at_once():
    found, ledger = opaque(budget=100, delta=Fraction(1, 100))
    query = "SELECT page, COUNT(*) AS c, MEDIAN(n) AS s FROM t GROUP BY page"
    answer = wpinq.sql(query, {"t": found}, epsilon=80, delta=Fraction(1, 100), bounds={"n": (0, 10)})
    assert sorted(row[0] for row in answer.rows) == ["a", "b"]
    assert ledger.spent() == (80, Fraction(1, 100))
    assert [one.kind for one in ledger.entries()][1:4] == ["charge"] * 3  # before anything was sealed and answered


@pytest.mark.parametrize("split", ["0.5", None])
def test_a_release_of_degrees_that_cannot_be_fingerprinted_is_charged_as_a_whole(split):
    found, ledger = opaque()
    with pytest.raises(BudgetError, match="nothing was charged"):
        wpinq.degrees.release(found.map(lambda page: page), epsilon=1.5, split=split)
    assert ledger.spent() == (0, 0)
