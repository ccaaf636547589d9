"""Polars expressions: what is element-wise is admitted and is the same alone or in a batch, all else is refused."""

# ruff: noqa: E501

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core.functions import expressions
from wpinq.core.functions.bind import bind
from wpinq.core.functions.function import Dropped
from wpinq.core.records.kinds import read, series, write
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.values import encode
from wpinq.errors import PlanError, UntraceableError

W = "\0w"
SCHEMA = Schema.of(
    page=Kind.TEXT, user=Kind.TEXT, n=Kind.INT, m=Kind.INT, f=Kind.FLOAT, b=Kind.BOOL, x=Kind.BYTES, d=Kind.DATE, t=Kind.TIME,
    i=Kind.INSTANT, s=Kind.SPAN, v=Kind.ANY,
)  # fmt: skip
page, user, n, m, f, b, d, t, i, s = (pl.col(name) for name in ("page", "user", "n", "m", "f", "b", "d", "t", "i", "s"))

# an expression, its kind, and what it is in Python where that is easy to say (None: nulls and errors are left out)
ADMITTED = [
    (page.str.to_lowercase(), Kind.TEXT, None),
    (page.str.to_uppercase(), Kind.TEXT, None),
    (page.str.len_chars(), Kind.INT, lambda r: len(r["page"])),
    (page.str.len_bytes(), Kind.INT, lambda r: len(r["page"].encode())),
    (page.str.starts_with("/a"), Kind.BOOL, lambda r: r["page"].startswith("/a")),
    (page.str.ends_with(user), Kind.BOOL, lambda r: r["page"].endswith(r["user"])),
    (page.str.contains("a"), Kind.BOOL, lambda r: "a" in r["page"]),
    (page.str.contains("a", literal=True), Kind.BOOL, lambda r: "a" in r["page"]),
    (page.str.replace_all("a", "b", literal=True), Kind.TEXT, lambda r: r["page"].replace("a", "b")),
    (page.str.replace("a", "b", literal=True), Kind.TEXT, lambda r: r["page"].replace("a", "b", 1)),
    (page.str.slice(1, 2), Kind.TEXT, lambda r: r["page"][1:3]),
    (page.str.head(2), Kind.TEXT, lambda r: r["page"][:2]),
    (page.str.strip_chars("/ "), Kind.TEXT, lambda r: r["page"].strip("/ ")),
    (page.str.strip_prefix("/"), Kind.TEXT, lambda r: r["page"].removeprefix("/")),
    (page.str.reverse(), Kind.TEXT, None),
    (page.str.zfill(3), Kind.TEXT, None),
    (page.str.pad_start(4, "-"), Kind.TEXT, lambda r: r["page"].rjust(4, "-")),
    (page.str.count_matches("a", literal=True), Kind.INT, lambda r: r["page"].count("a")),
    (page.str.extract("(a+)", 1), Kind.TEXT, None),
    (page.str.split("/").list.get(1, null_on_oob=True), Kind.TEXT, lambda r: r["page"].split("/")[1]),
    (page.str.split("/").list.len(), Kind.INT, lambda r: len(r["page"].split("/"))),
    (page.str.to_integer(strict=False), Kind.INT, None),
    (page.str.strptime(pl.Date, "%Y-%m-%d", strict=False), Kind.DATE, None),
    (page.str.to_datetime("%Y", strict=False), Kind.TIME, None),
    (page.str.contains_any(["a", "b"]), Kind.BOOL, lambda r: "a" in r["page"] or "b" in r["page"]),
    (page.str.encode("hex"), Kind.TEXT, lambda r: r["page"].encode().hex()),
    (page.str.json_path_match("$.a"), Kind.TEXT, None),
    (page + user, Kind.TEXT, lambda r: r["page"] + r["user"]),
    (pl.concat_str(page, pl.lit("-"), user), Kind.TEXT, lambda r: r["page"] + "-" + r["user"]),
    (pl.format("{}:{}", page, n), Kind.TEXT, lambda r: f"{r['page']}:{r['n']}"),
    (page == "a", Kind.BOOL, lambda r: r["page"] == "a"),
    (page < user, Kind.BOOL, lambda r: r["page"] < r["user"]),
    (page.is_in(["a", "b"]), Kind.BOOL, lambda r: r["page"] in ("a", "b")),
    (page.is_null(), Kind.BOOL, None),
    (page.fill_null("none"), Kind.TEXT, lambda r: r["page"]),
    (pl.coalesce(page, user), Kind.TEXT, lambda r: r["page"]),
    (page.replace({"a": "b"}), Kind.TEXT, lambda r: {"a": "b"}.get(r["page"], r["page"])),
    (page.replace_strict({"a": 1}, default=0), Kind.INT, lambda r: {"a": 1}.get(r["page"], 0)),
    (page.cast(pl.Int64, strict=False), Kind.INT, None),
    (pl.when(n > 0).then(pl.lit("up")).otherwise(page), Kind.TEXT, lambda r: "up" if r["n"] > 0 else r["page"]),
    (pl.when(b).then(1), Kind.INT, None),
    (n + 1, Kind.INT, lambda r: (r["n"] + 1 + 2**63) % 2**64 - 2**63),
    (n * m, Kind.INT, lambda r: (r["n"] * r["m"] + 2**63) % 2**64 - 2**63),
    (n // 3, Kind.INT, lambda r: r["n"] // 3),
    (n % 3, Kind.INT, lambda r: r["n"] % 3),
    (n * 0.5, Kind.FLOAT, lambda r: float(r["n"]) / 2),
    (-m, Kind.INT, None),
    (n.abs(), Kind.INT, None),
    (n.clip(0, 9), Kind.INT, lambda r: min(max(r["n"], 0), 9)),
    (n.sign(), Kind.INT, lambda r: (r["n"] > 0) - (r["n"] < 0)),
    (n.is_between(1, m), Kind.BOOL, lambda r: 1 <= r["n"] <= r["m"]),
    (pl.min_horizontal(n, m), Kind.INT, lambda r: min(r["n"], r["m"])),
    (pl.sum_horizontal(n, m), Kind.INT, None),
    (n.cast(pl.Int32, strict=False), Kind.INT, lambda r: r["n"] if -(2**31) <= r["n"] < 2**31 else None),
    (n**2, Kind.INT, None),
    (n & m, Kind.INT, lambda r: r["n"] & r["m"]),
    ((n > 1) & b, Kind.BOOL, None),
    (~b, Kind.BOOL, lambda r: not r["b"]),
    (pl.any_horizontal(b, n > 0), Kind.BOOL, lambda r: r["b"] or r["n"] > 0),
    (f.round(1), Kind.FLOAT, None),
    (f.floor(), Kind.FLOAT, None),
    (f.is_nan(), Kind.BOOL, lambda r: r["f"] != r["f"]),
    (f.fill_nan(0.0), Kind.FLOAT, None),
    (f * 2, Kind.FLOAT, lambda r: r["f"] * 2),
    (f.abs().sqrt(), Kind.FLOAT, lambda r: abs(r["f"]) ** 0.5),
    (f.cast(pl.Float32, strict=False), Kind.FLOAT, None),
    (d.dt.year(), Kind.INT, lambda r: r["d"].year),
    (d.dt.weekday(), Kind.INT, lambda r: r["d"].isoweekday()),
    (t.dt.hour(), Kind.INT, lambda r: r["t"].hour),
    (t.dt.date(), Kind.DATE, lambda r: r["t"].date()),
    (t.dt.truncate("1h"), Kind.TIME, lambda r: r["t"].replace(minute=0, second=0, microsecond=0)),
    (t.dt.strftime("%H"), Kind.TEXT, lambda r: f"{r['t'].hour:02}"),
    (t.dt.replace_time_zone("UTC"), Kind.INSTANT, lambda r: r["t"].replace(tzinfo=dt.UTC)),
    (i.dt.convert_time_zone("Europe/Berlin"), Kind.INSTANT, lambda r: r["i"]),
    (i.dt.convert_time_zone("Asia/Tokyo").dt.hour(), Kind.INT, None),
    (s.dt.total_seconds(), Kind.INT, None),
    (t - t, Kind.SPAN, lambda r: dt.timedelta(0)),
    (pl.col("x").bin.size(), Kind.INT, lambda r: len(r["x"])),
    (pl.lit("all"), Kind.TEXT, lambda r: "all"),
    (pl.lit(dt.date(2020, 1, 1)), Kind.DATE, lambda r: dt.date(2020, 1, 1)),
    (pl.sql_expr("n + 1"), Kind.INT, lambda r: (r["n"] + 1 + 2**63) % 2**64 - 2**63),
    (pl.sql_expr("CASE WHEN n > 1 THEN 'x' ELSE page END"), Kind.TEXT, lambda r: "x" if r["n"] > 1 else r["page"]),
    (pl.sql_expr("page LIKE '/a%'"), Kind.BOOL, lambda r: r["page"].startswith("/a")),
]
VALUES = {
    Kind.INT: st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1)),
    Kind.FLOAT: st.one_of(st.floats(-10, 10), st.floats()),
    Kind.TEXT: st.one_of(st.text("/ab é2-01", max_size=6), st.text(max_size=3)),
    Kind.BOOL: st.booleans(),
    Kind.BYTES: st.binary(max_size=3),
    Kind.DATE: st.dates(),
    Kind.TIME: st.datetimes(),
    Kind.INSTANT: st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC)),
    Kind.SPAN: st.timedeltas(dt.timedelta(days=-(10**6)), dt.timedelta(days=10**6)),
    Kind.ANY: st.one_of(st.none(), st.integers(), st.text(max_size=3)),
}


