"""What a window within a person is of each row of the person: ranks, neighbours, and aggregates of a frame.

A frame is a run of rows in the window's order around the row: ROWS counts rows, GROUPS counts runs of rows that are
equal in that order, and RANGE begins and ends with such runs. Without one it is RANGE BETWEEN UNBOUNDED PRECEDING AND
CURRENT ROW. Whatever a frame looks at, it is of one partition, which is of one person: so a frame moves no records of
others, and the number of rows stays what it is.

Source: SQL:2003, as PostgreSQL's manual words it (4.2.8, Window Function Calls).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

RANKS = ("RowNumber", "Rank", "DenseRank")
SHIFTED = {"Lag": -1, "Lead": 1}
VALUES = ("FirstValue", "LastValue", "NthValue")
Order: TypeAlias = tuple[tuple[int, bool, bool], ...]
"""The places of what rows are ordered by, each with whether it descends and whether NULL comes first."""
Frame: TypeAlias = tuple[str, int | None, int | None]
"""ROWS, GROUPS or RANGE, and how far from the row it begins and ends; None where nothing bounds it."""
USUAL: Frame = ("RANGE", None, 0)
Window: TypeAlias = tuple[str, int, int, Order, tuple[int, ...], Frame, int]
"""What is computed, the place of what it is of (-1 for none), a number, the order, the partition, the frame, and the
place of what LAG and LEAD give where there is no such row (-1 for NULL).

The number is how far LAG and LEAD look, and which row of the frame NTH_VALUE takes. Plain values, so that the function
that computes it has a fingerprint.
"""


def reducer(windows: tuple[Window, ...], kept: int) -> Callable[[Any], Any]:
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
    rule, place, step, order, _, frame, default = window
    numbers = list(range(len(rows)))
    for at, descending, nulls_first in reversed(order):  # a later order decides where earlier ones are equal
        numbers = sorted(
            numbers, key=lambda number: _key(rows[number][at], nulls_first != descending), reverse=descending
        )
    in_order = [rows[number] for number in numbers]
    result: list[Any] = [None] * len(rows)
    known: dict[tuple[int, int], Any] = {}  # neighbours often have the same frame
    peers = _peers(in_order, order)
    for run, (first, last) in enumerate(peers):
        for index in range(first, last):
            if rule in RANKS:
                value: Any = {"RowNumber": index + 1, "Rank": first + 1, "DenseRank": run + 1}[rule]
            elif rule in SHIFTED:
                inside, missing = 0 <= index + step < len(rows), in_order[index][default] if default >= 0 else None
                value = in_order[index + step][place] if inside else missing
            else:
                ends = _ends(frame, index, run, peers)
                if ends not in known:
                    known[ends] = _of_frame(in_order[ends[0] : ends[1]], rule, place, step)
                value = known[ends]
            result[numbers[index]] = value
    return result


def _peers(rows: Sequence[Any], order: Order) -> list[tuple[int, int]]:
    """Where each run of equal rows begins and ends."""
    result, first = [], 0
    for index in range(1, len(rows) + 1):
        if index == len(rows) or not _same(rows[first], rows[index], order):
            result.append((first, index))
            first = index
    return result


def _ends(frame: Frame, index: int, run: int, peers: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Where the frame of a row begins and ends, which is one after its last row; both are equal where it is empty."""
    kind, start, end = frame
    many = peers[-1][1]
    if kind == "ROWS":
        begins = 0 if start is None else min(max(index + start, 0), many)
        stops = many if end is None else min(max(index + end + 1, 0), many)
    else:
        left, right = 0 if start is None else run + start, len(peers) - 1 if end is None else run + end
        begins = many if left >= len(peers) else peers[max(left, 0)][0]
        stops = 0 if right < 0 else peers[min(right, len(peers) - 1)][1]
    return begins, max(begins, stops)


def _of_frame(rows: Sequence[Any], rule: str, place: int, step: int) -> Any:
    """An aggregate or a value of a frame; a whole number that is too large is NULL."""
    if rule in VALUES:
        at = {"FirstValue": 0, "LastValue": len(rows) - 1}.get(rule, step - 1)
        return rows[at][place] if 0 <= at < len(rows) else None
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
