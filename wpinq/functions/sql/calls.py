"""The functions and casts of SQL that are functions of one record. A cast that does not fit gives NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.errors import PlanError
from wpinq.functions.sql.terms import NUMBERS, Term, constant, to, together, whole_number
from wpinq.records.schema import Kind, polars_type
from wpinq.records.values import FIRST, LAST

if TYPE_CHECKING:
    from wpinq.functions.sql.translator import Translator

ONE = frozenset(["this"])
TIMES = (Kind.DATE, Kind.TIME, Kind.INSTANT)
PARTS: dict[str, Callable[[Any], pl.Expr]] = {
    "year": lambda at: at.year(), "quarter": lambda at: at.quarter(), "month": lambda at: at.month(),
    "week": lambda at: at.week(), "day": lambda at: at.day(), "doy": lambda at: at.ordinal_day(),
    "dow": lambda at: at.weekday() % 7, "isodow": lambda at: at.weekday(),
    "hour": lambda at: at.hour(), "minute": lambda at: at.minute(),
}  # fmt: skip
BEYOND = [pl.lit(edge, pl.Int64()).cast(polars_type(Kind.TIME), strict=False) for edge in (FIRST - 1, LAST + 1)]
"""A time that leaves the years of Python stops right behind them; as a result it is NULL."""
STEPS = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y", "hour": "1h", "minute": "1m"}
NAMES = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT"), Kind.INT),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL"), Kind.FLOAT),
    **dict.fromkeys(("TEXT", "VARCHAR"), Kind.TEXT),
    "BOOLEAN": Kind.BOOL,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIME,
}


def _argument(translator: Translator, node: Any, *kinds: Kind) -> Term:
    """The argument of a function, of one of these types."""
    term = translator.term(node)
    if term.kind is None or (term.quoted and Kind.TEXT not in kinds):
        return to(term, kinds[0], translator.call)
    if term.kind not in kinds:
        wanted = " or ".join(kind.value for kind in kinds)
        raise PlanError(f"{translator.call}: {term.text} is of type {term.spoken}, and {wanted} is needed; cast it.")
    return term


def _text(work: Callable[[Any], pl.Expr], kind: Kind = Kind.TEXT) -> Any:
    def rule(translator: Translator, node: Any) -> Term:
        result = work(_argument(translator, node.this, Kind.TEXT).value.str)
        return Term(result.cast(polars_type(kind), strict=False), kind, "")

    return rule


def _absolute(translator: Translator, node: Any) -> Term:
    term = _argument(translator, node.this, *NUMBERS)
    wide = term.value.cast(pl.Int128, strict=False) if term.kind is Kind.INT else term.value
    return Term(wide.abs().cast(polars_type(term.kind or Kind.INT), strict=False), term.kind, "")


def _round(translator: Translator, node: Any) -> Term:
    """To the nearest even whole number, or to so many digits, half away from zero."""
    digits = _whole(translator, node.args.get("decimals"), node, None)
    if digits is None:
        result: Term = _rounded(lambda number: number.round(0, mode="half_to_even"))(translator, node)
        return result
    if not 0 <= digits <= 15:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: round to 0 to 15 digits.")
    number = to(_argument(translator, node.this, *NUMBERS), Kind.FLOAT, translator.call)
    return Term(number.value.round(digits, mode="half_away_from_zero"), Kind.FLOAT, "")


def _end(translator: Translator, node: Any) -> Term:
    """LEFT and RIGHT: so many characters of one end; below zero, all but so many of the other."""
    value = _argument(translator, node.this, Kind.TEXT).value
    size = _whole(translator, node.expression, node, None)
    if size is None:
        raise translator.refused(node)
    result = value.str.head(size) if type(node).__name__ == "Left" else value.str.tail(size)
    return Term(result, Kind.TEXT, "")


def _most(translator: Translator, node: Any) -> Term:
    """GREATEST and LEAST, which skip NULL."""
    terms, kind = together([translator.term(item) for item in (node.this, *node.expressions)], translator.call)
    result = terms[0].value
    for term in terms[1:]:
        wins = result >= term.value if type(node).__name__ == "Greatest" else result <= term.value
        result = pl.when(wins | term.value.is_null()).then(result).otherwise(term.value)
    return Term(result, kind, "")


def shifted(translator: Translator, node: Any) -> Term:
    """A time and an interval, which make a timestamp."""
    interval = node.expression
    number, unit = interval.args.get("this"), interval.args.get("unit")
    step = STEPS.get("" if unit is None else unit.name.lower().removesuffix("s"))
    most = 10**5 if step in ("1y", "1q") else 10**6  # of longer ones Polars makes no time at all
    count = whole_number(number.this, most) if type(number).__name__ == "Literal" else None
    term = to(_argument(translator, node.this, *TIMES), Kind.TIME, translator.call)
    if step is None or count is None or term.kind is Kind.INSTANT:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: write an interval as INTERVAL '90' DAY; "
                        f"there are {', '.join(STEPS)}.")  # fmt: skip
    sign = "-" if type(node).__name__ == "Sub" else ""
    result = term.value.dt.offset_by(f"{sign}{count * int(step[0])}{step[1:]}")
    if term.constant is None:
        return Term(result.clip(*BEYOND), Kind.TIME, "")
    try:
        return constant(pl.select(result).item(), Kind.TIME, translator.spell(node))
    except ValueError:
        raise PlanError(f"{translator.call}: {translator.spell(node)} lies outside of the years 1 to 9999.") from None


def _rounded(work: Callable[[pl.Expr], pl.Expr]) -> Any:
    def rule(translator: Translator, node: Any) -> Term:
        term = _argument(translator, node.this, *NUMBERS)
        return term if term.kind is Kind.INT else Term(work(term.value), Kind.FLOAT, "")

    return rule


def _substring(translator: Translator, node: Any) -> Term:
    """Characters by number from 1; what lies before the first is counted, and is not there."""
    value = _argument(translator, node.this, Kind.TEXT).value
    start = _whole(translator, node.args.get("start"), node, 1)
    length = _whole(translator, node.args.get("length"), node, None)
    if start is None or (length is not None and length < 0):
        raise PlanError(f"{translator.call}: {translator.spell(node)}: a length is not below zero.")
    first = max(start - 1, 0)
    size = None if length is None else max(start - 1 + length - first, 0)
    return Term(value.str.slice(first, size), Kind.TEXT, "")


def _whole(translator: Translator, part: Any, node: Any, default: int | None) -> int | None:
    if part is None:
        return default
    term = translator.term(part)
    if not isinstance(term.constant, int) or isinstance(term.constant, bool) or abs(term.constant) > 2**31:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: write positions as whole numbers.")
    return term.constant


def _extract(translator: Translator, node: Any) -> Term:
    part = node.name.lower()
    term = _argument(translator, node.expression, *TIMES)
    if part not in PARTS or (term.kind is Kind.DATE and part in ("hour", "minute")):
        raise PlanError(
            f"{translator.call}: {translator.spell(node)}: there are {', '.join(PARTS)} (of dates no hour)."
        )
    return Term(PARTS[part](term.value.dt).cast(pl.Int64, strict=False), Kind.INT, "")


def _truncated(translator: Translator, node: Any) -> Term:
    """DATE_TRUNC; what it makes of a date is a date."""
    unit = node.args["unit"].name.lower()
    term = _argument(translator, node.this, *TIMES)
    if unit not in STEPS or (term.kind is Kind.DATE and unit in ("hour", "minute")):
        raise PlanError(
            f"{translator.call}: {translator.spell(node)}: there are {', '.join(STEPS)} (of dates no hour)."
        )
    return Term(term.value.dt.truncate(STEPS[unit]), term.kind, "")


def _coalesce(translator: Translator, node: Any) -> Term:
    terms, kind = together([translator.term(item) for item in (node.this, *node.expressions)], translator.call)
    return Term(pl.coalesce([term.value for term in terms]), kind, "")


def _nullif(translator: Translator, node: Any) -> Term:
    (one, other), kind = together([translator.term(node.this), translator.term(node.expression)], translator.call)
    return Term(pl.when(one.value.ne_missing(other.value)).then(one.value), kind, "")


def _cast(translator: Translator, node: Any) -> Term:
    asked = node.args["to"]
    kind = None if asked.expressions else NAMES.get(asked.this.name)
    if kind is None:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: cast to INTEGER, DOUBLE PRECISION, TEXT, "
                        "BOOLEAN, DATE or TIMESTAMP.")  # fmt: skip
    term = translator.term(node.this)
    if term.kind is kind and not term.quoted:
        return term
    if term.kind is None or (term.quoted and kind in TIMES):
        return to(term, kind, translator.call)
    work = CASTS.get((term.kind, kind))
    if term.kind is not kind and work is None:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: {term.text} is of type {term.spoken}, which has "
                        f"no cast to {kind.value}.")  # fmt: skip
    return Term(work(term.value) if work else term.value, kind, "")


def _plain(kind: Kind) -> Callable[[pl.Expr], pl.Expr]:
    return lambda value: value.cast(polars_type(kind), strict=False)


def _truth(text: pl.Expr) -> pl.Expr:
    word = text.str.strip_chars(" ").str.to_lowercase()
    yes, no = ["true", "t", "yes", "y", "on", "1"], ["false", "f", "no", "n", "off", "0"]
    return pl.when(word.is_in(yes)).then(pl.lit(True)).when(word.is_in(no)).then(pl.lit(False))


CASTS: dict[tuple[Kind, Kind], Callable[[pl.Expr], pl.Expr]] = {
    (Kind.TEXT, Kind.INT): lambda text: text.str.strip_chars(" ").cast(pl.Int64, strict=False),
    (Kind.TEXT, Kind.FLOAT): lambda text: text.str.strip_chars(" ").cast(pl.Float64, strict=False),
    (Kind.TEXT, Kind.BOOL): _truth,
    (Kind.TEXT, Kind.DATE): lambda text: text.str.strip_chars(" ").str.to_date("%Y-%m-%d", strict=False),
    (Kind.TEXT, Kind.TIME): lambda text: text.str.strip_chars(" ").str.to_datetime(
        "%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False
    ),
    (Kind.INT, Kind.FLOAT): _plain(Kind.FLOAT),
    (Kind.INT, Kind.TEXT): _plain(Kind.TEXT),
    (Kind.INT, Kind.BOOL): lambda number: number != 0,
    (Kind.FLOAT, Kind.INT): lambda number: number.round(0, mode="half_to_even").cast(pl.Int64, strict=False),
    (Kind.BOOL, Kind.INT): _plain(Kind.INT),
    (Kind.BOOL, Kind.TEXT): lambda flag: pl.when(flag).then(pl.lit("true")).when(~flag).then(pl.lit("false")),
    (Kind.DATE, Kind.TIME): _plain(Kind.TIME),
    (Kind.DATE, Kind.TEXT): lambda day: day.dt.strftime("%Y-%m-%d"),
    (Kind.TIME, Kind.DATE): lambda at: at.dt.date(),
}
RULES: dict[str, tuple[frozenset[str], Any]] = {
    "Lower": (ONE, _text(lambda text: text.to_lowercase())),
    "Upper": (ONE, _text(lambda text: text.to_uppercase())),
    "Length": (ONE, _text(lambda text: text.len_chars(), Kind.INT)),
    "Trim": (ONE, _text(lambda text: text.strip_chars(" "))),
    "Abs": (ONE, _absolute),
    "Floor": (ONE, _rounded(lambda number: number.floor())),
    "Ceil": (ONE, _rounded(lambda number: number.ceil())),
    "Round": (frozenset(["this", "decimals"]), _round),
    "Left": (frozenset(["this", "expression"]), _end),
    "Right": (frozenset(["this", "expression"]), _end),
    "Greatest": (frozenset(["this", "expressions", "ignore_nulls"]), _most),
    "Least": (frozenset(["this", "expressions", "ignore_nulls"]), _most),
    "Substring": (frozenset(["this", "start", "length"]), _substring),
    "Extract": (frozenset(["this", "expression"]), _extract),
    "TimestampTrunc": (frozenset(["this", "unit"]), _truncated),
    "Coalesce": (frozenset(["this", "expressions"]), _coalesce),
    "Nullif": (frozenset(["this", "expression"]), _nullif),
    "Cast": (frozenset(["this", "to"]), _cast),
    "TryCast": (frozenset(["this", "to"]), _cast),
}
