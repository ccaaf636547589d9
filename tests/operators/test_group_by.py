"""group_by: prefixes of falling weight, ties, signs, whole groups."""

from fractions import Fraction

import pytest
from strategies import Driver, distance, evaluate, expected, protected, run_flow, same

from wpinq.core.plan.stability import paths
from wpinq.errors import PlanError


def views(records=(), **more):
    return protected(records, user="text", page="text", **more)


def weights(**named):
    return {("k", page): Fraction(weight) for page, weight in named.items()}


def test_example_of_the_paper():
    """Weights 1, 2 and 2 of one key: the two heavy ones at (2 - 1) / 2, all three at 1 / 2."""
    plan = views().group_by("user", len)
    assert expected(plan, weights(a=1, b=2, c=2)) == {("k", 2): Fraction(1, 2), ("k", 3): Fraction(1, 2)}
    groups = views().group_by("user")
    half = Fraction(1, 2)
    heavy, all_ = (("k", "b"), ("k", "c")), (("k", "a"), ("k", "b"), ("k", "c"))
    assert expected(groups, weights(a=1, b=2, c=2)) == {("k", heavy): half, ("k", all_): half}


def test_signs_do_not_meet():
    """Privacy rule 18: with signed weights in one order, z between 300 and -200 would move the output by 401."""
    for plan in (views().group_by("user"), views().group_by("user", len)):
        before, after = weights(a=300, b=-200), weights(a=300, b=-200, z=1)
        assert distance(expected(plan, before), expected(plan, after)) <= 1
        driver = Driver(plan)
        driver.feed(before)
        driver.feed(weights(z=1))
        assert same(driver.histogram, plan._node, expected(plan, after))


def test_ties_make_no_group_between_them():
    found = evaluate(views().group_by("user"), [("k", "b"), ("k", "a"), ("k", "c")])
    assert found == {("k", (("k", "a"), ("k", "b"), ("k", "c"))): Fraction(1, 2)}


def test_arrival_does_not_matter():
    records = [("k", page) for page in "dacbe"] + [("m", "x")]
    for order in (records, records[::-1]):
        plan = views(order).group_by("user")
        assert same(run_flow(plan, 2), plan._node, expected(plan, {r: Fraction(1) for r in records}))


def test_len_is_the_reducer_len():
    quick, plain = (views().group_by("user", reduce, {"n": int}) for reduce in (len, lambda group: len(group) + 0))
    given = weights(a=1, b=5, c=-2, d=5) | {("m", "a"): Fraction(2)}
    assert expected(quick, given) == expected(plain, given)
    assert quick.columns == plain.columns == ("user", "n")


def test_whole_groups():
    plan = views().group_by("user", whole=True)
    found = evaluate(plan, [("k", "a"), ("k", "a"), ("m", "b")])
    assert found == {("k", (("k", "a"), ("k", "a"))): 1, ("m", (("m", "b"),)): 1}
    assert evaluate(views().group_by("user", len, whole=True), [("k", "a"), ("k", "a")]) == {("k", 2): 1}
    assert set(paths(plan._node).values()) == {2}
    assert expected(plan, weights(a=-3)) == {}


def test_whole_groups_need_whole_weights():
    with pytest.raises(PlanError, match="not whole"):
        views().shave("1/2").group_by("user", whole=True)


def test_a_reducer_that_raises_drops_its_group():
    plan = views([("k", "a"), ("m", "b"), ("m", "c")]).group_by("user", lambda group: 1 // (len(group) - 1))
    wanted = expected(plan, {("k", "a"): Fraction(1), ("m", "b"): Fraction(1), ("m", "c"): Fraction(1)})
    assert wanted == {("m", 1): Fraction(1, 2)}
    assert same(run_flow(plan), plan._node, wanted)


def test_a_group_knows_all_kinds():
    import datetime as dt

    record = (1, 0.5, "é", True, b"x", dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.timedelta(1), None)
    kinds = ["integer", "number", "text", "boolean", "bytes", "date", "timestamp", "duration", "value"]
    plan = protected([record], **dict(zip("abcdefghi", kinds, strict=True))).group_by("a")
    wanted = expected(plan, {record: Fraction(1)})
    assert list(wanted) == [(1, ((1, 0.5, "é", 1, b"x", *record[5:]),))]
    assert same(run_flow(plan), plan._node, wanted)
