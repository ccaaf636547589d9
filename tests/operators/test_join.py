"""Join: the exact rule, its traps, and the dither of chained joins."""

from fractions import Fraction

import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, distance, evaluate, expected, protected, run_flow, same

import wpinq
from wpinq.core.operators.pairs import PairWeighting
from wpinq.core.plan.node import fingerprints, steps
from wpinq.core.plan.stability import paths
from wpinq.errors import PlanError

K = 2**40


def edges(records=(), **more):
    return protected(records, a="integer", b="integer", **more)


def weight(a, b, total):
    """The rule, written a second time."""
    return Fraction(a * b * max(0, K * K // total - K), K * K)


def reciprocal(total, scale, most=None):
    return PairWeighting(scale, 1, most).rate(total)


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 200), st.none() | st.integers(1, 200))
def test_the_step_that_the_proof_bounds(a, b, scale, most):
    """One unit more on one side moves the output by one unit at the most, for every K and however the side is split."""
    total = a + b
    g, d = reciprocal(total + 1, scale, most), reciprocal(total, scale, most) - reciprocal(total + 1, scale, most)
    assert d >= 0
    assert b * (g + a * d) <= scale * scale
    for own in range(a + 1):
        assert b * abs((own + 1) * g - own * (g + d)) + (a - own) * b * d <= scale * scale


@given(st.integers(2, 2**41), st.integers(0, 2**41), st.none() | st.integers(1, 2**32))
def test_the_step_near_the_ends(total, left, most):
    a = left % (total + 1)
    g, d = reciprocal(total + 1, K, most), reciprocal(total, K, most) - reciprocal(total + 1, K, most)
    assert (total - a) * (g + a * d) <= K * K


def test_without_the_subtraction_the_bound_breaks():
    """The trap that the rule mends: floor(2^f / D) alone is not 1-stable (f = 16 first fails at D = 144)."""
    worst = 0
    for total in range(100, 200):
        for a in range(total):
            g, d = 2**16 // (total + 1), 2**16 // total - 2**16 // (total + 1)
            worst = max(worst, (total - a) * (g + a * d))
    assert worst > 2**16


def test_heavy_key_is_aggregated():
    """150,000 records on each side: expanded they would be 2.25e10 pairs."""
    many = 150_000
    left = wpinq.protect(pl.DataFrame({"k": [1] * many, "x": range(many)}), budget=10)
    right = wpinq.protect(pl.DataFrame({"k": [1] * many, "y": range(many)}), budget=10)
    plan = left.join(right, on="k", result=lambda k: k)
    _, words = run_flow(plan).content()
    ((low, high),) = words.tolist()
    exact = weight(many, many, 2 * many)
    assert abs(Fraction(low + (high << 64), 2**40) - exact) <= Fraction(1, 2**40)  # the measurement's dither
    assert 0.999_999 * 75_000 < exact < 75_000
    assert plan._node.resolution == 2**80


