"""Loss: what a bound leaves out, counted at a price that one person's records say nothing about."""

from collections import Counter
from fractions import Fraction

import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.aggregates.clipping_loss import ask_loss
from wpinq.core.plan.stability import sensitivities
from wpinq.testing import check_stability, evaluate

LOUD = 4000
ROWS = [(f"u{i % (1 + i % 40)}", f"p{i % 5}") for i in range(2000)]


def views(records=ROWS, budget=10**5, **unit):
    unit = unit or {"at_most": 20}
    return wpinq.protect(records, budget=budget, columns={"user": str, "page": str}, unit=wpinq.users("user", **unit))


def losses(collection, most):
    return collection._then(ask_loss(collection, 1, at_most=most, name=None, analyst=None).quote.node)


def test_what_is_left_out_is_told_of_people_and_records():
    of = Counter(user for user, _ in ROWS)
    answer = wpinq.loss(views().map("page"), LOUD, at_most=500)
    (_, people), (_, records) = answer.rows
    assert people == sum(n > 20 for n in of.values())
    assert records == pytest.approx(sum(max(n - 20, 0) for n in of.values()), abs=2)
    assert answer.bias == ("records beyond 500 that one user lost are not in it",)
    assert "epsilon 4000" in repr(answer)
    kept = views().count(LOUD).value
    assert kept + records == pytest.approx(len(ROWS), abs=3)


def test_a_bound_for_each_value_is_counted_too():
    by, users = Counter(ROWS), {user for user, _ in ROWS}
    inside = {user: min(6, sum(min(n, 2) for (one, _), n in by.items() if one == user)) for user in users}
    answer = wpinq.loss(views(at_most=6, per=("page", 2)), LOUD, at_most=1000)
    assert answer.rows[1][1] == pytest.approx(len(ROWS) - sum(inside.values()), abs=3)


def test_it_costs_what_two_numbers_of_a_person_cost():
    collection = views()
    made = wpinq.loss(collection, "0.1", at_most=30).measurements[0]
    assert made.scale == 20
    assert set(sensitivities(made.node).values()) == {2}
    ledger = collection._node.data.ledger
    assert ledger.spent()[0] == Fraction(1, 10)
    wpinq.loss(collection.map("page"), "0.1", at_most=30)  # the plan does not matter, and the second time is free
    assert ledger.spent()[0] == Fraction(1, 10)
    low, high = wpinq.loss(collection, "0.1", at_most=30).intervals[1][1]
    assert (high - low) / 2 == 30 * made.interval()


@pytest.mark.parametrize("unit", [{"at_most": 1}, {"at_most": 2, "per": ("page", 1)}, {"at_most": 3}])
def test_neighbours_move_it_by_no_more_than_is_stated(unit):
    """A person may lose any number of records: what is counted of them is capped."""
    for most in (1, 2):
        check_stability(
            losses(views((), **unit), most), examples=80, values={"user": ["a", "b", None], "page": ["x", "y"]}
        )


def test_one_person_with_everything_moves_it_by_two():
    plan = losses(views((), at_most=2), 3)
    assert evaluate(plan, [("a", str(i)) for i in range(99)]) == {(0,): 1, (1,): 1}
    assert evaluate(plan, [("a", str(i)) for i in range(3)]) == {(0,): 1, (1,): Fraction(1, 3)}
    assert evaluate(plan, [("a", "x"), ("a", "y")]) == {}


@settings(max_examples=often(15))
@given(
    rows=st.lists(st.tuples(st.sampled_from([*"abc", None]), st.sampled_from([*"xyz", None])), max_size=40),
    unit=st.sampled_from([{"at_most": 2}, {"at_most": 3, "per": ("page", 1)}, {"at_most": 1}]),
    most=st.sampled_from([1, 2, 50]),
)
def test_the_engine_counts_as_the_definition_does(rows, unit, most):
    collection = views(rows, **unit)
    truth = evaluate(losses(collection, most), rows)
    people, records = (value for _, value in wpinq.loss(collection, LOUD, at_most=most).rows)
    assert (people, records) == (truth.get((0,), 0), pytest.approx(float(most * truth.get((1,), 0)), abs=most / 20))


def test_where_nothing_is_left_out_nothing_is_charged():
    both = views().join_rows(views(), on="user")
    records = wpinq.protect(ROWS, budget=1, columns=("user", "page"))
    live = wpinq.live({"user": str}, budget=1, unit=wpinq.users("user", at_most=2))
    for collection in (views(shared=True), records, both, live):
        with pytest.raises(wpinq.PlanError, match="loss: "):
            wpinq.loss(collection, 1)
    for most in (0, -1, True, 1.5, 10**7):
        with pytest.raises(wpinq.PlanError, match=r"loss\(at_most=\.\.\.\)"):
            wpinq.loss(views(), 1, at_most=most)
    live.close()
