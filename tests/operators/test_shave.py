"""shave, distinct, map and filter on weights that are not 1."""

import itertools
from fractions import Fraction
from importlib import import_module

import pytest
from depth import often
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import Driver, distance, evaluate, expected, protected, run_flow, same

from wpinq.core.operators import slices
from wpinq.core.plan.node import fingerprints
from wpinq.errors import ExactnessError, PlanError

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def pages(fine=True):
    return protected(fine=fine, page="text")


def test_numbered_from_one_as_the_post_does():
    assert evaluate(pages(fine=False).shave(), [("a",), ("a",)]) == {("a", 1): 1, ("a", 2): 1}


def test_last_slice_is_partial_and_signs_stay():
    plan = pages().shave()
    assert expected(plan, {("a",): Fraction(9, 4)}) == {("a", 1): 1, ("a", 2): 1, ("a", 3): Fraction(1, 4)}
    assert expected(plan, {("a",): Fraction(-3, 2)}) == {("a", 1): -1, ("a", 2): -HALF}


def test_a_sequence_repeats_its_last():
    plan = pages(fine=False).shave([2, "1/2"])
    assert expected(plan, {("a",): Fraction(3)}) == {("a", 1): 2, ("a", 2): HALF, ("a", 3): HALF}
    assert plan._node.resolution == 2


@given(st.integers(-40, 40), st.lists(st.sampled_from(["1", "1/2", "1/3", "2"]), min_size=1, max_size=3))
def test_slices_sum_to_the_weight_in_any_thickness(units, thickness):
    plan = pages().shave(thickness)
    weight = Fraction(units, 4)
    wanted = expected(plan, {("a",): weight})
    assert sum(wanted.values()) == weight
    driver = Driver(plan)
    driver.feed({("a",): weight + 3})
    driver.feed({("a",): Fraction(-3)})
    assert same(driver.histogram, plan._node, wanted)


def test_shaving_what_a_join_made():
    """Weights in units of 2^-80: 128 bits, through a state and a ranged column."""
    left = protected([(i % 2, i) for i in range(6)], k="integer", v="integer")
    joined = left.join(left, on="k", result=lambda k: k)
    for plan in (joined.shave("1/4"), joined.shave("1/4").map(lambda k, index: index),
                 joined.shave("1/4").map(lambda k, index: index).shave("1/8")):  # fmt: skip
        counted = {(i % 2, i): Fraction(1) for i in range(6)}
        assert same(run_flow(plan, 2), plan._node, expected(plan, counted))


EDGE = Fraction(2**62, 2**30)
"""Weights below fit 64 bits in units of 2^-30, and are held there while they are cut."""
WIDE = [HALF, Fraction(-3, 4), Fraction(7), 2 * EDGE - 1, EDGE, EDGE - Fraction(1, 4), -EDGE, -64 * EDGE, 5 * EDGE]
SLICED = (
    [Fraction(1, 2**30), 1, EDGE - 1, 3 * EDGE],
    [Fraction(1, 2**30), EDGE / 2, EDGE / 4, EDGE],
    [EDGE, EDGE / 2 + Fraction(1, 2**30)],
)
few = st.dictionaries(st.tuples(st.integers(0, 6)), st.sampled_from(WIDE), max_size=5)


@settings(max_examples=often(25), deadline=None)
@example({(0,): EDGE - Fraction(1, 4)}, {(0,): Fraction(1, 4) - EDGE}, SLICED[1])
@given(given=few, more=few, thickness=st.sampled_from(SLICED))
def test_wide_weights_are_cut_in_lots_as_one_by_one(given, more, thickness):
    """Rows of each lot weigh more or less than 64 bits hold, before and after; neighbours stay as near as they were."""
    plan = protected(fine=True, a="integer").shave(thickness)
    assert plan._node.held.wide
    after = {record: given.get(record, Fraction(0)) + more.get(record, 0) for record in {**given, **more}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "ROWS_PER_LOT", 2)
        driver = Driver(plan)
        for change in (given, more):
            driver.feed(change)
    wanted = expected(plan, after)
    assert same(driver.histogram, plan._node, wanted)
    assert distance(expected(plan, given), wanted) == distance(given, after)


@pytest.mark.parametrize("wrong", [0, -1, float("inf"), "x"])
def test_thickness_is_checked(wrong):
    with pytest.raises(ExactnessError):
        pages().shave(wrong)


