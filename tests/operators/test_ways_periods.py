"""Ways to owners who are protected in one period each: pairs, neighbours by whole units, wrong rules that are found."""

import datetime as dt
import random
from collections import Counter
from functools import partial

import polars as pl
import pytest
from depth import deeper, often
from operators import test_ways as ways

import wpinq
from wpinq.core.operators.periods import periods
from wpinq.core.plan.node import sources
from wpinq.core.plan.stability import sensitivities
from wpinq.core.pricing.sensitivity import ledger_sensitivities
from wpinq.core.records.schema import Column, Kind
from wpinq.errors import LedgerError, PlanError
from wpinq.sources import open_source, owned

ORDERS = {"o_key": int, "cust": str, "at": int}
ITEMS = {"l_id": int, "l_key": int}
LENGTH = 10
SPAN = periods(LENGTH, Column("at", Kind.INT), "test")


def drawn(draw):
    """Rows: several owners and times of a key, within one period and in several; no time at all; nulls, equal rows."""
    keys, whom, times = [1, 2, 3, None], ["p", "q", None], [1, 4, 9, 10, 17, None]
    few = lambda make, most: [make() for _ in range(draw.randrange(most))]  # noqa: E731
    return {
        "orders": few(lambda: (draw.choice(keys), draw.choice(whom), draw.choice(times)), 10),
        "items": few(lambda: (draw.choice([*keys, 4]), draw.choice(keys)), 8),
        "notes": few(lambda: (draw.choice(keys), draw.choice("ab")), 8),
    }


def number(at):
    return None if at is None else at // LENGTH


def without(tables, unit):
    """The same without the owner rows of one person in one period."""
    return {**tables, "orders": [row for row in tables["orders"] if (row[1], number(row[2])) != unit]}


def paired(rows, place, owners):
    """Each row with each person in a period who owns its key, and the first time of theirs: the definition."""
    found = {}
    for key, owner, at in owners:
        if key is not None:
            found.setdefault((key, owner, number(at)), []).append(at)
    return [(*row, owner, None if n is None else min(times)) for row in rows for (key, owner, n), times in found.items()
            if row[place] == key]  # fmt: skip


def defined(tables):
    items = paired(tables["items"], 1, tables["orders"])
    return {**tables, "items": items, "notes": paired(tables["notes"], 0, [(row[0], *row[-2:]) for row in items])}


def read(tables):
    orders = open_source(tables["orders"], columns=ORDERS)
    when = ("at", SPAN)
    items = owned.through(
        open_source(tables["items"], columns=ITEMS), orders, ("l_key", "orders", "o_key"), "cust", when
    )
    notes = owned.through(
        open_source(tables["notes"], columns=ways.NOTES), items, ("item", "items", "l_id"), "cust", when
    )
    return {
        name: [row for frame in one.batches(one.schema.names) for row in frame.rows()]
        for name, one in {"items": items, "notes": notes}.items()
    }


opened = partial(ways.opened, kinds=(ORDERS, ITEMS), most=4, period=LENGTH, at="at")


@deeper
def test_pairs_are_those_of_their_definition():
    draw = random.Random(1)
    for _ in range(often(60)):
        tables = drawn(draw)
        expected = defined(tables)
        assert {name: Counter(rows) for name, rows in read(tables).items()} == {
            name: Counter(expected[name]) for name in ("items", "notes")
        }


def broken(draw):
    """Whether one person in one period more changes pairs of others, or has some without being there."""
    tables, unit = drawn(draw), ("p", draw.choice([0, 1, None]))
    more, less = read(tables), read(without(tables, unit))
    own = lambda row: (row[-2], number(row[-1])) == unit  # noqa: E731
    return any(
        Counter(row for row in more[name] if not own(row)) != Counter(less[name]) or any(map(own, less[name]))
        for name in more
    )


@deeper
def test_one_unit_more_adds_pairs_of_its_own_and_changes_nobody_elses():
    draw = random.Random(2)
    assert not any(broken(draw) for _ in range(often(80)))


def first_of_all(owners, span):
    """The first time over all periods."""
    first = owners.group_by(owned.KEY, owned.OWNER).agg(pl.col(owned.AT).min())
    return owners.drop(owned.AT).join(first, on=[owned.KEY, owned.OWNER], nulls_equal=True).unique()


def first_of_the_key(owners, span):
    """The first time of a key and a period, whoever owns it then."""
    numbered = owners.with_columns(span.numbers(owned.AT).alias(owned.NUMBER))
    return numbered.with_columns(pl.col(owned.AT).min().over(owned.KEY, owned.NUMBER)).drop(owned.NUMBER).unique()


