"""Cross tables: the counts that DuckDB has, sums that are exact, intervals that hold, and what is refused."""

from html.parser import HTMLParser
from itertools import product

import duckdb
import numpy as np
import polars as pl
import pytest
from depth import deeper, often
from hypothesis import given
from hypothesis import strategies as st

import wpinq
from wpinq.core.plan.node import sources
from wpinq.errors import BudgetError, PlanError, SourceError

LOUD = 10**6
RNG = np.random.default_rng(5)
PEOPLE = pl.DataFrame({
    "person": [f"p{i}" for i in range(3000)],
    "region": RNG.choice(["north", "south", "east", None], 3000),
    "age": RNG.integers(0, 4, 3000),
    "sex": RNG.choice(["f", "m"], 3000),
    "member": RNG.random(3000) < 0.3,
})  # fmt: skip
CATEGORIES = {"region": ["north", "south"], "age": [0, 1, 2], "sex": ["f", "m"]}


def protected(**more):
    return wpinq.protect(PEOPLE, **{"budget": 10**9, **more})


def true(**columns):
    """A cube that DuckDB counts, of labels."""
    people = PEOPLE.with_columns(  # noqa: F841  DuckDB reads it by its name
        pl.when(pl.col(name).cast(pl.String).is_in([str(one) for one in values])).then(pl.col(name).cast(pl.String))
        .otherwise(pl.lit("other")).alias(name)
        for name, values in columns.items()
    )  # fmt: skip
    names = ", ".join(columns)
    found = duckdb.sql(f"SELECT {names}, COUNT(*) AS count FROM people GROUP BY CUBE ({names})").pl()
    return {row[:-1]: row[-1] for row in found.with_columns(pl.col(*columns).fill_null("all")).rows()}


def test_without_noise_it_is_the_table_that_was_counted():
    found = wpinq.table(protected(), ["region", "age"], "sex", categories=CATEGORIES, epsilon=LOUD)
    expected = true(**CATEGORIES)
    assert {row[:3]: row[3] for row in found.frame.rows()} == {
        key: expected.get(key, 0) for key in (row[:3] for row in found.frame.rows())
    }
    assert found.counts.shape == (4, 5, 4) and found.counts[-1, -1, -1] == 3000


def test_records_of_no_listed_value_can_be_left_out():
    found = wpinq.table(protected(), "region", "sex", epsilon=LOUD, other=None,
                        categories={name: CATEGORIES[name] for name in ("region", "sex")})  # fmt: skip
    left = PEOPLE.filter(pl.col("region").is_in(["north", "south"]))
    assert found.counts[-1, -1] == left.height and found.counts.shape == (3, 3)


def test_a_column_that_is_true_or_false_needs_no_list():
    found = wpinq.table(protected(), across="member", categories={}, epsilon=LOUD)
    assert found.counts.tolist() == [3000 - PEOPLE["member"].sum(), PEOPLE["member"].sum(), 3000]
    assert repr(found).startswith("false  true    all\n")


def test_records_without_a_value_are_counted_as_neither_true_nor_false():
    """With other="true" they were counted as true."""
    people = wpinq.protect(pl.DataFrame({"member": [True, None, None]}), budget=10**9)
    found = wpinq.table(people, "member", categories={}, epsilon=LOUD, other="true")
    assert found.counts.tolist() == [0, 1, 1] and "another value, or none, of member" in found.notes[1]
    found = wpinq.table(people, "member", categories={"member": [True]}, epsilon=LOUD)
    assert found.counts.tolist() == [1, 2, 3] and "Left out" not in " ".join(found.notes)


@given(st.integers(1, 4), st.sampled_from([{"epsilon": "0.05"}, {"rho": "0.001", "mechanism": "gaussian"}]))
def test_all_sums_are_exact_whatever_the_noise(many, spent):
    people = wpinq.protect(PEOPLE, rho=10**6) if "rho" in spent else protected()
    names = ["region", "age", "sex", "member"][:many]
    values = {name: CATEGORIES[name] for name in names if name in CATEGORIES}
    counts = wpinq.table(people, names[:1], names[1:], categories=values, **spent).counts
    for axis in range(counts.ndim):
        parts, totals = np.split(counts, [-1], axis=axis)
        assert (parts.sum(axis=axis, keepdims=True) == totals).all()


