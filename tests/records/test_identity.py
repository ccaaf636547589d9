"""One identity for one value, whatever way it comes: typed column, canonical bytes, asked bin."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities, integer_identities
from wpinq.core.records.schema import Kind, Schema, polars_type
from wpinq.core.records.values import decode, encode
from wpinq.errors import BinError

KEY = b"k" * 16
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.decimals(allow_infinity=False, allow_nan=False, min_value=-1000, max_value=1000, places=3),
    st.fractions(max_denominator=1000),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.timedeltas(dt.timedelta(-1000), dt.timedelta(1000)),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)


def equal(a, b):
    """Equality of values as documented in values.py, written down independently."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        both = isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)
        return both and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if any(one is None or (isinstance(one, float) and math.isnan(one)) for one in (a, b)):  # NaN is None
        return all(one is None or (isinstance(one, float) and math.isnan(one)) for one in (a, b))
    if isinstance(a, dt.date) and isinstance(b, dt.date) and isinstance(a, dt.datetime) != isinstance(b, dt.datetime):
        return False
    if isinstance(a, (float, Decimal)) and not math.isfinite(a):
        return a == b if isinstance(b, (int, float, Decimal, Fraction)) else False
    if isinstance(a, Decimal) and isinstance(b, (float, Fraction)):
        return not (isinstance(b, float) and not math.isfinite(b)) and Fraction(a) == Fraction(b)
    if isinstance(b, Decimal) and isinstance(a, (float, Fraction)):
        return Fraction(a) == Fraction(b)
    return bool(a == b)


def identity(value, kind=Kind.ANY):
    return tuple(identities(bin_frame([value], Schema.of(x=kind)), Schema.of(x=kind), KEY)[0].tolist())


@given(values, values)
def test_encoding_is_equal_exactly_for_equal_values(a, b):
    assert (encode(a) == encode(b)) == equal(a, b)


@given(values)
def test_decoding_gives_an_equal_value(value):
    assert equal(decode(encode(value)), value)
    assert encode(decode(encode(value))) == encode(value)


@pytest.mark.parametrize("one", [1.0, True, Decimal(1), np.int64(1), np.float32(1), Fraction(1), np.bool_(True)])
def test_equal_numbers_are_one_bin(one):
    assert (
        identity(one) == identity(1) == identity(1, Kind.INT) == identity(1.0, Kind.FLOAT) == identity(True, Kind.BOOL)
    )


@pytest.mark.parametrize(
    ("a", "b"), [(1, "1"), ("\u00e9", "e\u0301"), ("", None), ((1, 2), (2, 1)), (((), 1), (1, ())), (b"a", "a")]
)
def test_different_values_are_different_bins(a, b):
    assert identity(a) != identity(b)


def test_signed_zeros_nans_and_lists():
    assert identity(-0.0) == identity(0) == identity(-0.0, Kind.FLOAT)
    assert identity(float("nan")) == identity(np.float64("nan")) == identity(float("nan"), Kind.FLOAT) == identity(None)
    assert identity([1, "a"]) == identity((1, "a"))


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        (Kind.INT, st.integers(-(2**63), 2**63 - 1)),
        (Kind.FLOAT, st.floats(allow_nan=False)),  # a column never holds NaN
        (Kind.TEXT, st.text(max_size=40)),
        (Kind.BOOL, st.booleans()),
        (Kind.BYTES, st.binary(max_size=40)),
        (Kind.DATE, st.dates()),
        (Kind.TIME, st.datetimes()),
        (Kind.INSTANT, st.datetimes(timezones=st.just(dt.UTC))),
        (Kind.SPAN, st.timedeltas(dt.timedelta(-10000), dt.timedelta(10000))),
    ],
)
def test_typed_columns_agree_with_canonical_bytes(kind, strategy):
    @given(st.lists(st.none() | strategy, min_size=1, max_size=8))
    def check(column):
        typed = identities(pl.DataFrame({"x": pl.Series(column, dtype=polars_type(kind))}), Schema.of(x=kind), KEY)
        assert [tuple(row) for row in typed.tolist()] == [identity(value) for value in column]

    check()


@given(st.tuples(st.text(max_size=5), st.integers(-5, 5)))
def test_a_record_of_two_columns_is_the_tuple_of_them(record):
    schema = Schema.of(a=Kind.TEXT, b=Kind.INT)
    found = identities(bin_frame([record], schema), schema, KEY)
    assert tuple(found[0].tolist()) == identity(record)


def test_integers_without_a_frame():
    assert tuple(integer_identities(np.array([5]), KEY)[0].tolist()) == identity(5)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Kind.INT, "1"), (Kind.INT, 1.5), (Kind.INT, 2**63), (Kind.INT, (1,)), (Kind.TEXT, 1), (Kind.TEXT, b"a"),
        (Kind.FLOAT, "1"), (Kind.FLOAT, Decimal("0.1000000000000000055")), (Kind.BOOL, 2), (Kind.BOOL, "x"),
        (Kind.DATE, dt.datetime(2020, 1, 1)),
        (Kind.TIME, "2020-01-01"), (Kind.INSTANT, dt.datetime(2020, 1, 1)), (Kind.SPAN, 5),
        (Kind.BYTES, "a"), (Kind.ANY, object()), (Kind.ANY, {1}), (Kind.TEXT, "\ud800"),
    ],
)  # fmt: skip
def test_a_bin_of_the_wrong_type_is_refused_with_a_hint(kind, wrong):
    with pytest.raises(BinError, match=r"of the type|is not a value"):
        bin_frame([wrong], Schema.of(x=kind))


def test_a_decimal_is_the_number_that_prints_as_it_does():
    """Tables of DECIMAL are read as numbers, and answers of databases name their groups by decimals."""
    frame = bin_frame([Decimal("0.10"), Decimal("1394.44"), Decimal(7)], Schema.of(x=Kind.FLOAT))
    assert frame["x"].to_list() == [0.1, 1394.44, 7.0]


def test_bins_of_several_columns():
    schema = Schema.of(a=Kind.TEXT, b=Kind.INT)
    assert bin_frame([("x", 1), ["y", 2.0]], schema).rows() == [("x", 1), ("y", 2)]
    for wrong in ([("x",)], ["x"], [("x", 1, 2)]):
        with pytest.raises(BinError, match="tuple of 2"):
            bin_frame(wrong, schema)
    with pytest.raises(BinError, match="list"):
        bin_frame("abc", Schema.of(a=Kind.TEXT))


def test_arrays_and_ranges_are_read_without_a_loop():
    schema = Schema.of(x=Kind.INT)
    assert bin_frame(range(1, 4), schema)["x"].to_list() == [1, 2, 3]
    assert bin_frame(np.array([3, 1], np.int16), schema)["x"].to_list() == [3, 1]
    assert bin_frame(pl.Series(["a", None]), Schema.of(x=Kind.TEXT))["x"].to_list() == ["a", None]
