"""What is done to each record before a person's are bounded: it never moves others, and no further than the unit."""

import datetime as dt
from collections import Counter
from fractions import Fraction

import polars as pl
import pytest
from depth import deeper, often, thin
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, distance, expected, run_flow, same

import wpinq
from wpinq.aggregates.lengths import Lengths
from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.contribution.first import first
from wpinq.core.plan.node import sources
from wpinq.errors import PlanError, WpinqError
from wpinq.testing import check_stability

ONE = Secret(bytes(range(32)))
COLUMNS = {"user": str, "page": str, "status": int}
PAGES = ["/a?x=1", "/a?x=2", "/a", "/static/b", "/B", None]
UNITS = [
    wpinq.users("user", at_most=1),
    wpinq.users("user", at_most=3),
    wpinq.users("user", at_most=3, per=("path", 1)),
    wpinq.users("user", shared=True),
]
STEPS = {
    "sql": {"where": "status = 200 and path <> '/s'", "derive": {"path": "lower(substr(page, 1, 2))"}},
    "traced": {"where": lambda path: path.startswith("/a"), "derive": {"path": lambda page: page.split("?")[0]}},
    "plain": {
        "where": lambda status, path: any(status == one for one in (200, 404)) and path,
        "derive": {"path": lambda page: "".join([page[:2]]), "page": lambda page: page + "!" * len([page])},
    },
    "polars": {
        "where": pl.col("status") < 300,
        "derive": {"path": pl.col("page").str.to_lowercase(), "one": pl.lit(1)},
    },
}
views = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", None]), st.sampled_from(PAGES), st.sampled_from([200, 404, None])),
    max_size=30,
)


def people(unit, steps, records=(), **settings):
    settings = {"budget": 10**6, "columns": COLUMNS, "secret": ONE, "name": "views", "version": "1", **settings}
    return wpinq.protect(list(records), unit=unit, **steps, **settings)


def kinds(unit, steps):
    """The bound of the unit, and where there are such that of continual release and the choice of a bound."""
    bounded = people(unit, steps)
    yield bounded
    if unit.at_most is not None and unit.per is None:
        yield Collection(first(bounded._node))
    yield Collection(Lengths(bounded._node.source, (1, 2, 5)))


EACH = pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
UNIT = pytest.mark.parametrize("unit", UNITS, ids=str)


@thin(3)
@EACH
@UNIT
@given(views, views)
@settings(max_examples=often(10))
def test_a_person_moves_nobody_else_and_no_further_than_the_unit(unit, steps, others, own):
    others = [record for record in others if record[0] != "ann"]
    own = [("ann", *rest) for _, *rest in own]
    for place, collection in enumerate(kinds(unit, steps)):
        without, having = (expected(collection, reference.weigh(one)) for one in (others, others + own))
        counts = place > 0 and collection._node.title == "suggest_bound"
        assert distance(without, having) <= (1 if counts else unit.bound)
        if not counts:
            assert without == {x: w for x, w in having.items() if x[0] != "ann"}


@thin(3)
@EACH
@UNIT
@given(views, st.integers(1, 3), st.randoms(use_true_random=False))
@settings(max_examples=often(4))
def test_the_engine_does_what_is_defined_in_any_batches(unit, steps, records, shards, random):
    for collection in kinds(unit, steps):
        driver = Driver(collection, shards)
        driver.feed({record: Fraction(count) for record, count in Counter(records[:10]).items()})
        driver.feed({record: Fraction(count) for record, count in Counter(records[10:]).items()})
        if "first" not in collection._node.title:
            assert same(driver.histogram, collection._node, expected(collection, reference.weigh(records)))
    random.shuffle(records)
    by_path = Counter()
    for record, weight in expected(people(unit, steps), reference.weigh(records)).items():
        by_path[record[3],] += weight
    paths = people(unit, steps, records).map(pl.col("path"))
    assert same(run_flow(paths, shards), paths._node, by_path)


@deeper
@EACH
def test_stability_is_what_is_stated(steps):
    check_stability(
        people(UNITS[1], steps).map(pl.col("path")).shave(),
        examples=often(40),
        values={"page": PAGES, "status": [200, 404]},
    )


def test_the_bound_takes_places_only_from_what_is_asked_about():
    records = [("ann", "/static/x", 200)] * 50 + [("ann", f"/p{n}", 200) for n in range(5)]
    unit = wpinq.users("user", at_most=5)
    late = people(unit, {}, records).map("user, page, status").filter("page not like '/static/%'").measure(5 * 60)
    first = people(unit, {}, records).filter("page not like '/static/%'").measure(5 * 60)
    early = people(unit, {"where": "page not like '/static/%'"}, records).measure(5 * 60)
    bins = [("ann", f"/p{n}", 200) for n in range(5)]
    assert early.observe_many(bins).tolist() == first.observe_many(bins).tolist() == [1] * 5
    assert late.observe_many(bins).sum() < 5


