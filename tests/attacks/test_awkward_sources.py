"""One odd value more in a source of any kind: the same outcome, nothing printed, and nobody else's records moved.

Each kind of source runs in a process of its own, since what Polars and Arrow do with bytes that are no text can end it.
"""

# ruff: noqa: E501

import sys

import processes
import pytest
from depth import thin

CODE = r"""
import datetime as dt, os, sqlite3, sys, tempfile
import numpy as np, polars as pl, pyarrow as pa, pyarrow.parquet as pq
import wpinq
KINDS = {"n": "integer", "f": "number", "s": "text", "b": "boolean", "d": "date", "t": "timestamp", "h": "duration"}
ROWS = 300
folder = tempfile.mkdtemp()

def texts(values):
    "Arrow strings that nobody checked; what is null has letters under it."
    data = [b"caf\xe9" if one is None else one for one in values]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int32)
    valid = np.packbits([one is not None for one in values], bitorder="little").tobytes()
    return pa.Array.from_buffers(pa.string(), len(data), [pa.py_buffer(valid), pa.py_buffer(offsets), pa.py_buffer(b"".join(data))])

def table(odd):
    "Ordinary rows, and those that are odd."
    def of(plain, more, type_):
        return pa.array([plain] * ROWS + (more if odd else []), type_)
    far = [10**8, -(10**8), None, 0, 2932896, 2932897]
    micros = [2**62, -(2**62), None, 253402300799999999, 253402300800000000, 0]
    strings = [b"Page"] * ROWS + ([b"caf\xe9", b"\xff\xfe", None, b"\0", b"", "\u0301İ😀".encode()] if odd else [])
    return pa.table({
        "n": of(1, [2**63 - 1, -(2**63), None, 0, -1, 5], pa.int64()),
        "f": of(1.0, [float("nan"), float("inf"), None, -0.0, -float("inf"), 1e308], pa.float64()),
        "s": texts(strings), "b": of(True, [None] * 6, pa.bool_()),
        "d": of(18000, far, pa.int32()).cast(pa.date32()),
        "t": of(0, micros, pa.int64()).cast(pa.timestamp("us")), "h": of(0, micros, pa.int64()).cast(pa.duration("us")),
    })

def polars(odd):
    return pl.DataFrame([pl.from_arrow(column.combine_chunks().chunk(0) if column.num_chunks > 1 else column.chunk(0)).alias(name)
                         for name, column in zip(table(odd).column_names, table(odd).columns)])

def tuples(odd):
    plain = [(1, 1.0, "Page", True, dt.date(2019, 4, 14), dt.datetime(1970, 1, 1), dt.timedelta(0))] * ROWS
    deep = ()
    for _ in range(485): deep = (deep,)
    far = np.datetime64("300000-01-01")
    values = [float("nan"), deep, far, np.timedelta64(2**62, "D"), "\ud800", {1}, 2**64, object(), b"\xff", (1, float("nan")), None]
    return plain + [(one,) * 7 for one in values if odd]

def csv(odd):
    path = f"{folder}/{odd}.csv"
    plain = b"1,1.0,Page,true,2019-04-14,1970-01-01 00:00,0:00:00\n"
    fields = [b"caf\xe9", b"nan", b"-0.0", b"0000-01-01", b"0000-01-01 10:00", b"9" * 400, b"", b"\0", b"999999999:00:00", b'"']
    open(path, "wb").write(b"n,f,s,b,d,t,h\n" + plain * ROWS + b"".join(b",".join([one] * 7) + b"\n" for one in fields if odd))
    return path

def parquet(odd):
    path = f"{folder}/{odd}.parquet"
    pq.write_table(table(odd), path)
    return path

def nested(odd):
    strings = texts([b"Page"] * ROWS + ([b"caf\xe9", None] if odd else []))
    size = len(strings)
    lists = pa.ListArray.from_arrays(pa.array(range(size + 1), pa.int32()), strings)
    stamps = pa.array([0] * ROWS + ([2**62, float("nan") and None] if odd else []), pa.int64()).cast(pa.timestamp("us"))
    return pa.table({"l": lists, "r": pa.StructArray.from_arrays([strings, stamps], ["a", "b"]), "s": strings,
                     "c": pa.DictionaryArray.from_arrays(pa.array(range(size), pa.int32()), strings)})

def sqlite(odd):
    path = f"{folder}/{odd}.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE v (n INTEGER, f REAL, s TEXT, b BOOLEAN, d DATE, t TIMESTAMP, h)")
        db.executemany("INSERT INTO v VALUES (?,?,?,?,?,?,?)", [(1, 1.0, "Page", 1, "2019-04-14", "1970-01-01 00:00", 0)] * ROWS)
        for cell in ["CAST(X'636166E9' AS TEXT)", "9e999", "-9e999", "NULL", "'0000-01-01'", "'0000-01-01 10:00'", "X'00'", "2", "''"]:
            if odd: db.execute(f"INSERT INTO v VALUES ({', '.join([cell] * 7)})")
    return wpinq.sqlite(path, table="v")

SOURCES = {
    "tuples": (tuples, KINDS), "csv": (csv, KINDS), "parquet": (parquet, None), "arrow": (table, None), "polars": (polars, None),
    "pandas": (lambda odd: table(odd).to_pandas(types_mapper=__import__("pandas").ArrowDtype), None), "sqlite": (sqlite, None), "nested": (nested, None),
    "any": (tuples, list(KINDS)),
}
STEPS = [
    "upper(s) AS x", "lower(s) AS x", "CAST(s AS BOOLEAN) AS x", "s || s AS x", "left(s, 3) AS x", "CAST(s AS DATE) AS x", "length(s) AS x",
    "f * 2 AS x", "n + 1 AS x", "-n AS x", "date_trunc('month', d) AS x", "d + INTERVAL '1' DAY AS x", "CAST(d AS TEXT) AS x",
    "extract(week FROM t) AS x", "NOT b AS x", *[pl.col("s").str.to_titlecase(), pl.col("s").str.reverse(), pl.col("s").str.normalize(),
    pl.col("s").str.replace_all("a", "b"), pl.col("s").str.slice(1, 2), pl.col("s").str.strip_chars(), pl.col("s").str.split("g").list.get(0, null_on_oob=True),
    pl.col("s").str.extract("(.)", 1), pl.col("s").str.len_chars(), pl.col("s").str.encode("hex"), pl.col("s").str.pad_end(9),
    pl.col("h").cast(pl.String, strict=False), pl.col("d").dt.month_start(), pl.col("t").dt.is_leap_year()],
    lambda s: s.lower(), lambda s: s.strip(), lambda s: [s][0], lambda f: f != 1.0 or False, lambda d: d.year, lambda t: str([t]), lambda h: (h, h),
]
def protected(make, columns, odd, live):
    if live:
        source = wpinq.live(KINDS, budget=10**9)
        return source, lambda: (source.send(make(odd)), source.advance())
    return wpinq.protect(make(odd), budget=10**9, columns=columns), lambda: None

def outcomes(make, columns, odd, live=False):
    source, go = protected(make, columns, odd, live)
    asked, found = [], []
    names = source._node.schema.names
    for step in STEPS:
        try: asked.append(source.map(step).measure(1000))
        except wpinq.WpinqError: pass
    whole = source.map(lambda *row: row[0] == row[0]).measure(1000)
    keyed = [source.group_by(names[0]), source.group_by(names[-1], len), source.distinct(), source.union(source), source.shave(),
             source.join(source, on=names[0], result=lambda *a: 1), source.map(lambda *row: row[0]).concat(source.map(lambda *row: str(row[-1]))),
             source.semijoin(source, on=names[-1])]
    asked += [one.measure(1000) for one in keyed]
    go()
    for one in asked:
        try: one.observe_many([]); found.append("answered")
        except Exception as error: found.append(repr(error))
    return found, round(float(whole.observe(True)))

name = sys.argv[1]
make, columns = SOURCES[name.removesuffix(" live")]
live = name.endswith(" live")
one, two = (outcomes(make, columns, odd, live) for odd in (False, True))
assert set(one[0]) == {"answered"}, one[0]
assert one[0] == two[0], two[0]
assert len(one[0]) > 12
assert 0 <= two[1] - one[1] <= 11, "ordinary records stay, and odd ones move by themselves"
"""
NAMES = [
    "tuples", "any", "csv", "parquet", "arrow", "polars", "pandas", "sqlite", "nested", "tuples live", "arrow live",
    "polars live",
]  # fmt: skip


@thin(10)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_odd_values_of_a_source_fail_nothing_and_print_nothing(name):
    ran = processes.run([sys.executable, "-W", "ignore", "-c", CODE, name], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr[-3000:]) == (0, "")
