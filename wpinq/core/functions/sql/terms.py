"""SQL expressions as trees with types, and conversions to a common type.

A quoted constant takes the type of the other operand, as in PostgreSQL: `day >= '2026-01-31'`. With text it is text.
Other types are not converted silently, except integers with numbers and dates with timestamps.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.functions.tree import Node, col, lit
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from sqlglot import exp

SHOWN = 60  # characters of an expression that a message quotes
NUMBERS = (Kind.INT, Kind.FLOAT)
WIDER = {
    frozenset(NUMBERS): Kind.FLOAT,
    frozenset((Kind.DATE, Kind.TIME)): Kind.TIME,
    frozenset((Kind.DATE, Kind.INSTANT)): Kind.INSTANT,
    frozenset((Kind.TIME, Kind.INSTANT)): Kind.INSTANT,
}


@dataclass(frozen=True)
class Term:
    """A part of an SQL expression.

    Attributes:
        value: The expression; NULL where SQL says NULL, so conditions have three values.
        kind: Its type; None for the bare word NULL, which has every type.
        text: How it was written, for messages.
        constant: The value, where it is written out; None where it is not.
        quoted: Whether it is a quoted constant, which may still become a date or a number.
        decimal: Whether it is a number that PostgreSQL holds as a decimal: a constant with a point, or computed from
            such and integers alone. It is held as a double here, and rounded as a decimal.
    """

    value: Node
    kind: Kind | None
    text: str
    constant: Any = None
    quoted: bool = False
    decimal: bool = False

    @property
    def size(self) -> int:
        """How many nodes its expression has."""
        return self.value.size

    @property
    def spoken(self) -> str:
        """Its type, for messages."""
        return "NULL" if self.kind is None else self.kind.value


def shown(node: exp.Expression | str, most: int = SHOWN) -> str:
    """An expression as it was written, on one short line."""
    text = node if isinstance(node, str) else _text(node)
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return text if len(text) <= most else text[: most - 3] + "..."


def _text(node: exp.Expression) -> str:
    """How a part is written; sqlglot parses some texts again on the way, without their dialect, and may fail."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        if node.find(exp.Median):  # of which PostgreSQL's dialect makes PERCENTILE_CONT
            node = node.transform(
                lambda part: (
                    exp.Anonymous(this="MEDIAN", expressions=[part.this]) if isinstance(part, exp.Median) else part
                )
            )
        return node.sql(dialect="postgres")
    except SqlglotError:
        return node.key.upper()


def whole_number(text: str, most: int) -> int | None:
    """The whole number that a text writes, if it is one from 0 to `most`; digits are counted before they are read."""
    digits = text.lstrip("0") or "0"
    if not text.isdecimal() or len(digits) > len(str(most)) or int(digits) > most:
        return None
    return int(digits)


def constant(value: Any, kind: Kind, text: str, *, quoted: bool = False) -> Term:
    """A written-out value."""
    return Term(lit(value, polars_type(kind)), kind, text, value, quoted)


def divided(number: Node, by: Node | float) -> Node:
    """A quotient, the same for each record.

    By a constant Polars multiplies whole columns with its inverse, and divides single values, or where `when` made the
    constant, those beside a null: a record would change the last digit of others. So the divisor is made a column, by
    adding nothing for each value of some column that the quotient reads.
    """
    divisor = by if isinstance(by, Node) else lit(by)
    names = [*number.columns, *divisor.columns]
    if names:
        divisor = col(names[0]).is_null().cast(pl.Float64, strict=False) * 0.0 + divisor
    return number / divisor


def balanced(join: Callable[[Any, Any], Any], parts: Sequence[Node]) -> Node:
    """Parts joined as a balanced tree: Polars recurses into it, and what a rule repeats multiplies by level."""
    while len(parts) > 1:
        parts = [reduce(join, parts[index : index + 2]) for index in range(0, len(parts), 2)]
    return parts[0]


def null(text: str = "NULL") -> Term:
    """NULL."""
    return Term(lit(None), None, text)


def together(terms: Sequence[Term], call: str) -> tuple[list[Term], Kind]:
    """Bring terms to one type.

    Raises:
        PlanError: They have none in common.
    """
    plain = [term for term in terms if term.kind is not None and not term.quoted]
    kind = Kind.TEXT if any(term.quoted for term in terms) or not plain else plain[0].kind
    for term in plain:
        assert term.kind is not None  # noqa: S101  NULL is not among them
        kind = term.kind if term is plain[0] else _wider(kind, term, plain[0], call)
    assert kind is not None  # noqa: S101  as above
    return [to(term, kind, call) for term in terms], kind


def to(term: Term, kind: Kind, call: str) -> Term:
    """A term in a type that `together` found."""
    if term.kind is kind:
        return term
    if term.quoted:
        return _read(term, kind, call)
    return replace(term, value=term.value.cast(polars_type(kind), strict=False), kind=kind)


def _wider(kind: Kind | None, term: Term, first: Term, call: str) -> Kind:
    if kind is not None and term.kind is kind:
        return kind
    pair = frozenset(item for item in (kind, term.kind) if item is not None)
    if pair not in WIDER:
        raise PlanError(
            f"{call}: {first.text} is of type {first.spoken} and {term.text} of type {term.spoken}, which do not "
            f"compare; {_hint(first, term)}."
        )
    return WIDER[pair]


def _hint(left: Term, right: Term) -> str:
    text, number = (left, right) if left.kind is Kind.TEXT else (right, left)
    if text.kind is Kind.TEXT and number.kind in NUMBERS:
        quotes = f"write '{number.text}' in quotes, or " if number.constant is not None else ""
        return f"{quotes}cast the text, CAST({text.text} AS {'INTEGER' if number.kind is Kind.INT else 'DOUBLE'})"
    return "cast one of them"


def _read(term: Term, kind: Kind, call: str) -> Term:
    """A quoted constant as another type."""
    try:
        return constant(_READ[kind](term.constant), kind, term.text)
    except (KeyError, ValueError, OverflowError):
        raise PlanError(f"{call}: {term.text} does not read as the type {kind.value}.") from None


def _integer(text: str) -> int:
    value = int(text)
    if "_" in text or not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _number(text: str) -> float:
    if "_" in text:
        raise ValueError
    return float(text)


def _boolean(text: str) -> bool:
    return {"true": True, "t": True, "false": False, "f": False}[text.strip().lower()]


def _time(text: str) -> dt.datetime:
    value = dt.datetime.fromisoformat(text.strip())
    if value.tzinfo is not None:
        raise ValueError
    return value


def _instant(text: str) -> dt.datetime:
    value = dt.datetime.fromisoformat(text.strip())
    return (value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value).astimezone(dt.UTC)


_READ: dict[Kind, Callable[[str], Any]] = {
    Kind.TEXT: str,
    Kind.INT: _integer,
    Kind.FLOAT: _number,
    Kind.BOOL: _boolean,
    Kind.DATE: lambda text: dt.date.fromisoformat(text.strip()),
    Kind.TIME: _time,
    Kind.INSTANT: _instant,
}