def frame_of(records):
    columns = [
        series(column.name, [write(record[place], column.kind) for record in records], column.kind)
        for place, column in enumerate(SCHEMA)
    ]
    return pl.DataFrame([*columns, pl.Series(W, range(len(records)), dtype=pl.Int64)])


def rows(bound, frame):
    physical = bound.apply(frame, [W]).select(pl.all().to_physical()).rows()
    return {
        row[-1]: tuple(encode(read(v, c.kind)) for v, c in zip(row, bound.output, strict=False)) for row in physical
    }


def label(value):
    """A name that is the same in every process, which tests that run in parallel need."""
    return "python" if callable(value) else str(value)[:40]


@thin(8)
@pytest.mark.parametrize(("expression", "kind", "python"), ADMITTED, ids=label)
@settings(max_examples=often(6), deadline=None)
@given(data=st.data())
def test_admitted_expressions_are_of_their_kind_and_the_same_in_any_batch(expression, kind, python, data):
    bound = bind(expression, SCHEMA, "map")
    assert [column.kind for column in bound.output] == [kind]
    assert bound.note.startswith("polars: ")
    records = data.draw(st.lists(st.tuples(*(st.one_of(st.none(), VALUES[c.kind]) for c in SCHEMA)), max_size=8))
    frame = frame_of(records)
    together, mask = rows(bound, frame), bound.predicate(frame)
    for place, record in enumerate(records):
        alone = rows(bound, frame[place : place + 1])
        assert alone == {key: value for key, value in together.items() if key == place}
        assert mask[place] is bound.test(record)
        if place not in together:
            with pytest.raises(Dropped):
                bound.call(record)
            continue
        assert tuple(map(encode, bound.call(record))) == together[place]
        held = (read(write(value, c.kind), c.kind) for value, c in zip(record, SCHEMA, strict=True))  # NaN is None
        values = dict(zip(SCHEMA.names, held, strict=True))
        if python is not None and all(values[name] is not None for name in bound.reads):
            try:
                wanted = python(values)
            except IndexError:
                wanted = None
            assert together[place] == (encode(wanted),)
            assert mask[place] is (wanted is not None and (bool(wanted) if kind not in UNTRUE else True))


