"""Group columns: one record for each key, with aggregates of its records that are computed exactly, in columns.

It is `group_by(whole=True)` with a reducer that is known, so no group is made: sums of integers are of 128 bits, and
sums of numbers are correctly rounded (`fsum`), whatever the order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial, reduce
from math import fsum, sqrt
from operator import and_
from typing import Any

import polars as pl

from wpinq.core.operators.group_by import MAX_COPIES
from wpinq.core.operators.resolution import record_key
from wpinq.core.plan.forms import Unary
from wpinq.core.plan.node import Node, Record, Weighted
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.core.state.bykey import KEY, ByKey, Port
from wpinq.errors import PlanError

LARGEST = 2**63 - 1


@dataclass(frozen=True)
class GroupColumn:
    """An aggregate of the records of a key.

    Attributes:
        name: The column that it makes.
        rule: What is computed: "Rows", "Count", or a name in `RULES`.
        operands: The columns that it is of; records with NULL in one do not count.
        distinct: Whether equal values count once.
    """

    name: str
    rule: str
    operands: tuple[str, ...]
    distinct: bool

    def kind(self, schema: Schema) -> Kind:
        """The type of the result."""
        if self.rule in ("Rows", "Count"):
            return Kind.INT
        return schema[self.operands[0]].kind if self.rule in ("Min", "Max", "Sum") else Kind.FLOAT


def group_columns(node: Node, keys: Sequence[str], columns: Sequence[GroupColumn]) -> GroupColumns:
    """The step: of each key one record of weight 1, with these aggregates.

    Raises:
        PlanError: Weights are not whole, or too large.
    """
    if node.resolution != 1 or node.gain > MAX_COPIES:
        raise PlanError("group_columns: the weights are not whole here, or too large.")
    return GroupColumns(node, tuple(keys), tuple(columns))


@dataclass(frozen=True, eq=False)
class GroupColumns(Unary):
    """Plan node of aggregates in a subquery.

    Stability:  2; the record of a key leaves and another takes its place, as in `group_by(whole=True)`.
    Source:     McSherry, PINQ, SIGMOD 2009 ("GroupBy").
    """

    keys: tuple[str, ...]
    columns: tuple[GroupColumn, ...]
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        """The key and the aggregates."""
        before = self.source.schema
        key = [Column(name, before[name].kind) for name in self.keys]
        return Schema((*key, *(Column(column.name, column.kind(before)) for column in self.columns)))

    @cached_property
    def resolution(self) -> int:
        """A key counts once."""
        return 1

    @cached_property
    def gain(self) -> Fraction:
        """There are no more keys than records."""
        return self.source.gain

    @property
    def stability(self) -> tuple[Fraction, ...]:
        return (Fraction(2),)

    @property
    def local(self) -> Mapping[str, str]:
        """The key: its record is made of its records."""
        return {name: name for name in self.keys}

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """A key has one record, and keys that agree in some columns no more than they have records."""
        return Fraction(1) if columns.issuperset(self.keys) else of(self.source, columns.intersection(self.keys))

    @property
    def moves_at_most(self) -> Mapping[frozenset[str], Fraction]:
        """A record is there once, or not; that of a key leaves, and another takes its place."""
        if not self.source.nonnegative:
            return {}
        return {frozenset(self.schema.names): Fraction(1), frozenset(self.keys): Fraction(2)}

    @property
    def title(self) -> str:
        return f"group_by({', '.join(self.keys)}, {', '.join(column.rule.lower() for column in self.columns)}, whole)"

    def lower(self, needed: frozenset[str]) -> Shape:
        """Records by key."""
        key, held, before = record_key(self), self.source.held, self.source.schema.expanded()
        keep = tuple(dict.fromkeys((*self.keys, *(name for column in self.columns for name in column.operands))))
        port = Port(before, self.keys, keep, held, held)
        compute = partial(aggregated, by=KEY, keys=self.keys, columns=self.columns, schema=before)
        return Keyed((self.keys,), lambda _: ByKey([port], lambda sides: [compute(sides[0])], self.schema, key))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Group by group."""
        names = self.source.schema.names
        groups: dict[Record, list[dict[str, Any]]] = defaultdict(list)
        for record, weight in inputs[0].items():
            values = dict(zip(names, record, strict=True))
            groups[tuple(values[name] for name in self.keys)] += [values] * max(int(weight), 0)
        return {(*key, *(_of_group(rows, column) for column in self.columns)): Fraction(1)
                for key, rows in groups.items() if rows}  # fmt: skip


