"""Operations on columns that equal Python's on values, each with a test of where that holds."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from wpinq.core.functions.tree import Node, lit, of_all
from wpinq.core.records.schema import Kind

SPACES = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"  # what str.strip() strips, within ASCII
METHODS = ("lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "removeprefix", "removesuffix",
           "replace", "weekday", "isoweekday", "date")  # fmt: skip
FIELDS = ("year", "month", "day", "hour", "minute", "second")
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Rule:
    """One operation on operands of given kinds.

    Attributes:
        kind: The kind of its value.
        value: Builds the value from the operands and the constant options.
        safe: Builds the test of where Python agrees; None when that is everywhere (nulls never get here).
        admits: Whether these options are covered; None when all are.
    """

    kind: Kind
    value: Callable[..., Node]
    safe: Callable[..., Node] | None = None
    admits: Callable[..., bool] | None = None


def ascii_only(text: Node, *_: Any) -> Node:
    """Whether a text is within ASCII."""
    return text.str.len_bytes() == text.str.len_chars()


def _fits(exact: Callable[[Node, Node], Node]) -> Callable[..., Node]:
    return lambda a, b: exact(a.cast(pl.Int128), b.cast(pl.Int128)).is_between(INT64_MIN, INT64_MAX)


def _numbers(a: Node, b: Node) -> Node:
    return a.is_not_nan() & b.is_not_nan()


def _length(text: Node) -> Node:
    return text.str.len_chars().cast(pl.Int64)


def _place(bound: int, length: Node) -> Node:
    """Where a bound of a slice falls, as Python counts."""
    return of_all("pl.min_horizontal", [lit(bound, pl.Int64), length]) if bound >= 0 else (length + bound).clip(0)


def _slice(text: Node, start: int | None, stop: int | None) -> Node:
    length = _length(text)
    first = _place(start or 0, length)
    last = length if stop is None else _place(stop, length)
    return text.str.slice(first, (last - first).clip(0))


def _item(text: Node, index: int) -> Node:
    return text.str.slice(index if index >= 0 else _length(text) + index, 1)


def _has_item(text: Node, index: int) -> Node:
    return _length(text) >= (index + 1 if index >= 0 else -index)


def _parts(text: Node, separator: str, index: int) -> Node:
    return text.str.split(separator).list.get(index, null_on_oob=True)


def _has_part(text: Node, separator: str, index: int) -> Node:
    return text.str.split(separator).list.len().cast(pl.Int64) >= (index + 1 if index >= 0 else -index)


def _small(*options: Any) -> bool:
    """Whether these are bounds of slices: absent, or integers that count characters."""
    return all(option is None or (type(option) is int and abs(option) < 2**31) for option in options)


def _texts(*options: Any) -> bool:
    return all(type(option) is str and option != "" for option in options)


def _part_admits(separator: Any, index: Any) -> bool:
    return _texts(separator) and index is not None and _small(index)


ORDER: dict[str, Callable[[Node, Node], Node]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
SUMS: dict[str, Callable[[Node, Node], Node]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
BITS: dict[str, Callable[[Node, Node], Node]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
ORDERED = (Kind.INT, Kind.TEXT, Kind.BYTES, Kind.BOOL, Kind.DATE, Kind.TIME, Kind.INSTANT, Kind.SPAN)


def _divides(a: Node, b: Node) -> Node:
    return (b != 0) & ((a != INT64_MIN) | (b != -1))


def _rules() -> dict[tuple[Any, ...], Rule]:
    text, whole, real, yes = Kind.TEXT, Kind.INT, Kind.FLOAT, Kind.BOOL
    rules: dict[tuple[Any, ...], Rule] = {}
    for name, compare in ORDER.items():
        rules.update({(name, kind, kind): Rule(yes, compare) for kind in ORDERED})
        rules[name, real, real] = Rule(yes, compare, _numbers)
    for name, total in SUMS.items():
        rules[name, whole, whole] = Rule(whole, total, _fits(total))
        rules[name, real, real] = Rule(real, total)
    for name, combine in BITS.items():
        rules.update({(name, kind, kind): Rule(kind, combine) for kind in (yes, whole)})
    rules["floordiv", whole, whole] = Rule(whole, lambda a, b: a // b, _divides)
    rules["mod", whole, whole] = Rule(whole, lambda a, b: a % b, _divides)
    rules["neg", whole] = Rule(whole, lambda a: -a, lambda a: a != INT64_MIN)
    rules["abs", whole] = Rule(whole, lambda a: a.abs(), lambda a: a != INT64_MIN)
    rules["add", text, text] = Rule(text, lambda a, b: of_all("pl.concat_str", [a, b]))
    return rules | _text_rules() | _time_rules()


def _text_rules() -> dict[tuple[Any, ...], Rule]:
    text, flag = Kind.TEXT, Kind.BOOL
    return {
        ("lower", text): Rule(text, lambda a: a.str.to_lowercase(), ascii_only),
        ("upper", text): Rule(text, lambda a: a.str.to_uppercase(), ascii_only),
        ("strip", text): Rule(text, lambda a, chars: a.str.strip_chars(chars), ascii_only, _texts),
        ("lstrip", text): Rule(text, lambda a, chars: a.str.strip_chars_start(chars), ascii_only, _texts),
        ("rstrip", text): Rule(text, lambda a, chars: a.str.strip_chars_end(chars), ascii_only, _texts),
        ("startswith", text, text): Rule(flag, lambda a, b: a.str.starts_with(b)),
        ("endswith", text, text): Rule(flag, lambda a, b: a.str.ends_with(b)),
        ("removeprefix", text): Rule(text, lambda a, start: a.str.strip_prefix(start), None, _texts),
        ("removesuffix", text): Rule(text, lambda a, end: a.str.strip_suffix(end), None, _texts),
        ("replace", text): Rule(text, lambda a, old, new: a.str.replace_all(old, new, literal=True), None, _replaces),
        ("part", text): Rule(text, _parts, _has_part, _part_admits),
        ("item", text): Rule(text, _item, _has_item, _small),
        ("slice", text): Rule(text, _slice, None, _small),
        ("len", text): Rule(Kind.INT, _length),
    }


def _replaces(old: Any, new: Any) -> bool:
    return _texts(old) and type(new) is str


def _time_rules() -> dict[tuple[Any, ...], Rule]:
    fields: dict[str, Callable[[Node], Node]] = {
        "year": lambda a: a.dt.year(),
        "month": lambda a: a.dt.month(),
        "day": lambda a: a.dt.day(),
        "weekday": lambda a: a.dt.weekday().cast(pl.Int64) - 1,
        "isoweekday": lambda a: a.dt.weekday(),
    }
    clock: dict[str, Callable[[Node], Node]] = {
        "hour": lambda a: a.dt.hour(),
        "minute": lambda a: a.dt.minute(),
        "second": lambda a: a.dt.second(),
    }
    stamps = (Kind.TIME, Kind.INSTANT)
    rules = {(name, kind): Rule(Kind.INT, field) for name, field in fields.items() for kind in (Kind.DATE, *stamps)}
    rules.update({(name, kind): Rule(Kind.INT, field) for name, field in clock.items() for kind in stamps})
    rules.update({("date", kind): Rule(Kind.DATE, lambda a: a.dt.date()) for kind in stamps})
    return {**rules}


RULES = _rules()


def _method(name: str) -> Callable[..., Any]:
    return lambda value, *options: getattr(value, name)(*options)


PYTHON: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in (*ORDER, *SUMS, "floordiv", "mod", "neg", "abs", "xor")},
    "and": operator.and_,
    "or": operator.or_,
    "len": len,
    "item": operator.getitem,
    "slice": lambda text, start, stop: text[start:stop],
    "part": lambda text, separator, index: text.split(separator)[index],
    **{name: operator.attrgetter(name) for name in FIELDS},
    **{name: _method(name) for name in METHODS},
}
"""What each operation is in Python, of operands and options."""
