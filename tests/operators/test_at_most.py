"""The question's own bound, and what is asked before it: the ledger knows the person, the question how much of them.

Kinds: definitions on whole persons, prices, what a ledger refuses; neighbours with and without one person over plans of
several bounds. Found, while it was built: nothing yet.
"""

import random
from fractions import Fraction

import pytest
from depth import deeper, often
from strategies import evaluate, run_flow, same

import wpinq
from wpinq.core.plan.stability import sensitivities
from wpinq.core.pricing.sensitivity import ledger_sensitivities
from wpinq.errors import LedgerError, PlanError

COLUMNS = {"user": str, "page": str, "n": int}
RECORDS = [("ann", "a", n) for n in range(9)] + [("ann", "b", n) for n in range(3)] + [("bob", "b", 1)]


def views(records=(), at_most=4, ledger=None, **more):
    return wpinq.protect(list(records), 100, columns=COLUMNS, unit=wpinq.users("user", at_most, **more), name="views",
                         version="1", ledger=ledger)  # fmt: skip


def total(collection, *inputs):
    return sum(evaluate(collection, *inputs).values())


def moves(collection):
    return sum(sensitivities(collection._node).values())


def test_each_question_has_a_bound_of_its_own():
    v = views()
    assert [total(c, RECORDS) for c in (v, v.at_most(2), v.at_most(100), v.at_most(6, per=("page", 2)))] == [
        5,
        3,
        13,
        5,
    ]
    assert [moves(c) for c in (v, v.at_most(2), v.at_most(100))] == [4, 2, 100]
    assert v.at_most(3).at_most(4)._node.unit == v._node.unit


def test_the_noise_is_of_the_questions_bound_and_the_cost_its_epsilon(tmp_path):
    v = views(RECORDS, ledger=tmp_path / "ledger")
    few, many = v.at_most(1).map("page").measure(1), v.at_most(50).map("page").measure(1)
    assert (few.scale, many.scale) == (1, 50)
    assert v.budget.spent == 2
    assert few.observe("a") != many.observe("a")


def test_a_ledger_is_of_people_under_any_bound_and_of_no_other_column(tmp_path):
    views(RECORDS, 4, tmp_path / "ledger").map("page").measure(1)
    again = views(RECORDS, 9, tmp_path / "ledger")
    assert again.budget.spent == 1
    again.map("page").measure(1)
    assert again.budget.spent == 2, "under another bound it is another question"
    views(RECORDS, 4, tmp_path / "ledger").map("page").measure(1)
    assert again.budget.spent == 2
    other = wpinq.users("page", at_most=4)
    with pytest.raises(LedgerError, match="whom it protects is fixed"):
        wpinq.protect(RECORDS, columns=COLUMNS, unit=other, name="views", version="1", ledger=tmp_path / "ledger")
    with pytest.raises(LedgerError, match="whom it protects is fixed"):
        wpinq.protect(RECORDS, columns=COLUMNS, name="views", version="1", ledger=tmp_path / "ledger")


def test_two_bounds_of_one_table_are_two_collections():
    """What a person moves by both adds up: of v.at_most(20) - v.at_most(3) it is 23."""
    v = views()
    assert moves(v.at_most(20).subtract(v.at_most(3))) == 23
    assert moves(v.filter("page = 'a'").concat(v.filter("page = 'b'"))) == 8
    parts = [v.at_most(most).partition("page", ["a", "b"]) for most in (2, 3)]
    for each, page in zip(parts, "ab", strict=True):
        each[page].measure(1)
    assert v.budget.spent == 2, "parts of two collections"
    parts[0]["b"].measure(1)
    assert v.budget.spent == 2


def test_what_is_asked_first_takes_no_places():
    v = views(at_most=2)
    assert total(v.filter("page = 'b'").map("page"), RECORDS) == 3
    assert total(v.filter(lambda page: page == "b").filter("n < 2").map("page"), RECORDS) == 3
    late = [v.map("user, page, n").filter("page = 'b'"), v.at_most(2).distinct().filter("page = 'b'")]
    assert all(total(c, RECORDS) <= 3 and "sample" not in c._node.title for c in late)
    shown = str(v.filter("page = 'b'").map("page").explain(1))
    assert shown.index("sample(") < shown.index("filter(") < shown.index("protect(")


