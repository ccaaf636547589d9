"""Periods on the clocks of zones: windows and releases over people in periods, at moments where clocks are odd.

A case is a table of people at moments about a jump of the clocks, an end of a period or an end of the calendar, a unit
of a person in one period, and windows of the same or another length. The neighbour lacks what one person did in one
period, which is found here with `zoneinfo` alone. Beside that each moment is in exactly one period, of windows and of
releases, by the column, by Python and by where the period begins and ends.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
import tempfile
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import polars as pl
from attacks.fuzz import judge as programs
from attacks.fuzz.case import WAYS, Case, Table
from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.plant import Plant

from wpinq.apps.publish.file.declared import Schedule
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.streams.spool import Spool
from wpinq.apps.publish.streams.spool_folder import Folder
from wpinq.core.operators import periods
from wpinq.core.operators.contribution import unit_key
from wpinq.core.records.clocks import instant_of
from wpinq.core.records.schema import Column, Kind, Schema

ODD = [
    "Africa/Casablanca", "Africa/El_Aaiun", "Asia/Kathmandu", "Antarctica/Troll", "Australia/Lord_Howe", "Asia/Beirut",
    "Pacific/Apia", "Pacific/Kwajalein", "America/St_Johns", "America/Havana", "America/Santiago", "Africa/Cairo",
    "America/Sao_Paulo", "Europe/Dublin", "Asia/Gaza", "Asia/Tehran", "Pacific/Chatham", "Antarctica/Casey",
    "Europe/Berlin", "America/New_York", "Asia/Pyongyang", "Africa/Monrovia", "Etc/GMT+12", "Pacific/Kiritimati",
]  # fmt: skip
LENGTHS = ["1h", "1h", "90m", "6h", "1d", "1d", "1d", "36h", "1w", "1mo", "3mo"]
TICK = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NAIVE = EPOCH.replace(tzinfo=None)
STEPS = [0, -1, 1, -1_000_000, 1_000_000, -60_000_000, 1_800_000_000, -1_800_000_000, 3_600_000_000, -3_600_000_000,
         7_199_999_999, -7_200_000_000, 86_400_000_000, -86_400_000_001]  # fmt: skip


@dataclass(frozen=True)
class Zoned(Case):
    """A case whose neighbour lacks one person in one period of a zone.

    Attributes:
        zone: The zone.
        length: Of the period.
        number: Of the period.
        seed: Of the case.
    """

    zone: str = "UTC"
    length: str = "1d"
    number: int | None = None
    seed: int = 0

    def without(self) -> Case:
        """The neighbour."""
        kept = []
        for table in self.tables:
            gone = [place for place, (user, time, _) in enumerate(table.rows) if (user,) == self.person
                    and (None if time is None else number(time, self.length, self.zone)) == self.number]  # fmt: skip
            kept.append(table.kept([place for place in range(len(table.rows)) if place not in gone]))
        return replace(self, tables=tuple(kept), person=None)


def local(time: int, zone: str) -> dt.datetime:
    """What the clocks of a zone show at a moment."""
    return (EPOCH + time * TICK).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def number(time: Any, length: str, zone: str) -> int:
    """Which period a moment is in, by Python alone."""
    clock, (many, unit) = local(time, zone), re.fullmatch(r"(\d+)([a-z]+)", length).groups()  # type: ignore[union-attr]
    if unit == "mo":
        return (12 * (clock.year - 1970) + clock.month - 1) // int(many)
    span = int(many) * {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}[unit]
    start = dt.datetime(1970, 1, 5) if unit == "w" else NAIVE
    return (clock - start) // dt.timedelta(seconds=span)


@cache
def jumps(zone: str, year: int) -> list[int]:
    """The moments of a year at which the clocks of a zone jump, to the second."""
    here, days = ZoneInfo(zone), [dt.datetime(year, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=n) for n in range(366)]
    found = (jump(low, high, here) for low, high in itertools.pairwise(days))
    return [moment for moment in found if moment is not None]


def jump(low: dt.datetime, high: dt.datetime, here: ZoneInfo) -> int | None:
    """The moment between two others at which the clocks of a zone jump; None where they do not."""
    before = low.astimezone(here).utcoffset()
    if before == high.astimezone(here).utcoffset():
        return None
    while high - low > dt.timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        low, high = (middle, high) if middle.astimezone(here).utcoffset() == before else (low, middle)
    return (high - EPOCH) // TICK


def moments(rng: Random, zone: str, many: int) -> list[int]:
    """Odd moments, close to each other, of which Python and Polars have the same rules."""
    year = rng.choice([1969, 1979, 1988, 1994, 2008, 2011, 2015, 2017, 2024, 2025, 2026, 2026, rng.randint(1902, 2036)])
    base = rng.choice(jumps(zone, year) or [(dt.datetime(year, 3, 1, tzinfo=dt.UTC) - EPOCH) // TICK])
    if rng.random() < 0.5:  # where a day, or a month, begins
        clock = local(base, zone) + dt.timedelta(days=rng.randint(-1, 2))
        clock = clock.replace(day=1 if rng.random() < 0.2 else clock.day, hour=0, minute=0, second=0, microsecond=0)
        base = (clock.replace(tzinfo=ZoneInfo(zone), fold=rng.randrange(2)) - EPOCH) // TICK
    if rng.random() < 0.05:
        base = rng.choice([-62_135_596_800_000_000 + 3 * 86_400_000_000, 253_402_300_799_999_999 - 3 * 86_400_000_000])
    found = [base + rng.choice(STEPS) + rng.choice([0, 0, rng.choice(STEPS)]) for _ in range(many)]
    shown_by = pl.Series("time", found, pl.Int64).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    theirs = shown_by.dt.replace_time_zone(None).to_list()
    return [time for time, clock in zip(found, theirs, strict=True) if local(time, zone) == clock]


def zone_of(rng: Random) -> str:
    if rng.random() < 0.75:
        return rng.choice(ODD)
    zone = rng.choice(sorted(zoneinfo.available_timezones()))
    try:
        pl.Series([EPOCH]).dt.convert_time_zone(zone)
    except pl.exceptions.PolarsError:  # such as localtime, or one that is newer than its rules
        return "UTC"
    return zone


def grow(seed: int) -> Zoned:
    """A case of people in periods."""
    rng = Random(seed)
    zone, length = zone_of(rng), rng.choice(LENGTHS)
    times: list[int | None] = [*moments(rng, zone, rng.randint(2, 5)), None]
    if len(times) > 1 and rng.random() < 0.8:
        times.pop()
    rows = tuple((rng.choice(["ann", "ann", "bob", None]), rng.choice(times), rng.choice("xy")) for _ in
                 range(rng.randint(1, 9)))  # fmt: skip
    live = rng.random() < 0.45
    bound = rng.choice(["at_most=1", "at_most=2", "at_most=2", "shared=True", "at_most=3, per=('page', 1)"])
    place = "" if zone == "UTC" else f", zone={zone!r}"
    unit = f"unit=users('user', {bound}, period={length!r}, at='time'{place})"
    if rng.random() < 0.3:
        unit += ", where=\"page = 'x' or user = 'ann'\", derive={'page': 'upper(page)'}"
    kinds = (("user", "text"), ("time", "instant"), ("page", "text"))
    form = rng.choice(["frame", "split", "tuples", "parquet"])
    last = rng.choice([1, 1, 3])
    epochs = tuple(rng.randint(1, last) for _ in rows) if live else ()
    table = Table("t", "v0", kinds, rows, epochs, unit, form, live=live, span=("time", 0))
    person, time, _ = rng.choice(rows)
    gone = None if time is None else number(time, length, zone)
    lines = asking(rng, zone, length, [time for time in times if time is not None], live)
    way = WAYS[seed % 4]
    return Zoned((table,), tuple(lines), (person,), way=way, zone=zone, length=length, number=gone, seed=seed)


def asking(rng: Random, zone: str, length: str, times: list[int], live: bool) -> list[str]:
    """The lines of a program: windows of one or two lengths, and questions about each that is not empty."""
    base = rng.choice(["", "", ".filter(lambda page: page != 'y')", ".distinct()", ".shave()", ".limit('page')"])
    lines, asked = ["c0 = table(0)", f"c1 = c0{base}"], []
    for place in range(rng.choice([1, 1, 2])):
        other = rng.choice([length, length, rng.choice(LENGTHS)])
        own = rng.choice([zone, zone, zone, "UTC", "Europe/Berlin"])
        lines.append(f"w{place} = c1.window({other!r}, at='time'{'' if own == 'UTC' else f', zone={own!r}'})")
        column = rng.choice(["", ".map('page')", ".map(lambda user: user)"])
        lines.append(f"m{place} = w{place}{column}.measure(epsilon={rng.choice(['1', '0.5', '2'])})")
        asked.append(place)
    if rng.random() < 0.3:
        lines.append("m9 = c1.map('page').measure(epsilon=1)")
    text = {time: f"dt.datetime.fromisoformat({(EPOCH + time * TICK).isoformat()!r})" for time in times}
    questions = [f"m{place}.at({text[time]})" for place in asked for time in times]
    if not live:
        return [*lines, *questions]
    ends = sorted(
        time + rng.choice([0, 1, 3_600_000_000, 90_000_000_000]) for time in rng.sample(times, min(2, len(times)))
    )
    ends += [max([*times, 0]) + 100 * 86_400_000_000] if rng.random() < 0.9 else []
    for end in ends[-3:]:
        moment = (EPOCH + min(end, 253_402_300_799_999_999) * TICK).isoformat()
        lines.append(f"advance(dt.datetime.fromisoformat({moment!r}))")
        lines += rng.sample(questions, min(2, len(questions)))
    return [*lines, *["advance()"] * (3 - len(ends)), *questions]


# ---- each moment is in one period


def in_one(seed: int) -> Iterator[str]:
    """Each moment is in exactly one period, whoever tells which."""
    rng = Random(seed)
    zone, length = zone_of(rng), rng.choice(LENGTHS)
    times = moments(rng, zone, 8)
    spans = periods.periods(length, Column("time", Kind.INSTANT), "fuzz", zone)
    frame = pl.DataFrame({"time": pl.Series(times, dtype=pl.Int64).cast(pl.Datetime("us", "UTC"))})
    for time, found in zip(times, frame.select(spans.numbers("time")).to_series().to_list(), strict=True):
        what = f"{EPOCH + time * TICK} in {length} of {zone}"
        if {found, spans.number_at(time), spans.number(EPOCH + time * TICK)} != {number(time, length, zone)}:
            yield f"Z {what}: is in period {found}, not in {number(time, length, zone)}"
        elif not spans.start(found) <= time < spans.end(found):
            yield f"Z {what}: is not between {spans.start(found)} and {spans.end(found)}"
    yield from published(rng, zone, times, frame)


def published(rng: Random, zone: str, times: list[int], frame: pl.DataFrame) -> Iterator[str]:
    """Each record of a stream is in one period of a release, which is open as long as it can come."""
    every = rng.choice(["hour", "day", "day", "week", "month", "year"])
    clocks = [local(time, zone) for time in times]
    if not times or not all(3 < clock.year < 9997 for clock in clocks):
        return
    first = Period.of(rng.choice(clocks), every)  # type: ignore[arg-type]
    now = EPOCH + rng.choice(times) * TICK
    with tempfile.TemporaryDirectory() as place:
        schedule = Schedule(every=every, zone=zone, first=first.name)
        spool = Spool(Folder(Path(place) / "spool"), Schema((Column("time", Kind.INSTANT),)), "time", schedule, now)
        sorted_in = [
            (period.name, moment) for period, own in spool._sorted(frame.unique(), now) for moment in own["time"]
        ]
        latest = max(Period.of(now.astimezone(ZoneInfo(zone)).replace(tzinfo=None), every), spool.first)  # type: ignore[arg-type]
        spool.release()
    wanted = set()
    for time, clock in zip(times, clocks, strict=True):
        period = Period.of(clock, every)  # type: ignore[arg-type]
        if not period.start <= clock < period.end or Period.parse(period.name, every) != period:  # type: ignore[arg-type]
            yield f"Z {clock} is not in its {every} {period.name}"
        if period.ended(EPOCH + time * TICK, zone):
            yield f"Z {period.name} in {zone} is over at {EPOCH + time * TICK}, which is in it"
        if not period.ended(instant_of(period.end, zone, last=True), zone):
            yield f"Z {period.name} in {zone} is never over"
        if first <= period <= latest.next:
            wanted.add((period.name, EPOCH + time * TICK))
    if sorted(sorted_in) != sorted(wanted):
        yield f"Z records of {every}s in {zone} are sorted into {sorted(sorted_in)}, not {sorted(wanted)}"


def judge(case: Zoned) -> list[str]:
    """What is wrong with moments of its seed, or with the case."""
    return list(in_one(case.seed)) or programs.judge(case)


# ---- bugs that once were there, or that would be easy to make


def by_utc() -> list[Any]:
    """A person's periods follow UTC, whatever zone they are declared in."""
    real = periods.periods
    return [patch.object(unit_key, "periods", lambda length, column, call, zone=None: real(length, column, call))]