@pytest.mark.parametrize("spent", [{"epsilon": 1}, {"rho": "0.1", "mechanism": "gaussian"}])
@pytest.mark.parametrize("sizes", [(2, 7), (7, 7), (2, 2), (12,)])
@deeper
def test_intervals_of_each_total_hold_where_some_are_measured_and_some_are_sums(sizes, spent):
    """Nobody is in it, so all that is left is noise; each set of keys by itself."""
    nobody = pl.DataFrame(schema={f"c{place}": pl.String for place in range(len(sizes))})
    people = wpinq.protect(nobody, **({"rho": 10**6} if "rho" in spent else {"budget": 10**6}))
    values = {f"c{place}": [str(one) for one in range(size)] for place, size in enumerate(sizes)}
    held, wide = {}, {}
    times = often(60, 12)
    for repeat in range(times):
        found = wpinq.table(people, [*values], categories=values, other=None, name=str(repeat), **spent)
        for key in product((False, True), repeat=len(sizes)):
            place = tuple(-1 if total else 0 for total in key)
            held.setdefault(key, []).append(abs(found.estimates[place]) <= found.halves[place])
            wide[key] = found.halves[place]
        assert (abs(found.estimates) <= found.halves).mean() > 0.5
    assert all(sum(one) >= 0.8 * times - 3 for one in held.values())  # each has 0.95: below with less than 1e-6
    flat = wpinq.sql(f"SELECT {', '.join(values)}, COUNT(*) AS n FROM t GROUP BY CUBE ({', '.join(values)})",
                     {"t": people}, keys=found_groups(values), **spent).consistent()  # fmt: skip
    ours = np.mean([half**2 for half in wide.values()])
    assert ours < ((flat.frame["high"] - flat.frame["low"]).max() / 2 + 1) ** 2  # never worse than all totals measured


def found_groups(values):
    keys = list(product(*([*one, None] for one in values.values())))
    return [(*key, sum((one is None) << (len(key) - 1 - at) for at, one in enumerate(key))) for key in keys]


def test_intervals_hold_as_often_as_they_say():
    people, held, many = protected(), 0, 0
    expected = true(**{name: CATEGORIES[name] for name in ("region", "sex")})
    for repeat in range(15):
        found = wpinq.table(people, "region", "sex", epsilon=1, name=str(repeat),
                            categories={name: CATEGORIES[name] for name in ("region", "sex")})  # fmt: skip
        for *key, _, low, high in found.frame.rows():
            held += low <= expected.get(tuple(key), 0) <= high
            many += 1
    assert held > 0.9 * many


def test_a_person_counts_as_often_as_the_bound_says():
    twice = pl.concat([PEOPLE, PEOPLE])
    people = wpinq.protect(twice, budget=10**9, unit=wpinq.users("person"))
    found = wpinq.table(people, "sex", categories={"sex": ["f", "m"]}, epsilon=LOUD, at_most=1, other=None)
    assert found.counts[-1] == 3000
    assert "protects one person" in found.notes[0]
    with pytest.raises(PlanError, match="at_most"):
        wpinq.table(people, "sex", categories={"sex": ["f", "m"]}, epsilon=1)


