"""The people index: the same samples as without it, bit for bit, and a pass over all records for every question."""

import datetime as dt
import gc
import weakref
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core import kernels
from wpinq.core.operators.contribution.sample import bounded
from wpinq.core.plan.node import Source, sources
from wpinq.core.runs import people_index, people_parts
from wpinq.core.runs.run import compute, settle
from wpinq.core.state.memory import LIMIT

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="without compiled kernels nothing is indexed")
COLUMNS = {"user": "str", "page": "str", "size": "float", "at": "timestamp"}
UNITS = {
    "two records": wpinq.users("user", at_most=2),
    "a hundred": wpinq.users("user", at_most=100),
    "one of a page": wpinq.users("user", at_most=3, per=("page", 1)),
    "two of a size": wpinq.users("user", at_most=3, per=("size", 2)),
    "of a day": wpinq.users("user", at_most=2, period="1d", at="at"),
    "by a number": wpinq.users("size", at_most=2),
}
FILTERS = {
    "none": [],
    "a text": ["page <> 'b'"],
    "a number": ["size > 0"],
    "two": ["page <> 'a'", "size < 5 or user = 'ann'"],
    "nobody": ["page = 'nowhere'"],
    "everybody": ["1 = 1"],
    "python": [lambda page: page > "a", lambda size, user: size != 2 and user is not None],
    "raising": [lambda size: 1 / (size - 1) > -1],
    "polars": [pl.col("page").str.len_chars() < 2],
}
TIMES = st.one_of(st.none(), st.integers(0, 3).map(lambda n: dt.datetime(2026, 10, 1 + n // 2, 12 * (n % 2))))
ODD = st.one_of(st.none(), st.integers(0, 2), st.just("a"), st.just(("a", 1)), st.just(1.0), st.booleans())
TEXTS = st.one_of(st.none(), st.sampled_from(["ann", "bob", "a", "b", "", "é", "a longer text than twelve"]))
SIZES = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.0, 2.0, 2.5, float("nan"), float("inf")]))
ROWS = st.lists(st.tuples(TEXTS, TEXTS, SIZES, TIMES), max_size=40).flatmap(
    lambda rows: st.lists(st.sampled_from(rows), max_size=60) if rows else st.just([])
)


def held_now():
    """Memory that is held, but for what other tests left to be collected: it would be given back in the midst."""
    gc.collect()
    return LIMIT._held


def contents(rows, unit, filters, second, ledger, columns=COLUMNS, index=None, derive=None):
    """The histograms of questions about one version, and what the last one was read from.

    They have none of the filters, the first, and all of them: two questions at the least, since the second finds what
    the first has made, and no third where it would be the second again. Without an index one pass computes them all.
    """
    with patch.object(people_index, "SECOND", second):
        views = wpinq.protect(rows, budget=10**9, columns=columns, unit=unit, ledger=ledger, index=index, derive=derive)
        made = []
        for number in range(3 if len(filters) > 1 else 2):
            asked = views
            for one in filters[: number if number < 2 else None]:
                asked = asked.filter(one)
            made.append(asked.measure(10**6, name=f"question {number}"))
            if index or second == 1:
                settle(made[-1])
        for one in made:
            settle(one)
        found = [[np.asarray(part).tolist() for part in one._histogram.content()] for one in made]
        return found, made[-1].key_owner.made


def insist_on_the_same(rows, unit, filters, place, columns=COLUMNS, derive=None):
    alone, _ = contents(rows, unit, filters, 10**9, place / "ledger", columns, derive=derive)
    with (
        patch.object(people_parts, "PIECE", 7),
        patch.object(people_parts, "LOT", 5),
        patch.object(people_parts, "FEW", 2),
    ):
        found, made = contents(rows, unit, filters, 1, place / "ledger", columns, derive=derive)
    assert found == alone
    assert [one is None for one in made["people"].indexes.values()] == [not rows], "it was made, where there is a row"


@thin(6)
@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@settings(max_examples=often(15, 3))
@given(rows=ROWS)
def test_samples_are_the_same_with_the_index_and_without(unit, filters, rows, tmp_path_factory):
    insist_on_the_same(rows, unit, filters, tmp_path_factory.mktemp("ledger"))


@settings(max_examples=often(20, 4))
@given(rows=st.lists(st.tuples(ODD, ODD), max_size=30))
def test_so_they_are_of_values_of_any_type(rows, tmp_path_factory):
    for unit in (wpinq.users("user", at_most=2), wpinq.users("user", at_most=3, per=("page", 1))):
        insist_on_the_same(rows, unit, [], tmp_path_factory.mktemp("ledger"), ["user", "page"])


