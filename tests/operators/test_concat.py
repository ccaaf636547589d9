"""concat and subtract: sums over columns that first have to agree."""

from fractions import Fraction

import polars as pl
import pytest
from strategies import Driver, evaluate, expected, protected, run_flow, same

from wpinq.errors import PlanError


def test_sums():
    left, right = protected(name="l", a="text"), protected(name="r", a="text")
    assert evaluate(left.concat(right), [("a",)], [("a",), ("b",)]) == {("a",): 2, ("b",): 1}
    assert evaluate(left.subtract(right), [("a",)], [("a",), ("b",)]) == {("b",): -1}


def test_columns_are_matched_by_position_and_named_by_the_first():
    left, right = protected(name="l", a="text", b="integer"), protected(name="r", x="text", y="integer")
    assert left.concat(right).columns == ("a", "b")


@pytest.mark.parametrize("kind", ["integer", "number", "text", "boolean", "value"])
def test_other_kinds_become_values(kind):
    other = [(None,)] if kind == "text" else [(1,), (0,), (None,), (1,)]
    left, right = protected([(1,), (2,)], name="l", a="integer"), protected(other, name="r", a=kind)
    for plan in (left.concat(right), right.subtract(left), left.union(right), right.intersect(left)):
        first = plan._node.inputs[0]
        given = [{(1,): Fraction(1), (2,): Fraction(1)}, {r: Fraction(other.count(r)) for r in other}]
        while first.inputs:
            first = first.inputs[0]
        if first.data.name == "r":
            given.reverse()
        assert same(run_flow(plan), plan._node, expected(plan, *given))


def test_ranged_columns_meet_plain_ones():
    pages = protected([("a",), ("a",), ("b",)], page="text")
    index = pages.shave().map(lambda page, index: index)
    plain = pages.shave().map(lambda page, index: index + 0)
    counted = {("a",): Fraction(2), ("b",): Fraction(1)}
    for plan in (index.concat(plain), plain.subtract(index), index.concat(index), index.intersect(plain)):
        assert same(run_flow(plan, 2), plan._node, expected(plan, counted))
    assert expected(plain.subtract(index), counted) == {}


def test_aligns_are_brought_together_exactly():
    left, right = protected(name="l", a="integer"), protected(name="r", a="integer")
    plan = left.shave("1/3").concat(right.shave("1/7"))
    assert plan._node.resolution == 21
    given = {(1,): Fraction(5, 1)}, {(1,): Fraction(-1)}
    driver = Driver(plan)
    driver.feed(*given)
    assert same(driver.histogram, plan._node, expected(plan, *given))


def test_a_resolution_that_would_not_fit_is_dithered():
    pages = protected([(i % 3, i) for i in range(9)], a="integer", b="integer")
    joined = pages.join(pages, on="a", result=lambda b, b_2: (b, b_2))
    both = joined.concat(pages.flat_map(lambda a, b: [(a, b)] * 3, columns={"a": int, "b": int}))
    assert both._node.resolution <= 2**80
    counted = {(i % 3, i): Fraction(1) for i in range(9)}
    assert same(run_flow(both, 2), both._node, expected(both, counted))


def test_different_numbers_of_columns_are_refused():
    left, right = protected(name="l", a="text", b="text"), protected(name="r", a="text")
    for call in ("concat", "subtract", "union", "intersect"):
        with pytest.raises(PlanError, match=call):
            getattr(left, call)(right)


def test_public_rows_are_added_to_the_answer():
    """Of steps by record the answer of both is the sum of two answers; of others it is not, as the docstring says."""
    pages = protected(a="integer")
    with pytest.raises(PlanError, match="added to the answer"):
        pages.concat(pl.DataFrame({"a": [1]}))
    private, public = [(1,), (1,), (2,)], [(2,), (3,)]
    for plan in (pages, pages.map(lambda a: a % 2), pages.filter("a > 1"), pages.flat_map(lambda a: [a, a + 1])):
        apart = evaluate(plan, private), evaluate(plan, public)
        keys = {*apart[0], *apart[1]}
        assert evaluate(plan, private + public) == {key: sum(each.get(key, 0) for each in apart) for key in keys}
    assert evaluate(pages.distinct(), private + public)[(2,)] == 1
