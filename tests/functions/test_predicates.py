"""SQL text as conditions and columns: against DuckDB, and against whoever writes text to do harm."""

import datetime as dt

import duckdb
import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import evaluate, protected

from wpinq.core.functions.bind import bind
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError

SCHEMA = Schema.of(zip=Kind.INT, age=Kind.INT, name=Kind.TEXT, day=Kind.DATE, income=Kind.FLOAT, member=Kind.BOOL)
FRAME = pl.DataFrame(
    {
        "zip": [80127, 1, -7, 0, None, 7, 2**40, 80127],
        "age": [18, 65, None, 0, 7, -7, 2, 3],
        "name": ["Abel Woods", "", None, "a%b_c", "ABEL", "ab\nc", "é😀x", "it's"],
        "day": [dt.date(2026, 1, 31), None, dt.date(1969, 12, 31), dt.date(2000, 2, 29)] * 2,
        "income": [1.5, -0.5, None, 0.0, 2.5, 1e300, -3.0, 80127.0],
        "member": [True, False, None, True, False, None, True, False],
    },
    schema={
        "zip": pl.Int64,
        "age": pl.Int64,
        "name": pl.String,
        "day": pl.Date,
        "income": pl.Float64,
        "member": pl.Boolean,
    },
)

numbers = st.sampled_from(["zip", "age", "0", "1", "-7", "80127", "length(name)", "abs(age)", "extract(year from day)"])
texts = st.sampled_from(["name", "'Abel Woods'", "''", "'it''s'", "lower(name)", "upper(name)", "substr(name, 2, 2)",
                         "coalesce(name, 'none')", "name || '!'", "nullif(name, '')", "trim(name)"])  # fmt: skip
patterns = st.text("a%_b\n", max_size=4).map(lambda text: f"'{text}'")
compare = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
sums = st.tuples(numbers, st.sampled_from("+-"), numbers).map(lambda part: f"({' '.join(part)})")
leaves = st.one_of(
    st.tuples(numbers | sums, compare, numbers | sums).map(" ".join),
    st.tuples(texts, compare, texts).map(" ".join),
    st.tuples(texts, st.sampled_from(["LIKE", "NOT LIKE"]), patterns).map(" ".join),
    st.tuples(numbers, st.sampled_from(["IN", "NOT IN"]), st.lists(numbers, min_size=1, max_size=3)).map(
        lambda part: f"{part[0]} {part[1]} ({', '.join(part[2])})"
    ),
    st.tuples(numbers, st.sampled_from(["", "NOT "]), numbers, numbers).map(
        lambda part: f"{part[0]} {part[1]}BETWEEN {part[2]} AND {part[3]}"
    ),
    st.tuples(numbers | texts, st.sampled_from(["IS NULL", "IS NOT NULL"])).map(" ".join),
    st.sampled_from(["member", "member IS TRUE", "member IS NOT FALSE", "day >= '2000-02-29'", "TRUE", "income > age",
                     "day IN ('2026-01-31', NULL)", "zip NOT IN (1, NULL)", "NULL", "income = 80127"]),
)  # fmt: skip
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda part: f"({' '.join(part)})"),
        inner.map(lambda part: f"NOT ({part})"),
        st.tuples(inner, numbers, numbers, numbers).map(
            lambda part: f"CASE WHEN {part[0]} THEN {part[1]} ELSE {part[2]} END = {part[3]}"
        ),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def duck():
    connection = duckdb.connect()
    connection.register("t", FRAME.to_arrow())
    connection.execute("CREATE TABLE people AS SELECT * FROM t")
    return connection


@settings(max_examples=often(100))
@given(conditions)
def test_conditions_mean_what_duckdb_says(duck, text):
    found = [row[0] for row in duck.execute(f"SELECT coalesce(({text}), false) FROM people").fetchall()]
    ours = bind(text, SCHEMA, "filter", condition=True).predicate(FRAME).to_list()
    assert ours == found, text


@settings(max_examples=often(20))
@given(conditions)
def test_one_record_at_a_time_gives_the_same(text):
    function = bind(text, SCHEMA, "filter", condition=True)
    assert [function.test(row) for row in FRAME.rows()] == function.predicate(FRAME).to_list()


