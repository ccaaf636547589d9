"""SQL functions of dates and times. A timestamp with time zone is read in UTC, as by a session whose zone is UTC."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.functions.sql.casts import TIMES
from wpinq.core.functions.sql.terms import Term, constant, divided, to, whole_number
from wpinq.core.functions.sql.translator import argument, words
from wpinq.core.functions.tree import Methods, Node, lit, of_all
from wpinq.core.records.schema import Kind, polars_type
from wpinq.core.records.values import FIRST, LAST
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.functions.sql.translator import Translator

SECOND = 10**6  # microseconds
EDGES = [lit(edge, pl.Int64()).cast(polars_type(Kind.TIME), strict=False) for edge in (FIRST - 1, LAST + 1)]
BEYOND = {Kind.TIME: EDGES, Kind.INSTANT: [edge.dt.replace_time_zone(time_zone="UTC") for edge in EDGES]}
"""A time that leaves the years of Python stops right behind them; as a result it is NULL."""


def _micros(at: Methods) -> Node:
    return at.second().cast(pl.Int64, strict=False) * SECOND + at.microsecond()


PARTS: dict[str, tuple[Kind, Callable[[Any], Node]]] = {
    "year": (Kind.INT, lambda at: at.year()),
    "quarter": (Kind.INT, lambda at: at.quarter()),
    "month": (Kind.INT, lambda at: at.month()),
    "week": (Kind.INT, lambda at: at.week()),
    "day": (Kind.INT, lambda at: at.day()),
    "doy": (Kind.INT, lambda at: at.ordinal_day()),
    "dow": (Kind.INT, lambda at: at.weekday() % 7),
    "isodow": (Kind.INT, lambda at: at.weekday()),
    "isoyear": (Kind.INT, lambda at: at.iso_year()),
    "decade": (Kind.INT, lambda at: at.year() // 10),
    "century": (Kind.INT, lambda at: at.century()),
    "millennium": (Kind.INT, lambda at: at.millennium()),
}
WITHIN: dict[str, tuple[Kind, Callable[[Any], Node]]] = {
    "hour": (Kind.INT, lambda at: at.hour()),
    "minute": (Kind.INT, lambda at: at.minute()),
    "second": (Kind.FLOAT, lambda at: divided(_micros(at), SECOND)),
    "milliseconds": (Kind.FLOAT, lambda at: divided(_micros(at), 1000)),
    "microseconds": (Kind.INT, _micros),
    "epoch": (Kind.FLOAT, lambda at: divided(at.timestamp(time_unit="us"), SECOND)),
}
"""Fields that dates do not have."""
STEPS = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y", "hour": "1h", "minute": "1m"}
FINE = {"second": "1s", "milliseconds": "1ms", "microseconds": "1us", "decade": "10y"}
OFDAY = ("hour", "minute", "second", "milliseconds", "microseconds")


def extract(translator: Translator, node: Any) -> Term:
    """EXTRACT(field FROM time) and DATE_PART."""
    part = node.name.lower()
    term = argument(translator, node.expression, *TIMES)
    kind, work = {**PARTS, **WITHIN}.get(part, (None, None))
    if kind is None or work is None or (term.kind is Kind.DATE and part in WITHIN):
        raise PlanError(f"{translator.call}: {translator.spell(node)}: there are {', '.join([*PARTS, *WITHIN])} "
                        "(of dates no hour).")  # fmt: skip
    return Term(work(term.value.dt).cast(polars_type(kind), strict=False), kind, "")


def truncated(translator: Translator, node: Any) -> Term:
    """DATE_TRUNC, where asked in a zone; what it makes of a date is a date."""
    unit = node.args["unit"].name.lower()
    term = argument(translator, node.this, *TIMES)
    steps = STEPS | FINE
    if unit not in steps or (term.kind is Kind.DATE and unit in OFDAY):
        raise PlanError(
            f"{translator.call}: {translator.spell(node)}: there are {', '.join(steps)} (of dates no hour)."
        )
    if node.args.get("zone") is None:
        return Term(term.value.dt.truncate(steps[unit]), term.kind, "")
    if term.kind is not Kind.INSTANT:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: {term.text} has no time zone.")
    name = _zone(translator, node.args["zone"], node)
    return Term(_in_utc(_local(term.value, name).dt.truncate(steps[unit]), name), Kind.INSTANT, "")


def at_zone(translator: Translator, node: Any) -> Term:
    """AT TIME ZONE: the clock of a zone where the time has a zone, and the time of that clock where it has none."""
    term = argument(translator, node.this, Kind.TIME, Kind.INSTANT)
    name = _zone(translator, node.args["zone"], node)
    if term.kind is Kind.INSTANT:
        return Term(_local(term.value, name), Kind.TIME, "")
    return Term(_in_utc(term.value, name), Kind.INSTANT, "")


def _local(at: Node, zone: str) -> Node:
    return at.dt.convert_time_zone(time_zone=zone).dt.replace_time_zone(time_zone=None)


def _in_utc(clock: Node, zone: str) -> Node:
    """The time of a clock. Of two the later, as in PostgreSQL; one that is skipped counts by the zone before."""
    day = lit(86400 * SECOND, pl.Int64).cast(pl.Duration("us"), strict=False)
    low, high = BEYOND[Kind.TIME]
    clocks = (clock, (clock - day).clip(low, high))
    zoned = [local.dt.replace_time_zone(time_zone=zone, ambiguous="latest", non_existent="null") for local in clocks]
    at = [time.dt.convert_time_zone(time_zone="UTC") for time in zoned]
    return of_all("pl.coalesce", [at[0], at[1] + day]).clip(*BEYOND[Kind.INSTANT])


def _zone(translator: Translator, node: Any, whole: Any) -> str:
    wanted = words(translator, node, whole)
    zones = {name.lower(): name for name in zoneinfo.available_timezones()}
    name = zones.get(wanted.lower())
    try:
        if name is not None:
            pl.select(pl.lit(0, polars_type(Kind.INSTANT)).dt.convert_time_zone(name))
            return name
    except pl.exceptions.PolarsError:
        pass
    alike = difflib.get_close_matches(wanted.lower(), zones, 1) or [
        zone for zone in zones if zone.rpartition("/")[2] == wanted.lower()
    ]
    hint = f"did you mean '{zones[alike[0]]}'?" if alike else "write one as 'Europe/Berlin'."
    raise PlanError(f"{translator.call}: {translator.spell(whole)}: there is no such time zone; {hint}")


def shifted(translator: Translator, node: Any, time: Any, interval: Any) -> Term:
    """A time and an interval: months, then days, then hours; a date becomes a timestamp."""
    sign = "-" if type(node).__name__ == "Sub" else ""
    steps = _interval(interval)
    term = argument(translator, time, *TIMES)
    term = to(term, Kind.TIME, translator.call) if term.kind is Kind.DATE else term
    if not steps or term.kind is None:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: write an interval as INTERVAL '90' DAY; "
                        f"there are {', '.join([*STEPS, 'second'])}.")  # fmt: skip
    for step in steps:
        term = _stepped(translator, term, f"{sign}{step}", node)
    return term


def _stepped(translator: Translator, term: Term, step: str, node: Any) -> Term:
    kind = term.kind or Kind.TIME
    result = term.value.dt.offset_by(step)
    if term.constant is None:
        return Term(result.clip(*BEYOND[kind]), kind, "")
    try:
        return constant(pl.select(result.expr).item(), kind, translator.spell(node))
    except ValueError:
        raise PlanError(f"{translator.call}: {translator.spell(node)} lies outside of the years 1 to 9999.") from None


def _interval(interval: Any) -> list[str]:
    """The steps of an interval, `2 hours` or `1 day 2 hours`, the coarse ones first; none where it is not read."""
    number, unit = interval.args.get("this"), interval.args.get("unit")
    if type(number).__name__ != "Literal":
        return []
    text = number.this if unit is None else f"{number.this} {unit.name}"
    if not re.fullmatch(r"\s*(?:\d+\s*[a-z]+\s*)+", text, re.IGNORECASE):
        return []
    order = {"mo": 0, "q": 0, "y": 0, "d": 1, "w": 1}
    steps = []
    for digits, name in re.findall(r"(\d+)\s*([a-z]+)", text.lower()):
        step = {**STEPS, "second": "1s"}.get(name.removesuffix("s"))
        most = 10**5 if step in ("1y", "1q") else 10**6  # of longer ones Polars makes no time at all
        count = whole_number(digits, most)
        if step is None or count is None:
            return []
        steps.append((order.get(step[1:], 2), f"{count * int(step[0])}{step[1:]}"))
    return [step for _, step in sorted(steps, key=lambda item: item[0])]


SHAPES = frozenset("YmdHIMSjVyaAbBpG")
WORDS = {"%uy": "%a", "Mon": "%b", "AM": "%p", "PM": "%p", '"T"': "T", '"Z"': "Z", "%f": "%6f"}
"""What sqlglot leaves of PostgreSQL's shapes, as strftime writes it."""


