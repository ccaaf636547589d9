"""What a column may hold: no record decides what becomes of others, and none makes a step fail or print."""

import base64
import datetime as dt
import sys
from decimal import Decimal

import numpy as np
import polars as pl
import processes
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import thin

import wpinq
from wpinq import BinError
from wpinq.core.records.values import DEEPEST
from wpinq.sources.check import check
from wpinq.sources.report import TYPE

NAN = float("nan")
FAR = pl.Series("d", [0, 3_000_000, 200_000_000, -200_000_000], dtype=pl.Int32).cast(pl.Date)


def numbers(rows):
    return wpinq.protect(rows, budget=10**6, columns={"user": str, "x": float})


@pytest.mark.parametrize(
    "make",
    [
        lambda c: c.filter(lambda x: bool(x != 1.0) or False).map("user"),
        lambda c: c.filter(lambda x: x != 1.0).map("user"),
        lambda c: c.map(lambda x: "u" if x is None else "some"),
        lambda c: c.flat_map(lambda x: ["u"] if x is None else [], columns={"v": str}, at_most=1),
        lambda c: c.map("x").concat(c.filter("user = 'nobody'").map("user")).map(lambda x: "u" if x is None else x),
    ],
    ids=["plain filter", "traced filter", "map", "flat_map", "align"],
)
def test_a_number_of_somebody_else_does_not_decide_what_becomes_of_nan(make):
    """Polars joins a column of one distinct value by merging, and there NaN did not match NaN."""
    nans = [("u", NAN)] * 100
    for more in ([], [("alice", 5.0)], [("alice", None)]):
        assert round(make(numbers(nans + more)).measure(1000).observe("u")) in (100, 100 + (more == [("alice", None)]))


def test_nan_is_none_wherever_it_stands():
    rows = [(NAN,), (None,), ((1, NAN),), ((1, None),), (np.float32("nan"),)]
    m = wpinq.protect(rows, budget=10**6, columns=("v",)).measure(1000)
    assert m.observe(None) == m.observe(NAN) == 3
    assert m.observe((1, None)) == m.observe((1, NAN)) == 2
    typed = numbers([("a", NAN), ("a", None), ("a", -0.0), ("a", 0.0)]).map("x").measure(1000)
    assert [typed.observe(one) for one in (NAN, None, 0.0, -0.0)] == [2, 2, 2, 2]
    made = numbers([("a", float("inf"))])
    for way in (lambda x: x - x, lambda x: [x - x][0], pl.col("x") - pl.col("x"), "x - x"):
        assert made.map(way).measure(1000).observe(None) == 1


def test_a_null_of_a_source_and_one_of_a_function_are_one_value():
    c = wpinq.protect([(None,), (None,), ("x",)], budget=10**6, columns=("v",))
    f = c.map(lambda v: v if v == "x" else None, columns={"v": object})
    assert c.partition("v", [None, "x"])[None].measure(1000).observe(None) == 2
    assert c.concat(f).distinct().measure(1000).observe(None) == 1
    assert c.union(f).measure(1000).observe(None) == c.intersect(f).measure(1000).observe(None) == 2
    assert round(c.join(f, on="v").measure(1000).observe(None)) == 1


def test_a_live_union_takes_them_for_one_value_in_every_epoch():
    def run(extra):
        live = wpinq.live(columns=("k", "v"), budget=10**6)
        other = wpinq.protect([("B", None)] * 3, budget=10**6, columns=("k", "v"), name="other")
        mapped = other.map(lambda k, v: None if k == "B" else v, columns={"v": object})
        both = live.map(lambda k, v: v).union(mapped)
        found = []
        for rows in ([("A", None)] * (1 + extra), [("A", None)] * 5):
            asked = both.measure(1000)
            live.send(rows)
            live.advance()
            found.append(asked.observe(None))
        live.close()
        return found

    assert (run(0), run(1)) == ([3, 6], [3, 7])


