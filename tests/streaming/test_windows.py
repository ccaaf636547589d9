"""Windows: cells, prices, closing, lateness. Attacks 40, 41, 43; rules 13 and 25; bytewax's windows as the oracle."""

import datetime as dt
import random
from collections import Counter
from fractions import Fraction

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import wpinq

NOON = dt.datetime(2026, 7, 31, 12)
EXACT = 60
COLUMNS = {"user": "text", "page": "text", "time": "timestamp"}


def at(hours):
    return NOON + dt.timedelta(hours=hours)


def page(user, page, time):
    return page


def views(*hours, user="ann", page="home"):
    return [(user, page, at(hour)) for hour in hours]


def test_cells_are_those_of_the_window_operator_of_bytewax():
    pytest.importorskip("bytewax", reason="needs bytewax")
    draw = random.Random(1)
    rows = sorted(
        ((str(draw.randrange(50)), draw.choice("abcd"), at(draw.random() * 10)) for _ in range(2000)),
        key=lambda row: row[2],
    )
    cells = _by_bytewax(rows)
    m = wpinq.protect(rows, budget=1000, columns=COLUMNS).window("30m", at="time").map(page).measure(EXACT)
    times = [NOON + dt.timedelta(minutes=30 * n) for n in range(-1, 22)]
    found = m.observe_many(list("abcd"), window=times)
    assert found.shape == (23, 4)
    for time, line in zip(times, found.tolist(), strict=True):
        assert line == [cells[one, time] for one in "abcd"]
    assert found.sum() == len(rows) == sum(cells.values())


def _by_bytewax(rows):
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.operators import windowing
    from bytewax.testing import TestingSink, TestingSource, run_main

    zone, span, start = dt.UTC, dt.timedelta(minutes=30), dt.datetime(1970, 1, 1)
    clock = windowing.EventClock(lambda row: row[2].replace(tzinfo=zone), wait_for_system_duration=dt.timedelta(0))
    windower = windowing.TumblingWindower(length=span, align_to=start.replace(tzinfo=zone))
    flow, out = Dataflow("windows"), []
    stream = op.input("in", flow, TestingSource(rows, batch_size=100))
    counted = windowing.count_window("count", stream, clock, windower, lambda row: row[1])
    op.output("out", counted.down, TestingSink(out))
    run_main(flow)
    return Counter({(key, start + number * span): count for key, (number, count) in out})


