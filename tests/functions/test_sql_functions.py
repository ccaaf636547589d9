"""The functions of SQL against a real PostgreSQL, alone and nested; where it raises on a value, ours is NULL."""

import datetime as dt
import functools
import json
import math
import random

import polars as pl
import pytest
from depth import deeper, often, thin
from servers import postgres

import wpinq
from wpinq.core.functions.bind import bind
from wpinq.core.functions.sql import times
from wpinq.core.functions.sql.bind import statement
from wpinq.core.functions.sql.calls import FUNCTIONS, NAMES, listed
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError

BERLIN_GAP, BERLIN_FOLD = dt.datetime(2026, 3, 29, 2, 30), dt.datetime(2026, 10, 25, 2, 30)
CLOCKS = [BERLIN_GAP, BERLIN_FOLD, dt.datetime(2024, 2, 29, 23, 59, 59, 999_999), dt.datetime(1999, 1, 1, 0, 0, 0, 120),
          dt.datetime(1969, 12, 31, 22, 30, 15, 500_000), dt.datetime(2026, 3, 29, 1, 30), None,
          dt.datetime(2000, 12, 31), dt.datetime(2011, 12, 30, 12), dt.datetime(1850, 6, 1, 12, 34, 56)]  # fmt: skip
FRAME = pl.DataFrame(
    {
        "page": ["/item?id=17&x=1", "", None, "https://www.example.org/a/b?q=é#top", "a.b.c", "??", "  Mixed Case  ",
                 "line\nbreak?id=3", "ID=4", "$1 \\ /a"],
        "n": [0, 1, -7, None, 1000, 2**40, 3, -1, 10, 99],
        "x": [0.0, 1.5, -2.5, 1e300, None, 100.0, 0.1, 9.999, 10.0, -1e-9],
        "clock": CLOCKS,
        "at": [None if clock is None else clock.replace(tzinfo=dt.UTC) for clock in CLOCKS],
        "day": [None if clock is None else clock.date() for clock in CLOCKS],
    },
    schema_overrides={"at": pl.Datetime("us", "UTC"), "clock": pl.Datetime("us")},
)  # fmt: skip
SCHEMA = Schema.of(page=Kind.TEXT, n=Kind.INT, x=Kind.FLOAT, clock=Kind.TIME, at=Kind.INSTANT, day=Kind.DATE)
TEXTS = """
split_part(page, '?', 1) | split_part(page, '?', 2) | split_part(page, '.', -1) | split_part(page, '.', -9)
split_part(page, '', 1) | split_part(page, '', 2) | split_part(split_part(page, '://', 2), '/', 1)
replace(page, '?', '$1') | replace(page, '', 'x') | concat(page, n, NULL, day, clock, at, n > 3)
concat_ws('-', page, n, day) | page || '!' | trim(page) | ltrim(page) | rtrim(page) | btrim(page, ' Me/')
trim(leading '/' from page) | trim(trailing 'a' from page) | trim(both '?' from page) | btrim(page, '')
left(page, 3) | left(page, -2) | right(page, 3) | right(page, -2) | lower(page) | upper(page)
substring(page from 2 for 3) | substr(page, 4) | substring(page from 'id=([0-9]+)') | substring(page from '[a-z]+')
substring(page from '(?:id|q)=(.)') | regexp_substr(page, 'i?d=\\d+') | (regexp_match(page, '(\\w+)=(\\w+)'))[2]
(regexp_match(page, '[.]b'))[1] | (regexp_match(page, 'id=\\d', 'i'))[1] | regexp_replace(page, '[?].*', '')
regexp_replace(page, '(\\w)(\\w)', '\\2$\\1\\\\\\&', 'g') | regexp_replace(page, 'ID', '', 'gi')
regexp_replace(page, '.', '#', 'g') | regexp_replace(page, '[^]a-c/]', '_', 'g') | regexp_replace(page, '$', '!')
regexp_replace(page, '[[:upper:]-]', '+', 'g') | substring(page from '=(.*?)&') | substring(page from '\\ya')
CAST(n AS TEXT) | CAST(clock AS TEXT) | CAST(at AS TEXT) | coalesce(page, 'none') | nullif(page, '')
to_char(clock, 'YYYY-MM-DD HH24:MI:SS') | to_char(at, 'YYYY-MM') | to_char(day, 'DD.MM.YY') | to_char(clock, 'DDD')
to_char(clock, 'HH12:MI AM') | to_char(clock, 'Dy DD Mon') | to_char(clock, 'IYYY-IW') | to_char(clock, 'SS.US')
to_char(at, 'TMDay TMMonth') | to_char(clock, 'YYYY-MM-DD"T"HH24') | greatest(page, 'a') | least(page, 'a')"""
NUMBERS = """
strpos(page, '?') | strpos(page, '') | position('b' in page) | length(page) | abs(n) | abs(x) | floor(x) | ceil(x)
ceiling(x) | trunc(x) | round(x) | sign(x) | sqrt(n) | sqrt(x) | exp(x) | ln(n) | ln(x) | log(x) | log(2, n)
power(x, 2) | x ^ 0.5 | power(n, -1) | -2 ^ 2 | 2 ^ 3 ^ 2 | width_bucket(x, 0, 10, 4) | width_bucket(n, -7, 100, 5)
width_bucket(x, 10, -3, 3) | width_bucket(x, 0.1, 0.3, 3) | greatest(n, 3) | least(n, x) | coalesce(n, 7)
nullif(n, 3) | n % 3 | mod(n, 4) | n / 2 | CAST(x AS BIGINT) | round(2.5) | round(-0.5) | round(n * 0.5)
round(n / 2.0) | CAST(2.5 AS BIGINT) | CAST(n * 0.5 AS BIGINT) | round(x * 1.0) | round(CAST(2.5 AS DOUBLE PRECISION))
round(sqrt(25) / 2) | round(coalesce(n * 0.5, 0.5))
round(CASE WHEN n > 1 THEN 2.5 ELSE 0.5 END) | round(abs(nullif(n, 3) * 0.5))"""
FIELDS = [*times.PARTS, *times.WITHIN]
NUMBERS += "".join(f"|extract({field} from {time})" for field in FIELDS for time in ("clock", "at"))
NUMBERS += "".join(f"|date_part('{field}', day)" for field in times.PARTS)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "UTC", "Australia/Lord_Howe")
TIMES = "clock AT TIME ZONE 'UTC' AT TIME ZONE 'europe/berlin'"
TIMES += "".join(f"|{time} AT TIME ZONE '{zone}'" for zone in ZONES for time in ("clock", "at"))
UNITS = [*times.STEPS, *times.FINE]
TIMES += "".join(f"|date_trunc('{unit}', {time})" for unit in UNITS for time in ("clock", "at"))
TIMES += "".join(f"|date_trunc('{unit}', at, 'Europe/Berlin')" for unit in ("hour", "day", "month"))
TIMES += """|at + INTERVAL '2 hours' | INTERVAL '1 month 2 hours' + clock | INTERVAL '3' DAY + day
| clock - INTERVAL '1 month 1 day 3 hours' | day + INTERVAL '90' DAY
at - INTERVAL '1 year' | clock + INTERVAL '30 seconds' | CAST(at AS TIMESTAMP) | CAST(clock AS TIMESTAMPTZ)
CAST(day AS TIMESTAMPTZ) | CAST(at AS DATE) | at::date | CAST(at AT TIME ZONE 'Asia/Kolkata' AS DATE)"""
TRUTHS = """
starts_with(page, '/') | starts_with(page, page) | page ~ '^/' | page ~* 'id=[0-9]' | page !~ '[?]$' | NOT page ~ '\\s'
regexp_like(page, 'MIXED', 'i') | page ~ 'a.b' | page ~ 'k.b' | page ~ '\\Aa' | page ~ 'c\\Z' | page ~ '^$'
at >= '2026-03-29' | at < '2026-03-29 02:30:00+02' | at = clock | at > day | day <= at | clock < '2026-03-29 02:00'
at BETWEEN '2000-01-01' AND '2026-03-30' | page ~ '\\mex' | page ~ '(a|b)[.]' | page ~ '[$\\\\]'
page SIMILAR TO '%id=[0-9]+%' | page SIMILAR TO 'a.b.c' | page SIMILAR TO 'a_b_c' | page SIMILAR TO '(_\\._)+%'
page SIMILAR TO '%(break|ID)%' | page SIMILAR TO 'ID=4|\\?{2}' | page SIMILAR TO '' | NOT page SIMILAR TO '%\\mex%'
page SIMILAR TO '%[?^]id%' | page SIMILAR TO '[^/]*' | page SIMILAR TO '$1 \\\\ /a' | page SIMILAR TO '%[\\d]'
page SIMILAR TO 'a!.b%' ESCAPE '!' | page NOT SIMILAR TO '!?!?' ESCAPE '!' | page SIMILAR TO '[\\$]1%' ESCAPE '!'
page SIMILAR TO '$1 \\ /a' ESCAPE '' | page SIMILAR TO '.*'
n BETWEEN SYMMETRIC 10 AND -1 | n NOT BETWEEN SYMMETRIC 3 AND 0 | x BETWEEN SYMMETRIC n AND 2
n BETWEEN SYMMETRIC NULL AND 0 | day BETWEEN SYMMETRIC '2026-12-31' AND '2000-01-01'"""
CASES = [text.strip() for block in (TEXTS, NUMBERS, TIMES, TRUTHS) for line in block.split("\n")
         for text in line.split(" | " if block in (TEXTS, TRUTHS) else "|") if text.strip()]  # fmt: skip
