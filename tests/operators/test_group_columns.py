"""Aggregates of groups: in columns and one by one, bit for bit, and as far as one record moves them."""

import math
import random
import struct

import polars as pl
import pytest

from wpinq.core.operators.group_columns import RULES, GroupColumn, _of_group, aggregated, group_columns
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.testing import check_stability, evaluate, protected

WHOLE = [0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**53 + 1, 10**17 + 7, None, 3, 5, 700]
PARTS = [0.0, 1.5, -1.5, 1e308, -1e308, 5e-324, 0.1, 0.2, 0.3, None, math.inf, -math.inf, 1e16, -1e16, 2 / 3]
ASKED = [(rule, distinct) for rule in ("Count", *RULES) for distinct in (False, True)]


def bits(value):
    return struct.pack("<d", value) if isinstance(value, float) else value


@pytest.mark.parametrize(("kind", "values"), [(Kind.INT, WHOLE), (Kind.FLOAT, PARTS)])
def test_columns_are_the_definition_bit_for_bit(kind, values):
    """Sums that leave 64 bits, infinities, copies, nothing but NULL: each group by itself."""
    draw = random.Random(7)
    schema = Schema((Column("k", Kind.TEXT), Column("v", kind)))
    columns = [GroupColumn("n", "Rows", (), False), *(GroupColumn(f"{rule} {only}", rule, ("v",), only)
                                                      for rule, only in ASKED)]  # fmt: skip
    for _ in range(60):
        records = {(draw.choice(["a", "b", None]), draw.choice(values)): draw.choice([1, 1, 3]) for _ in range(9)}
        rows = [(*record, weight) for record, weight in records.items()]
        types = {"k": pl.String, "v": polars_type(kind), WEIGHT: pl.Int64}
        found = aggregated(pl.DataFrame(rows, schema=types, orient="row"), ["k"], ["k"], columns, schema)
        for row in found.iter_rows(named=True):
            group = [{"v": value} for key, value, weight in rows for _ in range(weight) if key == row["k"]]
            truth = {one.name: _of_group(group, one) for one in columns}
            assert {name: bits(row[name]) for name in truth} == {name: bits(value) for name, value in truth.items()}


def test_one_record_moves_two_groups():
    made = protected(user="text", n="number")
    columns = [GroupColumn(f"{rule} {only}", rule, ("n",), only) for rule, only in ASKED]
    groups = made._then(group_columns(made._node, ["user"], columns))
    assert groups._node.stability == (2,)
    check_stability(groups, examples=40)
    one = made._then(group_columns(made._node, ["user"], [GroupColumn("s", "Sum", ("n",), False)]))
    assert evaluate(one, [("a", 1), ("a", 1), ("b", None)]) == {("a", 2): 1, ("b", None): 1}
