"""Parquet files, tables in memory and tuples."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core.records.schema import Kind, polars_type
from wpinq.core.records.values import encode
from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.tables import arrow, tuples

SECRET = "marker-of-a-record"
UTC = dt.UTC


def rows(source, columns=None, shares=1):
    reader = open_source(source, columns=columns)
    found = Counter()
    for part in range(shares):
        for frame in reader.batches(reader.schema.names, share=(part, shares)):
            assert frame.columns == list(reader.schema.names)
            assert frame.dtypes == [polars_type(column.kind) for column in reader.schema]
            found.update(frame.rows())
    return found


def values_of(array, kind=None):
    """One column as Parquet, as a table, as a record batch: all alike."""
    columns = None if kind is None else {"x": kind}
    table = pa.table({"x": array})
    reader = open_source(table, columns=columns)
    (frame,) = reader.batches(["x"])
    (again,) = open_source(table.to_batches()[0], columns=columns).batches(["x"])
    assert frame["x"].to_list() == again["x"].to_list()
    return reader.schema["x"].kind, frame["x"].to_list()


@pytest.mark.parametrize(
    ("array", "kind", "expected"),
    [
        (pa.array([1, None], pa.int8()), Kind.INT, [1, None]),
        (pa.array([1, 2**32 - 1], pa.uint32()), Kind.INT, [1, 2**32 - 1]),
        (pa.array([1.5, None], pa.float16()), Kind.FLOAT, [1.5, None]),
        (pa.array([1.5, None], pa.float32()), Kind.FLOAT, [1.5, None]),
        (pa.array(["a", None], pa.string_view()), Kind.TEXT, ["a", None]),
        (pa.array(["a", None], pa.large_string()), Kind.TEXT, ["a", None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), Kind.TEXT, ["a", None, "a"]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]), Kind.TEXT, ["a", "a", "b"]),
        (pa.array([b"a", b"\xff", None]).view(pa.string()), Kind.TEXT, ["a", None, None]),
        (pa.array([b"ab", None], pa.binary(2)), Kind.BYTES, [b"ab", None]),
        (pa.array([b"ab", None], pa.binary_view()), Kind.BYTES, [b"ab", None]),
        (pa.array([True, None]), Kind.BOOL, [True, None]),
        (pa.nulls(2), Kind.TEXT, [None, None]),
        (pa.array([dt.date(2024, 2, 29)], pa.date64()), Kind.DATE, [dt.date(2024, 2, 29)]),
        (pa.array([-5, None, 2**62], pa.timestamp("s")), Kind.TIME,
         [dt.datetime(1969, 12, 31, 23, 59, 55), None, None]),
        (pa.array([-1, 1_999], pa.timestamp("ns")), Kind.TIME,
         [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (pa.array([0], pa.timestamp("ms", "Europe/Zurich")), Kind.INSTANT, [dt.datetime(1970, 1, 1, tzinfo=UTC)]),
        (pa.array([1500], pa.duration("ms")), Kind.SPAN, [dt.timedelta(seconds=1.5)]),
        (pa.array([61], pa.time32("s")), Kind.SPAN, [dt.timedelta(seconds=61)]),
        (pa.array([61_000], pa.time64("ns")), Kind.SPAN, [dt.timedelta(microseconds=61)]),
        (pa.array([decimal.Decimal("0.10"), None]), Kind.FLOAT, [0.1, None]),
        (pa.array([decimal.Decimal(7), None], pa.decimal128(12, 0)), Kind.INT, [7, None]),
        (pa.array([decimal.Decimal(-(10**18) + 1)], pa.decimal256(18, 0)), Kind.INT, [-(10**18) + 1]),
        (pa.array([decimal.Decimal(7), None], pa.decimal128(19, 0)), Kind.FLOAT, [7.0, None]),
        (pa.array([decimal.Decimal("0.25")], pa.decimal256(50, 2)), Kind.FLOAT, [0.25]),
        (pa.array([decimal.Decimal("0.07"), None]).dictionary_encode(), Kind.FLOAT, [0.07, None]),
        (pa.array([[1, 2], None, []]), Kind.ANY, [encode((1, 2)), None, encode(())]),
        (pa.array([{"a": 1, "b": "x"}, None]), Kind.ANY, [encode((1, "x")), None]),
        (pa.array([[b"\xff"], [b"x"]]).cast(pa.list_(pa.binary())), Kind.ANY, [encode((b"\xff",)), encode((b"x",))]),
    ],
)  # fmt: skip
def test_arrow_types(array, kind, expected):
    assert values_of(array) == (kind, expected)


@given(st.data(), st.sampled_from([128, 256]), st.integers(1, 38), st.booleans())
def test_a_decimal_is_the_nearest_double(data, bits, precision, narrow):
    """As Python finds it from the digits, also where it is cut out of a longer array; Arrow's own cast is not."""
    scale = data.draw(st.integers(0, precision))
    most = 10 ** (min(precision, 15) if narrow else precision) - 1
    whole = data.draw(st.lists(st.none() | st.integers(-most, most), min_size=1, max_size=20))
    type_ = {128: pa.decimal128, 256: pa.decimal256}[bits](precision, scale)
    with decimal.localcontext(prec=80):
        given_ = [None if one is None else decimal.Decimal(one).scaleb(-scale) for one in whole]
    array = pa.array(given_, type_)
    cut = data.draw(st.integers(0, len(array) - 1))
    kind, found = values_of(array[cut:])
    assert kind is (Kind.INT if scale == 0 and precision <= 18 else Kind.FLOAT)
    assert found == [None if one is None else float(one) if kind is Kind.FLOAT else int(one) for one in given_[cut:]]