UNTRUE = (Kind.SPAN, Kind.BYTES)  # Polars has no truth for these: what is not null counts as true

REFUSED = [
    n.max(), n.min(), n.sum(), n.mean(), n.count(), n.first(), n.last(), n.median(), n.std(), n.n_unique(), n.null_count(),
    n.quantile(0.5), n.implode(), n.mode(), b.any(), b.all(), n.arg_max(), n.product(), n.len(),
    n == n.max(), n.max().over("page"), n.rank(), n.rank().over("page"), n.shift(), n.diff(), n.cum_sum(), n.cum_count(),
    n.unique(), n.is_unique(), n.is_duplicated(), n.is_first_distinct(), n.rle_id(), n.sort(), n.sort_by("m"), n.reverse(),
    n.head(1), n.tail(1), n.slice(0, 1), n.limit(1), n.sample(1), n.shuffle(), n.top_k(1), n.filter(n > 1), n.gather([0]),
    n.explode(), n.drop_nulls(), n.append(m), n.interpolate(), n.forward_fill(), n.fill_null(strategy="forward"),
    n.rolling_mean(2), n.ewm_mean(com=1), n.value_counts(), n.hist(), n.search_sorted(1), n.set_sorted(),
    n.to_physical(), n.hash(), n.peak_max(), n.bitwise_and(), n.repeat_by(2), n.get(0), n.index_of(1), n.pct_change(),
    pl.len(), pl.int_range(pl.len()), pl.lit(pl.Series([1, 2])), page.is_in(pl.Series(["a"])), n.is_in(m.implode()),
    pl.corr("n", "m"), pl.element(), pl.struct("n", "m"), pl.arg_sort_by("n"), pl.col("n").entropy(),
    n.rolling("t", period="1d"), n.map_batches(lambda column: column), page.str.join("-"), n.name.suffix("_x"),
    page.cast(pl.Int64), n.cast(pl.Int8), page.str.to_integer(), page.str.to_date("%Y"), page.str.to_datetime(strict=False),
    page.str.strptime(pl.Date, "%Y"), page.str.decode("hex"), page.str.split("/").list.get(0), page.str.json_decode(pl.Int64),
    page.str.contains(user), page.str.extract(user, 1), page.str.zfill(n), page.str.pad_start(n),
    page.replace_strict({"a": 1}), t.dt.replace_time_zone("Europe/Berlin"), t.dt.offset_by(page),
    pl.sql_expr("RANK() OVER (ORDER BY n)"), pl.sql_expr("SUM(n)"), pl.sql_expr("CAST(page AS INT)"),
    pl.when(n > n.mean()).then(1).otherwise(2), (n + 1).max() + n, page.str.to_lowercase().unique(),
]  # fmt: skip