def any_length() -> list[Any]:
    """Windows of any length cost as one."""
    return [patch.object(periods.Periods, "made_of", lambda self, finer: True)]


def one_midnight() -> list[Any]:
    """A time that clocks leave out is placed by the offset that they have after it."""

    def placed(clock: dt.datetime, zone: str, *, last: bool) -> dt.datetime:
        return clock.replace(tzinfo=ZoneInfo(zone), fold=last).astimezone(dt.UTC)

    return [patch.object(periods, "instant_of", placed)]


def first_of_two() -> list[Any]:
    """A period of a release is over when its clocks show its end for the first time."""

    def ended(self: Period, now: dt.datetime, zone: str) -> bool:
        return self.end.replace(tzinfo=ZoneInfo(zone)) <= now

    return [patch.object(Period, "ended", ended)]


def both_ends() -> list[Any]:
    """A record at midnight is in two periods."""
    real = pl.Expr.is_between
    return [patch.object(pl.Expr, "is_between", lambda self, low, high, closed="both": real(self, low, high))]


PLANTS = {
    "by_utc": Plant("periods of people follow UTC", by_utc, 3, "AB"),
    "any_length": Plant("windows across periods cost as one", any_length, 226, "B"),
    "one_midnight": Plant("a window ends before its last hour", one_midnight, 49, "Z"),
    "first_of_two": Plant("an hour is over after its first time", first_of_two, 73, "Z"),
    "both_ends": Plant("a record at midnight is in two periods", both_ends, 4, "Z"),
}
FUZZER = Fuzzer("zones", grow, judge, PLANTS, Case.program)
