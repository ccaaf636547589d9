"""Windows within a person: `ROW_NUMBER() OVER (PARTITION BY user ORDER BY at)` in a subquery, and QUALIFY.

A window looks at the other records of its partition. Where a column of PARTITION BY bounds it, which one does that
names the person, this is `group_by(whole=True)` of that column and then `flat_map(whole=True)` of as many records as a
key of it can have at the most: of a person who comes or goes so many records move, as before. What else bounds a key
pays what these operators cost. Of equal rows none comes first: ROW_NUMBER takes them in an order that says nothing.

NULL comes last and NaN before it, as in PostgreSQL; a sum of numbers does not depend on the order of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from wpinq.collection import Collection
from wpinq.core.functions.sql.terms import NUMBERS, Term, shown, whole_number
from wpinq.core.functions.tree import Node, col
from wpinq.core.plan.person_bound import key_weight
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.query.derived import CALL

COUNTED = ("RowNumber", "Rank", "DenseRank")
SHIFTED = {"Lag": -1, "Lead": 1}
RUNNING = ("Count", "Sum", "Min", "Max", "Avg")
MOST = 1 << 12
"""Records of a partition: more are not held at once."""
WITHIN = (
    "a window is answered in a subquery, within a person: PARTITION BY the column of the people, with ROW_NUMBER, "
    "RANK, DENSE_RANK, LAG, LEAD, COUNT, SUM, MIN, MAX or AVG"
)
Order: TypeAlias = tuple[tuple[int, bool, bool], ...]
"""The places of what rows are ordered by, each with whether it descends and whether NULL comes first."""
Window: TypeAlias = tuple[str, int, int, Order, tuple[int, ...]]
"""What is computed, the place of what it is of (-1 for none), how far LAG and LEAD look, the order, and the partition.

Plain values, so that the function that computes it has a fingerprint.
"""
Translate: TypeAlias = Callable[[Any], Term]


def computed(
    rows: Collection, windows: Sequence[Any], term: Translate
) -> tuple[Collection, Mapping[Any, tuple[str, Kind]]]:
    """The rows with a column for each window.

    Args:
        rows: The records, with the columns that windows read.
        windows: The windows, with canonical columns.
        term: Translates an expression over one record.

    Raises:
        PlanError: A window is not bounded by its partition, or not read.
    """
    windows = list(dict.fromkeys(windows))
    keys = list(dict.fromkeys(key for window in windows for key in window.args.get("partition_by") or ()))
    kept, places = list(rows.columns), {key: len(rows.columns) + index for index, key in enumerate(keys)}
    names: dict[Any, tuple[str, Kind]] = {}
    operands: list[Node] = []
    made: list[Window] = []
    for window in windows:
        entry, kind, values = _read(window, term, len(kept) + len(keys) + len(operands), places)
        names[window] = (f"window {len(names)}", kind)
        operands += [value.alias(f"operand {len(operands) + index}") for index, value in enumerate(values)]
        made.append(entry)
    parts = [term(key).value.alias(f"part {index}") for index, key in enumerate(keys)]
    before = rows.map([*(col(name) for name in kept), *parts, *operands])
    weights = {f"part {index}": key_weight(before._node, frozenset([f"part {index}"])) for index, key in enumerate(keys)
               if all(key in (window.args.get("partition_by") or ()) for window in windows)}  # fmt: skip
    person, most = min(((part, weight) for part, weight in weights.items() if weight is not None),
                       key=lambda pair: pair[1], default=("", None))  # fmt: skip
    if most is None or most > MOST:
        raise PlanError(f"{CALL}: {shown(windows[0])}: {WITHIN}.")
    kinds = {item.name: item.kind for item in before._node.schema if item.name in kept}
    kinds |= {names[window][0]: names[window][1] for window in windows}
    try:
        groups = before.group_by([person], _reducer(tuple(made), len(kept)), ["rows"], whole=True)
    except PlanError as error:
        raise PlanError(f"{CALL}: {shown(windows[0])}: a window is of whole records, and weights are fractions here; "
                        "protect with users(COLUMN, at_most=...).") from error  # fmt: skip
    return groups.flat_map(lambda rows: rows, kinds, at_most=math.ceil(most), whole=True), names


def _read(window: Any, term: Translate, start: int, places: Mapping[Any, int]) -> tuple[Window, Kind, list[Node]]:
    """A window, the type of its column, and the values that it reads, which stand from a place on.

    Args:
        window: The window.
        term: Translates an expression over one record.
        start: The place.
        places: Those of the keys of partitions.

    Raises:
        PlanError: It has parts that are not read.
    """
    inner, rule = window.this, type(window.this).__name__
    unread = {name for name, value in window.args.items() if value} - {"this", "partition_by", "order", "over"}
    if unread or rule not in (*COUNTED, *SHIFTED, *RUNNING):
        raise PlanError(f"{CALL}: {shown(window)}: {WITHIN}; without a frame of rows or a name.")
    ordered = [item for item in getattr(window.args.get("order"), "expressions", ())
               if type(item.this).__name__ != "Rand"]  # fmt: skip
    values = [term(item.this).value for item in ordered]
    order = tuple(
        (start + index, bool(item.args.get("desc")), _nulls_first(item)) for index, item in enumerate(ordered)
    )
    what = None if rule in COUNTED or type(inner.this).__name__ == "Star" else term(inner.this)
    known = {"this", "offset", "big_int"} if rule not in COUNTED else set()
    if {name for name, value in inner.args.items() if value} - known:
        raise PlanError(f"{CALL}: {shown(window)}: {WITHIN}; of one value, without a default.")
    if rule in ("Sum", "Avg") and (what is None or what.kind not in NUMBERS):
        raise PlanError(f"{CALL}: {shown(window)} takes numbers; cast them.")
    kind = _kind(rule, what)
    if kind in (None, Kind.ANY):
        raise PlanError(f"{CALL}: {shown(window)} needs the type of its column; cast it.")
    step = SHIFTED.get(rule, 0) * _far(inner.args.get("offset"), window)
    place = -1 if what is None else start + len(values)
    within = tuple(places[key] for key in window.args.get("partition_by") or ())
    return (rule, place, step, order, within), kind or Kind.ANY, [*values, *([what.value] if what is not None else [])]


def _kind(rule: str, what: Term | None) -> Kind | None:
    if rule in (*COUNTED, "Count"):
        return Kind.INT
    return Kind.FLOAT if rule == "Avg" else None if what is None else what.kind


def _nulls_first(item: Any) -> bool:
    first = item.args.get("nulls_first")
    return bool(item.args.get("desc")) if first is None else bool(first)


def _far(node: Any, window: Any) -> int:
    if node is None:
        return 1
    number = whole_number(node.this, MOST) if type(node).__name__ == "Literal" and not node.is_string else None
    if number is None:
        raise PlanError(f"{CALL}: {shown(window)}: write how far as a whole number.")
    return number


def _reducer(windows: tuple[Window, ...], kept: int) -> Callable[[Any], Any]:
    """A function of a person's rows: so many of their values, with those of the windows behind them."""

    def reduce(group: Any) -> Any:
        rows = list(group)
        columns = [_column(rows, window) for window in windows]
        return tuple((*row[:kept], *values) for row, *values in zip(rows, *columns, strict=True))

    return reduce