TRIED = """
CREATE FUNCTION tried(what text, place bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    EXECUTE format('SELECT to_json((SELECT %s))::text FROM t WHERE id = %s', what, place) INTO result;
    RETURN result;
EXCEPTION WHEN data_exception THEN RETURN NULL;
END $$"""


@pytest.fixture(scope="module")
def database():
    from adbc_driver_postgresql import dbapi

    with postgres() as url, dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
        cursor.execute("SET extra_float_digits = 3")
        cursor.adbc_ingest("t", FRAME.with_row_index("id").with_columns(pl.col("id").cast(pl.Int64)).to_arrow())
        cursor.execute(TRIED)
        yield cursor


def theirs(cursor, text):
    cursor.execute("SELECT tried('" + text.replace("'", "''") + "', id) FROM t ORDER BY id")
    return [None if row[0] is None else json.loads(row[0]) for row in cursor.fetchall()]


@functools.cache
def bound(text):
    return bind(text, SCHEMA, "map")


def ours(text, frame=FRAME):
    function = bound(text)
    return function.apply(frame, ())[function.output.names[0]].to_list()


def alike(found, wanted):
    if isinstance(found, dt.datetime):
        wanted = None if wanted is None else dt.datetime.fromisoformat(wanted)
    if isinstance(found, dt.date) and not isinstance(found, dt.datetime):
        return found.isoformat() == wanted
    if isinstance(found, float) and isinstance(wanted, (int, float)):
        return math.isclose(found, wanted, rel_tol=1e-12)
    return type(found) is type(wanted) and found == wanted


