"""union and intersect: maximum and minimum, and the pair at the price of one."""

from fractions import Fraction

import pytest
from depth import often
from hypothesis import given, settings
from strategies import Driver, collections, distance, evaluate, expected, leaves, neighbours, protected, same

from wpinq.core.plan.stability import sensitivities


def pages(name="left", fine=True):
    return protected(name=name, fine=fine, a="integer", b="integer")


def spent(collection):
    return leaves(collection)[0].data.ledger.spent()[0]


def test_maximum_and_minimum():
    left, right = protected(name="l", a="text"), protected(name="r", a="text")
    one, two = [("a",), ("a",), ("b",)], [("a",), ("c",)]
    assert evaluate(left.union(right), one, two) == {("a",): 2, ("b",): 1, ("c",): 1}
    assert evaluate(left.intersect(right), one, two) == {("a",): 1}


@settings(deadline=None, max_examples=often(40))
@given(neighbours(), neighbours())
def test_both_together_move_no_more_than_the_pair(left, right):
    """The reason for the price: |max' - max| + |min' - min| <= |a' - a| + |b' - b|, also with negative weights."""
    one, two = pages("left"), pages("right")
    plans = [one.union(two), one.intersect(two)]
    moved = sum(distance(expected(plan, left[0], right[0]), expected(plan, left[1], right[1])) for plan in plans)
    assert moved <= distance(*left) + distance(*right)


@settings(deadline=None, max_examples=often(20))
@given(collections, collections)
def test_maximum_and_minimum_sum_to_the_sum(left, right):
    one, two = pages("left"), pages("right")
    both = one.union(two).concat(one.intersect(two))
    assert distance(expected(both, left, right), expected(one.concat(two), left, right)) == 0
    assert set(sensitivities(both._node).values()) == {1}


def test_a_pair_is_charged_once():
    left = pages(fine=False)
    right = left.map(lambda a, b: (b, a))
    left.union(right).measure(epsilon=2)
    left.intersect(right).measure(epsilon=1)
    assert spent(left) == 2
    right.intersect(left).measure(epsilon=2)  # the same pair the other way round, under other names
    assert spent(left) == 3


def test_another_pair_is_charged():
    left = pages(fine=False)
    left.union(left.filter(lambda a: a > 1)).measure(epsilon=2)
    left.intersect(left.filter(lambda a: a > 2)).measure(epsilon=1)
    assert spent(left) == 3


def test_a_pair_that_cannot_be_told_pays_twice():
    import random

    left = pages(fine=False)
    right = left.filter(lambda a: random.random() * 0 < 1)
    left.union(right).measure(epsilon=2)
    left.intersect(right).measure(epsilon=1)
    assert spent(left) == 3


def test_aligns_meet():
    thin = pages(fine=False).shave("1/3").map(lambda a, b, index: (a, b))
    both = thin.union(pages(fine=False).shave("1/2").map(lambda a, b, index: (a, b)))
    assert both._node.resolution == 6
    assert expected(both, {(1, 1): Fraction(1)}, {(1, 1): Fraction(-1)}) == {(1, 1): Fraction(1)}


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("name", ["union", "intersect"])
def test_changes_after_the_first_meet_what_the_first_left(name, floats):
    """The first change is compared in columns, all later ones by identity: together they give the whole."""
    kind = "number" if floats else "integer"
    left, right = (protected(name=side, a=kind) for side in ("left", "right"))
    plan = getattr(left, name)(right)
    one, two = (1.5, 0.0) if floats else (1, 0)
    changes = [
        ({}, {}),
        ({(one,): Fraction(3), (two,): Fraction(-1)}, {(one,): Fraction(1)}),
        ({}, {}),
        ({(one,): Fraction(-2)}, {(one,): Fraction(1), (two,): Fraction(-2)}),
        ({(two,): Fraction(2)}, {(7,): Fraction(1)}),
    ]
    driver, sums = Driver(plan), [{}, {}]
    for change in changes:
        driver.feed(*change)
        for total, part in zip(sums, change, strict=True):
            for record, weight in part.items():
                total[record] = total.get(record, Fraction(0)) + weight
        assert same(driver.histogram, plan._node, expected(plan, *sums))