def written(translator: Translator, node: Any) -> Term:
    """TO_CHAR(time, shape) with PostgreSQL's letters, and STRFTIME(time, shape) with those of C."""
    inner = node.expressions if type(node).__name__ == "Anonymous" else [node.this, node.args.get("format")]
    if len(inner) != 2:
        raise translator.refused(node)
    term = argument(translator, inner[0], *TIMES)
    shape = words(translator, inner[1], node)
    if type(node).__name__ == "Anonymous":
        shape = shape.replace("%f", "%6f")
        rest = re.sub(r"%(?:[A-Za-z]|6f)", "", shape)
    else:
        shape = re.sub("|".join(map(re.escape, WORDS)), lambda match: WORDS[match[0]], shape.replace("Month", "?M?"))
        rest = re.sub(r"%(?:[A-Za-z]|6f)", "", shape.replace("T", "").replace("Z", ""))
        rest = "?" if re.search('[A-Za-z"?]', rest) else ""
    if "%" in rest or "?" in rest or set(re.findall(r"%([A-Za-z])", shape)) - SHAPES or len(shape) > 60:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: of this shape not all is read; to_char has YYYY "
                        "YY MM DD DDD HH24 HH12 MI SS US AM Mon TMMonth Dy TMDay IYYY IW, strftime has "
                        f"{' '.join('%' + letter for letter in sorted(SHAPES))} %f.")  # fmt: skip
    if term.kind is Kind.DATE:
        term = to(term, Kind.TIME, translator.call)
    return Term(term.value.dt.strftime(format=shape), Kind.TEXT, "")