@pytest.mark.parametrize("expression", REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_not_known_to_be_element_wise_is_refused(expression):
    with pytest.raises(UntraceableError, match=r"^map: "):
        bind(expression, SCHEMA, "map")


def test_there_are_many_of_each():
    assert len(ADMITTED) >= 40
    assert len(REFUSED) >= 40


def test_python_inside_an_expression_is_refused():
    with pytest.raises(UntraceableError, match="pass the Python function itself"):
        bind(n.map_elements(lambda value: value, return_dtype=pl.Int64), SCHEMA, "map")


def test_the_message_says_what_was_found_and_what_to_do():
    with pytest.raises(
        UntraceableError, match=r"^map: the Polars function Rank is not known .*write a Python function"
    ):
        bind(n.rank(), SCHEMA, "map")
    with pytest.raises(UntraceableError, match=r"^filter: the Polars expression Cast may raise .*strict=False"):
        bind(n.cast(pl.Int8) == 1, SCHEMA, "filter")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (pl.col("absent"), "no column absent; there are page, user"),
        (pl.col("absent") + 1, "no column absent"),
        (pl.col(W), "no column"),
        (pl.col("v") == 1, "'v' may hold values of any type"),
        (n.str.to_lowercase(), "Polars cannot compute"),
        (pl.lit(None), "no column here"),
        (page.str.split("/"), "no column here"),
        (pl.lit([1, 2]), "no column here"),
        (page.str.contains("("), "check its arguments"),
        (pl.col("^z.*$"), "a selector fits no column"),
    ],
)
def test_expressions_that_do_not_fit_are_refused(expression, message):
    with pytest.raises(PlanError, match=message):
        bind(expression, SCHEMA, "map")


def test_lists_of_expressions_name_their_outputs():
    assert bind([page, n + 1, page.str.len_chars().alias("size")], SCHEMA, "map").output.names == ("page", "n", "size")
    assert bind([page, page.str.head(1)], SCHEMA, "map").output.names == ("page", "page_2")
    assert bind(pl.lit(1), SCHEMA, "map").output.names == ("value",)
    assert bind((page, n), SCHEMA, "map", columns=["a", "b"]).output.names == ("a", "b")
    assert bind(pl.col("page", "n"), SCHEMA, "map").projection == ("page", "n")
    assert bind(pl.all(), SCHEMA, "map").projection == SCHEMA.names
    with pytest.raises(PlanError, match="expected Polars expressions, and found int"):
        bind([page, 1], SCHEMA, "map")
    with pytest.raises(PlanError, match="there are 2 expressions and columns= names 1"):
        bind([page, n], SCHEMA, "map", columns=["a"])
    with pytest.raises(PlanError, match="declares another"):
        bind(page, SCHEMA, "map", columns={"page": int})
    with pytest.raises(PlanError, match="a filter takes one expression"):
        bind([b, n > 1], SCHEMA, "filter").predicate(frame_of([]))


