"""How far one person moves one bin: what is proved of plans, held against the definitions, and met by thresholds."""

import importlib
import pkgutil
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from strategies import evaluate

import wpinq
from wpinq import aggregates
from wpinq.core import operators
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.noise.threshold import seen_bounds
from wpinq.core.plan.node import Node
from wpinq.core.pricing.sensitivity import unit_sensitivities

ONE = Secret(bytes(range(32)))
COLUMNS = {"user": str, "page": str, "age": int}
UNIT = wpinq.users("user", at_most=6, per=("page", 2))


def views(records=(), unit=UNIT, **settings):
    return wpinq.protect(
        list(records), budget=10**6, delta="0.9", secret=ONE, version="1", unit=unit, columns=COLUMNS, **settings
    )


LOCAL = {
    "itself": lambda v: v,
    "choice": lambda v: v.map(lambda page: page),
    "renamed": lambda v: v.map(pl.col("page").alias("p")),
    "sql": lambda v: v.filter("age > 3").map("age, page"),
    "with others": lambda v: v.map(lambda page, age: (age // 10, page)),
    "part": lambda v: v.partition("age", [1, 2])[1],
    "concat": lambda v: v.map("page").concat(v.filter("age < 3").map("page")),
    "union": lambda v: v.map("page").union(v.map(pl.col("page").alias("p"))),
    "sliced by a function": lambda v: v.map("page, age").shave(lambda age: age % 3 + 1, step=1),
}
LOOSE = {
    "another column": lambda v: v.map("user"),
    "computed": lambda v: v.map(lambda page: page[:1]),
    "lower": lambda v: v.map("lower(page) AS page"),
    "plain": lambda v: v.map(lambda page: f"{page}"),
    "dropped": lambda v: v.map("page").shave().map(lambda index: index),
    "swapped": lambda v: v.map(lambda user, page: (page, user), columns=["user", "page"]).map("user", columns=["page"])
    .concat(v.map("user", columns=["page"])),
    "one side": lambda v: v.map("page").concat(v.map("user", columns=["page"])),
    "group": lambda v: v.map("page, age").group_by(lambda age: age, len),
    "flat": lambda v: v.flat_map(lambda page: [page, "all"]),
}  # fmt: skip


CAPPED = {
    "distinct": (lambda v: v.map(lambda user, page: (user, page)).distinct().map(lambda page: page), 1),
    "distinct records": (lambda v: v.distinct().map("page, age"), 1),
    "distinct(2)": (lambda v: v.map("user, page").distinct(2).map("page"), 2),
    "swapped": (lambda v: v.map("user AS page, page AS user, age").distinct().map("user, age"), 1),
    "twice": (lambda v: (d := v.map("user, page").distinct()).map("page").concat(d.map("page")), 2),
    "filtered": (lambda v: v.map("user, page").distinct().filter("page > 'a'").partition("page", ["b"])["b"], 1),
    "shave": (lambda v: v.map(lambda page: page).shave(), 1),
    "thin": (lambda v: v.map(lambda page: page).shave("1/3"), Fraction(1, 3)),
    "signed": (lambda v: v.map("page").subtract(v.map("user", columns=["page"])).shave(), 2),
    "whole groups": (lambda v: v.map("page, age").group_by("page", whole=True), 1),
}
"""Where a step bounds the weight of a record, and records of one person stay apart: how far a bin moves."""
SPREAD = {
    "the user stays": lambda v: v.distinct().map("user"),
    "the wrong column": lambda v: v.map("user AS page, page AS user, age").distinct().map("page"),
    "another column goes": lambda v: v.distinct().map("age"),
    "computed": lambda v: v.map("user, page").distinct().map("lower(page) AS page"),
    "a partner": lambda v: v.map("user, page").distinct().semijoin(v.map("user AS page"), "page").map("user"),
    "a made up user": lambda v: v.map("lower(page) AS user, user AS page").distinct().map("page"),
}  # fmt: skip
"""Where they do not."""


def proved(plan, unit=UNIT):
    """The L1 and the L-infinity sensitivity, in weight."""
    node = plan(views(unit=unit))._node
    ((whole, one, _),) = unit_sensitivities(node)
    return Fraction(whole, node.resolution), Fraction(one, node.resolution)


@pytest.mark.parametrize("name", LOCAL)
def test_plans_that_keep_the_column_are_known(name):
    whole, one = proved(LOCAL[name])
    assert one / whole == Fraction(2, 6)
    whole, one = proved(LOCAL[name], wpinq.users("user", at_most=6))
    assert one == whole


@pytest.mark.parametrize("name", CAPPED)
@pytest.mark.parametrize("unit", [wpinq.users("user", at_most=6), UNIT], ids=["at_most", "per"])
def test_plans_that_bound_a_record_of_each_person_are_known(name, unit):
    plan, most = CAPPED[name]
    assert proved(plan, unit)[1] == most


def test_a_record_moves_one_bin_by_its_bound_though_it_moves_two():
    """A whole group is replaced: the L1 sensitivity is 2, and a bin moves by 1."""
    assert proved(lambda v: v.map("page, age").group_by("page", whole=True), None) == (2, 1)
    assert proved(lambda v: v.map("page"), None) == (1, 1)
    assert proved(lambda v: v.map("page").concat(v.map("page")), None) == (2, 2)


@pytest.mark.parametrize("meet", ["concat", "union"])
def test_a_record_whose_columns_change_places_moves_as_two(meet):
    """Where the unit is a record all of its columns are its own, but (a, b) and (b, a) stay two records."""
    plan = lambda v: getattr(v.map("user, page"), meet)(v.map("page, user")).distinct().map(lambda page: 0)  # noqa: E731
    assert proved(plan, None) == (2, 2)
    assert evaluate(plan(views(unit=None)), [("ann", "a", 1)]) == {(0,): 2}


@pytest.mark.parametrize("name", [*LOOSE, *SPREAD])
def test_where_nothing_is_proved_one_bin_may_move_as_far_as_all(name):
    whole, one = proved(LOOSE[name]) if name in LOOSE else proved(SPREAD[name], wpinq.users("user", at_most=6))
    assert (whole, one) == (12, 8) if name in ("swapped", "one side") else one == whole  # 2 by pages, 6 by users


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5)), max_size=12),
    st.lists(st.tuples(st.sampled_from("uv"), st.sampled_from("abcd"), st.integers(0, 5)), max_size=8),
    st.sampled_from(sorted({**LOCAL, **LOOSE, **SPREAD, **CAPPED})),
    st.sampled_from([wpinq.users("user", at_most=6), UNIT, wpinq.users("user", shared=True)]),
)
def test_no_bin_moves_further_than_is_proved(own, others, which, unit):
    """By the definitions: with and without all records of one person, bin by bin and all together."""
    plans = {**LOCAL, **LOOSE, **SPREAD, **{name: plan for name, (plan, _) in CAPPED.items()}}
    if unit.at_most is None and which == "whole groups":
        return  # weights are not whole there
    collection = plans[which](views(unit=unit))
    ((whole, one, _),) = unit_sensitivities(collection._node)
    with_, without = (evaluate(collection, [*others, *(("ann", *record) for record in some)]) for some in (own, []))
    moved = [abs(with_.get(key, 0) - without.get(key, 0)) for key in {*with_, *without}]
    assert sum(moved) * collection._node.resolution <= whole
    assert max(moved, default=0) * collection._node.resolution <= one