def test_a_shared_weight_is_shared_by_what_is_asked_about():
    v = wpinq.protect([], 1, columns=COLUMNS, unit=wpinq.users("user", shared=True))
    assert evaluate(v.filter("page = 'b'").map("user"), RECORDS) == {("ann",): 1, ("bob",): 1}


@pytest.mark.parametrize("unit", [{}, {"period": 2, "at": "n"}])
def test_engine_and_definition_agree(unit):
    v = views(RECORDS, 2, **unit)
    plan = v.filter("page = 'b' OR n > 5").at_most(3, per=("page", 2)).map("page").concat(v.at_most(1).map("page"))
    assert same(run_flow(plan, 3), plan._node, evaluate(plan, RECORDS))


STEPS = [
    lambda v: v.at_most(3), lambda v: v.at_most(1), lambda v: v.at_most(5, per=("page", 1)),
    lambda v: v.filter("page = 'a'"), lambda v: v.filter(lambda n: n % 2), lambda v: v.filter("user <> 'zoe'"),
]  # fmt: skip
MEET = [
    lambda v, w: v.concat(w), lambda v, w: v.subtract(w), lambda v, w: v.union(w),
    lambda v, w: v.semijoin(w.map("user").distinct(), on="user"), lambda v, w: v.antijoin(w, on="page"),
    lambda v, w: v.join_rows(w, on="user", result=lambda user, page, n_2: (user, page, n_2), columns=[*COLUMNS]),
]  # fmt: skip
LAST = [
    lambda v: v.map("page"), lambda v: v.map("user").distinct(), lambda v: v.map("user, page").distinct().map("page"),
    lambda v: v.filter("n > 1").map("page"),
]  # fmt: skip


@deeper
def test_nobody_moves_questions_of_several_bounds_further_than_is_claimed():
    draw = random.Random(3)
    source = views(at_most=2)
    for _ in range(often(600)):
        sides = [draw.choice(STEPS)(draw.choice(STEPS)(source)) for _ in range(2)]
        plan = draw.choice(LAST)(draw.choice(MEET)(*sides))
        rows = [(draw.choice("uvw"), draw.choice("abc"), draw.randrange(4)) for _ in range(draw.randrange(12))]
        own = [("zoe", draw.choice("abc"), draw.randrange(4)) for _ in range(draw.randrange(9))]
        with_, without = (evaluate(plan, given) for given in (rows + own, rows))
        moved = [abs(Fraction(with_.get(key, 0)) - without.get(key, 0)) for key in {*with_, *without}]
        ((whole, one, _),) = ledger_sensitivities(plan._node).values()
        assert sum(moved) <= whole
        assert max(moved, default=0) <= one


def test_where_it_cannot_stand_it_says_so():
    with pytest.raises(PlanError, match="right after protect"):
        views().map("page").at_most(3)
    with pytest.raises(PlanError, match="right after protect"):
        wpinq.protect(RECORDS, 1, columns=COLUMNS).at_most(3)
    for wrong in ({"records": 0}, {"records": 2, "per": ("nope", 1)}, {"records": "3"}):
        with pytest.raises(PlanError):
            views().at_most(**wrong)


def test_a_query_has_a_bound_of_its_own():
    tables = {"v": views(RECORDS), "towns": [("x",)]}
    ask = {"epsilon": 1, "keys": ["a"], "name": "n"}
    query = "SELECT page, COUNT(*) FROM v GROUP BY page"
    asked = [{}, {"at_most": 1}, {"at_most": {"v": 30}}, {"at_most": 30, "per": ("page", 2)}]
    scales = [float(wpinq.sql(query, tables, **ask, **more).measurements[0].scale) for more in asked]
    assert scales == [4, 1, 30, 30]
    (row,) = wpinq.sql("SELECT COUNT(*) FROM v WHERE page = 'b'", {"v": views(RECORDS, 2)}, epsilon=90).rows
    assert row == (3,), "two of ann's and one of bob's"
    for wrong in (
        {"at_most": {"w": 3}},
        {"per": ("page", 1)},
        {"at_most": 0},
        {"at_most": 3, "per": {"w": ("page", 1)}},
    ):
        with pytest.raises(PlanError, match=r"at_most|per"):
            wpinq.sql(query, tables, **ask, **wrong)
    with pytest.raises(PlanError, match="is no table of people"):
        wpinq.sql(query, {"v": wpinq.protect(RECORDS, 1, columns=COLUMNS)}, **ask, at_most=3)