def test_the_founding_example():
    people = protected(zip="integer", who="text").filter("zip = 80127 AND who <> 'Abel Woods'")
    rows = [(80127, "Abel Woods"), (80127, "Eve"), (80127, None), (None, "Eve"), (1, "Eve")]
    assert evaluate(people, rows) == {(80127, "Eve"): 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zip / 2", [40063, 0, -3, 0, None, 3, 2**39, 40063]),  # towards zero, as in PostgreSQL
        ("zip % 2", [1, 1, -1, 0, None, 1, 0, 1]),
        ("zip / 0", [None] * 8),
        ("zip * 9223372036854775807", [None, 2**63 - 1, None, 0, None, None, None, None]),  # overflow is NULL
        ("-zip", [-80127, -1, 7, 0, None, -7, -(2**40), -80127]),
        ("income / 0", [None] * 8),
        ("CAST(name AS INTEGER)", [None] * 8),
        ("CAST(income AS INTEGER)", [2, 0, None, 0, 2, None, -3, 80127]),  # half to even, as in PostgreSQL
        ("extract(month from day)", [1, None, 12, 2] * 2),
        ("extract(dow from day)", [6, None, 3, 2] * 2),
        ("date_trunc('month', day)", [dt.date(2026, 1, 1), None, dt.date(1969, 12, 1), dt.date(2000, 2, 1)] * 2),
        ("substr(name, -1, 4)", ["Ab", "", None, "a%", "AB", "ab", "é😀", "it"]),
        ("length(name)", [10, 0, None, 5, 4, 4, 3, 4]),
        ("CAST(day AS TEXT)", ["2026-01-31", None, "1969-12-31", "2000-02-29"] * 2),
        ("CAST(member AS INTEGER)", [1, 0, None, 1, 0, None, 1, 0]),
        ("CASE member WHEN TRUE THEN 'y' WHEN FALSE THEN 'n' END", ["y", "n", None, "y", "n", None, "y", "n"]),
    ],
)
def test_columns(text, expected):
    (name,) = (function := bind(text, SCHEMA, "map")).output.names
    assert function.apply(FRAME, ())[name].to_list() == expected


def test_maps_name_their_columns():
    made = protected(user="text", page="text").map("user, lower(page) AS page, length(page)")
    assert str(made._node.schema) == "(user: text, page: text, value: integer)"
    assert evaluate(made, [("ann", "Home")]) == {("ann", "home", 4): 1}
    assert bind("name, zip", SCHEMA, "map").projection == ("name", "zip")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = 80127", r"write '80127' in quotes, or cast the text, CAST\(name AS INTEGER\)"),
        ("zip = 'x'", "'x' does not read as the type integer"),
        ("zip = '1_0'", "does not read as the type integer"),
        ("day > 'tomorrow'", "does not read as the type date"),
        ("name", "not a condition"),
        ("zip = 1, TRUE", "not one condition"),
        ("zip = 1 AS x", "not one condition"),
        ("zap = 1", "no column 'zap'; there are 'zip'"),
        ('"ZIP" = 1', "no column 'ZIP'"),
        ("people.zip = 1", "names a table"),
        ("zip = 1; DROP TABLE people", "without a semicolon"),
        ("zip = 1 FROM people", "clauses"),
        ("zip = 1 LIMIT 1", "clauses"),
        ("zip = 1 UNION SELECT 1", "not an SQL expression"),
        ("DISTINCT zip = 1", "clauses"),
        ("zip = (SELECT 1)", "query of its own"),
        ("zip IN (SELECT zip FROM people)", "query of its own"),
        ("EXISTS (SELECT 1)", "query of its own"),
        ("zip = max(zip)", "is an aggregate"),
        ("rank() OVER (ORDER BY zip) = 1", "looks at other records"),
        ("lag(zip) OVER (ORDER BY zip) = 1", "looks at other records"),
        ("random() < 0.5", "another value every time"),
        ("now() > day", "another value every time"),
        ("zip = $1", "write the value"),
        ("zip = ?", "write the value"),
        ("name SIMILAR TO name", "as a quoted text"),
        ("pg_sleep(10) IS NULL", "known to be computed from one record alone"),
        ("name COLLATE \"C\" = 'x'", "one record alone"),
        ("trim(name from name) = ''", "quoted text"),
        ("zip = ANY(ARRAY[1])", "one record alone"),
        ("name = E'\\n'", "one record alone"),
        ("name LIKE name", "quoted pattern"),
        ("name LIKE 'a!' ESCAPE '!'", "ends in its escape"),
        ("day - day = 1", "arithmetic takes numbers"),
        ("zip = 9223372036854775808", "beyond 64 bits"),
        ("name = '", "this is not SQL"),
        ("zip = 1 AND", "this is not SQL.*: something is missing"),
        ("", "not an SQL expression"),
        ("*", "stands for all columns"),
        ("name = '\0'", "NUL"),
        ("zip = 1 OR " * 5000 + "TRUE", "20,000 characters"),
        ("(" * 400 + "zip = 1" + ")" * 400, "nested too deeply"),
        ("NOT " * 1500 + "member", "nested too deeply"),
        ("zip" + " + zip" * 100 + " = 1", "nested too deeply"),
        ("CASE WHEN member THEN " * 300 + "TRUE" + " END" * 300, "nested too deeply"),
    ],
)  # fmt: skip
def test_refused(text, reason):
    with pytest.raises(PlanError, match=reason) as caught:
        bind(text, SCHEMA, "filter", condition=True)
    assert str(caught.value).startswith("filter: ")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 400