def aggregated(
    rows: pl.DataFrame, by: Sequence[str], keys: Sequence[str], columns: Sequence[GroupColumn], schema: Schema
) -> pl.DataFrame:
    """One row for each group of rows, with weight 1.

    Args:
        rows: The records, with the weights of copies.
        by: The columns of the key; with none, all rows are one group, even where there are no rows.
        keys: What is kept of the first record.
        columns: The aggregates.
        schema: The columns of the records.
    """
    rows = rows.filter(pl.col(WEIGHT) > 0)
    once = bool((rows[WEIGHT] == 1).all())
    aggregates = [_column(column, schema, once=once) for column in columns]
    first = [pl.col(name).first() for name in keys if name not in by]
    grouped = rows.group_by(by).agg(*first, *aggregates) if by else rows.select(aggregates)
    results = [_finished(grouped[column.name], column, schema) for column in columns]
    # not a list, since a name may be empty
    table = {name: grouped[name] for name in keys} | {result.name: result for result in results}
    return pl.DataFrame(table).with_columns(pl.lit(1, pl.Int64).alias(WEIGHT))


def _column(column: GroupColumn, schema: Schema, *, once: bool) -> pl.Expr:
    """What Polars computes of a group: the aggregate, or the values that it is computed of."""
    times = pl.col(WEIGHT)
    if column.rule == "Rows":
        return times.sum().cast(pl.Int64).alias(column.name)
    known = reduce(and_, (pl.col(name).is_not_null() for name in column.operands))
    value, kind = pl.col(column.operands[0]), schema[column.operands[0]].kind
    if column.rule == "Count":
        what = value if len(column.operands) == 1 else pl.struct(column.operands)
        total = what.filter(known).n_unique() if column.distinct else times.filter(known).sum()
        return total.cast(pl.Int64).alias(column.name)
    if column.rule in ("Min", "Max"):
        return (value.min() if column.rule == "Min" else value.max()).alias(column.name)
    if kind is Kind.INT and column.rule in ("Sum", "Avg"):
        return _whole(column, value).alias(column.name)
    values = value.drop_nulls()
    if column.distinct:
        values = values.unique()
    elif not once:
        values = value.filter(known).repeat_by(times.filter(known)).list.explode(empty_as_null=False)
    return values.sort().implode().alias(column.name)


def _whole(column: GroupColumn, value: pl.Expr) -> pl.Expr:
    """A sum or a mean of integers, exactly; a mean is of them as doubles, as a sum of numbers is."""
    count = value.count() if not column.distinct else value.drop_nulls().n_unique()
    if column.rule == "Avg":
        value = value.cast(pl.Float64)
    values = value.cast(pl.Int128)
    if column.distinct:
        total = values.drop_nulls().unique().sum()
    else:
        total = (values * pl.col(WEIGHT).cast(pl.Int128)).sum()
        if column.rule == "Avg":
            count = pl.col(WEIGHT).filter(value.is_not_null()).sum()
    if column.rule == "Avg":
        return pl.when(count > 0).then(total.cast(pl.Float64) / count.cast(pl.Float64))
    return pl.when((count > 0) & (total.abs() <= LARGEST)).then(total).cast(pl.Int64)


def _finished(computed: pl.Series, column: GroupColumn, schema: Schema) -> pl.Series:
    """The aggregate, from what Polars computed."""
    kind = polars_type(column.kind(schema))
    if isinstance(computed.dtype, pl.List):
        results = [_of_values(values, column.rule) for values in computed.to_list()]
        return pl.Series(column.name, results, dtype=kind)
    return computed.cast(kind)


def _of_group(rows: Sequence[Mapping[str, Any]], column: GroupColumn) -> Any:
    """One aggregate of a group; NULL where there is nothing to compute it of, or the result is no number."""
    if column.rule == "Rows":
        return len(rows)
    values = [tuple(row[name] for name in column.operands) for row in rows]
    values = [value for value in values if None not in value]
    if column.distinct:
        values = list(set(values))
    return len(values) if column.rule == "Count" else _of_values(sorted(value[0] for value in values), column.rule)


def _of_values(values: Sequence[Any], rule: str) -> Any:
    try:
        return RULES[rule](values) if values else None
    except (ArithmeticError, ValueError):
        return None


def _sum(values: Sequence[Any]) -> Any:
    if not isinstance(values[0], int):
        return fsum(values)
    total = sum(values)
    return total if abs(total) <= LARGEST else None


def _mean(values: Sequence[Any]) -> float:
    return fsum(values) / len(values)


def _median(values: Sequence[Any]) -> float:
    half = len(values) // 2
    return _mean(values[half : half + 1] if len(values) % 2 else values[half - 1 : half + 1])


def _spread(values: Sequence[Any], *, sample: bool) -> float | None:
    count = len(values) - sample
    if count < 1:
        return None
    mean = _mean(values)
    return fsum((value - mean) ** 2 for value in values) / count


def _root(values: Sequence[Any], *, sample: bool) -> float | None:
    spread = _spread(values, sample=sample)
    return None if spread is None else sqrt(spread)


RULES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "Sum": _sum,
    "Avg": _mean,
    "Min": min,
    "Max": max,
    "Median": _median,
    "Variance": partial(_spread, sample=True),
    "VariancePop": partial(_spread, sample=False),
    "Stddev": partial(_root, sample=True),
    "StddevSamp": partial(_root, sample=True),
    "StddevPop": partial(_root, sample=False),
}
"""Of the values of a group in rising order, one at least."""