STEPS = {
    "concat": lambda c: c.map("d").concat(c.map("s")),
    "union": lambda c: c.map("d").union(c.map("s")),
    "group_by": lambda c: c.group_by("s"),
    "group_by whole": lambda c: c.group_by("s", len, whole=True),
    "plain": lambda c: c.map(lambda d, s: str([d, s])),
    "traced": lambda c: c.map(lambda d: d.year),
    "window": lambda c: c.window("1d", at="d").map("s"),
    "bound": lambda c: c.group_by("d", len),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_day_that_python_does_not_have_is_null_and_fails_nothing(step):
    frame = pl.DataFrame([FAR, pl.Series("s", list("aabb"))])
    m = STEPS[step](wpinq.protect(frame, budget=100)).measure(1)
    m.observe_many([], **({"window": dt.date(1970, 1, 1)} if step == "window" else {}))
    days = wpinq.protect(frame, budget=10**6).map("d").measure(1000)
    assert (days.observe(None), days.observe(dt.date(1970, 1, 1))) == (3, 1)


FIELDS = [
    ("date", "0000-01-01"),
    ("timestamp", "0000-01-01 10:00"),
    ("instant", "9999-12-31 23:30-01:00"),
    ("instant", "0001-01-01 00:00+01:00"),
    ("number", "nan"),
]


@pytest.mark.parametrize(("kind", "field"), FIELDS)
def test_fields_of_files_that_no_column_may_hold_are_null_and_reported(kind, field, tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(f"user,x\nann,\neve,{field}\n")
    given = {"columns": {"x": kind}}
    v = wpinq.protect(path, budget=10**6, **given)
    assert v.map("x").measure(1000).observe(None) == 2
    assert v.group_by("user").measure(1000).observe(("eve", (("eve", None),))) == 0.5
    report = check(path, **given)
    assert [(one.reason, one.row, one.column) for one in report.problems] == [(TYPE, 3, "x")]


@pytest.mark.parametrize("reader", [pa.table, pl.DataFrame, lambda x: list(zip(x["x"], strict=True))])
def test_checks_report_what_tables_and_tuples_hold_and_no_column_may(reader):
    table = reader({"x": [NAN, 1.0]})
    found = check(table, columns={"x": float})
    assert [(one.row, one.column) for one in found.problems] == [(1, "x")]


def test_days_are_answered_and_published_when_some_are_out_of_range(tmp_path):
    path = tmp_path / "u.csv"
    path.write_text("user,day\n" + "eve,0000-01-01\n" * 300)
    v = wpinq.protect(path, budget=10, columns={"day": "date"})
    assert [
        row[0] for row in wpinq.sql("SELECT day, COUNT(*) FROM v GROUP BY day", {"v": v}, epsilon=1, delta=1e-6).rows
    ] == [None]
    assert [one for one, _ in v.map("day").measure(1).release(delta=1e-6)] == [None]
    tuples = wpinq.protect([(np.datetime64("300000-01-01"),)] * 300, budget=10, columns=("at",))
    assert [one for one, _ in tuples.measure(1).release(delta=1e-6)] == [None]


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("300000-01-01"),
        np.datetime64(10**15, "D"),
        np.datetime64(2**62, "s"),
        np.datetime64("0000-12-31", "D"),
        np.timedelta64(2**62, "D"),
        dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-1))),
        dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))),
    ],
)
def test_times_that_python_does_not_have_are_no_values(value):
    m = wpinq.protect([(value,), ((1, value),)], budget=10**6, columns=("v",)).measure(1000)
    assert m.observe(None) == 2
    with pytest.raises(BinError):
        m.observe(value)
    for kind in ("timestamp", "instant", "date", "duration"):
        assert wpinq.protect([(value,)], budget=10**6, columns={"v": kind}).measure(1000).observe(None) == 1
    made = wpinq.protect([("a",)], budget=10**6, columns={"v": str}).map(lambda v: value)
    assert made.measure(1000).observe(None) == 0, "a function that returns it drops its record"


def failing(*given):
    raise LookupError(MARK)


MARK = "zqxmarker"
METHODS = ("__eq__", "__ne__", "__hash__", "__bool__", "__len__", "__iter__", "__str__", "__repr__", "__int__",
           "__index__", "__float__", "__getattr__", "__getitem__", "toordinal", "utcoffset")  # fmt: skip