@pytest.mark.parametrize(("m", "n"), [(171_709, 145_497), (50_000, 50_000), (20_000, 30_000)])
def test_removing_one_record_of_a_heavy_key_moves_its_weight(m, n):
    """Pairs that are rounded one by one would move by up to 116.8 weights here."""
    for scale in (1, 2, 7):
        pair, gone = (Fraction(scale * scale * max(0, K * K // (scale * t) - K), K * K) for t in (m + n, m + n - 1))
        moved = n * abs(pair) + (m - 1) * n * abs(gone - pair)
        assert moved <= scale


def test_products_beyond_64_bits():
    big = 2**39
    left = {(1, i): Fraction(big - i) for i in range(2)}
    right = {(1, 5): Fraction(big // 3), (1, 6): Fraction(-big // 5)}
    plan = edges(name="l").join(edges(name="r"), on="a", result=lambda b, b_2: (b, b_2))
    total = sum(abs(w) for side in (left, right) for w in side.values())
    assert total > K
    driver = Driver(plan)
    driver.feed(left, right)
    assert same(driver.histogram, plan._node, {})  # so heavy a key weighs nothing
    small = {record: w / 2**4 for record, w in right.items() if (w / 2**4).denominator == 1}
    left = {record: Fraction(2**32 + 1) for record in left}
    right = {record: Fraction(2**33 - 1) for record in right} | small
    driver = Driver(plan)
    driver.feed(left, right)
    wanted = expected(plan, left, right)
    assert wanted
    assert same(driver.histogram, plan._node, wanted)


def test_two_records_of_multiplicity_two():
    """Products in 32 or 64 bits could wrap to a negative weight here."""
    found = evaluate(edges(name="l").join(edges(name="r"), on="a"), [(1, 2), (1, 2)], [(1, 3), (1, 3)])
    assert found == {(1, 2, 3): weight(2, 2, 4)}
    assert abs(found[1, 2, 3] - 1) < Fraction(1, 10**9)


def test_cancelling_totals_still_count():
    """D is made of absolute weights: what cancels in the sum does not in D."""
    left, right = {(1, 0): Fraction(3), (1, 1): Fraction(-3)}, {(1, 0): Fraction(2)}
    plan = edges(name="l").join(edges(name="r"), on="a", result=lambda b, b_2: (b, b_2))
    assert expected(plan, left, right)  # dithered to 2^-40, near 6 / 8
    key = edges(name="l").join(edges(name="r"), on="a", result=lambda a: a)
    assert expected(key, left, right) == {}
    for collection in (plan, key):
        driver = Driver(collection)
        driver.feed(left, right)
        assert same(driver.histogram, collection._node, expected(collection, left, right))


@pytest.mark.parametrize("at_most", [None, 20])
def test_what_cancels_between_records_of_a_key_still_counts(at_most):
    """Of a difference whole records are read: a sum over fewer columns would lose what D must count."""
    fewer = edges(name="l").subtract(edges(name="m"))
    plan = fewer.join(edges(name="r"), on="a", result=lambda a: a, at_most=at_most)
    given = [
        {(1, 0): Fraction(3), (1, 1): Fraction(2)},
        {(1, 1): Fraction(1), (1, 2): Fraction(3)},
        {(1, 0): Fraction(4)},
    ]
    driver = Driver(plan)
    driver.feed(*given)
    assert same(driver.histogram, plan._node, expected(plan, *given))
    assert len(expected(plan, *given)) == 1


def test_of_records_the_columns_are_read_that_a_join_needs():
    views, pages = (protected(name=name, a="integer", b="integer", c="integer") for name in "vp")
    few = [(views, pages), (views.filter(lambda b: b > 0), pages.concat(pages)), (views.subtract(views), pages)]
    read = [[{"a"}, {"a", "c"}], [{"a"}, {"a", "c"}], [{"a", "b", "c"}, {"a", "c"}]]
    for (left, right), names in zip(few, read, strict=True):
        joined = left.join(right, on="a", result=lambda c_2: c_2)._node.source
        assert [set(one) for one in joined.required(frozenset({"c_2"}))] == names


@pytest.mark.parametrize("kind", ["integer", "number", "value"])
def test_keys_are_equal_as_values_are(kind):
    left = protected([(1,), (2,), (None,)], name="l", k="integer")
    right = protected([(1,), (3,), (None,)], name="r", k=kind)
    plan = left.join(right, on="k")
    one = [{(1,): Fraction(1), (2,): Fraction(1), (None,): Fraction(1)}]
    wanted = expected(plan, *one, {(1,): Fraction(1), (3,): Fraction(1), (None,): Fraction(1)})
    assert set(wanted) == {(1,), (None,)}
    assert same(run_flow(plan), plan._node, wanted)


def test_names_of_the_result():
    left, right = edges(name="l"), edges(name="r")
    assert left.join(right, on="a").columns == ("a", "b", "b_2")
    assert left.join(right, left="b", right="a").columns == ("b", "a", "b_2")
    assert left.join(right, on=["a", "b"]).columns == ("a", "b")
    assert left.join(right, on=lambda a, b: a + b).columns == ("key", "a", "b", "a_2", "b_2")
    assert left.join(right, on="a", result=lambda a, b, b_2: a).columns == ("a",)


def test_chained_joins_are_dithered():
    nodes = edges()
    paths2 = nodes.join(nodes, left="b", right="a", result=lambda a, b, b_2: (a, b, b_2))
    paths3 = paths2.join(nodes, left="b_2", right="a", result=lambda a, b, b_2: (a, b_2))
    assert paths2._node.resolution == 2**80
    assert paths3._node.resolution == 2**40
    (uses,) = paths(paths3._node).values()
    assert 3 < uses < 3 + Fraction(1, 2**10)
    records = [(i % 5, (3 * i + i // 5) % 5) for i in range(25)]
    plan = paths3
    counted = {r: Fraction(records.count(r)) for r in records}
    chained = edges(records)
    again = chained.join(chained, left="b", right="a", result=lambda a, b, b_2: (a, b, b_2))
    again = again.join(chained, left="b_2", right="a", result=lambda a, b, b_2: (a, b_2))
    wanted = expected(again, counted)
    assert same(run_flow(again, shards=3), again._node, wanted)
    moved = dict(counted)
    moved[1, 1] = moved.get((1, 1), Fraction(0)) + 1
    assert distance(expected(plan, counted), expected(plan, moved)) <= uses
    assert [node.title for node in steps(plan._node) if "dither" in node.title] == ["join(b_2 = a) with dither"]


def test_what_a_dithered_join_needs_does_not_depend_on_what_is_read():
    """A dither is fixed by the plan: it must not change with what another measurement of the same run reads."""
    half = protected([(i % 3, i) for i in range(12)], a="integer", b="integer").shave("1/1000")
    plan = half.join(half, on="a")
    whole, narrow = (plan._node.lower(frozenset(names)) for names in (plan.columns, ("a",)))
    kept = [shape.state(b"\0" * 16)._ports[0].keep for shape in (whole, narrow)]
    assert kept[0] == kept[1]


@settings(deadline=None, max_examples=often(20))
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=30), st.integers(1, 4))
def test_order_and_shards_do_not_matter(records, shards):
    left = edges(records, name="l")
    plan = left.join(left, on="a", result=lambda b, b_2: (b, b_2))
    back = edges(records[::-1], name="l")
    again = back.join(back, on="a", result=lambda b, b_2: (b, b_2))
    counted = {r: Fraction(records.count(r)) for r in records}
    assert same(run_flow(plan, shards), plan._node, expected(plan, counted))
    assert same(run_flow(again, 1), again._node, expected(again, counted))


def test_a_bound_on_keys_bounds_pairs_and_costs_nothing():
    """Key 1 weighs 6 and key 2 weighs 10: the one keeps 1 - 6/10 of its weight, the other has no pairs."""
    rows = [(1, n) for n in range(3)] + [(2, n) for n in range(5)]
    left, right = edges(rows, name="l"), edges(rows, name="r")
    plan = left.join(right, on="a", at_most=10)
    found = expected(plan, *[dict.fromkeys(rows, Fraction(1))] * 2)
    assert set(found) == {(1, x, y) for x in range(3) for y in range(3)}
    ideal = Fraction(1, 6) - Fraction(1, 10)
    assert all(abs(one - ideal) <= Fraction(1, 2**40) for one in found.values())  # the measurement's dither
    assert same(run_flow(plan, 2), plan._node, found)
    assert set(paths(plan._node).values()) == {1}
    assert "keep 1 - D/10" in plan._node.rounding
    assert "at most 10" in plan._node.title
    other = left.join(right, on="a")._node
    assert fingerprints(plan._node)[plan._node] != fingerprints(other)[other]
    for most in (0, -1, 2**32 + 1, 1.5, True):
        with pytest.raises(PlanError, match="a whole number from 1"):
            left.join(right, on="a", at_most=most)


def test_a_bound_far_off_changes_nothing_but_little():
    rows = [(1, n) for n in range(4)]
    left, right = edges(rows, name="l"), edges(rows, name="r")
    bounded, free = (left.join(right, on="a", at_most=most) for most in (2**32, None))
    one, other = (expected(plan, *[dict.fromkeys(rows, Fraction(1))] * 2) for plan in (bounded, free))
    assert all(0 <= other[x] - one[x] <= other[x] * 9 / 2**32 for x in other)


def test_refusals():
    left, right = edges(name="l"), edges(name="r")
    with pytest.raises(PlanError, match="name the key"):
        left.join(right)
    with pytest.raises(PlanError, match="name the key"):
        left.join(right, left="a")
    with pytest.raises(PlanError, match="differ in number"):
        left.join(right, left="a", right=["a", "b"])
    with pytest.raises(PlanError, match=r"^join\(on=...\): no column 'c'; there are "):
        left.join(right, on="c")
    for odd in (("a", "c"), {"a": "c"}):  # as pandas and Polars would have two names
        with pytest.raises(PlanError, match="Keys of different names are given as left= and right="):
            left.join(right, on=odd)


def test_what_is_left_of_a_bound_on_a_fine_resolution_passes_64_bits():
    pages = protected(a="integer", b="integer")
    joined = pages.join(pages, on="a", result=lambda a, b: (a, b), columns=("a", "b"))
    bound = pages.join(joined, on="a", at_most=3)
    (weight,) = evaluate(bound, [(0, 0)]).values()  # 1 * 1/2 / (1 + 1/2), of which half is left below 3
    assert abs(weight - Fraction(1, 6)) < Fraction(1, 2**39)