DERIVED = {
    "of a text": {"short": "substr(page, 1, 1)"},
    "of two columns": {"both": "page || user", "of both": 'length("both")'},
    "of a number": {"more": "size + 1"},
    "of a time": {"day": "date_trunc('day', at)"},
    "of nothing": {"one": "1"},
    "python": {"kind": (lambda page: "few" if page < "b" else "many", "str")},
    "raising": {
        "odd": (lambda size: 1 / (size - 1), "float"),
        "none": (lambda user: {"ann": 1, "bob": 1}[user], "int"),
    },
    "polars": {"long": pl.col("page").str.len_chars()},
}


@thin(6)
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("derive", DERIVED.values(), ids=DERIVED)
@settings(max_examples=often(15, 3))
@given(rows=ROWS)
def test_questions_that_compute_columns_have_the_same_samples(unit, derive, rows, tmp_path_factory):
    """They may be filtered by, counted, and bound how many records share a value."""
    place = tmp_path_factory.mktemp("ledger")
    name = next(iter(derive))
    per = replace(unit, per=(name, 1))
    for one, filters in ((unit, [f'"{name}" is not null']), (per, ["page <> 'a'", f'"{name}" is not null'])):
        insist_on_the_same(rows, one, filters, place, derive=derive)


def test_what_plain_python_computes_stays_with_its_record(tmp_path):
    """It is called for each different value, in whatever order."""
    rows = [(None, text, None, None) for text in "abcdefghij"]
    for number in range(8):
        place = tmp_path / str(number)
        place.mkdir()
        insist_on_the_same(rows, wpinq.users("user", at_most=20), [], place, derive=DERIVED["python"])


def test_what_a_question_computes_does_not_change_its_sample(tmp_path):
    """A record is ranked by the columns of the source, whatever is computed of it."""
    rows = [(f"u{n % 3}", f"p{n}") for n in range(60)]
    found = []
    for derive in (
        None,
        {"long": "length(page)"},
        {"long": (lambda page: len(page) + 1, "int"), "both": "user || page"},
    ):
        views = views_of(rows, unit=wpinq.users("user", at_most=4), derive=derive, ledger=tmp_path / "L", version="1")
        pages = views.map("page").measure(10**5).observe_many([f"p{n}" for n in range(60)])
        found.append(pages.tolist())
    assert found[0] == found[1] == found[2] and sum(found[0]) == 12


def views_of(rows, **more):
    return wpinq.protect(rows, budget=10**6, columns={"user": str, "page": str}, **more)


ROWS_OF_MANY = [(f"u{n % 50}", f"p{n % 7}") for n in range(2000)]


def test_it_is_made_for_the_second_question_and_holds_for_other_bounds():
    views = views_of(ROWS_OF_MANY, unit=wpinq.users("user", at_most=20))
    made = views._node.data.made
    views.map("page").measure(1).observe("p1")
    assert made["people"].indexes == {}
    with patch.object(people_index.PeopleIndex, "of", side_effect=people_index.PeopleIndex.of) as built:
        views.filter("page <> 'p1'").map("page").measure(1).observe("p2")
        views.at_most(3, per=("page", 2)).map("page").measure(1).observe("p2")
        views.at_most(1).filter("user <> 'u1'").map("user").measure(10**5).observe("u2")
    assert built.call_count == 1


@pytest.mark.parametrize("unit", [None, wpinq.users("user", shared=True)], ids=["records", "shares"])
def test_records_and_shares_need_none(unit):
    views = views_of(ROWS_OF_MANY, unit=unit)
    for number in range(3):
        views.map("page").measure(1, name=f"{number}").observe("p1")
    (data,) = sources(views._node)
    assert "people" not in data.made


def test_every_question_passes_over_all_records(monkeypatch):
    """Whether a person or a text is there changes nothing: each filter is asked of every row, or every text."""
    views = views_of(ROWS_OF_MANY, unit=wpinq.users("user", at_most=20))
    seen = []
    true = people_parts.true
    monkeypatch.setattr(people_parts, "true", lambda step, frame: (seen.append(frame.height), true(step, frame))[1])
    for text in ("u1", "nobody"):
        for column in ("user", "page"):
            views.filter(f"{column} = '{text}'").measure(1).observe(("u1", "p1"))
        views.filter(f"user = '{text}' or page = '{text}'").measure(1).observe(("u1", "p1"))
    assert seen[-3:] == [50, 7, 2000] and seen[:-3] in ([7, 2000], [50, 7, 2000])