def test_every_price_prints_as_it_is_written():
    prices = [decimal.Decimal(cents) / 100 for cents in range(-1000, 100_000)]
    _, found = values_of(pa.array(prices, pa.decimal128(15, 2)))
    assert found == [cents / 100 for cents in range(-1000, 100_000)]


@given(
    st.lists(
        st.none() | st.integers(0, 2**64 - 1) | st.sampled_from([2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2048])
    )
)
def test_no_unsigned_integer_is_lost(numbers):
    expected = [None if number is None else encode(number) for number in numbers]
    reader = open_source(pa.table({"x": pa.array(numbers, pa.uint64())}))
    assert [cell for frame in reader.batches(["x"]) for cell in frame["x"]] == expected


@pytest.mark.parametrize(
    ("array", "kind", "expected"),
    [
        (pa.array(["7", "x", None]), int, [7, None, None]),
        (pa.array(["2024-02-29"]), dt.date, [dt.date(2024, 2, 29)]),
        (pa.array([7, None]), str, ["7", None]),
        (pa.array([7, None]), float, [7.0, None]),
        (pa.array([7.0, 7.5, None, float("nan"), 1e300, float("inf")]), int, [7, None, None, None, None, None]),
        (pa.array([True]), int, [1]),
        (pa.array([2**64 - 1, 5], pa.uint64()), int, [None, 5]),
        (pa.array([decimal.Decimal("0.10")]), float, [0.1]),
        (pa.array([decimal.Decimal("0.10"), None]), str, ["0.10", None]),
        (pa.array([decimal.Decimal(-(10**37) + 1)], pa.decimal256(40, 0)), str, ["-" + "9" * 37]),
        (pa.array([decimal.Decimal("7.00"), decimal.Decimal("7.50"), None]), int, [7, None, None]),
        (pa.array([decimal.Decimal(7)], pa.decimal128(5, 0)), float, [7.0]),
        (pa.array([dt.date(2024, 2, 29)]), dt.datetime, [dt.datetime(2024, 2, 29)]),
    ],
)
def test_declared_types_of_arrow_columns(array, kind, expected):
    assert values_of(array, kind)[1] == expected


@pytest.mark.parametrize(("array", "kind"), [(pa.array([1]), dt.date), (pa.array([[1]]), int), (pa.array([b"x"]), str)])
def test_a_declared_type_that_does_not_fit_is_refused(array, kind):
    with pytest.raises(SourceError, match=r"the column 'x' is .* and cannot be read as"):
        open_source(pa.table({"x": array}), columns={"x": kind})


def test_a_column_without_a_kind_matters_only_when_it_is_asked_for():
    months = pa.array([pa.scalar((1, 2, 3), pa.month_day_nano_interval())])
    table = pa.table({"x": months, "y": [1]})
    assert rows(table) == Counter([(1,)])
    with pytest.raises(SourceError, match="'x' is of type month_day_nano_interval, which cannot be read"):
        open_source(table, columns=["x"])
    with pytest.raises(SourceError, match="no column 'x'"):
        next(open_source(table).batches(["x"]))


@pytest.fixture
def frame():
    return pl.DataFrame({"user": ["a", "b", None], "page": [1, 2, 3]})


def test_every_library_gives_the_same_records(frame):
    expected = Counter(frame.rows())
    relation = duckdb.connect().sql("select * from (values ('a', 1), ('b', 2), (null, 3)) t(u, page)")
    sources = [
        frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), frame.to_arrow().to_batches()[0],
        pa.Table.to_reader(frame.to_arrow()), relation,
    ]  # fmt: skip
    for source in sources:
        assert rows(source) == expected, type(source)
        assert open_source(source).version() is open_source(source).content() is open_source(source).path is None