@thin(4)
@pytest.mark.parametrize("text", CASES)
def test_functions_mean_what_postgresql_says(database, text):
    wanted = theirs(database, text)
    found = ours(text)
    assert all(map(alike, found, wanted)), list(zip(found, wanted, strict=True))


def random_case(rng, kind, depth):
    """A nested expression of a type."""
    if depth == 0:
        return {"text": rng.choice(["page", "'a.b'", "CAST(n AS TEXT)"]), "number": rng.choice(["n", "3", "-2"]),
                "time": "clock", "zoned": "at"}[kind]  # fmt: skip
    text, number, time, zoned = (random_case(rng, part, depth - 1) for part in ("text", "number", "time", "zoned"))
    zone, place = rng.choice(ZONES), rng.choice([-2, -1, 1, 2, 3])
    step = rng.choice(["1 day", "3 hours", "1 month 2 days", "90 minutes", "2 years"])
    return rng.choice({
        "text": [f"split_part({text}, '{rng.choice('.?/')}', {place})", f"left({text}, {place})",
                 f"concat({text}, {number})", f"right({text}, {place})",
                 f"replace({text}, 'a', '?.')", f"CAST({time} AS TEXT)", f"trim({text})",
                 f"regexp_replace({text}, '[a-c]+', '<\\&>', 'g')", f"substring({text} from '[^?]+')", f"lower({text})",
                 f"CASE WHEN {text} ~ '[.?]' THEN {text} ELSE 'x' END", f"to_char({time}, 'YYYY-MM HH24')",
                 f"coalesce(nullif({text}, ''), '-')", f"CAST({zoned} AS TEXT)"],
        "number": [f"length({text})", f"strpos({text}, 'a')", f"abs({number})", f"width_bucket({number}, 0, 50, 7)",
                   f"CAST(extract(hour from {time}) AS INT)", f"CAST(extract(day from {zoned}) AS INT)",
                   f"greatest({number}, {number})", f"coalesce({number}, 5)", f"mod({number}, 7)",
                   f"CASE WHEN starts_with({text}, '/') THEN {number} END"],
        "time": [f"({zoned} AT TIME ZONE '{zone}')", f"date_trunc('{rng.choice(UNITS)}', {time})",
                 f"({time} + INTERVAL '{step}')", f"CAST(CAST({time} AS DATE) AS TIMESTAMP)"],
        "zoned": [f"({time} AT TIME ZONE '{zone}')", f"date_trunc('day', {zoned}, '{zone}')",
                  f"({zoned} - INTERVAL '{step}')", f"greatest({zoned}, '2020-01-01')"],
    }[kind])  # fmt: skip