class Reader(HTMLParser):
    """The rows of a page, and its tags."""

    def __init__(self):
        super().__init__()
        self.rows, self.tags, self.cell = [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        self.cell = tag in ("td", "th")
        if self.cell:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.cell = False

    def handle_data(self, data):
        if self.cell:
            self.rows[-1][-1] += data


def test_the_page_has_the_numbers_and_needs_nothing(tmp_path):
    people = protected()
    found = wpinq.table(people, ["region", "age"], ["sex", "member"], epsilon=LOUD,
                        categories=CATEGORIES, other="<b>else</b>")  # fmt: skip
    text = found.html(tmp_path / "t.html", "Who & where")
    assert (tmp_path / "t.html").read_text() == text and "Who &amp; where" in text
    page = Reader()
    page.feed(text)
    assert "b" not in page.tags and "script" not in page.tags and "http" not in text.replace("http-equiv", "")
    numbers = [[int(cell.replace(",", "")) for cell in row[2:]] for row in page.rows[2:]]
    assert numbers == found.counts.reshape(20, 12).tolist()
    assert page.rows[1][:2] == ["region", "age"] and page.rows[0][0] == "sex"
    assert page.rows[1][2:5] == ["member: false", "true", "all"]


def test_it_is_saved_with_what_describes_it(tmp_path):
    found = wpinq.table(protected(), "sex", categories={"sex": ["f", "m"]}, epsilon=LOUD)
    found.save(tmp_path / "t.csv")
    found.save(tmp_path / "t.parquet")
    assert pl.read_csv(tmp_path / "t.csv", comment_prefix="#").equals(found.frame)
    assert pl.read_parquet(tmp_path / "t.parquet").equals(found.frame)
    with pytest.raises(SourceError, match=r"\.parquet"):
        found.save(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({}, "one to 6 different columns"),
        ({"down": ["sex", "sex"]}, "one to 6 different columns"),
        ({"down": 5}, "name of a column"),
        ({"down": "sex", "categories": {"sex": []}}, "list the values"),
        ({"down": "sex", "categories": {"age": [1]}}, "no column of the table"),
        ({"down": "sex"}, "list the values"),
        ({"down": "sex", "categories": {"sex": [1]}}, "are text"),
        ({"down": "sex", "categories": {"sex": ["f", "other"]}}, "have one name"),
        ({"down": "sex", "categories": {"sex": ["f", "all"]}}, "have one name"),
        ({"down": "age", "categories": {"age": ["1", "01"]}}, "no integer of 'age' is written '01'"),
        ({"down": "age", "categories": {"age": ["9" * 5000]}}, "no integer of 'age'"),
        ({"down": "member", "categories": {"member": ["yes"]}}, "no boolean of 'member'"),
        ({"down": "born", "categories": {"born": ["2020-1-1"]}}, "no date of 'born'"),
        ({"down": "sex", "categories": {"sex": ["\ud800"]}}, "cannot be printed"),
        ({"down": "count", "categories": {"count": ["1"]}}, "cannot be called 'count' here"),
        ({"down": "low", "categories": {"low": ["1"]}}, "cannot be called 'low' here"),
        ({"down": ["sex", "Grouping"], "categories": {"sex": ["f"]}}, "cannot be called 'Grouping' here"),
        ({"down": "nope", "categories": {"nope": ["f"]}}, "nope"),
        ({"down": "weight", "categories": {"weight": ["f"]}}, "derive a column"),
        ({"down": ["sex", "region"], "categories": {"sex": list("abcdefghij") * 0 + [str(i) for i in range(2000)],
                                                    "region": [str(i) for i in range(2000)]}}, "more than"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_and_free(words, match):
    people = wpinq.protect(
        PEOPLE.with_columns(weight=pl.lit(1.5), born=pl.date(2020, 1, 1), count=1, low=1, Grouping=1), budget=1
    )
    with pytest.raises(PlanError, match=match):
        wpinq.table(people, **{"categories": {}, "epsilon": 1, **words})
    assert sources(people._node)[0].ledger.remaining() == 1


@pytest.mark.parametrize("records", [PEOPLE, {"t": 1}, None, "people"])
def test_only_protected_records_are_counted(records):
    with pytest.raises(PlanError, match="give protected records"):
        wpinq.table(records, "sex", categories={"sex": ["f"]}, epsilon=1)


def test_what_is_not_left_is_not_spent():
    people = protected(budget=1)
    with pytest.raises(BudgetError):
        wpinq.table(people, "sex", categories={"sex": ["f", "m"]}, epsilon=2)