def test_what_can_be_read_again_is_read_again(frame):
    for source in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), duckdb.connect().sql("select 1 as page")):
        reader = open_source(source)
        first, again = (sum(part.height for part in reader.batches(["page"])) for _ in range(2))
        assert first == again > 0


def test_a_stream_is_read_once(frame):
    """pyarrow would give no rows the second time, and no error."""
    reader = open_source(frame.to_arrow().to_reader())
    assert sum(part.height for part in reader.batches(["page"])) == 3
    with pytest.raises(SourceError, match="read only once"):
        list(reader.batches(["page"]))


@pytest.mark.parametrize("unit", [None, wpinq.users("user", at_most=9)], ids=["records", "people"])
@pytest.mark.parametrize("ledger", [None, "ledger"])
def test_a_stream_that_is_protected_answers_all_that_is_charged(frame, unit, ledger, tmp_path):
    place = ledger and tmp_path / ledger
    views = wpinq.protect(frame.to_arrow().to_reader(), budget=10**7, unit=unit, ledger=place)
    for name in ("first", "second"):
        assert round(views.map(lambda page: 1).measure(10**6, name=name).observe(1)) == 3


@pytest.mark.parametrize("shares", [1, 2, 3])
def test_shares_of_tables_are_whole(frame, shares, monkeypatch):
    monkeypatch.setattr(arrow, "ROWS_PER_FRAME", 100)
    big = pl.concat([frame] * 400).rechunk()
    expected = Counter(dict.fromkeys(frame.rows(), 400))
    small_pieces = pa.concat_tables([frame.to_arrow()] * 300)
    assert rows(small_pieces, shares=shares) == Counter(dict.fromkeys(frame.rows(), 300))
    for source in (big, big.lazy(), big.to_arrow()):
        assert rows(source, shares=shares) == expected
    reader = open_source(big)
    parts = [sum(part.height for part in reader.batches(["page"], share=(index, 3))) for index in range(3)]
    assert min(parts) > 0


def test_pandas_columns_of_objects_hold_any_value():
    """Arrow would infer their type from the records, and fail on the second row."""
    table = pd.DataFrame(
        {"x": pd.Series([1, SECRET, None, float("nan"), {}], dtype=object), 7: pd.Categorical([1, "a", 1, 1, 1])}
    )
    reader = open_source(table)
    assert [column.kind for column in reader.schema] == [Kind.ANY, Kind.ANY]
    assert rows(table[["x"]]) == Counter({(encode(1),): 1, (encode(SECRET),): 1, (None,): 3})
    assert rows(table[["x"]], {"x": str}) == Counter({(SECRET,): 1, (None,): 4})


def test_a_table_that_fails_quotes_nothing():
    lazy = pl.LazyFrame({"x": [SECRET]}).select(pl.col("x").str.to_integer(strict=True))
    relation = duckdb.connect().sql(f"select cast(x as int) as x from (values ('1'), ('{SECRET}')) t(x)")
    for source in (lazy, relation):
        reader = open_source(source)
        with pytest.raises(SourceError) as caught:
            list(reader.batches(["x"]))
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        assert "\n" not in str(caught.value)


def test_parquet_by_row_groups(tmp_path):
    table = pa.table({"user": [f"u{i % 7}" for i in range(1000)], "page": range(1000), "other.x": range(1000)})
    path = tmp_path / "views.parquet"
    pq.write_table(table, path, row_group_size=90)
    reader = open_source(path)
    assert (reader.name, reader.path, reader.total_bytes) == ("views.parquet", path.resolve(), path.stat().st_size)
    for parts in (1, 2, 5, 20):
        done, seen = [], Counter()
        for part in range(parts):
            for frame in reader.batches(["other.x", "page"], share=(part, parts), progress=done.append):
                seen.update(frame.rows())
        assert seen == Counter((i, i) for i in range(1000))
        assert sum(done) == reader.total_bytes
    assert str(open_source(path, columns=("page", "user")).schema) == "(page: integer, user: text)"


@pytest.mark.parametrize("groups", [1, 2, 3, 8])
def test_row_groups_of_one_size_are_read_once(tmp_path, groups):
    """The edges of the shares fall on those of the row groups."""
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"page": range(groups * 8)}), path, row_group_size=8, use_dictionary=False, compression="none"
    )
    for parts in (1, 2, 4, 8):
        assert rows(path, shares=parts) == Counter((i,) for i in range(groups * 8))


def test_a_glob_of_parquet_files(tmp_path):
    for part in range(3):
        pq.write_table(
            pa.table({"page": pa.array([part], pa.int32() if part else pa.int64())}), tmp_path / f"p{part}.parquet"
        )
    reader = open_source(tmp_path / "p*.parquet")
    assert rows(tmp_path / "p*.parquet", shares=2) == Counter([(0,), (1,), (2,)])
    assert reader.path == tmp_path.resolve()
    assert reader.version().count("\n") == 2
    pq.write_table(pa.table({"page": ["x"]}), tmp_path / "p9.parquet")
    with pytest.raises(SourceError, match=r"p9\.parquet: its columns .* are not those of the first file"):
        open_source(tmp_path / "p*.parquet")