HOSTILE = {base.__name__: type("Mine", (base,), dict.fromkeys(METHODS, failing))
           for base in (object, int, float, tuple, list, dict, dt.date, dt.tzinfo)}  # fmt: skip
FAILING = {
    "object": lambda mine: mine(), "int": lambda mine: mine(3), "float": lambda mine: mine(2.5),
    "dict": lambda mine: mine(), "tuple": lambda mine: mine((1, 2)), "list": lambda mine: mine([1, 2]),
    "date": lambda mine: mine(2026, 1, 1),
    "tzinfo": lambda mine: dt.datetime(2026, 1, 1, tzinfo=mine()), "class": lambda mine: Untold(),
}  # fmt: skip


class Untold:
    __class__ = property(failing)


@pytest.mark.parametrize("kind", FAILING)
@pytest.mark.parametrize("whole", [False, True], ids=["value", "record"])
def test_a_value_whose_methods_fail_concerns_its_record_alone(kind, whole):
    """One of them refused all records that were sent with it, those of other people too."""
    odd = FAILING[kind](HOSTILE.get(kind))
    rows = [("ann", "x"), odd if whole else ("eve", odd), ("ann", "x")]
    for columns in ({"u": str, "v": "instant"}, {"u": str, "v": None}):
        live = wpinq.live(columns, budget=10**6)
        sent, read = (
            live.map("u").measure(1000),
            wpinq.protect(rows, budget=10**6, columns=columns).map("u").measure(1000),
        )
        live.send(rows)
        live.advance()
        assert [one.observe(name) for one in (sent, read) for name in ("ann", "eve")] == [2, 1 - whole] * 2


def nested(levels):
    return () if levels == 0 else (nested(levels - 1),)


def test_a_value_is_nested_no_deeper_than_is_said_whoever_calls():
    rows = [("ann", "p"), ("eve", nested(485)), ("eve", nested(DEEPEST)), ("bob", nested(DEEPEST - 1))]

    def ask(levels):
        if levels:
            return ask(levels - 1)
        v = wpinq.protect(rows, budget=10**6, columns=("u", "v"))
        m = v.map(lambda v: v).measure(1000)
        return m.observe("p"), m.observe(None), m.observe(nested(DEEPEST - 1))

    assert ask(0) == ask(300) == (1, 2, 1)


def test_groups_of_groups_of_values_that_are_nested_as_deep_as_can_be():
    rows = [("ann", nested(DEEPEST - 1))] * 3
    v = wpinq.protect(rows, budget=10**6, columns={"u": str, "v": None})
    groups = v.group_by("u").group_by("u").group_by("u").map(lambda u: u)
    assert groups.measure(1000).observe("ann") == pytest.approx(3 / 8)


@pytest.mark.parametrize("op", ["semijoin", "antijoin", "join", "intersect"])
@pytest.mark.parametrize("alice", [[], [("alice", "x")]])
def test_sides_of_a_sum_that_keep_other_columns(op, alice):
    """A step of one side had another reader, so its batches held a column more, where there was a record."""
    c = wpinq.protect([("bob", "x"), ("carol", "y"), *alice], budget=10**6, columns={"u": str, "p": str})
    some = c.filter("u = 'alice'").map("u, p")
    both = c.concat(some)
    made = c.intersect(both) if op == "intersect" else getattr(c, op)(both, on="p")
    assert made.map("p").measure(1000).observe("x") >= 0


CRASH = """
import sys, wpinq
kind, path = sys.argv[1], sys.argv[2]
v = wpinq.protect(path, budget=9, columns={"ok": "bool"}, ledger=path + ".L")
made = {"bool": lambda: v.map("ok"), "sql": lambda: v.map("upper(page) AS p"),
        "python": lambda: v.map(lambda page: page.lower())}[kind]()
made.measure(1).observe_many([])
print("answered")
"""