@given(
    st.dictionaries(st.tuples(st.integers(-3, 3), st.one_of(st.none(), st.integers(-130, 130))), strategies.fractions),
    st.integers(-3, 2),
)
def test_a_window_is_what_the_reference_engine_says(weights, number):
    """Every weight lies in one window, a record without a time in none; negative times belong where floor puts them."""
    from wpinq.core.measurements.windows import _numbered
    from wpinq.core.plan.node import rewrite

    template = strategies.protected(fine=True, page="integer", minute="integer").window(60, at="minute")
    one = template._then(rewrite(template._node, lambda node: _numbered(number, node)))
    driver = strategies.Driver(one)
    driver.feed(weights)
    expected = strategies.expected(one, weights)
    assert strategies.same(driver.histogram, one._node, expected)
    inside = {r: w for r, w in weights.items() if r[1] is not None and r[1] // 60 == number and w}
    assert expected == inside


@pytest.mark.parametrize(
    ("kind", "times", "length", "asked"),
    [
        ("date", [dt.date(1969, 12, 31), dt.date(1970, 1, 1)], "1d", dt.date(1969, 12, 31)),
        ("timestamp with time zone", [NOON.replace(tzinfo=dt.UTC)], dt.timedelta(hours=1), NOON.astimezone(dt.UTC)),
        ("integer", [-1, 0, 1], 2, -2),
    ],
)
def test_every_kind_of_time(kind, times, length, asked):
    if kind.startswith("timestamp"):
        asked = NOON.replace(tzinfo=dt.UTC) + dt.timedelta(minutes=59)
    m = wpinq.protect([(one,) for one in times], budget=EXACT, columns={"time": kind}).window(length, "time")
    total = m.map(lambda time: 1).measure(EXACT)
    assert total.observe(1, window=asked) == 1


def test_rule_13_a_window_that_has_closed_stays_closed_whatever_time_is_told_later():
    source = wpinq.live(COLUMNS, budget=10**6)
    m = source.window("1h", at="time").map(page).measure(EXACT)
    for hour, until in ((0, 5), (0.5, 1), (0.6, 1), (0.7, 2)):
        source.send(views(hour))
        source.advance(until=at(until))
    assert m.observe_many(["home"], window=[at(0), at(1), at(4)]).tolist() == [[1], [0], [0]]
    source.close()


def test_rule_25_all_windows_cost_one_and_are_independent():
    rows = [("ann", "home", at(n)) for n in range(24)]
    source = wpinq.protect(rows, budget=1, columns=COLUMNS)
    ledger = source._node.data.ledger
    hours = source.window("1h", at="time").map(page)
    m = hours.measure("0.25")
    assert ledger.spent()[0] == Fraction(1, 4), "charged before any window is asked for"
    found = m.observe_many(["home"], window=[at(n) for n in range(24)])
    assert ledger.spent()[0] == Fraction(1, 4)
    assert len(set(found[:, 0].tolist())) > 3, "windows of equal contents have noise of their own"
    assert m.observe("home", at(3.5)) == found[3, 0]
    hours.shave().measure("0.5")
    assert ledger.spent()[0] == Fraction(3, 4)
    source.measure("0.25")
    with pytest.raises(wpinq.BudgetError):
        hours.measure("0.01")


def test_steps_after_a_window_see_one_window_alone():
    source = wpinq.protect(views(0, 0.1, 0.2, 1, 1.1), budget=1000, columns=COLUMNS)
    counts = source.window("1h", at="time").map(page).shave().map(lambda page, index: index)
    m = counts.measure(EXACT)
    assert m.observe_many(range(1, 5), window=[at(0), at(1), at(2)]).tolist() == [[1, 1, 1, 0], [1, 1, 0, 0], [0] * 4]


def test_windows_of_a_source_can_be_joined_with_themselves():
    source = wpinq.protect(views(0, 1), budget=10**6, columns=COLUMNS)
    hours = source.window("1h", at="time").map(lambda user, page: (user, page))
    m = hours.join(hours, on="user").map(lambda user: user).measure(9000)
    assert m.scale == Fraction(2, 9000) * Fraction(2**16 + 1, 2**16)
    assert m.observe("ann", at(0)) == pytest.approx(0.5, abs=0.02)


def test_what_is_no_window_is_refused():
    source = wpinq.protect(views(0), budget=10, columns=COLUMNS)
    for length in ("1", "h", "1y", "0mo", 5, 0, dt.timedelta(0), None, True, -dt.timedelta(hours=1)):
        with pytest.raises(wpinq.PlanError, match="window"):
            source.window(length, at="time")
    with pytest.raises(wpinq.PlanError, match="declare it"):
        source.window("1h", at="page")
    with pytest.raises(wpinq.PlanError, match="no column"):
        source.window("1h", at="when")
    hours = source.window("1h", at="time")
    with pytest.raises(wpinq.PlanError, match="several lengths"):
        hours.concat(source.window("2h", at="time")).measure(1)
    m = hours.map(page).measure(1)
    with pytest.raises(wpinq.PlanError, match="which window"):
        m.observe("home")
    for wrong in ("noon", 5, dt.date(2026, 1, 1), NOON.replace(tzinfo=dt.UTC)):
        with pytest.raises(wpinq.BinError):
            m.observe("home", window=wrong)
    with pytest.raises(wpinq.PlanError, match="each window is released by itself"):
        m.release()
    assert source._node.data.ledger.spent()[0] == 1


@pytest.fixture
def live():
    source = wpinq.live(COLUMNS, budget=10_000)
    yield source
    source.close()


def test_attack_40_a_window_is_answered_only_when_it_has_closed(live):
    m = live.window("1h", at="time").map(page).measure(EXACT)
    live.send(views(0, 0.5, 1))
    for until in (None, at(0.99)):
        live.advance(until=until)
        with pytest.raises(wpinq.NotReadyError, match="still open"):
            m.observe("home", window=at(0))
    live.advance(until=at(1))
    assert m.observe("home", window=at(0)) == 2
    with pytest.raises(wpinq.NotReadyError):
        m.observe("home", window=at(1))
    live.advance(until=at(0.5))
    assert m.observe("home", window=at(0)) == 2, "a clock that goes back opens nothing"
    assert live._data.ledger.spent()[0] == EXACT


def test_attack_41_late_data_cannot_reopen_a_window(live):
    m = live.window("1h", at="time").map(page).measure(EXACT)
    live.send(views(0, 0))
    live.advance(until=at(1))
    live.send(views(0.5, 1.5))
    live.advance(until=at(2))
    assert m.observe("home", window=at(0)) == 2, "asked for after the late record came, and the same"
    assert m.observe("home", window=at(1)) == 1
    live.send(views(0.5))
    live.advance()
    later = live.window("1h", at="time").map(page).measure(EXACT, name="again")
    assert later.observe_many(["home"], window=[at(0), at(1)]).tolist() == [[2], [1]]


@given(absurd=st.sampled_from([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), NOON, None]))
def test_rule_13_no_record_closes_a_window_or_moves_another(absurd):
    found = []
    for more in ([], [("eve", "news", absurd)]):
        source = wpinq.live(COLUMNS, budget=1000)
        m = source.window("1h", at="time").map(page).measure(EXACT)
        source.send(views(0, 1, 2) + more)
        source.advance()
        with pytest.raises(wpinq.NotReadyError):
            m.observe("home", window=at(0))
        source.send(views(0, 1, 2))
        source.advance(until=at(3))
        found.append(m.observe_many(["home"], window=[at(0), at(1), at(2)]).tolist())
        source.close()
    assert found == [[[2], [2], [2]]] * 2


