"""The casts of SQL. One that does not fit gives NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import polars as pl

from wpinq.core.functions.sql.terms import Term, to
from wpinq.core.functions.tree import Node, when
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError

TIMES = (Kind.DATE, Kind.TIME, Kind.INSTANT)
NAMES = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT"), Kind.INT),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL"), Kind.FLOAT),
    **dict.fromkeys(("TEXT", "VARCHAR"), Kind.TEXT),
    "BOOLEAN": Kind.BOOL,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIME,
    "TIMESTAMPTZ": Kind.INSTANT,
}


class Translates(Protocol):
    """What a cast needs of the translator of its text."""

    call: str

    def spell(self, node: Any) -> str:
        """A part as messages write it."""

    def term(self, node: Any) -> Term:
        """A part, translated."""


def cast(translator: Translates, node: Any) -> Term:
    """CAST(x AS type) and x::type."""
    target = node.args["to"]
    kind = None if target.expressions else NAMES.get(target.this.name)
    if kind is None:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: cast to INTEGER, DOUBLE PRECISION, TEXT, "
                        "BOOLEAN, DATE, TIMESTAMP or TIMESTAMPTZ.")  # fmt: skip
    term = translator.term(node.this)
    if term.kind is kind and not term.quoted:
        return term
    if term.kind is None or (term.quoted and kind in TIMES):
        return to(term, kind, translator.call)
    work = CASTS.get((term.kind, kind))
    if term.kind is not kind and work is None:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: {term.text} is of type {term.spoken}, which has "
                        f"no cast to {kind.value}.")  # fmt: skip
    if term.decimal and kind is Kind.INT:
        return Term(term.value.round(decimals=0, mode="half_away_from_zero").cast(pl.Int64, strict=False), kind, "")
    return Term(work(term.value) if work else term.value, kind, "")


def as_text(translator: Translates, term: Term, node: Any) -> Node:
    """A part as CONCAT writes it.

    Raises:
        PlanError: It is of a type that has no cast to text.
    """
    if term.kind in (Kind.TEXT, None):
        return term.value.cast(pl.String, strict=False)
    if term.kind is Kind.BOOL:
        return when(term.value, "t", when(~term.value, "f"))
    work = None if term.kind is None else CASTS.get((term.kind, Kind.TEXT))
    if work is None:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: {term.text} is of type {term.spoken}, which has "
                        "no cast to text.")  # fmt: skip
    return work(term.value)


def _plain(kind: Kind) -> Callable[[Node], Node]:
    return lambda value: value.cast(polars_type(kind), strict=False)


def _truth(text: Node) -> Node:
    word = text.str.strip_chars(" ").str.to_lowercase()
    yes, no = ["true", "t", "yes", "y", "on", "1"], ["false", "f", "no", "n", "off", "0"]
    return when(word.is_in(yes), True, when(word.is_in(no), False))


def _in_utc(at: Node) -> Node:
    return at.dt.replace_time_zone(time_zone="UTC")


def _written(at: Node) -> Node:
    """A timestamp as PostgreSQL writes it, with the parts of a second that are there."""
    return at.dt.strftime(format="%Y-%m-%d %H:%M:%S%.6f").str.strip_chars_end("0").str.strip_chars_end(".")


CASTS: dict[tuple[Kind, Kind], Callable[[Node], Node]] = {
    (Kind.TEXT, Kind.INT): lambda text: text.str.strip_chars(" ").cast(pl.Int64, strict=False),
    (Kind.TEXT, Kind.FLOAT): lambda text: text.str.strip_chars(" ").cast(pl.Float64, strict=False),
    (Kind.TEXT, Kind.BOOL): _truth,
    (Kind.TEXT, Kind.DATE): lambda text: text.str.strip_chars(" ").str.to_date(format="%Y-%m-%d", strict=False),
    (Kind.TEXT, Kind.TIME): lambda text: text.str.strip_chars(" ").str.to_datetime(
        format="%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False
    ),
    (Kind.INT, Kind.FLOAT): _plain(Kind.FLOAT),
    (Kind.INT, Kind.TEXT): _plain(Kind.TEXT),
    (Kind.INT, Kind.BOOL): lambda number: number != 0,
    (Kind.FLOAT, Kind.INT): lambda number: number.round(decimals=0, mode="half_to_even").cast(pl.Int64, strict=False),
    (Kind.BOOL, Kind.INT): _plain(Kind.INT),
    (Kind.BOOL, Kind.TEXT): lambda flag: when(flag, "true", when(~flag, "false")),
    (Kind.DATE, Kind.TIME): _plain(Kind.TIME),
    (Kind.DATE, Kind.INSTANT): lambda day: _in_utc(day.cast(polars_type(Kind.TIME), strict=False)),
    (Kind.DATE, Kind.TEXT): lambda day: day.dt.strftime(format="%Y-%m-%d"),
    (Kind.TIME, Kind.DATE): lambda at: at.dt.date(),
    (Kind.TIME, Kind.INSTANT): _in_utc,
    (Kind.TIME, Kind.TEXT): _written,
    (Kind.INSTANT, Kind.DATE): lambda at: at.dt.date(),
    (Kind.INSTANT, Kind.TIME): lambda at: at.dt.replace_time_zone(time_zone=None),
    (Kind.INSTANT, Kind.TEXT): lambda at: _written(at) + "+00",
}
"""A timestamp with time zone is cast in UTC, as in a session of PostgreSQL whose zone is UTC."""
