"""The rows of an answer: HAVING, ORDER BY and LIMIT, from released numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

import polars as pl

from wpinq.core.measurements.answer import Answer, Released
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.records.bins import Blocks
from wpinq.core.records.schema import Kind
from wpinq.core.state.workers import in_order
from wpinq.postprocess.degrees.posterior.law import FAR, NoiseTerm, half_width
from wpinq.postprocess.margins import consistent, cube_noise, cube_sizes
from wpinq.query.joined import CountByNumber
from wpinq.query.select.datetimes import as_time
from wpinq.query.select.ranged import CountInRange
from wpinq.query.statement import Statement

Counted: TypeAlias = Measurement | CountByNumber | CountInRange
"""What a count is observed of."""
Move: TypeAlias = Callable[[Statement, pl.DataFrame, Sequence[Counted], Sequence[float], float], list[pl.Series]]
"""Gives counts that add up, each with the ends of its interval: of groups, measured, with half widths, at a level."""


def finished(
    statement: Statement, groups: Blocks, counted: Sequence[Counted], numbers: Sequence[Answer], level: Fraction, *,
    simultaneous: bool, least: float | None = None, agreeing: Move | None = None,
) -> Released:  # fmt: skip
    """The columns of the answer, and the ends of intervals; of each block of groups what HAVING leaves is held.

    Args:
        statement: The query.
        groups: Its groups; those in one block are different from each other.
        counted: Its counts.
        numbers: Its other aggregates, of all groups, which are one block then.
        level: How often an interval holds.
        simultaneous: Whether all intervals of a column do together.
        least: Where differences of what was published are shown, the threshold that they pass too.
        agreeing: Moves counts so that they add up: those of all groups at once, each once.
    """
    bins = max(groups.rows, 1) if simultaneous else 1
    halves = [half_of(statement, item, level, bins) for item in counted]
    ends = [number.table(level, simultaneous=simultaneous).get_columns()[-3:] for number in numbers]
    kinds = [number.kind for number in statement.numbers]

    def left(block: pl.DataFrame) -> pl.DataFrame:
        counts = (agreeing or _counts)(statement, block, counted, halves, float(1 - (1 - level) / bins))
        return _having(statement, block, [*counts, *_named(ends, kinds)])

    blocks = iter([groups.whole.unique(maintain_order=True)] if agreeing else groups)
    frames = [left(next(blocks)), *in_order(left, blocks)]  # what is counted has been counted when the first is there
    frame = frames[0] if len(frames) == 1 else _once(pl.concat(frames))
    if statement.stepped is not None and least is not None:
        frame = frame.filter(pl.col("count 0") >= least)
    translator = statement.translator()
    if statement.order:
        terms, descending, first = zip(*statement.order, strict=True)
        by = [translator.term(node).value.expr for node in terms]
        frame = frame.sort(by, descending=descending, nulls_last=[not entry for entry in first], maintain_order=True)
    shown = [translator.term(item.node).value.expr.alias(item.label) for item in statement.items]
    if statement.distinct:
        rows = frame.select(shown).with_row_index("\0row")
        frame = frame[rows.unique([item.label for item in statement.items], keep="first", maintain_order=True)["\0row"]]
    frame = frame.slice(*statement.limit)
    cells = frame.select(shown)
    measured = {item.label: item.node.name for item in statement.items if type(item.node).__name__ == "Column"}
    return cells, {
        label: (frame[f"low {name}"], frame[f"high {name}"])
        for label, name in measured.items()
        if f"low {name}" in frame.columns
    }


def added_up(
    statement: Statement, groups: pl.DataFrame, counted: Sequence[Counted], halves: Sequence[float], level: float
) -> list[pl.Series]:
    """Counts of several sets of keys that add up, with the ends of intervals, from those that were measured.

    Intervals stay those of what was measured, but of a whole cube, where what is left of the noise is known.
    """
    sizes, counts, result = cube_sizes(groups), _counts(statement, groups, counted, halves, level), []
    for index, (item, half) in enumerate(zip(measured_alone(counted), halves, strict=True)):
        count, *ends = counts[3 * index : 3 * index + 3]
        moved = pl.Series(count.name, consistent(groups, count.cast(pl.Float64).to_numpy()))
        if sizes is not None:
            noise = tuple(NoiseTerm(float(item.scale) * part, many, item.gaussian) for part, many in cube_noise(sizes))
            # far out too little was drawn to tell; there one noise is wider than so many parts of it
            left = min(half, half_width(noise, level)) if level < FAR or item.gaussian else half
            ends = ends_of(moved, left)
        result += [moved, *ends]
    return result


def measured_alone(counted: Sequence[Counted]) -> list[Measurement]:
    """The counts that are measured one by one."""
    return [item for item in counted if isinstance(item, Measurement)]


def half_of(statement: Statement, count: Counted, level: Fraction, bins: int = 1) -> float:
    """Half of the interval of a count, which is a difference of two measured numbers in a degree distribution."""
    if statement.stepped is None or not isinstance(count, Measurement):
        return count.interval(level, bins=bins)
    noise = NoiseTerm(float(count.scale), 2, count.gaussian)
    return half_width((noise,), float(1 - (1 - level) / bins))


def _counts(
    statement: Statement, groups: pl.DataFrame, counted: Sequence[Counted], halves: Sequence[float], _level: float
) -> list[pl.Series]:
    """Each count of each group, and the ends of its interval."""
    result = []
    for index, (item, half) in enumerate(zip(counted, halves, strict=True)):
        count = pl.Series(f"count {index}", observed(item, groups))
        if statement.stepped is not None:
            count = _difference(item, groups, count, statement.stepped)
        result += [count, *ends_of(count, half)]
    return result


def ends_of(count: pl.Series, half: float) -> list[pl.Series]:
    """The ends of the interval of a count."""
    return [(count - half).alias(f"low {count.name}"), (count + half).alias(f"high {count.name}")]


def observed(item: Counted, groups: pl.DataFrame) -> pl.Series:
    """The noisy count of each group."""
    return pl.Series(item.observe_many(groups if groups.width > 1 else groups.to_series()))


def _difference(item: Counted, groups: pl.DataFrame, count: pl.Series, step: str) -> pl.Series:
    """What is measured of each group, less what is measured of the next number; of numbers below 1 there is nothing."""
    has_next = (pl.col(step) >= 1) & (pl.col(step) < 2**63 - 1)
    following = groups.with_columns(pl.when(has_next).then(pl.col(step) + 1).otherwise(pl.col(step)))
    known = groups.select(has_next.fill_null(value=False)).to_series()
    return count - pl.select(pl.when(known).then(observed(item, following)).otherwise(0)).to_series()


def _named(numbers: Sequence[Sequence[pl.Series]], kinds: Sequence[Kind]) -> list[pl.Series]:
    """Each number of each group and the ends of its interval, by the names that expressions have for them."""
    words = ("", "low ", "high ")
    return [
        column.alias(f"{word}number {index}") if kind is Kind.FLOAT else as_time(column, kind).alias(f"number {index}")
        for index, (columns, kind) in enumerate(zip(numbers, kinds, strict=True))
        for word, column in zip(words, columns, strict=True)
        if kind is Kind.FLOAT or not word  # a time has no interval
    ]


def _having(statement: Statement, groups: pl.DataFrame, numbers: list[pl.Series]) -> pl.DataFrame:
    """The groups that HAVING leaves, with their numbers."""
    keys = [groups[name].alias(f"key {index}") for index, name in enumerate(groups.columns)]
    frame = pl.DataFrame([*(keys if statement.keys else []), *numbers])
    return (
        frame
        if statement.having is None
        else frame.filter(statement.translator().condition(statement.having).value.expr)
    )


def _once(frame: pl.DataFrame) -> pl.DataFrame:
    """Each group once: one that was given twice has the same numbers both times."""
    return frame.unique([name for name in frame.columns if name.startswith("key ")], keep="first", maintain_order=True)
