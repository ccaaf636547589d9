"""flat_map: the shared coefficient, and its traps."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Driver, evaluate, expected, protected, run_flow, same

from wpinq.core.operators.resolution import Coarse
from wpinq.core.plan.node import steps
from wpinq.errors import PlanError

L = math.lcm(*range(1, 17))


def lines(records=()):
    return protected(records, line="text")


def letters(line):
    return list(line)


@given(st.integers(1, 100_000), st.sampled_from([L, 12, 60, 1]))
def test_coefficients_sum_to_all(n, parts):
    first = parts // n
    rest = sum((parts + i) // n - first for i in range(n)) if n < 1000 else parts - n * first
    assert n * first + rest == parts
    assert all((parts + i) // n >= 0 for i in (0, n - 1))


def test_weight_is_shared_exactly():
    assert L == 720_720
    for n in range(1, 17):
        found = evaluate(lines().flat_map(letters), [("abcdefghijklmnop"[:n],)])
        assert set(found.values()) == {Fraction(1, n) if n > 1 else 1}
    found = evaluate(lines().flat_map(letters), [("abcdefghijklmnopq",)])  # 17 do not divide L
    assert sum(found.values()) == 1
    assert len(set(found.values())) == 2


def test_at_most_keeps_the_resolution_coarse():
    assert lines().flat_map(letters, at_most=4)._node.resolution == 12
    assert lines().flat_map(letters)._node.resolution == L
    found = evaluate(lines().flat_map(letters, at_most=2), [("abc",)])  # three outputs share two parts
    assert found == {("b",): Fraction(1, 2), ("c",): Fraction(1, 2)}


def test_duplicates_add_and_nothing_is_nothing():
    assert evaluate(lines().flat_map(letters), [("aab",), ("",)]) == {("a",): Fraction(2, 3), ("b",): Fraction(1, 3)}


def test_sets_are_sorted_and_generators_end():
    def endless(line):
        while line == "ever":
            yield "x"
        yield line

    records = [("ever",), ("once",)]
    assert evaluate(lines().flat_map(endless), records) == {("once",): 1}
    plan = lines(records).flat_map(endless)
    assert same(run_flow(plan), plan._node, {("once",): Fraction(1)})
    counted = lines().flat_map(lambda line: itertools.count(len(line)))
    assert evaluate(counted, records) == {}
    sets = lines([("cab",)]).flat_map(lambda line: {*line}, at_most=1)  # the last of the sorted gets the only part
    assert same(run_flow(sets), sets._node, {("c",): Fraction(1)})


def test_a_million_outputs():
    def many(line):
        return range(int(line))

    plan = lines([("1000",), ("720721",), ("no number",)]).flat_map(many, columns={"n": int})
    wanted = expected(plan, {(text,): Fraction(1) for text in ("1000", "720721", "no number")})
    assert len(wanted) == 1000
    assert sum(wanted.values()) == 1
    assert same(run_flow(plan), plan._node, wanted)


@pytest.mark.parametrize("portions", [[1] * 10 + [-10], [Fraction(1, 4)] * 40 + [-10], [-3, 7, -4]])
def test_inserts_undone_by_one_delete_leave_nothing(portions):
    """Weights that are shared by division would leave a residue of -3 in each of three outputs."""
    plan = protected(fine=True, line="text").flat_map(letters)
    driver = Driver(plan)
    for portion in portions:
        driver.feed({("abc",): Fraction(portion)})
    assert same(driver.histogram, plan._node, {})


def test_chained_sharing_is_brought_back_before_it_overflows():
    plan = lines([("ab",), ("abc",)])
    for _ in range(6):
        plan = plan.flat_map(lambda line: [line, line + "x"])
    assert plan._node.resolution <= 2**80
    wanted = expected(plan, {("ab",): Fraction(1), ("abc",): Fraction(1)})
    assert same(run_flow(plan), plan._node, wanted)
    assert abs(sum(wanted.values()) - 2) < Fraction(1, 10**9)
    assert any(isinstance(node, Coarse) for node in steps(plan._node))


@pytest.mark.parametrize("wrong", [0, 17, True, 2.5, "3"])
def test_at_most_is_checked(wrong):
    with pytest.raises(PlanError, match="1 to 16"):
        lines().flat_map(letters, at_most=wrong)


def test_whole_outputs_are_the_first_ones_and_each_counts():
    plan = lines([("abcd",), ("aab",), ("",)]).flat_map(letters, at_most=2, whole=True)
    assert same(run_flow(plan), plan._node, {("a",): Fraction(3), ("b",): Fraction(1)})
    assert plan._node.resolution == 1
    assert plan.measure(1).scale == 2
    sets = lines([("cab",)]).flat_map(lambda line: {*line}, at_most=2, whole=True)  # sorted, then the first ones
    assert same(run_flow(sets), sets._node, {("a",): Fraction(1), ("b",): Fraction(1)})


@pytest.mark.parametrize("wrong", [None, 0, -1, True, 2.5, "3", 720_721])
def test_whole_outputs_need_a_bound(wrong):
    with pytest.raises(PlanError, match="1 to 720,720"):
        lines().flat_map(letters, at_most=wrong, whole=True)
    with pytest.raises(PlanError, match="True or False"):
        lines().flat_map(letters, whole=1)