def _column(rows: Sequence[Any], window: Window) -> list[Any]:
    """What a window is of each row of a person, partition by partition."""
    partitions: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        partitions.setdefault(tuple(_key(row[place], False) for place in window[4]), []).append(number)
    result: list[Any] = [None] * len(rows)
    for numbers in partitions.values():
        for number, value in zip(numbers, _of_partition([rows[number] for number in numbers], window), strict=True):
            result[number] = value
    return result


def _of_partition(rows: Sequence[Any], window: Window) -> list[Any]:
    """What a window is of each row of a partition."""
    rule, place, step, order, _ = window
    numbers = list(range(len(rows)))
    for at, descending, nulls_first in reversed(order):  # a later order decides where earlier ones are equal
        numbers = sorted(
            numbers, key=lambda number: _key(rows[number][at], nulls_first != descending), reverse=descending
        )
    result: list[Any] = [None] * len(rows)
    if rule == "RowNumber" or step or rule in ("Lag", "Lead"):
        for index, number in enumerate(numbers):
            other = index + step
            inside = 0 <= other < len(numbers)
            result[number] = index + 1 if rule == "RowNumber" else rows[numbers[other]][place] if inside else None
        return result
    first, dense = 0, 0
    while first < len(numbers):
        last = first
        while last < len(numbers) and _same(rows[numbers[first]], rows[numbers[last]], order):
            last += 1
        dense += 1
        value = {"Rank": first + 1, "DenseRank": dense}.get(rule)
        if value is None:
            value = _running([rows[number] for number in numbers[:last]], rule, place)
        for number in numbers[first:last]:
            result[number] = value
        first = last
    return result


def _running(rows: Sequence[Any], rule: str, place: int) -> Any:
    """An aggregate of the rows up to here; a whole number that is too large is NULL."""
    values = [row[place] for row in rows if place < 0 or row[place] is not None]
    if rule == "Count" or not values:
        return len(values) if rule == "Count" else None
    if rule in ("Min", "Max"):
        ordered = sorted(values, key=lambda value: _key(value, False))
        return ordered[0 if rule == "Min" else -1]
    whole = all(isinstance(value, int) for value in values)
    total = sum(values) if whole else _summed(values)
    if rule == "Avg":
        return total / len(values)
    return total if not whole or -(2**63) <= total < 2**63 else None


def _summed(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # beyond doubles, or of both infinities
        return sum(values)


def _key(value: Any, nulls_first: bool) -> tuple[int, bool, Any]:
    """By which a value is ordered: NULL before or behind all, NaN behind all numbers."""
    if value is None:
        return (-1 if nulls_first else 1, False, 0)
    odd = value != value  # noqa: PLR0124  NaN alone is not equal to itself
    return (0, odd, 0 if odd else value)


def _same(one: Any, two: Any, order: Order) -> bool:
    """Whether none of two rows comes first."""
    return all(_key(one[at], False) == _key(two[at], False) for at, _, _ in order)
