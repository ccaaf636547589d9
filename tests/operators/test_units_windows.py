"""A unit that is a person in one window: bounded there, whatever else the person and others did."""

from collections import Counter
from fractions import Fraction

import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, distance, expected, run_flow, same

import wpinq
from wpinq.aggregates.lengths import Lengths
from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.contribution.first import first
from wpinq.core.plan.node import Source

ONE = Secret(bytes(range(32)))
COLUMNS = {"user": str, "page": str, "minute": int}
HOUR = {"period": 60, "at": "minute"}
UNITS = [
    wpinq.users("user", at_most=1, **HOUR),
    wpinq.users("user", at_most=3, **HOUR),
    wpinq.users("user", at_most=3, per=("page", 1), **HOUR),
    wpinq.users("user", shared=True, **HOUR),
]
minutes = st.one_of(st.none(), st.integers(-130, 130))
views = st.lists(st.tuples(st.sampled_from(["ann", "bob", None]), st.sampled_from("ab"), minutes), max_size=30)


def people(unit, records=()):
    return wpinq.protect(
        list(records), budget=10**6, unit=unit, columns=COLUMNS, secret=ONE, name="views", version="1"
    )  # fmt: skip


def hour(record):
    return None if record[2] is None else record[2] // 60


def kinds(unit):
    """The bound of the unit, and where there is one that of continual release, and the choice of a bound."""
    bounded = people(unit)
    yield bounded
    if unit.at_most is not None and unit.per is None:
        yield Collection(first(bounded._node))
    yield Collection(Lengths(Source(bounded._node.source.data), (1, 2, 5)))


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(views, views, st.sampled_from([-1, 0, 1, None]))
@settings(max_examples=often(30))
def test_a_person_in_one_window_moves_nothing_else_and_no_further_than_the_unit(unit, others, own, window):
    others = [record for record in others if (record[0], hour(record)) != ("ann", window)]
    own = [("ann", page, None if window is None else 60 * window + (minute or 0) % 60) for _, page, minute in own]
    for place, collection in enumerate(kinds(unit)):
        without, having = (expected(collection, reference.weigh(one)) for one in (others, others + own))
        last = place > 0 and collection._node.title == "suggest_bound"
        assert distance(without, having) <= (1 if last else unit.bound)
        if not last:
            assert without == {x: w for x, w in having.items() if (x[0], hour(x)) != ("ann", window)}


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(views, st.integers(1, 4), st.randoms(use_true_random=False))
@settings(max_examples=often(15))
def test_the_engine_does_what_is_defined(unit, records, shards, random):
    for collection in kinds(unit):
        wanted = expected(collection, reference.weigh(records))
        driver = Driver(collection, shards)
        driver.feed({record: Fraction(count) for record, count in Counter(records).items()})
        assert same(driver.histogram, collection._node, wanted)
    random.shuffle(records)
    pages = people(unit, records).map(lambda page: page)
    by_page = Counter()
    for (_, page, _), weight in expected(people(unit), reference.weigh(records)).items():
        by_page[page,] += weight
    assert same(run_flow(pages, shards), pages._node, by_page)


def test_windows_of_dates_and_times_are_those_of_window():
    import datetime as dt

    days = [dt.date(1969, 12, 30) + dt.timedelta(days=n) for n in range(4)]
    for kind, times in (("date", days), ("timestamp", [dt.datetime.combine(day, dt.time(23)) for day in days])):
        unit = wpinq.users("user", at_most=1, period="2d", at="time")
        source = wpinq.protect(
            [("ann", time) for time in times] * 3, budget=1000, columns={"user": str, "time": kind}, unit=unit
        )
        found = source.window("2d", at="time").map("user").measure(60)
        assert found.observe_many(["ann"], window=[times[0], times[1], times[2]]).tolist() == [[1]] * 3
        assert source.map("user").measure(60).observe("ann") == 2


def test_windows_of_a_file_that_are_each_charged_charge_nothing_before(tmp_path):
    """What is pinned of a version is pinned with a charge, and these have one each."""
    (tmp_path / "v.csv").write_text("user,page,minute\nann,a,1\nbob,b,5\n")
    source = wpinq.protect(tmp_path / "v.csv", budget=10**4, unit=wpinq.users("user", at_most=1),
                           columns={"minute": int})  # fmt: skip
    asked = source.window(1, at="minute").union(source).map("page").measure(900)
    assert source.budget.spent == 0
    assert asked.at(1).observe("a") == 1
    assert source.budget.spent == 900
