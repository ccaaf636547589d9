"""A join with a public table: against its definition, in both of its shapes, and among neighbours."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, collections, distance, expected, protected, run_flow, same

from wpinq.functions.rows import KEY, rows
from wpinq.operators.keys import keyed
from wpinq.operators.look_up import Counted, LookUp
from wpinq.plan.shapes import Keyed, Stateless
from wpinq.records.schema import Column, Kind, Schema

TABLE = pl.DataFrame({KEY: [2, 0, 1], "name": ["two", None, "one"], "size": [4, 0, 0]})
OUTPUT = Schema.of(name=Kind.TEXT, size=Kind.INT)


def joined(records=(), outer=False, fine=False, table=TABLE):
    base = protected(records, fine=fine, a="integer", b="integer")
    function = rows(Column("a", Kind.INT), table, OUTPUT, outer=outer, note="table by key")
    return base._then(LookUp(base._node, function, None, ("a",), ("a", "b")))


CHOICES = {
    "row": lambda found: found.map("name, size"),
    "part of it": lambda found: found.filter("size = 0").map("name"),
    "number": lambda found: found.map("size"),
    "record": lambda found: found,
    "both": lambda found: found.map("b, name"),
}
ROWS = st.lists(st.tuples(st.integers(-1, 3) | st.none(), st.integers(0, 2)), max_size=12)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("outer", [False, True])
@settings(max_examples=8, deadline=None)
@given(records=ROWS, shards=st.integers(1, 3))
def test_engines_give_what_it_is_defined_as(choice, outer, records, shards):
    plan = CHOICES[choice](joined(records, outer))
    counted = {record: Fraction(records.count(record)) for record in records}
    assert same(run_flow(plan, shards), plan._node, expected(plan, counted))


@settings(max_examples=30, deadline=None)
@given(before=collections, after=collections)
def test_changes_add_up_and_nothing_moves_further_than_its_record(before, after):
    for outer in (False, True):
        plan = joined(outer=outer, fine=True).map("name, size")
        driver = Driver(plan)
        driver.feed(before)
        change = {record: after.get(record, Fraction(0)) - before.get(record, 0) for record in {**before, **after}}
        driver.feed(change)
        assert same(driver.histogram, plan._node, expected(plan, after))
        assert distance(expected(plan, before), expected(plan, after)) <= distance(before, after)


def test_records_are_counted_by_key_where_only_rows_are_needed():
    node = joined()._node
    assert isinstance(node.lower(frozenset({"name"})), Keyed)
    assert isinstance(node.lower(frozenset({"name"})).state(bytes(16)), Counted)
    assert isinstance(node.lower(frozenset({"name", "b"})), Stateless)
    assert isinstance(joined(outer=True)._node.lower(frozenset({"name"})), Stateless), "a record without a row stays"


def test_the_order_of_a_public_table_says_nothing_and_its_content_all():
    def question(table, outer=False):
        return rows(Column("a", Kind.INT), table, OUTPUT, outer=outer, note="").fingerprint

    same_table = {question(TABLE), question(TABLE[::-1]), question(TABLE.rechunk())}
    assert len(same_table) == 1
    others = [question(TABLE[:2]), question(TABLE, outer=True), question(TABLE.with_columns(size=pl.col("size") + 1))]
    assert len({*same_table, *others}) == 4


def test_a_key_of_any_number_is_looked_up_in_its_canonical_form():
    base = protected([(0.0,), (-0.0,), (float("nan"),), (None,)], x="number")
    node, (key,) = keyed(base._node, [pl.col("x") * -1], "test")
    function = rows(Column(key, Kind.FLOAT), pl.DataFrame({KEY: [0.0], "name": ["zero"], "size": [1]}), OUTPUT,
                    outer=False, note="")  # fmt: skip
    plan = base._then(LookUp(node, function, None, (key,), ("x",))).map("name")
    assert same(run_flow(plan), plan._node, {("zero",): Fraction(2)})
