"""Admitted expressions and SQL compute something for every value that a column may hold, and print nothing.

Polars panics on times beyond its own bounds, which drops the record and writes to standard error: whoever sees that
knows of the record. Each part here runs in a process of its own, whose standard error must stay empty.
"""

# ruff: noqa: E501

import sys

import numpy as np
import polars as pl
import processes
import pytest
from depth import DEEP, deep, deeper, thin
from polars import col

from wpinq.core.functions.bind import bind
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import PlanError, UntraceableError

COMMON = """
import datetime as dt, itertools, os, sys, tempfile
import polars as pl
from polars import col
from wpinq.core.records.canonical import BOUNDS
from wpinq.errors import WpinqError
from wpinq.core.functions.bind import bind
from wpinq.core.records.kinds import series
from wpinq.core.records.schema import Kind, Schema
L, M = -2**63, 2**63 - 1
VALUES = {
    Kind.INT: [0, 1, -1, L, M, 2**31, -(2**31) - 1, 10**9, None],
    Kind.FLOAT: [0.0, 1.5, float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 2.0**63, None],
    Kind.TEXT: ["", "a", "\\0", "\\u0301", "e\\u0301", "İß", "-5", "9999-12-31", "0000-01-01", "999999-01-01", "1e400", "nan",
                "😀" * 50, "%Y", "(", "9223372036854775808", '{"a":1}', "[", "$1", "A" * 2000, None],
    Kind.BOOL: [True, False, None], Kind.BYTES: [b"", b"\\xff", b"\\0", b"a" * 1000, None],
    Kind.SPAN: [L, M, 0, -1, 86400000000, None],
    **{kind: [low, high, 0, -1, None] for kind, (low, high) in BOUNDS.items()},
}
SCHEMA = Schema.of(n=Kind.INT, m=Kind.INT, f=Kind.FLOAT, g=Kind.FLOAT, s=Kind.TEXT, z=Kind.TEXT, b=Kind.BOOL,
                   y=Kind.BYTES, d=Kind.DATE, t=Kind.TIME, u=Kind.TIME, i=Kind.INSTANT, h=Kind.SPAN, k=Kind.SPAN)
n, m, f, g, s, z, b, y, d, t, u, i, h, k = (col(name) for name in SCHEMA.names)
TIMES = (pl.Date, pl.Datetime("us"), pl.Datetime("ns"), pl.Datetime("ms"), pl.Datetime("us", "Europe/Paris"))
def read(x):
    at = x.dt
    yield from (getattr(at, name)() for name in ("year iso_year is_leap_year quarter month days_in_month week weekday "
        "day ordinal_day hour minute second microsecond date month_start month_end century millennium").split())
    yield from (at.strftime("%c"), at.truncate("1mo"), at.truncate("9000y"), at.round("1w"), at.offset_by("1mo"),
        at.offset_by("-9999y"), at.offset_by("300000y"), at.offset_by("200000000d"), at.timestamp("ns"), at.epoch("s"),
        at.convert_time_zone("Europe/Paris").dt.hour(), at.convert_time_zone("Pacific/Kiritimati").dt.date(),
        at.replace_time_zone("UTC"), x.cast(pl.String, strict=False), x.cast(pl.Time, strict=False),
        x.cast(pl.Date, strict=False), x.cast(pl.Datetime("ns"), strict=False), x.cast(pl.Int64, strict=False))
bound = 0
def run(bind_, what):
    global bound
    try:
        made = bind_()
    except WpinqError:
        return
    bound += 1
    rows = list(itertools.product(*(VALUES[SCHEMA[name].kind] for name in made.reads)))[:200]
    columns = [series(name, [row[place] for row in rows], SCHEMA[name].kind) for place, name in enumerate(made.reads)]
    made.apply(pl.DataFrame([*columns, pl.Series("\\0w", range(len(rows)))]), ["\\0w"])
"""
PARTS = {
    "times": "for x in (d, t, i):\n    for e in [x, *read(x)]:\n        yield e",
    "times and spans": """for x in (d, t, i):
    for o in (h, -k, pl.lit(dt.timedelta(days=10**8))):
        yield from (x + o, x - o, x + o + o, *read(x + o), *read((x - o).dt.offset_by("1d")))
        for e in read(pl.when(b).then(x + o).otherwise(x)): yield e
        for e in read((x + o).clip(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1))): yield e
    for o in (d, t, i): yield from (x - o, x < o, x + h < o, x == o, (x - o).cast(pl.String, strict=False))""",
    "casts": """for x in (n, f, s, y, h):
    for type_ in TIMES:
        e = x.cast(type_, strict=False)
        yield from (e, *read(e), e.cast(pl.Datetime("us"), strict=False), e < t)
    for type_ in (pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Boolean, pl.String, pl.Decimal(38, 10), pl.Binary,
                  pl.Int64, pl.Duration("ms"), pl.Time):
        e = x.cast(type_, strict=False)
        yield from (e, e.cast(pl.String, strict=False), e.cast(pl.Int64, strict=False))""",
    "numbers": """every = [n, m, f, b, n.cast(pl.Int32, strict=False), n.cast(pl.UInt8, strict=False),
             pl.lit(0), pl.lit(-1), pl.lit(L)]
for x, o in itertools.product(every, repeat=2):
    if x.meta.root_names() or o.meta.root_names():
        yield from (x + o, x - o, x * o, x / o, x // o, x % o, x ** o, x & o, x == o, x < o, x.eq_missing(o))
for x in (n, f):
    yield from (x.abs(), -x, x.sign(), x.floor(), x.round(), x.round(400), x.exp(), x.log(), x.log(g), x.log1p(),
        x.clip(1, m), x.sqrt(), x.cbrt(), x.tan(), x.arccosh(), x.is_finite(), x.is_in([1, 2, None]), x.pow(g),
        x.fill_null(3), x.replace({1: 2}), x.round_sig_figs(3))
yield from (pl.sum_horizontal(n, f), pl.mean_horizontal(n, m), pl.min_horizontal(n, f), pl.sum_horizontal(h, k),
    pl.max_horizontal(t, d), h + k, -h, h * n, h // n, h % k, h / k, h * f, h.abs(), h.dt.to_string(), h.dt.to_string("iso"),
    h.dt.total_days(), h.dt.total_microseconds())""",
    "texts": """S = s.str
yield from (S.to_lowercase(), S.to_uppercase(), S.to_titlecase(), S.len_chars(), S.contains(z, literal=True), S.reverse(),
    S.extract("(.)", 9), S.find("a+"), S.count_matches(""), S.replace_all("(.)", "$1$1"), S.replace_all("", "xx"),
    S.replace_many(["a", ""], ["b", "c"]), S.slice(n, m), S.head(n), S.tail(n), S.strip_chars(), S.strip_prefix(z),
    S.zfill(5), S.pad_start(10, "é"), S.normalize("NFKD"), pl.concat_str(s, n, f, d, t, h, b), pl.format("{}-{}", s, z),
    S.split("").list.len(), S.encode("hex"), S.decode("base64", strict=False), S.to_integer(base=36, strict=False),
    S.json_path_match("$.a"), S.escape_regex(), s.replace({"a": "b"}), s.cast(pl.Date, strict=False) < d,
    y.bin.size("b"), y.bin.contains(y), y.cast(pl.String, strict=False).str.to_uppercase())
for type_ in TIMES[:2]:
    for form in ("%Y-%m-%d", "%5Y-%m-%d", "%s", "%Y"):
        e = S.strptime(type_, form, strict=False)
        yield from (e, *read(e))""",
}
SQL = """
WORDS = '''lower(s) | upper(s) | length(s) | trim(s) | abs(n) | abs(-n) | floor(f) | ceil(f) | round(f) | round(f, 15) | left(s, 2147483647)
right(s, -2147483648) | greatest(n, f) | least(t, d) | substring(s, -2147483648, 2147483647) | coalesce(f, 1) | nullif(s, 'a')
s || s | s || CAST(n AS TEXT) | n + m | n - m | n * m | n / m | n % m | -n | f / n | f * 1e308 | n = f | s LIKE '%a_' | s ILIKE 'İ%'
n IN (1, NULL) | n BETWEEN m AND 3 | n BETWEEN SYMMETRIC 3 AND m | s SIMILAR TO '%(a)+_' | CASE WHEN b THEN n END | CAST(s AS INTEGER) | CAST(s AS DOUBLE PRECISION) | CAST(s AS BOOLEAN)
CAST(s AS DATE) | CAST(s AS TIMESTAMP) | CAST(n AS DOUBLE PRECISION) | CAST(n AS TEXT) | CAST(f AS INTEGER) | CAST(d AS TIMESTAMP)
CAST(d AS TEXT) | CAST(t AS DATE)'''.replace(chr(10), " | ").split(" | ")
for part in ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute"):
    for x in ("d", "t", "i", "t + INTERVAL '99999' YEAR", "d - INTERVAL '999999' WEEK"):
        WORDS.append(f"extract({part} FROM {x})")
        WORDS.append(f"date_trunc('{part}', {x})")
for unit in ("day", "week", "month", "quarter", "year", "hour", "minute"):
    for x in ("d", "t"):
        for number in ("1", "99999", "999999"):
            far = f"{x} + INTERVAL '{number}' {unit}"
            WORDS += [far, far + f" + INTERVAL '{number}' {unit}", f"CAST({far} AS DATE)", f"date_trunc('month', {far})"]
            WORDS += [far.replace("+", "-"), f"{far} < TIMESTAMP '2000-01-01'", f"CAST(CAST({far} AS DATE) AS TEXT)"]
for words in WORDS:
    run(lambda: bind(words, SCHEMA, "map"), words)
"""