@deeper
def test_nested_functions_mean_what_postgresql_says(database):
    rng = random.Random(5)
    for _ in range(often(300)):
        text = random_case(rng, rng.choice(["text", "number", "time", "zoned"]), rng.choice([2, 3]))
        found, wanted = ours(text), theirs(database, text)
        assert all(map(alike, found, wanted)), (text, list(zip(found, wanted, strict=True)))


def test_every_listed_function_is_compared():
    written = " ".join([*CASES, "strftime( regexp_extract("]).lower()
    assert [name for name in NAMES if name + "(" not in written] == []
    assert all(item.usage in listed() and item.meaning in listed() for item in FUNCTIONS)


def test_a_record_has_the_same_value_alone_and_among_many_and_beside_null():
    """Polars divides a column by a constant in another way than a value: the last digit would tell of others."""
    rng = random.Random(11)
    frame = pl.DataFrame(
        {"x": [rng.uniform(-20, 20) for _ in range(600)], "n": [rng.randrange(10**9) for _ in range(600)]}
    ).with_columns(page=pl.col("n").cast(pl.String), clock=pl.from_epoch("n", time_unit="us"), at=None, day=None)
    frame = frame.select(pl.col(name).cast(FRAME.schema[name]) for name in SCHEMA.names)
    for text in ("width_bucket(x, 0.1, 0.7, 23)", "log(3, n)", "extract(second from clock)", "x / 3", "power(x, 3)",
                 "extract(epoch from clock)", "extract(milliseconds from clock)", "ln(x)", "exp(x)",
                 "x / 0.7 + n / 7"):  # fmt: skip
        together, beside = ours(text, frame), ours(text, pl.concat([frame, frame.clear(1)]))
        assert beside[:-1] == together, text
        assert [ours(text, frame[row : row + 1])[0] for row in range(0, 600, 6)] == together[::6], text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("page ~ '(a'", "no regular expression"),
        ("page ~ '(?=a)'", r"only \(\?:"),
        ("page ~ '(a)\\1'", "is not read"),
        ("page ~ '\\bword'", r"a word's edge is \\y"),
        ("page ~ 'a+b+?'", "greedy and lazy quantifiers mix"),
        ("page ~ '((a{500}){500}){500}'", "very large"),
        ("page ~ '[a--b]'", "no place in brackets"),
        ("page ~ page", "quoted text"),
        ("regexp_replace(page, 'a', '\\x')", "in a replacement there are"),
        ("regexp_replace(page, 'a', 'b', 'x')", "the flags are g, i"),
        ("regexp_extract(page, '(a)', 2)", "the pattern has 1 groups"),
        ("split_part(page, '.', 0)", "numbered from 1"),
        ("at AT TIME ZONE 'Berlin'", "did you mean 'Europe/Berlin'"),
        ("at AT TIME ZONE 'Europe/Berlim'", "did you mean 'Europe/Berlin'"),
        ("day AT TIME ZONE 'UTC'", "timestamp with time zone is needed; cast it"),
        ("at > 'yesterday'", "does not read as the type"),
        ("width_bucket(x, 1, 1, 3)", "two different numbers"),
        ("width_bucket(x, 1, 2, 0)", "at least one bucket"),
        ("to_char(clock, 'Month')", "to_char has YYYY"),
        ("strftime(clock, '%s')", "strftime has"),
        ("split_prt(page, '.', 1)", "Did you mean split_part.*wpinq sql --functions"),
        ("md5(page)", "wpinq sql --functions"),
        ("month(clock)", r"^map: MONTH\(\) is not in the list of functions; write EXTRACT\(MONTH FROM clock\)\.$"),
        ("second(clock)", r"write EXTRACT\(SECOND FROM clock\)\.$"),
        ("date(clock)", r"DATE\(\) is not in the list of functions; write CAST\(clock AS DATE\)\.$"),
        ("clock + INTERVAL '1 fortnight'", "write an interval"),
    ],
)
def test_refused(text, reason):
    with pytest.raises(PlanError, match=reason):
        bind(text, SCHEMA, "map")


