"""Public tables beside records: semijoin, antijoin and join_rows look up what a record's own key says."""

import random
from fractions import Fraction

import polars as pl
import pytest
from depth import deeper, often
from strategies import evaluate, run_flow, same

import wpinq
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import PlanError, SourceError

COLUMNS = {"user": str, "page": str, "n": int}
KNOWN = pl.DataFrame({"page": ["a", "b", "b", None], "kind": [1, 2, 3, 4]})
PAGES = pl.DataFrame({"page": ["a", "b"], "kind": [1, 2]})
ROWS = [("ann", "a", 1), ("ann", "c", 1), ("bob", "b", 2), ("bob", None, 2), ("ann", "a", 1)]
PEOPLE = wpinq.users("user", at_most=3)


def views(rows=(), unit=PEOPLE):
    return wpinq.protect(list(rows), 10**6, columns=COLUMNS, unit=unit, version="1")


PLANS = {
    "in": (lambda v: v.semijoin(KNOWN, on="page"), lambda row: row[1] in ("a", "b")),
    "not in": (lambda v: v.antijoin(KNOWN, on="page"), lambda row: row[1] not in ("a", "b")),
    "by number": (lambda v: v.semijoin(KNOWN, left="n", right="kind"), lambda row: row[2] in (1, 2, 3, 4)),
    "by a function": (lambda v: v.antijoin(KNOWN, left=lambda n: n * 2, right="kind"), lambda row: row[2] * 2 > 4),
}


@pytest.mark.parametrize("name", PLANS)
def test_records_stay_or_go_as_they_are(name):
    make, kept = PLANS[name]
    rows = [row for row in [*ROWS, ("cy", "z", 3)] if row[2] is not None]
    plan = make(views(rows, wpinq.Unit()))
    assert plan.columns == ("user", "page", "n")
    found = evaluate(plan, rows)
    assert found == {row: rows.count(row) for row in rows if kept(row)}
    assert same(run_flow(plan, 2), plan._node, found)
    assert sum(sensitivities(plan._node).values()) == 1, "and no record for another"


@deeper
def test_one_unit_moves_no_further_than_is_claimed():
    draw = random.Random(1)
    for _ in range(often(20)):
        for make, _ in PLANS.values():
            others = [(draw.choice("xyz"), draw.choice(["a", "c", None]), draw.choice([1, 2, 9])) for _ in range(6)]
            own = [("p", draw.choice(["a", "c", None]), draw.choice([1, 9])) for _ in range(draw.randrange(6))]
            plan = make(views())
            found = evaluate(plan, others + own), evaluate(plan, others)
            moved = sum(abs(Fraction(found[0].get(key, 0)) - found[1].get(key, 0)) for key in {**found[0], **found[1]})
            assert moved <= sum(sensitivities(plan._node).values()) == 3
            people = plan.map("user").distinct()
            assert sum(sensitivities(people._node).values()) == 1, "whose each record is stays known"


def test_join_rows_with_a_public_table_is_join():
    table = views(ROWS)
    for how in ("inner", "left"):
        one, other = (call(PAGES, on="page", how=how) for call in (table.join_rows, table.join))
        assert one.measure(1).question == other.measure(1).question
    assert evaluate(table.join_rows(PAGES, on="page").map("kind"), ROWS) == {(1,): 2, (2,): 1}


def test_what_does_not_fit_is_refused():
    table = views()
    for call in (table.semijoin, table.antijoin):
        with pytest.raises(PlanError, match="no column 'user'; there are page, kind"):
            call(KNOWN, on="user")
        with pytest.raises(PlanError, match="differ in number"):
            call(KNOWN, left=["page", "user"], right="page")
        with pytest.raises(PlanError, match="is of the type text here and integer"):
            call(KNOWN, left="page", right="kind")
        with pytest.raises(SourceError, match="or a public table"):
            call(object(), on="page")
    with pytest.raises(PlanError, match="not unique"):
        table.join_rows(KNOWN, on="page")
    assert table.budget.spent == 0
