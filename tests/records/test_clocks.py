"""When clocks show a time, where they are put forward and back; and when periods of a release are over."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from wpinq.apps.publish.file.periods import Period
from wpinq.core.records.clocks import instant_of

JUMPS = [
    ("America/Sao_Paulo", dt.datetime(2017, 10, 15, 3)),
    ("Asia/Beirut", dt.datetime(2025, 3, 29, 22)),
    ("Europe/Berlin", dt.datetime(2026, 3, 29, 1)),
    ("Australia/Lord_Howe", dt.datetime(2025, 10, 4, 15, 30)),
    ("America/St_Johns", dt.datetime(1988, 4, 3, 3, 31)),
    ("Pacific/Apia", dt.datetime(2011, 12, 30, 10)),
]
BACK = [
    ("Europe/Berlin", dt.datetime(2026, 10, 25, 1)),
    ("Antarctica/Troll", dt.datetime(2025, 10, 26, 1)),
    ("America/Havana", dt.datetime(2025, 11, 2, 5)),
    ("Africa/Casablanca", dt.datetime(2026, 2, 15, 2)),
]
MINUTE = dt.timedelta(minutes=1)


def here(moment, zone):
    return moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


@pytest.mark.parametrize(("zone", "jump"), JUMPS)
def test_a_time_that_clocks_leave_out_is_the_moment_of_the_jump(zone, jump):
    before, after = here(jump - MINUTE, zone) + MINUTE, here(jump, zone)
    assert before < after
    for clock in (before, before + MINUTE, after - MINUTE):
        for last in (False, True):
            assert instant_of(clock, zone, last=last) == jump.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(("zone", "jump"), BACK)
def test_a_time_that_clocks_show_twice_has_a_first_and_a_last_moment(zone, jump):
    first, again = here(jump - MINUTE, zone) + MINUTE, here(jump, zone)
    assert again < first
    middle = again + (first - again) / 2
    one, other = (instant_of(middle, zone, last=last) for last in (False, True))
    assert other - one == first - again
    assert {here(moment.replace(tzinfo=None), zone) for moment in (one, other)} == {middle}


@pytest.mark.parametrize(("zone", "jump"), [*JUMPS, *BACK])
@pytest.mark.parametrize("every", ["hour", "day"])
def test_a_period_of_a_release_is_over_when_none_of_its_records_can_come(zone, jump, every):
    for minutes in range(-300, 301, 15):
        now = jump + minutes * MINUTE
        own = Period.of(here(now, zone), every)
        assert not own.ended(now.replace(tzinfo=dt.UTC), zone), "it is now"
    assert Period.of(here(jump, zone), every).ended((jump + dt.timedelta(days=2)).replace(tzinfo=dt.UTC), zone)