def test_distinct_clamps():
    plan = pages().distinct()
    given = {("a",): Fraction(7), ("b",): HALF, ("c",): Fraction(-2)}
    assert expected(plan, given) == {("a",): 1, ("b",): HALF}
    driver = Driver(plan)
    driver.feed(given)
    driver.feed({("a",): Fraction(-13, 2), ("c",): Fraction(3)})
    assert same(driver.histogram, plan._node, {("a",): HALF, ("b",): HALF, ("c",): Fraction(1)})


MOST = [Fraction(2), Fraction(5, 3), Fraction(1, 2), Fraction(2**30)]


@settings(max_examples=often(25), deadline=None)
@given(most=st.sampled_from(MOST), units=st.lists(st.integers(-40, 40), min_size=1, max_size=3))
def test_distinct_clamps_at_any_number(most, units):
    plan = pages().distinct(most)
    driver, weight = Driver(plan), Fraction(0)
    for unit in units:
        driver.feed({("a",): Fraction(unit, 4)})
        weight += Fraction(unit, 4)
        wanted = {("a",): min(max(weight, 0), most)} if weight > 0 else {}
        assert expected(plan, {("a",): weight}) == wanted
        assert same(driver.histogram, plan._node, wanted)


@pytest.mark.parametrize("most", MOST)
def test_distinct_of_what_a_join_made(most):
    """Weights in units of 2^-80."""
    left = protected([(i % 2, i) for i in range(6)], k="integer", v="integer")
    joined = left.join(left, on="k", result=lambda k: k).distinct(most)
    assert same(run_flow(joined, 2), joined._node, expected(joined, {(i % 2, i): Fraction(1) for i in range(6)}))


def test_distinct_refuses_what_bounds_nothing():
    for wrong, error in ((0, ExactnessError), (-1, ExactnessError), ("x", ExactnessError), (2**40, PlanError)):
        with pytest.raises(error):
            pages().distinct(wrong)


def test_distinct_at_one_is_the_question_that_it_was():
    """The fingerprint of a plan of before `at_most` came, so its charge and its noise stay."""
    plan = pages(fine=False)
    assert plan.distinct()._node.meaning == {"source": plan._node}
    assert plan.distinct(2)._node.meaning == {"source": plan._node, "at_most": 2}


def test_map_adds_what_meets_and_drops_what_fails():
    plan = protected([(1,), (-1,), (0,)], a="integer").map(lambda a: 1 // a if a else [].pop())
    assert same(run_flow(plan), plan._node, {(1,): Fraction(1), (-1,): Fraction(1)})
    assert evaluate(protected(a="integer").map(lambda a: a * a), [(1,), (-1,)]) == {(1,): 2}


def test_filter_drops_what_fails():
    plan = protected([(1,), (0,)], a="integer").filter(lambda a: 1 // a > 0)
    assert same(run_flow(plan), plan._node, {(1,): Fraction(1)})


def test_no_slices_are_no_thickness():
    with pytest.raises(PlanError, match="there is none"):
        pages().shave([])


def test_slices_that_would_need_memory_for_a_record_are_refused_when_the_plan_is_written():
    for thin in (Fraction(1, 2**61), Fraction(1, 2**21), [1, "1e-7"]):
        with pytest.raises(PlanError, match="too many slices"):
            pages().shave(thin)
    for thick in (2**70, [2**62] * 3):
        with pytest.raises(PlanError, match="thinner"):
            pages().shave(thick)
    assert len(pages().shave("1e-6").columns) == len(pages().columns) + 1


def test_after_a_join_slices_are_cut_on_its_resolution():
    """A weight of 1 is 2^80 units there, which is no reason to refuse; what would leave 128 bits is refused."""
    pages = protected(a="integer", b="integer")
    joined = pages.join(pages, on="a", result=lambda a: a)
    found = evaluate(joined.shave(), [(1, b) for b in range(5)])
    assert sorted(found) == [(1, 1), (1, 2), (1, 3)]
    assert found[1, 2] == 1
    for wide in (joined, pages):
        with pytest.raises(PlanError, match="thick"):
            wide.shave(2**62)


def by_page(page):
    return {
        "also": [1, 3],
        "two": 2,
        "some": (1, "1/2", 3),
        "ever": itertools.repeat(Fraction(1, 4)),
        "none": [],
        "no": 0,
        "set": {1},
    }[page]


@settings(max_examples=often(40), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["two", "some", "ever", "none", "no", "set", "?"]), st.integers(-24, 24)), max_size=6
    )
)
def test_a_function_says_how_thick_the_slices_of_a_record_are(changes):
    """Any changes of several records at once: each is cut by its own thicknesses, as one that it shares them with."""
    plan = pages().shave(by_page, step="1/4")
    driver, target = Driver(plan), {}
    for page, units in changes:
        driver.feed({(page,): Fraction(units, 4), ("also",): Fraction(1)})
        target[page,] = target.get((page,), 0) + Fraction(units, 4)
        target["also",] = target.get(("also",), 0) + Fraction(1)
    alike = {
        "also": pages().shave([1, 3]),
        "two": pages().shave(2),
        "some": pages().shave([1, "1/2", 3]),
        "ever": pages().shave("1/4"),
    }
    wanted = {}
    for record, weight in target.items():
        if record[0] in alike:
            wanted |= expected(alike[record[0]], {record: weight})
    assert same(driver.histogram, plan._node, wanted)
    assert expected(plan, target) == wanted


