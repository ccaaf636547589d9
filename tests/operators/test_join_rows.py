"""Join rows: pairs are counted, for what a person moves on both sides, and nothing without a bound is accepted."""

from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import deeper, often
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core.engines import local
from wpinq.core.engines.job import Job, Lowered
from wpinq.core.plan.person_bound import key_weight
from wpinq.core.plan.stability import sensitivities
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


@deeper
def test_each_neighbour_moves_it_by_no_more_than_is_stated():
    few = {"user": ["a", "b", None], "clinic": ["x", "y"], "n": [0, 1], "town": ["x", "y"]}
    left, right = visits((), at_most=3), people((), at_most=2)
    daily = visits((), at_most=2, period=2, at="n")
    steps = {
        "plain": lambda: left.join_rows(right, on="user"),
        "filtered": lambda: left.filter("n > 0").map(lambda n, user: (n, user)).join_rows(right.distinct(), on="user"),
        "itself": lambda: left.join_rows(left, on="user", result=lambda n, n_2: (n, n_2)),
        "shared": lambda: visits((), shared=True).join_rows(right, on="user"),
        "per": lambda: visits((), at_most=3, per=("clinic", 1)).join_rows(left, on=["user", "clinic"]),
        "three": lambda: left.join_rows(right, on="user").join_rows(people((), at_most=1), on="user"),
        "left": lambda: left.join_rows(right, on="user", how="left").map(lambda n, town: (n, town or "none")),
        "left, shared": lambda: left.join_rows(visits((), shared=True).map("user, n"), on="user", how="left"),
        "left of left": lambda: left.join_rows(right, on="user", how="left").join_rows(right, on="user", how="left"),
        "in a period": lambda: daily.join_rows(daily, on=["user", "n"]),
        "left in a period": lambda: daily.join_rows(daily.map("user, n").distinct(), on=["n", "user"], how="left"),
        "limited": lambda: left.limit("clinic", 2).join_rows(right.limit("town"), left="clinic", right="town"),
    }
    for name, step in steps.items():
        check_stability(step(), examples=often(60), values=few), name


def test_the_bound_is_reached():
    """A person in both, with all that is allowed, moves it by the product; so nothing less would be enough."""
    left, right = visits((), at_most=3), people((), at_most=2)
    outer = left.join_rows(right, on="user", how="left").map(lambda user, town: (user, town))
    joined = left.join_rows(right, on="user").map("user")
    ours, theirs = [("a", "x", i) for i in range(9)], [("a", t) for t in "pqrs"]
    assert evaluate(joined, ours, theirs) == {("a",): 6}
    assert evaluate(joined, [], theirs) == evaluate(joined, ours, []) == {}
    assert evaluate(outer, ours, []) == {("a", None): 3}
    assert evaluate(outer, ours, theirs[:1]) == {("a", "p"): 3}, "one record there moved 2 * 3"
    assert sorted(outer._node.source.stability) == [2, 6]


def test_whatever_loses_the_person_is_refused():
    left, right = visits(), people()
    records = wpinq.protect(VISITS, budget=1, columns={"user": str, "clinic": str, "n": int})
    windowed = visits(at_most=2, period=2, at="n")
    for side in (
        records, windowed, left.map(lambda user, n: (user + "!", n), columns={"user": str, "n": int}),
        left.map(lambda n: ("all", n), columns={"user": str, "n": int}),
        left.group_by("clinic", len).map("clinic AS user"),
    ):  # fmt: skip
        for one, other in ((side, right), (right, side)):
            for how in ("inner", "left"):
                with pytest.raises(wpinq.PlanError, match=r"nothing bounds how many records of one key \(user\)"):
                    one.join_rows(other, on="user", how=how)
    with pytest.raises(wpinq.PlanError, match="takes one of 'inner', 'left'"):
        left.join_rows(right, on="user", how="right")
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
    some = left.map(lambda clinic, user: (clinic, user)).filter("clinic > 'a'")
    assert (weight(some, "user", "clinic"), weight(some.distinct(), "user", "clinic")) == (2, 1)
    assert weight(left.concat(left), "user") == 20
    assert weight(left.union(left), "user") == 20
    assert weight(left.limit("user", 4), "user") == 4
    assert weight(left.limit("user", 40), "user") == 10
    assert weight(left.limit(["user", "n"], 4), "user") == 10
    assert weight(left.semijoin(people(), on="user"), "user") == 10
    assert weight(visits(shared=True), "user") == 1
    assert weight(left.join(people(), on="user"), "user") == Fraction(10, 11), "A B / (A + B)"
    assert weight(left.join(people(), on="user"), "clinic") is None
    assert (weight(left.group_by("user", len), "user"), weight(left.group_by("clinic", len), "clinic")) == (5, None)
    assert weight(left.group_by("user", len, whole=True), "user") == 1
    rows = left.join_rows(left, on=["user", "clinic"])
    assert weight(rows, "user", "clinic") == 4
    assert weight(rows, "user") == 10 * 2
    assert weight(people().join_rows(left, on="user", how="left"), "user") == 10
    assert weight(left.join_rows(visits(shared=True), on="user", how="left"), "user", "clinic") == 2
    assert weight(left.join_rows(left, on="user", how="left"), "user_2") is None, "of those without a partner"
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


