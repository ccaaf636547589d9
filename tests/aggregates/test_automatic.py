"""`at_most="auto"` of a question: what it splits, charges, refuses, tells; that one person moves the choice by one."""

from fractions import Fraction

import polars as pl
import pytest

import wpinq
from wpinq.aggregates.automatic import LEAST, PARTS, part, priced, waiting
from wpinq.aggregates.bound_choice import GRID, best_bound
from wpinq.core.plan.node import sources
from wpinq.core.plan.stability import Survey, sensitivities
from wpinq.errors import BudgetError, PlanError
from wpinq.testing import evaluate

LOUD = 10**6
COLUMNS = {"user": str, "page": str}


def views(people=400, most=6, heavy=30):
    """Records of people, most of six, and one who has more."""
    rows = [(f"u{person}", "ab"[n % 2]) for person in range(people) for n in range(1 + person % most)]
    return rows + [("heavy", "a")] * heavy


def opened(rows=None, budget=3 * LOUD, **unit):
    return wpinq.protect(views() if rows is None else rows, budget, columns=COLUMNS, delta="0.1",
                         unit=wpinq.users("user", **unit), name="v")  # fmt: skip


def unit_of(answer):
    return answer.about["protects"]


def test_the_part_that_chooses_falls_with_the_bins():
    parts = [part(bins) for bins in (1, 2, 30, 31, 100, 101, 300, 301, 10**6)]
    assert parts == [Fraction(1, 2), *[Fraction(1, 3)] * 2, *[Fraction(1, 4)] * 2, *[Fraction(1, 6)] * 2, LEAST, LEAST]
    assert all(share > LEAST for _, share in PARTS)


def test_a_total_takes_half_and_is_charged_whole():
    table = opened(budget=2 * LOUD)
    found = table.at_most("auto").count(LOUD)
    assert round(found.value) == len(views())
    assert table.budget.spent == LOUD
    assert list(table.budget.questions.values()) == [LOUD / 2, LOUD / 2]
    assert found.about["cost"]["epsilon"] == LOUD
    assert f"was chosen with epsilon {LOUD // 2} for 1 bin" in str(found.about["beside noise"])
    again = table.at_most("auto").count(LOUD)
    assert (again.value, table.budget.spent) == (found.value, LOUD), "the same question, for nothing"


def test_groups_that_are_given_are_counted_and_others_are_not():
    table = opened(budget=100 * LOUD)
    table.at_most("auto").count(LOUD, by="page", keys=["a", "b"])
    assert sorted(table.budget.questions.values()) == [Fraction(LOUD, 3), Fraction(2 * LOUD, 3)]
    measured = table.at_most("auto").map("page").measure(LOUD)
    assert measured.epsilon == Fraction(3 * LOUD, 4), "as if there were 100, however many there are"
    assert sources(measured.node)[0].unit.choice.bins == 100
    assert table.at_most("auto").count(LOUD, by="page", keys=pl.DataFrame({"page": ["a"]})).about["cost"]


def test_what_counts_people_needs_no_choice():
    table = opened()
    people = table.at_most("auto").map("user").distinct()
    assert round(people.count(LOUD).value) == 401
    assert list(table.budget.questions.values()) == [LOUD]
    whole = table.at_most("auto").group_by("user", len, whole=True).map("value")
    assert round(whole.measure(LOUD).observe(30)) == 1, "all records of each"


@pytest.mark.parametrize("keys", [None, ["a", "b"]])
def test_a_query_chooses_over_what_where_leaves(keys):
    rows = [*views(), *[("robot", "c")] * 900]
    table = opened(rows, budget=100 * LOUD)
    asked = {"epsilon": LOUD, "at_most": "auto", "keys": keys, "delta": None if keys else "1e-3"}
    found = wpinq.sql("SELECT page, COUNT(*) AS n FROM v WHERE page <> 'c' GROUP BY page", {"v": table}, **asked)
    assert dict(found.rows) == {page: sum(one == page for _, one in views()) for page in "ab"}
    most = int(unit_of(found).split("at most ")[1].split()[0])
    assert 30 <= most < 900, "the robot's records are of another question"
    assert table.budget.spent == LOUD
    assert found.about["cost"]["epsilon"] == pytest.approx(LOUD)


def test_explain_tells_the_price_and_charges_nothing():
    table = opened()
    told = wpinq.sql("EXPLAIN SELECT COUNT(*) FROM v", {"v": table}, epsilon=1, at_most="auto").frame
    assert told["epsilon"].to_list() == [0.5, 0.5]
    assert told["scale of noise"].to_list() == [2.0, None]
    assert table.budget.spent == 0
    with pytest.raises(PlanError, match="is chosen when a question is charged"):
        table.at_most("auto").quote(1)
    assert "is chosen when a question is charged" in table.at_most("auto").explain(1)