def test_windows_close_by_the_clock_with_a_lateness():
    source = wpinq.live(COLUMNS, budget=1000, lateness=dt.timedelta(minutes=10))
    m = source.window("1h", at="time").map(page).measure(EXACT)
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    old = now - dt.timedelta(hours=2)
    source.send([("ann", "home", old), ("ann", "home", now)])
    source.advance()
    assert m.observe("home", window=old) == 1
    with pytest.raises(wpinq.NotReadyError):
        m.observe("home", window=now)
    source.close()


def test_a_user_pays_for_each_window_and_is_bounded_in_each():
    """`at_most` holds in each window, so what one window keeps does not lessen another, and each is charged."""
    source = wpinq.live(COLUMNS, budget=10 * EXACT, unit=wpinq.users("user", at_most=2))
    spent = source._data.ledger.spent
    hours = source.window("1h", at="time").map(page)
    assert "120, for each window that is asked for" in hours.explain(2 * EXACT)
    m = hours.measure(2 * EXACT)
    assert spent()[0] == 0
    source.send(views(*[hour + n / 10 for hour in range(6) for n in range(5)]))
    source.advance(until=at(6))
    assert m.observe_many(["home"], window=[at(n) for n in range(4)]).tolist() == [[2]] * 4
    assert spent()[0] == 8 * EXACT
    with pytest.raises(wpinq.BudgetError, match="nothing was charged"):
        m.observe_many(["home"], window=[at(4), at(5)])
    with pytest.raises(wpinq.BinError):
        m.observe(5, window=at(4))
    assert spent()[0] == 8 * EXACT, "all windows that are asked for together are charged, or none"
    assert m.observe("home", window=at(4)) == 2
    with pytest.raises(wpinq.BudgetError):
        m.observe("home", window=at(5))
    assert spent()[0] == 10 * EXACT
    assert m.observe("home", window=at(0)) == 2, "what was charged is free"
    source.close()


def test_windows_that_are_closed_together_cost_one_over_any_plan():
    """One sample of each user lies below both windows; windows that another epoch closes have another sample."""
    source = wpinq.live(COLUMNS, budget=10 * EXACT, unit=wpinq.users("user", at_most=2))
    m = source.map(lambda user, page, time: (page, time)).window("1h", at="time").map("page").measure(2 * EXACT)
    source.send(views(0, 1, 2))
    source.advance(until=at(2))
    assert m.observe_many(["home"], window=[at(0), at(1)]).sum() in (1, 2)
    assert source._data.ledger.spent()[0] == 2 * EXACT
    source.advance(until=at(3))
    m.observe("home", window=at(2))
    assert source._data.ledger.spent()[0] == 4 * EXACT
    source.close()


@pytest.mark.parametrize(
    ("unit", "length", "each"),
    [("1h", "1h", False), ("1h", "3h", False), ("60m", "1d", False), ("1h", "30m", True), ("2h", "3h", True)],
)
def test_windows_of_a_unit_that_is_a_person_in_one_window_cost_one(unit, length, each):
    """Such a unit lies in one window as long, or made of whole ones; of shorter or other windows each is charged."""
    unit = wpinq.users("user", at_most=2, period=unit, at="time")
    source = wpinq.live(COLUMNS, budget=1000 * EXACT, unit=unit)
    assert "in one window of" in source._data.ledger.unit
    hours = source.window(length, at="time").map(page)
    assert ("for each window" in hours.explain(1)) is each
    assert ("for all windows" in hours.explain(1)) is not each
    m = hours.measure(2 * EXACT)
    source.send(views(*[hour + n / 10 for hour in range(4) for n in range(5)]))
    source.advance(until=at(48))
    for hour in range(0, 48, 24):
        m.observe("home", window=at(hour))
    assert source._data.ledger.spent()[0] == 2 * EXACT * (2 if each else 1)
    source.close()


