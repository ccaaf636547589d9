"""A join with a public table: against its definition, in both of its shapes, and among neighbours."""

from fractions import Fraction

import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, collections, distance, evaluate, expected, protected, run_flow, same

from wpinq.core.functions.rows import KEY, rows
from wpinq.core.operators.keys import keyed
from wpinq.core.operators.look_up import Counted, LookUp
from wpinq.core.plan.node import fingerprints
from wpinq.core.plan.shapes import Keyed, Stateless
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import PlanError, SourceError

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
@settings(max_examples=often(8), deadline=None)
@given(records=ROWS, shards=st.integers(1, 3))
def test_engines_give_what_it_is_defined_as(choice, outer, records, shards):
    plan = CHOICES[choice](joined(records, outer))
    counted = {record: Fraction(records.count(record)) for record in records}
    assert same(run_flow(plan, shards), plan._node, expected(plan, counted))


@settings(max_examples=often(30), deadline=None)
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


TOWNS = pl.DataFrame({"town": ["Rome", "Oslo"], "size": [3, 1], "user": ["x", "y"]})
PEOPLE = [("ann", "Rome"), ("bob", "Rome"), ("eve", "Bern"), ("nil", None)]


def people(kind="text"):
    return protected(PEOPLE, user="text", town=kind)


@pytest.mark.parametrize("kind", ["text", Kind.ANY.value])
def test_join_with_a_public_table_gives_each_record_its_row_and_whole_weight(kind):
    found = people(kind).join(TOWNS, on="town")
    assert found.columns == ("user", "town", "size", "user_2")
    assert evaluate(found, PEOPLE) == {("ann", "Rome", 3, "x"): 1, ("bob", "Rome", 3, "x"): 1}
    assert same(run_flow(found, 2), found._node, {(*one, 3, "x"): Fraction(1) for one in PEOPLE[:2]})
    sizes = people(kind).join(TOWNS, on="town", how="left", result=lambda user, size: (user, size))
    assert evaluate(sizes, PEOPLE) == {("ann", 3): 1, ("bob", 3): 1, ("eve", None): 1, ("nil", None): 1}
    letters = pl.DataFrame({"letter": ["R"], "n": [7]})
    assert evaluate(people(kind).join(letters, left=lambda town: town[0], right="letter").map("n"), PEOPLE) == {(7,): 2}
    assert found.measure(1).scale == 1


def test_public_keys_are_equal_as_values_are():
    numbers = protected([(1.0,), (2.5,), (float(2**53),), (None,)], x="number")
    whole = {"key": [1, 2, 2**53, 2**53 + 1, None], "name": ["one", "two", "even", "odd", "null"]}
    table = pl.DataFrame(whole)
    names = numbers.join(table, left="x", right="key").map("name")
    assert evaluate(names, [(1.0,), (2.5,), (float(2**53),), (None,)]) == {("one",): 1, ("even",): 1}
    integers = protected([(1,), (2,)], n="integer")
    table = pl.DataFrame({"key": [1.0, 2.5, float("inf"), float("nan"), 1e300], "name": list("abcde")})
    assert evaluate(integers.join(table, left="n", right="key").map("name"), [(1,), (2,)]) == {("a",): 1}


def test_a_public_table_may_be_a_file_with_types_and_its_content_is_the_question(tmp_path):
    place = tmp_path / "sizes.csv"
    place.write_text("n,size\n1,10\n2,20\n")
    numbers = protected([(1,), (1,), (3,)], n="integer")
    assert evaluate(numbers.join((place, {"n": int, "size": int}), on="n").map("size"), [(1,), (1,)]) == {(10,): 2}
    one, other, moved = (
        fingerprints(made._node)[made._node]
        for made in (
            numbers.join(pl.DataFrame({"n": [1, 2], "size": [10, 20]}), on="n"),
            numbers.join((place, {"n": int, "size": int}), on="n"),
            numbers.join(pl.DataFrame({"n": [1, 2], "size": [10, 21]}), on="n"),
        )
    )
    assert one == other != moved


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"on": "user"}, "type text here and integer"), ({"on": "town", "at_most": 3}, "at_most= is of a protected"),
        ({"left": "town", "right": "no"}, "no column 'no'; there are town, size"), ({}, "name the key of both"),
        ({"on": "town", "how": "outer"}, "takes 'inner' or 'left'"),
        ({"left": ["user", "town"], "right": "town"}, "differ in number"),
        ({"left": "town", "right": "size"}, "not unique"),
    ],
)  # fmt: skip
def test_what_no_public_table_can_do_is_refused(how, words):
    table = pl.DataFrame({"town": ["Rome", "Oslo"], "size": ["1", "1"], "user": [1, 2]})
    with pytest.raises(PlanError, match=words):
        people().join(table, **how)
    with pytest.raises(PlanError, match="join: the public table has no column 'twon'; there are town, size, user"):
        people().join(table, on="twon")
    with pytest.raises(PlanError, match="semijoin: the public table has no column 'twon'"):
        people().semijoin(table, on="twon")
    with pytest.raises(PlanError, match="of a public one"):
        people().join(people(), on="town", how="left")


@pytest.mark.parametrize("other", [3, None, "no such file.csv", {"user": "ann"}])
def test_what_is_no_table_is_refused_by_name(other):
    with pytest.raises(SourceError, match="join: takes another protected collection, or a public table: "):
        people().join(other, on="user")
    with pytest.raises(PlanError, match="no column beside its key"):
        people().join(pl.DataFrame({"user": ["ann"]}), on="user")