def test_people_in_one_period_are_joined_on_its_time(tmp_path):
    """Records of one person at one time are in one period; all of a person's are bounded by nothing."""
    daily = visits(at_most=3, period=1, at="n")
    assert key_weight(daily._node, frozenset(["user", "n"])) == 3
    assert key_weight(daily._node, frozenset(["user"])) is key_weight(daily._node, frozenset(["n"])) is None
    truth = sum(min(count, 3) ** 2 for count in Counter((user, n) for user, _, n in VISITS).values())
    pairs = daily.join_rows(daily, on=["user", "n"])
    assert pairs.count(epsilon=LOUD).value == truth > 0
    assert set(sensitivities(pairs._node).values()) == {18}
    with pytest.raises(wpinq.PlanError, match="in one period, on the column of the time too"):
        daily.join_rows(daily, on="user")


@pytest.mark.parametrize("kinds", [{"user": str, "n": int}, {"user": None, "n": None}, {"user": float, "n": str}])
def test_what_has_no_partner_stays_in_whatever_way_it_comes(kinds):
    """Pairs by columns, by identities and by changes: all are what SQL's LEFT JOIN gives."""
    user = float if kinds["user"] is float else str
    ours = [(user(i % 6), str(i) if kinds["n"] is str else i) for i in range(12)] + [(None, None)]
    theirs = [(user(1), "x"), (user(2), "x"), (user(2), "y")]
    left = wpinq.protect(ours, 10**6, columns=kinds, unit=wpinq.users("user", at_most=2))
    right = wpinq.protect(theirs, 10**6, columns={"user": kinds["user"], "t": str}, unit=wpinq.users("user", at_most=2))
    town = {user(1): ["x"], user(2): ["x", "y"]}
    truth = Counter((one, other) for one, _ in ours for other in town.get(one, [None]))
    for pairs in (
        left.join_rows(right, on="user", how="left", result=lambda user, t: (user, t)),
        left.map(lambda user: user, columns=["user"]).join_rows(
            right, on="user", how="left", result=lambda user, t: (user, t)
        ),
    ):
        assert dict(zip(truth, pairs.measure(LOUD).observe_many(list(truth)), strict=True)) == truth
    live = wpinq.live(kinds, 10**6, unit=wpinq.users("user", at_most=2))
    both = live.join_rows(live.filter(lambda user: user is not None), on="user", how="left").map(lambda user: user)
    for some in (ours[:5], ours[5:]):
        found = both.measure(LOUD)
        live.send(some)
        live.advance()
    count = Counter(one for one, _ in ours)
    assert list(found.observe_many(list(count))) == [n**2 if one is not None else 1 for one, n in count.items()]
    live.close()


@pytest.mark.parametrize("how", ["inner", "left"])
def test_one_collection_on_both_sides_is_read_and_held_once_and_two_are_not(how):
    views = visits(at_most=3)
    again = views.filter(lambda n: n < 2)
    for other, keys, ports in ((views, "user", 1), (visits(at_most=3), "user", 2), (again, "user", 2)):
        plan = views.join_rows(other, on=keys, how=how)
        node, lowered = plan._node, Lowered(Job([plan._node], bytes(16)))
        assert len(lowered.shapes[node].keys) == len(lowered.ups(node)) == ports
    limited = [views.limit(column, 3) for column in ("user", "user", "n")]
    crossed = limited[0].join_rows(limited[2], left="user", right="n", how=how)
    alike = limited[0].join_rows(limited[1], on="user", how=how)
    for plan, ports in ((crossed, 2), (alike, 1)):
        assert len(Lowered(Job([plan._node], bytes(16))).ups(plan._node)) == ports


@deeper
@settings(deadline=None, max_examples=often(40))
@given(rows=st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3)), max_size=20))
def test_pairs_of_a_collection_with_itself_are_those_of_it_with_its_equal(rows):
    """As columns of both sides, of one, or the key alone are read; the equal is another step, of records alike."""
    frame = pl.DataFrame(rows, {"user": pl.String, "n": pl.Int64}, orient="row")
    one = wpinq.protect(frame, budget=9, unit=wpinq.users("user", at_most=3), name="visits")
    other = one.map([pl.col("n"), pl.col("user")]).map([pl.col("user"), pl.col("n")])
    for how in ("inner", "left"):
        for make in (list, lambda names: names[:1], lambda names: names[1:2], lambda names: names[2:]):
            itself, equal = (one.join_rows(side, on="user", how=how) for side in (one, other))
            chosen = make(itself.columns)
            contents = [
                local.run(Job([plan.map([pl.col(name) for name in chosen])._node], bytes(16)), threads=1)[0].content()
                for plan in (itself, equal)
            ]
            assert all(np.array_equal(*pair) for pair in zip(*contents, strict=True))


def test_a_rule_that_held_two_collections_once_would_be_found(monkeypatch):
    frame = pl.DataFrame({"user": ["a", "a", "b"], "n": [1, 2, 3]})
    one = wpinq.protect(frame, budget=9, unit=wpinq.users("user", at_most=3), name="visits")
    job = Job([one.join_rows(one.filter(pl.col("n") < 3), on="user")._node], bytes(16))
    assert sum(local.run(job, threads=1)[0].content()[1]) == 4
    monkeypatch.setattr(Lowered, "_once", lambda self, node, shape: getattr(shape, "itself", None) or shape)
    assert sum(local.run(job, threads=1)[0].content()[1]) == 5
