"""Periods: days, weeks and months of a time zone, as units of a person, as windows, of files and of live sources."""

import datetime as dt
from fractions import Fraction
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from depth import often, thin
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import Driver, distance, expected, same

import wpinq
from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.contribution.first import first
from wpinq.core.operators.periods import DAY, periods
from wpinq.core.plan.node import sources
from wpinq.core.records.schema import Column, Kind
from wpinq.errors import PlanError

ONE = Secret(bytes(range(32)))
COLUMNS = {"user": str, "page": str, "time": "instant"}
BERLIN = ZoneInfo("Europe/Berlin")
LENGTHS = ["1h", "1d", "3d", "1w", "2w", "1mo", "3mo", "12mo"]
ZONES = [None, "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "America/St_Johns", "Antarctica/Troll"]
KINDS = {Kind.INSTANT: ZONES, Kind.TIME: [None], Kind.DATE: [None]}
times = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))


def of(length, kind, zone=None):
    return periods(length, Column("time", kind), "test", zone)


def value(time, kind):
    return {Kind.INSTANT: time.replace(tzinfo=dt.UTC), Kind.TIME: time, Kind.DATE: time.date()}[kind]


def stored(time):
    return (time - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


@thin(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
@given(times)
@settings(max_examples=often(25))
@example(dt.datetime(2026, 10, 25, 0, 30))  # Berlin's clocks are set back
@example(dt.datetime(2011, 12, 30, 12))  # a day that Apia did not have
@example(dt.datetime(2006, 10, 29, 2, 31))  # St. John's set back at a minute past midnight, to the day before
@example(dt.datetime(2017, 10, 15, 2, 30))  # Sao Paulo's clocks leave midnight out half an hour later
@example(dt.datetime(2025, 10, 26, 1, 30))  # Troll's clocks were set back by two hours half an hour before
@example(dt.datetime(1988, 4, 3, 3, 31))  # St. John's leave out two hours from a minute past midnight
@example(dt.datetime(1969, 12, 31, 23, 59, 59))
@example(dt.datetime(1, 1, 1))
@example(dt.datetime.max)
def test_a_time_is_in_one_period_and_python_polars_and_the_ends_agree(length, kind, time):
    for zone in KINDS[kind]:
        found, given = of(length, kind, zone), value(time, kind)
        number = found.number(given)
        column = pl.Series("time", [given], pl.Date if kind is Kind.DATE else None)
        assert column.to_frame().select(found.numbers("time")).item() == number
        ticks = stored(dt.datetime.combine(time.date(), dt.time()) if kind is Kind.DATE else time)
        assert ticks < found.end(number)
        assert found.end(number) - found.start(number) <= found.longest + DAY
        assert found.start(number) <= ticks


def test_months_weeks_and_days_begin_as_people_say():
    month, week = of("1mo", Kind.INSTANT, "Europe/Berlin"), of("1w", Kind.DATE)
    number = month.number(dt.datetime(2026, 6, 30, 22, 0, tzinfo=dt.UTC))
    assert number == month.number(dt.datetime(2026, 7, 31, 21, 59, tzinfo=dt.UTC))
    assert month.time(number) == dt.datetime(2026, 7, 1, tzinfo=BERLIN)
    assert week.time(week.number(dt.date(2026, 7, 5))) == dt.date(2026, 6, 29), "a Monday"
    quarter = of("3mo", Kind.TIME)
    assert quarter.time(quarter.number(dt.datetime(2026, 8, 1))) == dt.datetime(2026, 7, 1)
    day = of("1d", Kind.INSTANT, "Europe/Berlin")
    long = day.number(dt.datetime(2026, 10, 25, 12, tzinfo=BERLIN))
    assert day.end(long) - day.start(long) == 25 * DAY // 24


@thin(6)
@pytest.mark.parametrize("coarse", LENGTHS)
@pytest.mark.parametrize("fine", LENGTHS)
@given(times, times)
@settings(max_examples=often(10))
def test_what_is_made_of_whole_periods_holds_each_of_them(coarse, fine, one, other):
    """Two times of one fine period are in one coarse period, or it is not said so."""
    for zone in ZONES[:2]:
        large, small = of(coarse, Kind.INSTANT, zone), of(fine, Kind.INSTANT, zone)
        near = one + (other - one) / 2000  # within a few weeks
        a, b = value(one, Kind.INSTANT), value(near, Kind.INSTANT)
        if large.made_of(small) and small.number(a) == small.number(b):
            assert large.number(a) == large.number(b)
    assert of("12mo", Kind.DATE).made_of(of("1d", Kind.DATE))
    assert not of("1mo", Kind.DATE).made_of(of("1w", Kind.DATE))
    assert not of("1w", Kind.DATE).made_of(of("2d", Kind.DATE))
    assert not of("1d", Kind.INSTANT).made_of(of("1d", Kind.INSTANT, "Europe/Berlin"))


UNITS = [
    wpinq.users("user", at_most=2, period="1mo", at="time", zone="Europe/Berlin"),
    wpinq.users("user", at_most=3, per=("page", 1), period="1w", at="time"),
    wpinq.users("user", shared=True, period="1mo", at="time"),
]
few = [
    dt.datetime(2026, month, day, hour, tzinfo=dt.UTC) for month in (6, 7) for day in (1, 30) for hour in (0, 22, 23)
]
views = st.lists(st.tuples(st.sampled_from(["ann", "bob"]), st.sampled_from("ab"), st.sampled_from([*few, None])))


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(views, views, st.sampled_from([*few, None]))
@settings(max_examples=often(15))
def test_a_person_in_one_period_moves_nothing_else_and_no_further_than_the_unit(unit, others, own, when):
    collection = wpinq.protect([], 10**6, unit=unit, columns=COLUMNS, secret=ONE, where="page <> 'c'")
    of_time = periods(unit.period[0], Column("time", Kind.INSTANT), "test", unit.zone)

    def period(record):
        return None if record[2] is None else of_time.number(record[2])

    others = [record for record in others if (record[0], period(record)) != ("ann", period(("", "", when)))]
    own = [("ann", page, when) for _, page, _ in own]
    kinds = [collection] + ([Collection(first(collection._node))] if unit.at_most and not unit.per else [])
    for kind in kinds:
        without, having = (expected(kind, reference.weigh(one)) for one in (others, others + own))
        assert distance(without, having) <= unit.bound
        assert without == {x: w for x, w in having.items() if (x[0], period(x)) != ("ann", period(("", "", when)))}
    driver = Driver(collection, 2)
    for part in (others, own):
        driver.feed(
            {
                record: Fraction((others + own).count(record))
                for record in part
                if part is others or record not in others
            }
        )
    wanted = others + [record for record in own if record not in others]
    assert same(driver.histogram, collection._node, expected(collection, reference.weigh(wanted)))


@pytest.mark.parametrize(
    ("period", "zone", "each"),
    [
        ("1mo", "Europe/Berlin", False),
        ("1d", "Europe/Berlin", False),
        ("1w", "Europe/Berlin", True),
        ("1mo", None, True),
    ],
)
def test_months_of_a_live_source_cost_one_where_the_unit_is_in_one(period, zone, each):
    unit = wpinq.users("user", at_most=1, period=period, at="time", zone=zone)
    source = wpinq.live(COLUMNS, 1000, unit=unit, secret=ONE)
    found = source.window("1mo", at="time", zone="Europe/Berlin").map("user").measure(50)
    june, july = dt.datetime(2026, 6, 30, 21, tzinfo=dt.UTC), dt.datetime(2026, 6, 30, 23, tzinfo=dt.UTC)
    source.send([("ann", "home", june)] * 3 + [("ann", "home", july)] * 2)
    source.advance(until=dt.datetime(2026, 6, 30, 22, tzinfo=dt.UTC))
    assert found.observe("ann", june) == 1
    with pytest.raises(wpinq.NotReadyError):
        found.observe("ann", july)
    source.advance(until=dt.datetime(2026, 8, 15, tzinfo=dt.UTC))
    assert [moment.window[0] for moment in found.times.moments(2)] == [dt.datetime(2026, 7, 1, tzinfo=BERLIN)]
    assert found.observe("ann", july) == 1
    assert sources(source._node)[0].ledger.spent()[0] == (100 if each else 50)
    assert found.times.each is each
    source.close()


def test_a_file_and_a_ledger_say_which_unit(tmp_path):
    unit = UNITS[0]
    records = [("ann", "a", one) for one in few] + [("bob", "a", few[0])]
    views = wpinq.protect(records, 1000, unit=unit, columns=COLUMNS, ledger=tmp_path / "ledger", name="views")
    assert sources(views._node)[0].ledger.unit == "user (user) in one window of 1mo by time in Europe/Berlin"
    assert unit.protects == "one user in one month by time (Europe/Berlin), at most 2 records each"
    users = views.map("user").measure(200)
    months = len({(one.astimezone(BERLIN).year, one.astimezone(BERLIN).month) for one in few})
    assert users.observe_many(["ann", "bob"]).tolist() == [2 * months, 1]
    assert wpinq.users("user", 2, period="1d", at="t", zone="UTC") == wpinq.users("user", 2, period="1d", at="t")


def test_a_zone_is_for_times_that_have_one():
    for kind in ("timestamp", "date", int):
        for make in (
            lambda kind: wpinq.protect([], 1, columns={"user": str, "time": kind}).window(
                1 if kind is int else "1d", at="time", zone="Europe/Berlin"
            ),
            lambda kind: wpinq.protect(
                [], 1, columns={"user": str, "time": kind},
                unit=wpinq.users("user", 1, period=1 if kind is int else "1d", at="time", zone="Europe/Berlin"),
            ),
        ):  # fmt: skip
            with pytest.raises(PlanError, match="has no time zone"):
                make(kind)


@pytest.mark.parametrize("length", ["1d", True, 1.0, None, 0, -1])
def test_windows_of_whole_numbers_have_whole_lengths(length):
    with pytest.raises(wpinq.PlanError, match="length"):
        wpinq.testing.protected(n=int).window(length, at="n")
