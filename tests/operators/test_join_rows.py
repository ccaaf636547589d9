"""Join rows: pairs are counted, for what a person moves on both sides, and nothing without a bound is accepted."""

from collections import Counter
from fractions import Fraction

import pytest

import wpinq
from wpinq.plan.key_weight import key_weight
from wpinq.plan.stability import sensitivities
from wpinq.testing import check_stability, evaluate

LOUD = 4000
VISITS = [(f"u{i % 60}", f"clinic {i % 7}", i % 5) for i in range(400)]
PEOPLE = [(f"u{i}", "north" if i % 3 else "south") for i in range(50)]


def visits(records=VISITS, budget=10**6, **unit):
    kinds = {"user": str, "clinic": str, "n": int}
    unit = unit or {"at_most": 10}
    return wpinq.protect(records, budget=budget, columns=kinds, unit=wpinq.users("user", **unit), name="visits")


def people(records=PEOPLE, budget=10**6, **unit):
    kinds = {"user": str, "town": str}
    unit = unit or {"at_most": 1}
    return wpinq.protect(records, budget=budget, columns=kinds, unit=wpinq.users("user", **unit), name="people")


def test_pairs_are_counted_as_sql_counts_them():
    """A weighted join answered 927 for a cell whose truth is 4821."""
    town = dict(PEOPLE)
    truth = Counter((clinic, town[user]) for user, clinic, _ in VISITS if user in town)
    joined = visits().join_rows(people(), on="user").map(lambda clinic, town: (clinic, town))
    answer = joined.measure(LOUD).release(keys=sorted(truth))
    assert answer.columns == ("clinic", "town", "count")
    assert {row[:2]: row[2] for row in answer} == truth
    assert answer.bias == ("records beyond 10 of one user are not in it", "records beyond 1 of one user are not in it")


def test_noise_and_cost_are_those_of_what_a_person_moves():
    left, right = visits(at_most=10), people(at_most=3)
    joined = left.join_rows(right, on="user")
    assert [node.stability for node in (joined._node,)] == [(3, 10)]
    assert set(sensitivities(joined._node).values()) == {30}
    made = joined.measure(1)
    assert made.scale == 30
    assert [data.ledger.spent()[0] for data in made.quote.sources] == [1, 1]
    per = visits(at_most=10, per=("clinic", 2)).join_rows(right.map(lambda user, town: (user, town)), on="user")
    assert set(sensitivities(per._node).values()) == {30}
    both = visits(at_most=10, per=("clinic", 2))
    pairs = both.join_rows(visits(at_most=10), on=["user", "clinic"])
    assert pairs._node.most == (2, 10)


def test_each_neighbour_moves_it_by_no_more_than_is_stated():
    few = {"user": ["a", "b", None], "clinic": ["x", "y"], "n": [0, 1], "town": ["x", "y"]}
    left, right = visits((), at_most=3), people((), at_most=2)
    steps = {
        "plain": lambda: left.join_rows(right, on="user"),
        "filtered": lambda: left.filter("n > 0").map(lambda n, user: (n, user)).join_rows(right.distinct(), on="user"),
        "itself": lambda: left.join_rows(left, on="user", result=lambda n, n_2: (n, n_2)),
        "shared": lambda: visits((), shared=True).join_rows(right, on="user"),
        "per": lambda: visits((), at_most=3, per=("clinic", 1)).join_rows(left, on=["user", "clinic"]),
        "three": lambda: left.join_rows(right, on="user").join_rows(people((), at_most=1), on="user"),
        "limited": lambda: left.limit("clinic", 2).join_rows(right.limit("town"), left="clinic", right="town"),
    }
    for name, step in steps.items():
        check_stability(step(), examples=60, values=few), name


def test_the_bound_is_reached():
    """A person in both, with all that is allowed, moves it by the product; so nothing less would be enough."""
    left, right = visits((), at_most=3), people((), at_most=2)
    joined = left.join_rows(right, on="user").map("user")
    ours, theirs = [("a", "x", i) for i in range(9)], [("a", t) for t in "pqrs"]
    assert evaluate(joined, ours, theirs) == {("a",): 6}
    assert evaluate(joined, [], theirs) == evaluate(joined, ours, []) == {}


def test_whatever_loses_the_person_is_refused():
    left, right = visits(), people()
    records = wpinq.protect(VISITS, budget=1, columns={"user": str, "clinic": str, "n": int})
    windowed = visits(at_most=2, period=2, at="n")
    for side in (
        records, windowed, left.map(lambda user, n: (user + "!", n), columns={"user": str, "n": int}),
        left.map(lambda n: ("all", n), columns={"user": str, "n": int}), left.group_by("user", len),
    ):  # fmt: skip
        for one, other in ((side, right), (right, side)):
            with pytest.raises(wpinq.PlanError, match=r"nothing bounds how many records of one key \(user\)"):
                one.join_rows(other, on="user")
    with pytest.raises(wpinq.PlanError, match="nothing bounds"):
        left.join_rows(right, left="clinic", right="town")
    with pytest.raises(wpinq.PlanError, match=r"the left side.*\.limit\('clinic', n\)"):
        left.join_rows(right.limit("town"), left="clinic", right="town")
    with pytest.raises(wpinq.PlanError, match="nothing bounds"):
        left.join_rows(right, on=lambda user: user[:1])
    assert left._node.data.ledger.spent() == (0, 0)


def test_key_weights_follow_the_columns():
    left, user = visits(at_most=10, per=("clinic", 2)), frozenset(["user"])
    weight = lambda c, *names: key_weight(c._node, frozenset(names))  # noqa: E731
    assert key_weight(left._node, user) == 10
    assert (weight(left, "user", "clinic"), weight(left, "clinic"), weight(left)) == (2, None, None)
    assert (
        weight(left.map(lambda clinic, user: (clinic, user)).filter("clinic > 'a'").distinct(), "user", "clinic") == 2
    )
    assert weight(left.concat(left), "user") == 20
    assert weight(left.union(left), "user") == 20
    assert weight(left.limit("user", 4), "user") == 4
    assert weight(left.limit("user", 40), "user") == 10
    assert weight(left.limit(["user", "n"], 4), "user") == 10
    assert weight(left.semijoin(people(), on="user"), "user") == 10
    assert weight(visits(shared=True), "user") == 1
    assert weight(left.join(people(), on="user"), "user") is None
    deep = left
    for _ in range(60):  # each step is looked at once
        deep = deep.intersect(deep)
    assert weight(deep, "user") == Fraction(10) * 2**60


def test_a_key_holds_no_more_people_than_one():
    """Values of any type are one person where they are one key: 1 and 1.0 are, and 1 and "1" are not."""
    odd = [(1, 0), (1.0, 1), (True, 2), ("1", 3), (None, 4)]
    left = wpinq.protect(odd, budget=10**6, columns={"user": None, "n": int}, unit=wpinq.users("user", at_most=1))
    pairs = left.join_rows(left, on="user", result=lambda n, n_2: (n, n_2)).measure(LOUD)
    counts = pairs.observe_many([(i, j) for i in range(5) for j in range(5)]).reshape(5, 5)
    assert counts.sum() == counts.trace() == left.count(LOUD).value
    assert counts[3, 3] == counts[4, 4] == 1