@given(st.text(max_size=40) | st.text("zipname'\"()=<>-/*;,% \\$0123456789", max_size=60))
def test_any_text_is_a_condition_or_one_clear_line(text):
    try:
        function = bind(text, SCHEMA, "filter", condition=True)
    except PlanError as error:
        assert "\n" not in str(error)
    else:
        assert function.predicate(FRAME).dtype == pl.Boolean


def test_a_long_chain_is_no_deep_tree():
    text = " OR ".join(f"zip = {number}" for number in range(1000))
    assert bind(text, SCHEMA, "filter", condition=True).predicate(FRAME).to_list() == [
        False,
        True,
        False,
        True,
        False,
        True,
        False,
        False,
    ]


def test_quotes_and_comments_are_those_of_sql():
    weird = Schema.of(**{'a"b': Kind.TEXT, "sélect": Kind.TEXT, "User": Kind.TEXT, "user": Kind.TEXT, "^a$": Kind.TEXT})
    frame = pl.DataFrame({'a"b': ["'; --"], "sélect": ["/*"], "User": ["A"], "user": ["b"], "^a$": ["x"]})
    for text in ["\"a\"\"b\" = '''; --'", "sélect = '/*' -- AND FALSE", "\"User\" = 'A' /* OR */", "user = 'b'"]:
        assert bind(text, weird, "filter", condition=True).predicate(frame).to_list() == [True], text
    with pytest.raises(PlanError, match="several columns 'USER'"):
        bind("USER = 'b'", weird, "filter", condition=True)
    with pytest.raises(PlanError, match="Polars reads as a pattern"):
        bind("\"^a$\" = 'x'", weird, "filter", condition=True)


def test_columns_of_any_value_need_a_type():
    with pytest.raises(PlanError, match=r"columns=\{'x': int\}"):
        bind("x = 1", Schema.of(x=Kind.ANY), "filter", condition=True)


def test_fingerprints_tell_meanings_apart():
    prints = {
        bind(text, SCHEMA, "filter", condition=True).fingerprint
        for text in ("zip = 1", "zip = 2", "age = 1", "zip <> 1")
    }
    assert len(prints) == 4
    assert None not in prints
    spaced = bind("( zip = 1 )", SCHEMA, "filter", condition=True)
    assert bind("zip=1", SCHEMA, "filter", condition=True).fingerprint == spaced.fingerprint


def test_a_columns_name_is_that_column_and_the_same_question_as_in_sql():
    for name in SCHEMA.names:
        short, parsed = bind(name, SCHEMA, "map"), bind(f'"{name}"', SCHEMA, "map")
        assert (short.fingerprint, short.output, short.note) == (parsed.fingerprint, parsed.output, parsed.note)
    words = Schema.of(null=Kind.INT, user=Kind.TEXT)
    assert [bind(name, words, "map").projection for name in words.names] == [("null",), ("user",)]
    assert bind("x", Schema.of(x=Kind.ANY), "map").projection == ("x",)
    with pytest.raises(PlanError, match=r"columns=\{'x': int\}"):
        bind("x + 1", Schema.of(x=Kind.ANY), "map")


def test_a_condition_in_a_measured_dataflow():
    import wpinq

    people = wpinq.protect([(80127, "Eve"), (80127, "Abel Woods"), (1, "Eve")] * 500, budget=1000,
                           columns={"zip": int, "name": str})  # fmt: skip
    counts = people.filter("zip = 80127 AND name <> 'Abel Woods'").map("name").measure(epsilon=500)
    assert counts.observe("Eve") == 500  # the noise is zero but for a chance of exp(-500)
    assert counts.observe("Abel Woods") == 0