def test_a_person_is_published_with_delta_only_and_the_threshold_is_lower():
    """4,000 people of 9 records on 3 pages of their own, 6 kept, 2 a page; at this epsilon bins of 2 are the worst.

    The bound is met exactly, so the share of people of whom anything is published is known from both sides; binomial
    tails, false alarm 1e-6 had the secret been drawn.
    """
    size, epsilon, delta = 4000, 30, Fraction(1, 50)
    records = [(f"u{i}", f"{i} {k % 3}", k) for i in range(size) for k in range(9)]
    table = views(records).map(lambda page: page).measure(epsilon).release(delta=delta)
    loose = views(records, unit=wpinq.users("user", at_most=6)).map("page").measure(epsilon).release(delta=delta)
    assert table.threshold < loose.threshold
    hits = len({page.split()[0] for page, _ in table})
    low, high = (bound / 2**128 for bound in seen_bounds(Fraction(6, epsilon), 1, 6, int(table.threshold), 128, linf=2))
    ones = [bound / 2**128 for bound in seen_bounds(Fraction(6, epsilon), 1, 6, int(table.threshold), 128, linf=1)]
    assert ones[1] < low <= high <= delta, "bins of 2 are the worst"
    assert binom.sf(hits - 1, size, high) > 5e-7
    assert binom.cdf(hits, size, low) > 5e-7
    assert hits > 0


def test_the_steps_that_keep_the_records_of_one_value_apart_are_agreed():
    """Each lowers thresholds, so each needs the proof of `sensitivity.py`; a subclass would inherit the claim."""

    for room in (operators, aggregates):
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)

    def below(kind):
        return {kind}.union(*(below(one) for one in kind.__subclasses__() if one.__module__.startswith("wpinq.")))

    def claims(kind):
        return kind.apart or kind.local is not Node.local or kind.kept_apart is not Node.kept_apart

    said = {kind.__name__ for kind in below(Node) if claims(kind)}
    agreed = {"Align", "Distinct", "Extreme", "Filter", "LookUp", "Map", "Part", "Shave", "ShaveBy", "Sum"}
    by_key = {"Extend", "Fill", "GroupBy", "GroupColumns", "Join", "JoinRows", "LeftRows"}
    own = {"Cells", "FineCells", "Moments"}  # of aggregates: of a group only its own records, each in its own cell
    assert said == agreed | by_key | own