def last_owner(owners, span):
    """Of several the last, as a table of unique keys would be read."""
    return owners.sort(owned.AT, owned.OWNER, nulls_last=True).unique(owned.KEY, keep="last", maintain_order=True)


@pytest.mark.parametrize("wrong", [first_of_all, first_of_the_key, last_owner])
def test_wrong_pairs_are_found(monkeypatch, wrong):
    monkeypatch.setattr(owned, "once", wrong)
    draw = random.Random(3)
    assert any(broken(draw) for _ in range(200))


PLANS = {
    "items": lambda o, i, n: i.map("l_id"),
    "people": lambda o, i, n: i.map("cust").distinct(),
    "people by number": lambda o, i, n: i.group_by("cust", len, whole=True).map("value"),
    "along the way": lambda o, i, n: i.join_rows(o, left="l_key", right="o_key").map("l_id"),
    "two hops": lambda o, i, n: n.join_rows(i, left="item", right="l_id").map("text"),
    "items of orders": lambda o, i, n: i.semijoin(o, left="l_key", right="o_key").map("l_id"),
}


@pytest.fixture(scope="module")
def empty():
    return opened({"orders": [], "items": [], "notes": []})


@deeper
@pytest.mark.parametrize("name", PLANS)
def test_one_unit_moves_a_plan_no_further_than_is_claimed(empty, name):
    plan = PLANS[name](*empty)
    ((whole, _, _),) = ledger_sensitivities(plan._node).values()
    fine, draw = plan._node.resolution, random.Random(4)
    assert sum(sensitivities(plan._node).values()) * fine >= whole
    for _ in range(often(60)):
        tables, unit = drawn(draw), ("p", draw.choice([0, 1, None]))
        assert ways.moved(plan, defined(tables), defined(without(tables, unit)))[0] * fine <= whole


def test_engine_and_definition_agree():
    draw = random.Random(5)
    for name in ("items", "along the way", "two hops"):
        tables = drawn(draw)
        ways.insist_that_the_engine_agrees(PLANS[name](*opened(tables)), defined(tables))


def test_a_ledger_and_answers_say_in_which_period(tmp_path):
    tables = {"orders": [(1, "p", 3), (1, "p", 5), (1, "p", 14), (2, "q", None)], "items": [(1, 1), (2, 2), (3, 9)],
              "notes": []}  # fmt: skip
    _, items, _ = opened(tables, ledger=tmp_path / "L")
    assert items._node.schema.names == ("l_id", "l_key", "cust", "at")
    counted = items.map("at").measure(10**4)
    assert [round(counted.observe(at)) for at in (3, 5, 14, None)] == [1, 0, 1, 1]
    (data,) = sources(items._node)
    assert data.unit.whom == "owner (cust of orders by l_key = o_key) in one window of 10 by at"
    assert data.unit.protects.startswith("one cust in one period of 10 by at as owner of records, found by l_key in")
    whole = wpinq.protect([], 1, columns=ORDERS, unit=wpinq.users("cust", 3), name="whole", ledger=tmp_path / "other")
    with pytest.raises(PlanError, match="has another ledger"):
        wpinq.protect([], columns=ITEMS, unit=wpinq.users(through=("l_key", whole, "o_key")), ledger=tmp_path / "L",
                      name="more")  # fmt: skip
    with pytest.raises(LedgerError, match="in the same periods if in any"):
        wpinq.protect([], columns=ORDERS, unit=wpinq.users("cust", 3), ledger=tmp_path / "L", name="whole")


def test_times_have_one_place():
    orders, _, _ = opened({"orders": [], "items": [], "notes": []})
    led = wpinq.users(through=("l_key", orders, "o_key"), at_most=3)
    with pytest.raises(PlanError, match="has a column 'at' of its own"):
        wpinq.protect([], columns={"l_key": int, "at": int}, unit=led, name="t")
    with pytest.raises(PlanError, match="tells apart"):
        wpinq.protect([], columns={"l_key": int}, unit=led, name="t", derive={"at": "1"})


def test_months_follow_the_clocks_of_a_zone():
    when = dt.datetime(2026, 1, 31, 23, 30, tzinfo=dt.UTC)
    columns = {"o_key": int, "cust": str, "at": "instant"}
    unit = wpinq.users("cust", 9, period="1mo", at="at", zone="Europe/Berlin")
    rows = [(1, "p", when), (1, "p", when + dt.timedelta(hours=2)), (1, "p", when - dt.timedelta(hours=2))]
    orders = wpinq.protect(rows, 10**6, columns=columns, unit=unit, name="orders")
    items = wpinq.protect([(7, 1)], columns=ITEMS, unit=wpinq.users(through=("l_key", orders, "o_key"), at_most=9))
    assert round(items.map("l_id").measure(10**4).observe(7)) == 2, "January, and twice February by its clocks"