def test_columns_that_are_only_passed_on_are_a_projection():
    schema = Schema((Column("page", Kind.ANY), Column("index", Kind.INT, ranged=True)))
    bound = bind([pl.col("index").alias("i"), pl.col("page")], schema, "map")
    assert bound.projection == ("index", "page")
    assert bound.output == Schema((Column("i", Kind.INT, ranged=True), Column("page", Kind.ANY)))
    assert bind([pl.col("index"), pl.col("index").alias("again")], schema, "map").projection is None


def test_a_record_on_which_an_expression_raises_is_dropped_alone():
    bound = bind(n.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False), SCHEMA, "map")
    work = bound.expressions[0]
    object.__setattr__(bound, "expressions", (page.cast(pl.Int64),))  # strict, as no admitted expression is
    object.__setattr__(bound, "reads", ("page",))
    frame = pl.DataFrame({"page": ["1", "x", "3", "y", "z", "6", "7"], W: range(7)})
    assert bound.apply(frame, [W]).rows() == [(1, 0), (3, 2), (6, 5), (7, 6)]
    assert bound.predicate(frame).to_list() == [True, False, True, False, False, True, True]
    assert bound.apply(frame.clear(), [W]).height == 0
    assert work is not None


def test_a_node_that_should_not_be_listed_is_found_by_the_probes(monkeypatch):
    from wpinq.core.functions import admit, operations, polars_tree

    listed = operations.Operation((), frozenset({"columns"}))
    more = dict.fromkeys(("Rank", "CumSum", "Shift", "Reverse", "Boolean.IsDuplicated"), listed)
    for module, name in ((admit, "FUNCTIONS"), (polars_tree, "FUNCTIONS"), (admit, "TABLE")):
        monkeypatch.setattr(module, name, getattr(module, name) | more)
    for expression in (n.rank(), n.cum_sum(), n.shift(), n.reverse(), n.is_duplicated()):
        with pytest.raises(UntraceableError, match="among other records"):
            bind(expression, SCHEMA, "map")


def test_what_passed_is_not_probed_again_and_what_did_not_is(monkeypatch):
    probed, real = [], expressions._probed

    def noted(function, call):
        probed.append(function.fingerprint)
        if "77" in function.note:
            raise PlanError("it did not pass")
        real(function, call)

    monkeypatch.setattr(expressions, "_probed", noted)
    monkeypatch.setattr(expressions, "_passed", set())
    bound = [bind(expression, SCHEMA, "map") for expression in (n + 1, m + 1, n + 1, n, (n + 1).alias("k"))]
    other = Schema.of(n=Kind.FLOAT)
    assert probed == [bound[0].fingerprint, bound[1].fingerprint, bound[4].fingerprint]
    assert bind(n + 1, other, "map").fingerprint == probed[3], "columns of other types are another expression"
    for _ in range(2):
        with pytest.raises(PlanError, match="did not pass"):
            bind(n + 77, SCHEMA, "map")
    assert len(probed) == 6
    monkeypatch.setattr(expressions, "REMEMBERED", 2)
    bind(n - 5, SCHEMA, "map")
    assert expressions._passed == {probed[-1]}, "it forgets all where it is full"


def test_fingerprints_follow_the_expression():
    prints = [bind(e, SCHEMA, "map").fingerprint for e in (n + 1, n + 2, n - 1, m + 1, (n + 1).alias("k"), n, [n, m])]
    assert len(set(prints)) == 7
    assert bind(pl.col("n") + 1, SCHEMA, "map").fingerprint == prints[0]


def test_no_message_shows_a_value():
    marker = "alice-4711"
    bound = bind(page.str.to_integer(strict=False), SCHEMA, "map")
    frame = pl.DataFrame({"page": [marker], W: [0]})
    assert marker not in repr(bound) + bound.note
    assert bound.apply(frame, [W]).rows() == [(None, 0)]
