"""semijoin, antijoin and limit: a key is enforced, not trusted."""

from fractions import Fraction

import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import evaluate, expected, protected, run_flow, same

from wpinq.core.plan.stability import paths
from wpinq.errors import PlanError

ORDERS = [(1, "Mon"), (2, "Tue"), (3, "Wed")]
ITEMS = [(1,), (1,), (3,), (9,)]


def orders(records=()):
    return protected(records, name="orders", order="integer", day="text")


def items(records=()):
    return protected(records, name="items", order="integer")


def test_one_to_one_costs_no_weight():
    assert evaluate(orders().semijoin(items(), on="order"), ORDERS, ITEMS) == {(1, "Mon"): 1, (3, "Wed"): 1}
    assert evaluate(orders().antijoin(items(), on="order"), ORDERS, ITEMS) == {(2, "Tue"): 1}


def test_a_key_that_is_not_unique_gives_no_more_than_the_other_side_has():
    twice = [(1, "Mon"), (1, "Tue"), (1, "Wed")]
    kept = evaluate(orders().semijoin(items(), on="order"), twice, ITEMS)
    assert sum(kept.values()) == 2
    kept = evaluate(orders().semijoin(items().distinct(), on="order"), twice, ITEMS)
    assert sum(kept.values()) == 1


@settings(deadline=None, max_examples=often(30))
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc")), max_size=8), st.lists(st.integers(0, 3), max_size=6)
)
def test_semijoin_and_antijoin_make_up_the_whole(records, keys):
    left, right = orders(records), items([(key,) for key in keys])
    counted = [{r: Fraction(records.count(r)) for r in records}, {(k,): Fraction(keys.count(k)) for k in keys}]
    both = [left.semijoin(right, on="order"), left.antijoin(right, on="order")]
    for plan in both:
        assert same(run_flow(plan), plan._node, expected(plan, *counted))
    for record in counted[0]:
        parts = [expected(plan, *counted).get(record, 0) for plan in both]
        if records.count(record) == sum(key == record[0] for key, _ in records):  # a unique key needs no order
            assert parts[0] == min(records.count(record), keys.count(record[0]))
        assert min(parts) >= 0


def test_prices():
    plan = orders().semijoin(items(), on="order")
    assert {data.name: uses for (data, _), uses in paths(plan._node).items()} == {"orders": 2, "items": 1}
    assert set(paths(orders().limit("order")._node).values()) == {2}


def test_limit():
    twice = [(1, "Mon"), (1, "Tue"), (2, "Tue"), (2, "Tue"), (2, "Tue")]
    found = evaluate(orders().limit("order", 2), twice)
    assert found == {(1, "Mon"): 1, (1, "Tue"): 1, (2, "Tue"): 2}
    one = evaluate(orders().limit("order"), twice)
    assert sum(one.values()) == 2
    assert one[2, "Tue"] == 1


def test_negative_weights_keep_nothing():
    plan = orders().limit("order")
    assert expected(plan, {(1, "Mon"): Fraction(-5), (1, "Tue"): Fraction(1)}) == {(1, "Tue"): Fraction(1)}


def test_keys_by_function():
    plan = orders().semijoin(items(), left=lambda order, day: order + 1, right="order")
    assert plan.columns == ("order", "day")
    assert evaluate(plan, [(0, "x"), (5, "y")], ITEMS) == {(0, "x"): 1}


def test_refusals():
    with pytest.raises(PlanError, match="name the key"):
        orders().semijoin(items())
    with pytest.raises(PlanError, match="differ in number"):
        orders().antijoin(items(), left=["order", "day"], right="order")
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(PlanError, match="whole number"):
            orders().limit("order", wrong)