def test_a_person_in_one_window_is_bounded_there_in_every_plan():
    """Also at an epoch, over a file, by a share and for continual release: 2 of each hour, whatever the others hold."""
    rows = views(*[hour + n / 10 for hour in range(4) for n in range(5)]) + [("ann", "home", None)] * 3
    unit = wpinq.users("user", at_most=2, period="1h", at="time")
    file = wpinq.protect(rows, budget=1000, columns=COLUMNS, unit=unit)
    assert file.map(page).measure(2 * EXACT).observe("home") == 10
    live = wpinq.live(COLUMNS, budget=1000, unit=unit)
    asked = [live.map(page).measure(2 * EXACT, continual=one) for one in (False, True)]
    for part in (rows[::2], rows[1::2]):
        live.send(part)
        live.advance()
    assert [one.observe("home") for one in asked] == [10, 10]
    live.close()
    shared = wpinq.users("user", shared=True, period="1h", at="time")
    assert wpinq.protect(rows, budget=1000, columns=COLUMNS, unit=shared).map(page).measure(EXACT).observe(
        "home"
    ) == pytest.approx(5, abs=0.4)


@pytest.mark.parametrize(
    "period",
    [
        {"period": "1h", "at": "when"}, {"period": "1h", "at": "page"}, {"period": "1y", "at": "time"},
        {"period": "1h"},
        {"period": 0, "at": "time"}, {"at": "time"}, {"period": True, "at": "time"}, {"period": "0mo", "at": "time"},
        {"zone": "Europe/Berlin"}, {"period": "1d", "at": "time", "zone": "Europe/Nowhere"},
        {"period": "1d", "at": "time", "zone": 5},
    ],
)  # fmt: skip
def test_a_unit_of_no_period_is_refused_before_there_is_a_ledger(period, tmp_path):
    for start in (
        lambda **more: wpinq.live(COLUMNS, **more),
        lambda **more: wpinq.protect([], columns=COLUMNS, **more),
    ):
        with pytest.raises(wpinq.PlanError, match=r"period|column|zone"):
            start(budget=1, unit=wpinq.users("user", at_most=2, **period), ledger=tmp_path / "ledger")
    assert not list(tmp_path.iterdir())


def test_windows_joined_with_what_is_no_window_are_charged_each(live):
    """The other side moves by a record too, in every window that it is joined to."""
    m = live.window("1h", at="time").map(lambda user: user).join(live.map(lambda user: user), on="user").measure(1)
    assert m.times.each
    live.advance(until=at(3))
    for hour in range(3):
        m.observe("ann", window=at(hour))
    assert live._data.ledger.spent()[0] == Fraction(2), "half for all windows, and half for each"


def test_windows_of_a_live_source_beside_a_file_are_charged_each(live):
    """Some record of the stream may let another one in, in a later epoch: the file beside it does not change that."""
    known = wpinq.protect([("ann",)], budget=9, columns=["user"])
    m = live.semijoin(known, on="user").window("1h", at="time").map(lambda user: user).measure(1)
    for hour in range(3):
        live.advance(until=at(hour + 1))
        m.observe("ann", window=at(hour))
    assert live._data.ledger.spent()[0] == 3, "each closes at an epoch of its own"


def test_windows_of_a_file_of_people_are_bounded_all_together():
    rows = views(*range(10))
    m = wpinq.protect(rows, budget=1000, columns=COLUMNS, unit=wpinq.users("user", at_most=2)).window("1h", "time")
    found = m.map(page).measure(2 * EXACT).observe_many(["home"], window=[at(n) for n in range(10)])
    assert found.sum() == 2


def test_attack_19_parts_inside_of_windows_cost_the_largest(live):
    ledger = live._data.ledger
    hours = live.window("1h", at="time")
    days = hours.partition("page", ["home", "news"])
    days["home"].measure("0.5")
    days["news"].measure("0.25")
    assert ledger.spent()[0] == Fraction(1, 2)
    days["news"].measure("0.5")
    assert ledger.spent()[0] == Fraction(3, 4)


def test_attack_43_parts_at_two_epochs_are_added_up_for_people():
    """A user's sample moves from epoch to epoch, so it may be all in one part now and all in the other then."""
    for unit, spent in ((None, Fraction(1, 2)), (wpinq.users("user", at_most=2), Fraction(1))):
        source = wpinq.live(COLUMNS, budget=10, unit=unit)
        pages = source.partition("page", ["home", "news"])
        pages["home"].measure("0.5")
        source.advance()
        pages["news"].measure("0.5")
        assert source._data.ledger.spent()[0] == spent
        source.close()


@pytest.mark.parametrize("lateness", [5, "5s", dt.timedelta(seconds=-1)], ids=str)
def test_a_lateness_that_is_none_is_refused_at_once(lateness):
    """It was a TypeError at the first advance, or closed windows before they ended."""
    with pytest.raises(wpinq.PlanError, match="give a timedelta, not below zero"):
        wpinq.live(COLUMNS, budget=1, lateness=lateness)