STRIDE = 1 if DEEP else 12
"""One expression in so many is tried: each has a few relatives of the same kinds and values."""


def silent(code, least):
    ran = processes.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr[:2000]) == (0, "")
    assert int(ran.stdout) >= least, "so many are admitted"


@deeper
@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "least"), [("times", 80), ("times and spans", 120), ("casts", 150), ("numbers", 500), ("texts", 80)]
)
def test_polars_expressions_print_nothing(part, least):
    made = "def every():\n" + "\n".join("    " + line for line in PARTS[part].splitlines())
    turn = (
        f"\nfor e in itertools.islice(every(), 0, None, {STRIDE}):\n    run(lambda: bind(e, SCHEMA, 'map'), str(e))\n"
    )
    silent(COMMON + made + turn + "print(bound)", least // STRIDE)


@deep
def test_sql_prints_nothing():
    silent(COMMON + SQL + "print(bound)", 200)


SCHEMA = Schema.of(t=Kind.TIME, h=Kind.SPAN, n=Kind.INT, s=Kind.TEXT)


def test_what_may_be_too_far_is_refused_and_told_what_to_do():
    far = col("t") + col("h")
    for bad in (far.dt.year(), far.dt.truncate("1mo"), col("n").cast(pl.Date, strict=False).dt.month_start()):
        with pytest.raises(UntraceableError, match=r"put \.clip\(first, last\) around the time"):
            bind(bad, SCHEMA, "map")
    for good in (far, far > col("t"), (far - col("h")).is_null(), (col("t") - col("t")).dt.total_days()):
        bind(good, SCHEMA, "map")


def test_texts_that_would_fill_the_memory_are_refused():
    text = col("s").str
    for bad in (text.zfill(10**9), text.pad_end(10**6), text.replace_all("ő", "x" * 10**5),
                text.replace_all("ő", "x" * 999).str.replace_all("x", "y" * 999), pl.concat_str([col("s")] * 70_000)):  # fmt: skip
        with pytest.raises(UntraceableError, match="times as long"):
            bind(bad, SCHEMA, "map")
    for good in (text.zfill(100), text.replace_all("a", "x" * 99).str.to_uppercase()):
        bind(good, SCHEMA, "map")


GROWN = {
    "doubled": lambda s: s + s,
    "upper": lambda s: s.upper(),
    "replaced": lambda s: s.replace("ab", "xyzxyz"),
    "all": lambda s: (s.replace("a", "xyz") + s).upper().lower(),
    "cut": lambda s: (s + s)[1:3],
    "sql": "concat(upper(s), replace(s, 'a', 'xyz'), lower(s)) AS s",
    "polars": (col("s") + col("s").str.replace_all("a", "xyz")).str.to_uppercase(),
}


@pytest.mark.parametrize("name", GROWN)
def test_no_text_grows_by_more_than_its_function_says(name):
    function = bind(GROWN[name], Schema((Column("s", Kind.TEXT),)), "map")
    grown = [
        len(value) / len(text)
        for text in ("a", "ab", "abab" * 9, "ﬃ" * 5, "ΐ", "İ", "zz")
        for value in function.apply(pl.DataFrame({"s": [text]}), ())[function.output.names[0]]
    ]
    assert max(grown) <= function.growth < 400
    assert (function.growth > 1) == (name != "cut") or function.growth == 2


def test_an_interval_from_a_constant_that_leaves_the_years_is_refused():
    with pytest.raises(PlanError, match="years 1 to 9999"):
        bind("t < TIMESTAMP '2020-01-01' + INTERVAL '9999' YEAR", SCHEMA, "filter")


NUMBERS = Schema.of(x=Kind.FLOAT, n=Kind.INT)


@pytest.mark.parametrize(
    "expression",
    [
        pl.col("x") / 3,
        pl.col("n") / 7,
        pl.col("x") / pl.lit(3.0),
        pl.col("x") / pl.when(pl.col("x").is_not_null()).then(3.0),
        pl.col("x") / pl.col("x").fill_null(3.0),
        pl.col("x") / (pl.lit(3.0) + 4),
        pl.col("x").abs() ** pl.col("n"),
    ],
    ids=str,
)
def test_what_polars_computes_otherwise_for_a_record_alone_is_refused(expression):
    """It divides a column by a constant through the inverse, and one value as it is: the last digits differ."""
    with pytest.raises(UntraceableError, match="alone in its batch"):
        bind(expression.alias("q"), NUMBERS, "map")


@thin(4)
@pytest.mark.parametrize(
    "expression",
    ["x / 3", "n / 7.0", "x / n", "x / nullif(n, 0)", "x / (CASE WHEN x > 0 THEN 3.0 END)", "(CASE WHEN x > 0 THEN 5.0 END) / 3", "power(x, 2)", "exp(n * ln(x))", "log(2, x)", "x / (n * 0 + 3)",
     pl.col("x") / pl.col("n"), 3 / pl.col("x"), pl.col("x") * 3.3, pl.col("x") // 3.1, pl.col("x") % 3.1],
    ids=str,
)  # fmt: skip
def test_quotients_and_powers_do_not_depend_on_other_records(expression):
    """One by one, in twos, beside a null and all together: bit for bit the same."""
    random = np.random.default_rng(7)
    frame = pl.DataFrame({"x": random.normal(size=300) * 100, "n": random.integers(1, 60, 300)})
    part = f"{expression} AS q" if isinstance(expression, str) else expression.alias("q")
    function = bind(part, NUMBERS, "map")
    whole = function.apply(frame, ()).to_series(0).to_list()
    nulls = pl.DataFrame({"x": [None], "n": [None]}, schema=frame.schema)
    for size in (1, 2, 7):
        parts = [function.apply(frame[row : row + size], ()) for row in range(0, 300, size)]
        assert pl.concat(parts).to_series(0).to_list() == whole
    assert function.apply(pl.concat([frame, nulls]), ()).to_series(0).to_list()[:300] == whole


@pytest.mark.parametrize(
    "expression",
    [col("") / 3, col("x").abs() ** col(""), col("x").round_sig_figs(2).replace(col(""), 1.0), col("") ** col("")],
    ids=str,
)
def test_a_column_without_a_name_is_a_column(expression):
    """What depends on whether an expression reads a column asks that, and not whether its name is a true value."""
    with pytest.raises(PlanError):
        bind(expression.alias("q"), Schema.of(**{"": Kind.FLOAT, "x": Kind.FLOAT}), "map")


def test_times_of_a_column_without_a_name_are_bounded():
    times = Schema.of(**{"": Kind.TIME})
    with pytest.raises(PlanError):
        bind(col("").dt.offset_by("900000y").dt.year().alias("q"), times, "map")
