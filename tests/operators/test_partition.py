"""partition: parts are declared, disjoint and charged together."""

from fractions import Fraction

import pytest
from strategies import evaluate, expected, leaves, protected, run_flow, same

from wpinq.core.plan.stability import sensitivities
from wpinq.errors import PlanError

RECORDS = [("Mon", 1), ("Mon", 2), ("Tue", 1), (None, 4)]


def days(records=()):
    return protected(records, day="text", hour="integer")


def spent(collection):
    return leaves(collection)[0].data.ledger.spent()[0]


def test_parts_are_what_was_declared():
    parts = days(RECORDS).partition("day", ["Mon", "Sun", None])
    assert list(parts) == ["Mon", "Sun", None]
    assert evaluate(parts["Mon"], RECORDS) == {("Mon", 1): 1, ("Mon", 2): 1}
    assert evaluate(parts["Sun"], RECORDS) == {}
    assert evaluate(parts[None], RECORDS) == {(None, 4): 1}
    counted = dict.fromkeys(RECORDS, Fraction(1))
    for part in parts.values():
        assert same(run_flow(part), part._node, expected(part, counted))


def test_the_largest_part_is_charged():
    collection = days(RECORDS)
    parts = collection.partition("day", ["Mon", "Tue", "Wed"])
    for epsilon, part in zip((1, 3, 2), parts.values(), strict=True):
        part.measure(epsilon=epsilon)
    assert spent(collection) == 3
    parts["Mon"].map(lambda hour: hour).measure(epsilon=1)  # Monday has spent 2 now
    assert spent(collection) == 3
    parts["Mon"].measure(epsilon=2)
    assert spent(collection) == 4
    collection.measure(epsilon=1)
    assert spent(collection) == 5


def test_the_same_partition_written_twice_is_one():
    collection = days(RECORDS)
    collection.partition("day", ["Mon"])["Mon"].measure(epsilon=2)
    collection.partition("day", ["Tue"])["Tue"].measure(epsilon=1)
    assert spent(collection) == 2


def test_other_partitions_add_up():
    collection = days(RECORDS)
    collection.partition("day", ["Mon"])["Mon"].measure(epsilon=2)
    collection.partition("hour", [1])[1].measure(epsilon=1)
    collection.filter(lambda hour: hour > 0).partition("day", ["Tue"])["Tue"].measure(epsilon=1)
    assert spent(collection) == 4


def test_a_key_that_cannot_be_told_is_one_partition_by_call():
    import random

    def key(day, hour):
        return random.random() * 0

    collection = days(RECORDS)
    for _ in range(2):
        parts = collection.partition(key, [0, 1])
        parts[0].measure(epsilon=1)
        parts[1].measure(epsilon=1)
    assert spent(collection) == 2


def test_parts_in_parts():
    collection = days(RECORDS)
    for part in collection.partition("day", ["Mon", "Tue"]).values():
        for inner in part.partition("hour", [1, 2]).values():
            inner.measure(epsilon=1)
    assert spent(collection) == 1


def test_parts_put_together_move_as_one():
    parts = days().partition("day", ["Mon", "Tue"])
    (move,) = sensitivities(parts["Mon"].concat(parts["Tue"])._node).values()
    assert move == 1
    (move,) = sensitivities(parts["Mon"].concat(parts["Mon"])._node).values()
    assert move == 2


def test_equal_parts_are_refused():
    with pytest.raises(PlanError, match="twice"):
        days().partition("hour", [1, 1.0])
    with pytest.raises(PlanError, match="does not fit"):
        days().partition("hour", ["one"])
    with pytest.raises(PlanError, match="does not fit"):
        days().partition(["day", "hour"], ["Mon"])


def test_keys_of_several_columns():
    parts = days().partition(["day", "hour"], [("Mon", 1)])
    assert evaluate(parts["Mon", 1], RECORDS) == {("Mon", 1): 1}


@pytest.mark.parametrize("value", [0.0, None, float("inf")])
def test_numbers_are_compared_as_values(value):
    records = [(0.0,), (-0.0,), (float("nan"),), (float("inf"),)]
    part = protected(records, x="number").partition("x", [value])[value]
    wanted = expected(part, {(0.0,): Fraction(2), (None,): Fraction(1), (float("inf"),): Fraction(1)})
    assert len(wanted) == 1
    assert same(run_flow(part), part._node, wanted)