def test_a_damaged_page_quotes_nothing(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [f"{SECRET}-{i}" for i in range(5000)]}), path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:2000] = b"\xff" * 1996
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"x\.parquet: ") as caught:
        list(open_source(path).batches(["x"]))
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tuples_hold_any_value(monkeypatch):
    monkeypatch.setattr(tuples, "ROWS_PER_FRAME", 2)
    items = [(1, "a"), [1.0, True], (None, (1, "x")), "ab", (1,), (1, 2, 3), 5, None, ({}, b"x"), ("\ud800", 2)]
    expected = [
        (encode(1), encode("a")),
        (encode(1), encode(1)),
        (None, encode((1, "x"))),
        (None, encode(b"x")),
        (None, encode(2)),
    ]
    assert rows(items) == rows(item for item in items) == Counter(expected)
    assert open_source([]).schema.names == ("user", "page")
    assert rows([]) == Counter()


@pytest.mark.parametrize("form", [str, lambda item: (item,), lambda item: [item]])
def test_of_one_column_a_value_is_a_record(form):
    reader = open_source(map(form, ["a", "b", "a"]), columns={"page": str})
    assert [row for frame in reader.batches(["page"]) for row in frame.rows()] == [("a",), ("b",), ("a",)]
    assert not any(frame.height for frame in open_source(["ab", "cd"], columns=("user", "page")).batches(["page"]))


def test_tuples_under_declared_types():
    kinds = {
        "i": int, "f": float, "s": str, "b": bool, "d": dt.date, "t": dt.datetime, "u": "instant", "l": dt.timedelta,
        "y": bytes,
    }  # fmt: skip
    now = dt.datetime(2024, 1, 1, tzinfo=UTC)
    good = (1.0, decimal.Decimal("0.5"), "x", 1, now.date(), now.replace(tzinfo=None), now, dt.timedelta(1), b"y")
    wrong = ("1", "0.5", 5, 2, now, now.date(), now.date(), 1, "y")
    read = (1, 0.5, "x", True, now.date(), now.replace(tzinfo=None), now, dt.timedelta(1), b"y")
    assert rows([good, wrong, (2**70,) * 9], kinds) == Counter([read, (None,) * 9, (None, float(2**70), *[None] * 7)])


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3)


@settings(deadline=None)
@given(st.lists(st.tuples(plain, st.tuples(plain, plain) | st.decimals(allow_nan=False))))
def test_tuples_are_encoded_one_by_one(items):
    def code(value):
        try:
            return None if encode(value) == encode(None) else encode(value)  # NaN is None
        except TypeError:
            return None

    assert rows(items) == Counter((code(a), code(b)) for a, b in items)


def test_an_iterable_that_raises_quotes_nothing():
    def records():
        yield ("a", 1)
        raise ValueError(SECRET)

    with pytest.raises(SourceError, match="raised ValueError") as caught:
        open_source(records())
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


def test_readers_show_no_record():
    for source in (
        [(SECRET, 1)],
        pl.DataFrame({"x": [SECRET]}),
        pd.DataFrame({"x": [SECRET]}),
        pa.table({"x": [SECRET]}),
    ):
        assert SECRET not in repr(open_source(source))


def test_an_array_is_refused_and_its_rows_as_tuples_are_not():
    """An array's rows are no tuples; reading them as some would hold values that nobody wrote."""
    array = np.array([[1.5, 2.0], [2.5, 3.0]])
    with pytest.raises(SourceError, match="tolist"):
        open_source(array, columns={"x": float, "y": float})
    reader = open_source(map(tuple, array.tolist()), columns={"x": float, "y": float})
    assert [row for frame in reader.batches(("x", "y")) for row in frame.rows()] == [(1.5, 2.0), (2.5, 3.0)]


@pytest.mark.parametrize("series", [pl.Series("page", ["a", "b", "a"]), pd.Series(["a", "b", "a"], name="page")])
def test_a_series_is_a_table_of_one_column(series):
    assert open_source(series).schema.names == ("page",)
    assert rows(series) == {("a",): 2, ("b",): 1}


def test_an_arrow_array_of_structs_is_a_table():
    struct = pa.array([{"user": "ann", "page": 1}, None, {"user": None, "page": 1}])
    assert rows(struct) == {("ann", 1): 1, (None, 1): 1}
    with pytest.raises(SourceError, match="TypeError"):
        open_source(pa.array([SECRET]))