def test_regexp_extract_gives_a_group_or_null():
    """DuckDB has this function and PostgreSQL does not; where nothing is found, DuckDB gives an empty text."""
    assert ours("regexp_extract(page, 'id=([0-9]+)', 1)") == ["17", *[None] * 6, "3", None, None]
    assert ours("regexp_extract(page, 'id=([0-9]+)')")[0] == "id=17"


def test_strftime_writes_as_c():
    assert ours("strftime(clock, '%Y-%m-%dT%H:%M:%S.%f')")[2] == "2024-02-29T23:59:59.999999"
    assert ours("strftime(day, '%a %d %b')")[0] == "Sun 29 Mar"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELEC page FROM views", "line 1, column 1: did you mean SELECT"),
        ("SELECT page, COUNT(*) FROM views GRUP BY page", "line 1, column 34: did you mean GROUP"),
        ("SELECT page\nFRM views", "line 2, column 1: did you mean FROM"),
        ("SELECT page FROM views WHERE page LIEK 'a'", "line 1, column 35: did you mean LIKE"),
        ("SELECT page FROM views WHERE ) = 1", "line 1, column 30"),
        ("SELECT FROM", "line 1, column 8: Expected table name"),
    ],
)
def test_an_error_points_at_the_first_wrong_word(text, found):
    with pytest.raises(PlanError) as caught:
        statement(text, "sql")
    assert found in str(caught.value)
    assert "Token" not in str(caught.value)


def test_columns_of_an_expression_are_counted_in_what_was_written():
    with pytest.raises(PlanError, match="line 1, column 7: did you mean AND"):
        bind("n = 1 AN x = 2", SCHEMA, "filter", condition=True)


def test_the_functions_stand_before_the_bound_too():
    views = wpinq.protect(
        FRAME.select("page", "at"), budget=1000, unit=wpinq.users("page", at_most=5),
        where="at AT TIME ZONE 'Europe/Berlin' < '2026-06-01'", derive={"path": "split_part(page, '?', 1)"},
    )  # fmt: skip
    assert views.map("path").measure(epsilon=500).observe("/item") == 1  # the noise is zero but for exp(-100)


@pytest.mark.parametrize(
    ("text", "names", "bins"),
    [
        ("page", ("page",), ["a", (1, 2), None]),
        ("page AS what", ("what",), ["a", (1, 2), None]),
        ("page, user", ("page", "user"), [("a", "bob"), ((1, 2), "bob"), (None, "ann")]),
    ],
)
def test_a_column_that_is_passed_on_may_hold_values_of_any_type(text, names, bins):
    """Records of Python without types could not be mapped to one of their columns by its name."""
    rows = [("ann", None), ("bob", "a"), ("bob", (1, 2))]
    views = wpinq.protect(rows, budget=10**9, columns=("user", "page"))
    pages = views.map(text)
    assert pages._node.schema.names == names
    assert pages.measure(epsilon=10**6).observe_many(bins).tolist() == [1, 1, 1]
    for wrong in ("page + 1", "lower(page)", "page = 'a'", "user, page || 'x'"):
        with pytest.raises(PlanError, match="may hold values of any type"):
            views.map(wrong)
    with pytest.raises(PlanError, match="may hold values of any type"):
        views.filter("page = 'a'")