def test_the_curators_number_is_the_largest():
    table = opened(at_most=8)
    found = table.at_most("auto").count(LOUD)
    assert "at most 8 records each" in unit_of(found)
    assert best_bound(cells(20), 1e-6, 1e-6, 8) == 8
    assert best_bound(cells(20), 1e-6, 1e-6) >= 18
    assert best_bound(cells(20), 1e-6, 1e-6, 1) == 1


def cells(most):
    return pl.Series([50.0 if number <= most else 0.0 for number in GRID]).to_numpy()


def test_what_is_more_than_left_is_refused_before_the_choice_is_charged(tmp_path):
    table = opened(budget=1)
    for ask in (
        lambda: table.at_most("auto").count(2),
        lambda: wpinq.sql("SELECT COUNT(*) FROM v", {"v": table}, epsilon=2, at_most="auto"),
    ):
        with pytest.raises(BudgetError, match="choice and answer cost epsilon 2 together"):
            ask()
    assert table.budget.spent == 0
    table.at_most("auto").count(1)
    assert table.budget.left == 0


def test_an_analysts_cap_pays_for_the_choice(tmp_path):
    table = wpinq.protect(views(), 10, columns=COLUMNS, unit=wpinq.users("user"), name="v", ledger=tmp_path / "L")
    ledger = sources(table._node)[0].ledger
    ledger.cap("ann", Fraction(1, 2))
    with pytest.raises(BudgetError):
        table.at_most("auto").count(1, analyst="ann")
    assert table.budget.spent == 0
    table.at_most("auto").count("1/2", analyst="ann")
    assert {one.analyst for one in ledger.entries() if one.kind == "charge"} == {"ann"}


def test_what_does_not_fit_is_refused():
    table = opened()
    with pytest.raises(PlanError, match="without per="):
        table.at_most("auto", per=("page", 1))
    for odd in ("many", 0, 2.5, None):
        with pytest.raises(PlanError, match="at_most"):
            table.at_most(odd)
    with pytest.raises(PlanError, match="is chosen when a question is charged"):
        table.at_most("auto").count(within=5)
    with pytest.raises(PlanError, match="give epsilon="):
        wpinq.sql("SELECT COUNT(*) FROM v", {"v": table}, within=5, at_most="auto")
    both = table.at_most("auto").concat(table.filter("page = 'a'").at_most("auto"))
    with pytest.raises(PlanError, match="in two ways"):
        both.count(1)
    assert table.budget.spent == 0


def test_one_person_moves_the_choice_by_one():
    """Whatever they have, and whatever others have: by whole persons."""
    table = opened([], budget=10).at_most("auto")
    (found,) = [priced(table, [table._node], Fraction(1), 1)]
    plan = found.quote.node
    assert sum(sensitivities(plan).values()) == 1
    assert Survey.of(plan).unbounded is None
    assert len(waiting([table._node])) == 1
    others = views(20, 4, 0)
    for own in ([], [("p", "a")], [("p", "a")] * 7, [("p", "b")] * 5000, [("p", None), ("p", "a")]):
        with_, without = (evaluate(table._then(plan), rows) for rows in ([*others, *own], others))
        moved = {cell: with_.get(cell, 0) - without.get(cell, 0) for cell in {**with_, **without}}
        assert sum(map(abs, moved.values())) == (1 if own else 0)


@pytest.mark.parametrize("first", [False, True])
def test_nothing_is_chosen_where_another_table_is_bounded_by_nothing(first, tmp_path):
    """The choice would be paid for, and the question refused."""
    a, b = (
        wpinq.protect([("u", "a")] * 5, budget=10, columns={"user": str, "page": str}, unit=wpinq.users("user"),
                      ledger=tmp_path / "L", name=name, version="1")
        for name in "ab"
    )  # fmt: skip
    pages = [a.at_most("auto").map("page"), b.map("page")]
    with pytest.raises(PlanError, match=r"nothing bounds how far one user of 'b' moves this.*Nothing was charged"):
        (pages[0].concat(pages[1]) if first else pages[1].concat(pages[0])).measure(1)
    text = "SELECT COUNT(*) FROM (SELECT page FROM a UNION ALL SELECT page FROM b) AS both"
    with pytest.raises(PlanError, match=r"nothing bounds how far one user of 'b' moves this"):
        wpinq.sql(text, {"a": a, "b": b}, epsilon=1, at_most={"a": "auto"})
    assert a.budget.spent == 0