def test_other_steps_over_one_ledger_are_other_questions_and_their_charges_add_up(tmp_path):
    records = [("ann", "/a", 200), ("bob", "/B", 404)]
    unit = wpinq.users("user", at_most=2)
    home = {"ledger": tmp_path / "ledger"}

    def spent(steps, split=False):
        made = people(unit, steps, records, budget=10, **home)
        pages = made.map("page").partition("page", ["/a"])["/a"] if split else made.map("page")
        pages.measure(1)
        return sources(made._node)[0].ledger.spent()[0]

    assert spent({}) == 1
    assert spent({"where": "status = 200"}) == 2
    assert spent({"where": "status=200"}) == 2, "the same condition, written in another way"
    assert spent({"where": "status = 404"}) == 3
    assert spent({"where": "status = 404", "derive": {"x": "lower(page)"}}) == 4
    assert spent({"where": "status = 200"}, split=True) == 5
    assert spent({"where": "status = 404"}, split=True) == 6, "parts of two samples are no parts of one partition"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ({"derive": {"user": "page"}}, "tells apart whom"),
        ({"derive": {"time": "time"}}, "tells apart whom"),
        ({"derive": {"x": "page, user"}}, "gives 2 values"),
        ({"derive": {"x": "count(*)"}}, "aggregate"),
        ({"derive": "page"}, "takes a mapping"),
        ({"derive": {5: "page"}}, "takes a name"),
        ({"where": "page"}, "not a condition"),
        ({"where": "nothing = 1"}, "no column 'nothing'"),
        ({"where": pl.col("page") == pl.col("page").max()}, "where=...)"),
        ({"where": lambda nothing, such, as_, these: True}, "where=...)"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_ledger_is_made(steps, said, tmp_path):
    unit = wpinq.users("user", at_most=2, period="1d", at="time")
    columns = {"user": str, "page": str, "time": dt.datetime}
    for call, make in (
        ("protect(", lambda: wpinq.protect([], 1, columns=columns, unit=unit, ledger=tmp_path / "ledger", **steps)),
        ("live(", lambda: wpinq.live(columns, 1, unit=unit, ledger=tmp_path / "ledger", **steps)),
    ):
        with pytest.raises(WpinqError) as caught:
            make()
        assert isinstance(caught.value, PlanError)
        assert str(caught.value).startswith(call)
        assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_records_and_weights_have_such_steps_too():
    found = wpinq.protect(
        [("a", 3), ("b", 4)], budget=1000, columns={"page": str, "n": int}, where="page = 'a'",
        derive={"twice": "n + n"}, weight="twice", max_weight=10,
    )  # fmt: skip
    assert found.columns == ("page", "n")
    assert found.map("page").measure(500).observe_many(["a", "b"]).tolist() == [6, 0]


@pytest.mark.parametrize("at", ["time", "local"])
def test_windows_of_a_live_source_are_bounded_each_after_the_steps(at):
    """Also where the time of the window is computed."""
    hours = [dt.datetime(2026, 1, 1, hour) for hour in range(3)]
    source = wpinq.live(
        {"user": str, "page": str, "time": dt.datetime}, 10**6, unit=wpinq.users("user", at_most=2), secret=ONE,
        where="page <> 'static'", derive={"local": "time + interval '2 hours'"},
    )  # fmt: skip
    found = source.window("1h", at=at).map("user").measure(200)
    always = source.map("page").measure(200, continual=True)
    later = [time + dt.timedelta(hours=2 if at == "local" else 0) for time in hours]
    for time, until in zip(hours, later, strict=True):
        source.send([("ann", "static", time)] * 9 + [("ann", "home", time)] * 5 + [("bob", "home", time)])
        source.advance(until=until + dt.timedelta(hours=1))
    assert found.observe_many(["ann", "bob"], window=later).tolist() == [[2, 1]] * 3
    assert sources(source._node)[0].ledger.spent()[0] == 200 + 3 * 200, "ann is in every window"
    assert always.observe("static") == 0
    assert abs(always.observe("home") - 5) < 2, "two of ann's in all, and three of bob's at most two"
    source.close()


def shortened(page) -> str:
    return "".join([*page][:2])


def maybe(page) -> "str | None":
    return page if [page] != ["x"] else None


def untold(page):
    return "".join([*page][:2])


def unreadable(page) -> "no such name":  # noqa: F722
    return "".join([*page][:2])


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (shortened, "text"),
        (maybe, "text"),
        ((untold, str), "text"),
        ((untold, "text"), "text"),
        (untold, "value"),
        (unreadable, "value"),
        ("upper(page)", "text"),
    ],
)
def test_a_derived_column_has_the_type_that_its_function_says(function, kind):
    """It was of any type, so no SQL could read it, and nothing said how to tell it."""
    rows = [("ann", "abc"), ("bob", "abd"), ("bob", "x")]
    views = wpinq.protect(rows, 10**6, columns={"user": str, "page": str}, derive={"short": function})
    assert views._node.schema["short"].kind.value == kind
    if kind == "value":
        with pytest.raises(wpinq.PlanError, match=r"by '-> str' of that or by derive=\{'short': \(function, str\)\}"):
            wpinq.sql("SELECT COUNT(*) FROM v WHERE short = 'ab'", {"v": views}, epsilon=9000)
        return
    wanted = "ABC" if isinstance(function, str) else "abc" if function is maybe else "ab"
    count = wpinq.sql(f"SELECT COUNT(*) FROM v WHERE short = '{wanted}'", {"v": views}, epsilon=9000).value
    assert count == (1 if len(wanted) == 3 else 2)


def test_what_does_not_fit_the_type_that_was_said_drops_its_record():
    def wrong(page) -> int:
        return [page][0]

    views = wpinq.protect([("ann", "a"), ("bob", 3)], 10**6, columns={"user": str, "page": None}, derive={"n": wrong})
    assert views.count(epsilon=9000).value == 1