@pytest.mark.parametrize("limit", [10**9, 10_000], ids=["held", "a file"])
def test_shares_are_of_whole_people_and_together_all(limit, tmp_path):
    """A share of what is held is of some people, of whom all records are looked at; of a file, of some parts."""
    place, most = {"ledger": tmp_path / "L", "version": "1", "index": True}, held_now() + limit
    with patch.object(type(LIMIT), "most", property(lambda _: most)), patch.multiple(people_parts, ROOM=1, PARTS=40):
        views = views_of(ROWS_OF_MANY, unit=wpinq.users("user", at_most=3), **place).filter("page <> 'p1'")
        views.measure(1).observe(("u1", "p2"))
        (index,) = views._node.data.made["people"].indexes.values()
        assert (index.held is None) == (limit < 10**9)
        kept = people_index.Kept(index, views._node)
        for columns in (["user"], ["page"], ["page", "user"]):
            found = [
                sorted(
                    (row, weight)
                    for part in range(parts)
                    for frame in kept.batches(columns, share=(part, parts))
                    for *row, weight in frame.iter_rows()
                )
                for parts in (1, 2, 7, 90)
            ]
            sums = [Counter() for _ in found]
            for total, some in zip(sums, found, strict=True):
                for row, weight in some:
                    total[tuple(row)] += weight
            assert sums[0] == sums[1] == sums[2] == sums[3] and sum(sums[0].values()) == 150


def test_a_data_set_that_reads_other_records_reads_no_index_of_the_first():
    """What is merged of a stream is read so, and what a killed run had kept."""
    views = views_of(ROWS_OF_MANY, unit=wpinq.users("user", at_most=20))
    for number in range(3):
        views.map("page").measure(1, name=f"{number}").observe("p1")
    (data,) = sources(views._node)
    few = views_of([("ann", "p1")], unit=wpinq.users("user", at_most=20))
    other = bounded(Source(replace(data, reader=sources(few._node)[0].reader)))
    for _ in range(2):
        (found,) = compute([other])
        assert found.content()[1].tolist() == [1]


def test_where_it_does_not_fit_there_is_none(monkeypatch):
    monkeypatch.setattr(type(LIMIT), "most", property(lambda self: 1000))
    views = views_of(ROWS_OF_MANY, unit=wpinq.users("user", at_most=20))
    for number in range(3):
        views.map("page").measure(10**5, name=f"{number}").observe("p1")
    assert list(views._node.data.made["people"].indexes.values()) == [None]


def test_it_goes_with_the_version_and_gives_its_memory_back():
    gc.collect()  # what other tests left
    held = held_now()
    views = views_of(ROWS_OF_MANY, unit=wpinq.users("user", at_most=20))
    for number in range(2):
        views.map("page").measure(1, name=f"{number}").observe("p1")
    (index,) = views._node.data.made["people"].indexes.values()
    assert LIMIT._held == held + index.size > held
    gone = weakref.ref(index)
    del index, views
    gc.collect()
    assert gone() is None and LIMIT._held == held


def test_a_filter_that_fails_says_nothing_and_the_question_is_free_again(tmp_path):
    """What a plain function raises drops a record; what an engine's filter raises is told without a value."""
    views = views_of(ROWS_OF_MANY, unit=wpinq.users("user", at_most=20), ledger=tmp_path / "ledger")
    views.map("page").measure(1).observe("p1")
    asked = views.filter("page <> 'p1'").map("page").measure(1)
    with (
        patch.object(people_parts.Part, "keep", side_effect=ValueError("u1")),
        pytest.raises(wpinq.EngineError) as failed,
    ):
        asked.observe("p1")
    assert "u1" not in str(failed.value)
    assert asked.observe("p2") is not None


def test_what_bounds_people_is_known_of_what_the_index_gives(tmp_path):
    """A join counts rows because each person has few; the second question about both tables could not be answered."""
    towns, pages = (
        wpinq.protect(
            [(f"u{n % 9}", "ab"[n % 2]) for n in range(40)], 10**9 if name == "towns" else None, name=name, version="1",
            columns={"user": "str", what: "str"}, unit=wpinq.users("user", at_most=most), ledger=tmp_path / "L",
        )
        for name, what, most in (("towns", "town", 1), ("pages", "page", 3))
    )  # fmt: skip
    joined = towns.join_rows(pages, on="user")
    asked = [joined.map("town"), joined.map("page"), towns.join_rows(pages, on="user", how="left").map("page")]
    found = [sum(one.measure(10**6).observe_many(["a", "b"])) for one in asked]
    assert [round(float(one)) for one in found] == [27, 27, 27]