@thin(3)
@pytest.mark.parametrize("kind", ["bool", "sql", "python"])
def test_a_field_that_is_no_utf8_crashes_nothing(kind, tmp_path):
    path = tmp_path / "v.csv"
    rows = b"".join(b"u%d,Page %d,true\n" % (i, i % 9) for i in range(500))
    path.write_bytes(b"user,page,ok\n" + rows + b"eve,caf\xe9,\xe9\n")
    ran = processes.run([sys.executable, "-c", CRASH, kind, str(path)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "answered\n", "")


def test_far_dates_of_parquet_are_null(tmp_path):
    path = tmp_path / "d.parquet"
    days = pa.array([18_000, 10**8], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"u": ["a", "a"], "d": days, "m": pa.array([0, 2**62], pa.timestamp("us"))}), path)
    v = wpinq.protect(path, budget=10**6)
    assert v.map("d").measure(1000).observe(None) == v.map("m").measure(1000).observe(None) == 1


@pytest.mark.parametrize("type_", [pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(20, 2), pa.decimal256(50, 2)])
@pytest.mark.parametrize("kind", [None, float])
def test_decimals_of_every_width_are_read(type_, kind, tmp_path):
    """Narrow ones had no dictionary in Arrow, so that a run failed where there was a record."""
    made = pa.table({"x": pa.array([Decimal("1.50"), None, Decimal("1.5")], type_)})
    pq.write_table(made, tmp_path / "x.parquet")
    for source in (made, made.to_reader(), str(tmp_path / "x.parquet")):
        asked = wpinq.protect(source, budget=10**6, columns={"x": kind}, ledger=tmp_path / "l").measure(10**5)
        assert asked.observe_many([1.5, None]).tolist() == [2, 1]


@pytest.mark.parametrize(("link", "given"), [
    (lambda home: (home / "v" / "b.csv").symlink_to("a.csv"), "v"),
    (lambda home: (home / "v" / "b.csv").hardlink_to(home / "v" / "a.csv"), "v/*.csv"),
    (lambda home: (home / "v" / "now").symlink_to(home / "v"), "v/**/a.csv"),
])  # fmt: skip
def test_one_file_under_two_names_is_refused(link, given, tmp_path, monkeypatch):
    """Its records counted twice, at the price of one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "a.csv").write_text("x\n1\n")
    assert wpinq.protect(given, budget=1, ledger=tmp_path / "l").columns == ("x",)
    link(tmp_path)
    with pytest.raises(wpinq.SourceError, match=r"is the same file as .*a\.csv, so each record would count twice"):
        wpinq.protect(given, budget=1, ledger=tmp_path / "l")


TWICE = {
    "limit": lambda c, key: c.limit(key, 2),
    "group_by": lambda c, key: c.group_by(key, len),
    "semijoin": lambda c, key: c.semijoin(c, left=key, right=["a", "b"]),
    "antijoin": lambda c, key: c.antijoin(c, left=["a", "b"], right=key),
    "partition": lambda c, key: c.partition(key, [(1, 1)])[1, 1],
}


@pytest.mark.parametrize("step", TWICE.values(), ids=TWICE)
def test_a_column_that_stands_twice_in_a_key_fails_no_run(step):
    """A limit failed where there was a record, and a semijoin in another way than where there was none."""
    for rows in ([], [(1, 1), (1, 2)]):
        records = wpinq.protect(rows, budget=10**6, columns={"a": int, "b": int})
        with pytest.raises(wpinq.PlanError, match="a column stands twice in the key"):
            step(records, ["a", "a"])
        assert len(step(records, lambda a: (a, a)).measure(1000).observe_many([])) == 0


@pytest.mark.parametrize("kind", [None, int])
def test_bytes_that_only_the_schema_of_arrow_calls_texts(kind, tmp_path):
    """Polars takes its word and Arrow does not: one record that is no UTF-8 failed the run."""
    told = pa.schema({"x": pa.string()}).serialize().to_pybytes()
    for odd in ([], [b"caf\xe9"]):
        records, path = pa.table({"x": pa.array([b"7"] * 300 + odd, pa.binary())}), tmp_path / f"{len(odd)}.parquet"
        with pq.ParquetWriter(path, records.schema, store_schema=False) as file:
            file.write_table(records)
            file.add_key_value_metadata({"ARROW:schema": base64.b64encode(told).decode()})
        asked = wpinq.protect(path, budget=10**6, columns={"x": kind}).measure(10**5)
        assert asked.observe_many(["7" if kind is None else 7, None]).tolist() == [300, len(odd)]