def test_what_a_function_gives_is_cut_on_the_lattice():
    """Rounded down to steps, one at the least; more than anything weighs is no more than that."""
    given = {"fine": [0.8, 0.01], "huge": 10**300, "many": (1 for _ in itertools.count())}
    plan = pages(fine=False).shave(given.get, step="1/4", name="i")
    weight = Fraction(2)
    found = expected(plan, {(page,): weight for page in given})
    assert [found["fine", i] for i in range(1, 7)] == [Fraction(3, 4)] + [Fraction(1, 4)] * 5
    assert found["huge", 1] == weight
    assert [found["many", i] for i in (1, 2)] == [1, 1]
    assert plan.columns == ("page", "i")
    joined = protected([(1, b) for b in range(5)], a="integer", b="integer")
    wide = joined.join(joined, on="a", result=lambda a: a).shave(lambda a: [a, 0.5], step="1/2")
    assert same(run_flow(wide, 2), wide._node, expected(wide, {(1, b): Fraction(1) for b in range(5)}))


def test_a_step_is_of_a_function_and_not_too_thin():
    with pytest.raises(PlanError, match="leave it out"):
        pages().shave(1, step=1)
    with pytest.raises(PlanError, match="too many slices"):
        pages().shave(lambda page: 1, step=Fraction(1, 2**21))
    with pytest.raises(PlanError, match="takes 2 arguments"):
        pages().shave(lambda page, pgae: 1)


@pytest.mark.parametrize(("few", "small"), [(0, 2), (0, 1 << 16), (1 << 13, 1 << 16)])
@given(weights=st.lists(st.integers(-9, 9).map(lambda n: Fraction(n, 4)), min_size=1, max_size=8))
def test_movements_are_added_up_in_every_way(few, small, weights):
    """`FEW` chooses by the rows who adds them up, `SMALL` by the weight; a test has few of both, so these are moved."""
    plan = pages().shave("1/2").map(lambda page, index: index)
    both = {(name,): 2 * weight for name, weight in zip("abcdefgh", weights, strict=False)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("wpinq.core.operators.slices"), "SMALL", small)
        for home in ("core.operators.slices", "core.state.histogram"):
            patch.setattr(import_module(f"wpinq.{home}"), "FEW", few)
        driver = Driver(plan)
        for _ in range(2):
            driver.feed({record: weight / 2 for record, weight in both.items()})
    assert same(driver.histogram, plan._node, expected(plan, both))


def test_thicknesses_by_the_number_of_a_slice_are_part_of_the_question():
    """The paper's f(x, i); where the new column has another name, the parameter keeps its default."""
    cuts = lambda page, index=2: index  # noqa: E731
    by_number, by_default = pages().shave(cuts), pages().shave(cuts, name="slice")
    assert evaluate(by_number, [("a",)] * 4) == {("a", 1): 1, ("a", 2): 2, ("a", 3): 1}
    assert evaluate(by_default, [("a",)] * 4) == {("a", 1): 2, ("a", 2): 2}
    twice = pages().shave().shave(lambda page, index: index, name="k")
    assert evaluate(twice, [("a",)] * 2) == {("a", 1, 1): 1, ("a", 2, 1): 1}
    digests = [fingerprints(made._node)[made._node] for made in (by_number, by_default)]
    assert None not in digests
    assert digests[0] != digests[1]
