"""Columns of stored values and the canonical encodings of what they hold."""

import datetime as dt

import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core.records import kinds
from wpinq.core.records.schema import Kind
from wpinq.core.records.values import encode
from wpinq.errors import PlanError
from wpinq.sources.form import declared

CODED = {
    Kind.TEXT: st.text(max_size=20), Kind.BYTES: st.binary(max_size=9), Kind.INT: st.integers(-(2**63), 2**63 - 1),
    Kind.BOOL: st.booleans(), Kind.FLOAT: st.floats(), Kind.DATE: st.dates(), Kind.TIME: st.datetimes(),
    Kind.SPAN: st.timedeltas(max_value=dt.timedelta(10**6), min_value=-dt.timedelta(10**6)),
}  # fmt: skip


@pytest.mark.parametrize("kind", CODED)
@given(data=st.data())
@settings(max_examples=often(50))
def test_columns_are_encoded_as_their_values_are(kind, data):
    values = data.draw(st.lists(st.none() | CODED[kind], max_size=8))
    column = kinds.series("a", [kinds.write(value, kind) for value in values], kind)
    wanted = [encode(value) for value in values]
    assert kinds.codes(column, kind).to_list() == wanted
    pairs = kinds.joined_codes([kinds.codes(column, kind), kinds.codes(column.reverse(), kind)])
    assert pairs.to_list() == [encode(pair) for pair in zip(values, values[::-1], strict=True)]


def test_types_are_written_in_one_way_everywhere():
    """`protect` and the command line took words and `map` did not, and a time with a zone had no other name."""
    spelt = {"a": "integer", "b": "int", "c": "text", "d": "instant", "e": "timestamp with time zone", "f": str}
    found = kinds.declared_kinds(spelt, "map")
    assert [kind for _, kind in found] == list(declared(spelt).values())
    assert dict(found)["d"] is Kind.INSTANT
    with pytest.raises(PlanError, match="'instant' for a time with a zone"):
        kinds.declared_kinds({"a": "integral"}, "map")
