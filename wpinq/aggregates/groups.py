"""Groups of an aggregate: the grouping columns, and the keys that are answered, present or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.measurements.answer import Released
from wpinq.core.measurements.published import readable
from wpinq.core.plan.node import Node
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.kinds import read
from wpinq.core.records.schema import Kind, Schema, in_columns
from wpinq.errors import PlanError


@dataclass(frozen=True)
class Groups:
    """Declared groups; without columns the one group of all records.

    Attributes:
        schema: The columns that make a group; None for the one group.
        keys: One row for each group, in the order in which they were given.
    """

    schema: Schema | None = None
    keys: pl.DataFrame | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.schema.names if self.schema else ()

    def __len__(self) -> int:
        return 1 if self.keys is None else self.keys.height

    def bins(self, numbers: Sequence[int]) -> list[Any]:
        """Every group with every number, as bins of a collection of groups and numbers: group by group."""
        if self.schema is None or self.keys is None:
            return list(numbers)
        columns = [[read(value, column.kind) if column.kind is Kind.ANY else value for value in self.keys[column.name]]
                   for column in self.schema]  # fmt: skip
        return [(*key, number) for key in zip(*columns, strict=True) for number in numbers]

    def repeated(self, times: int) -> Groups:
        """Each group so many times, one after another."""
        return self if self.keys is None else Groups(self.schema, self.keys[np.repeat(np.arange(len(self)), times)])

    def released(self, values: Any, low: Any, high: Any, *more: pl.Series) -> Released:
        """The groups and what more tells rows apart, beside what was found of them, and the intervals of that."""
        columns: list[pl.Series] = []
        if self.schema is not None and self.keys is not None:
            columns = [readable(self.keys[column.name], column.kind) for column in self.schema]
        for series in (*more, pl.Series("value", values)):
            name = self.schema.fresh(series.name) if self.schema else series.name
            columns.append(series.alias(name))
        return in_columns(columns), {columns[-1].name: (pl.Series("low", low), pl.Series("high", high))}


def groups(node: Node, by: str | Sequence[str] | None, keys: Any, call: str) -> Groups:
    """Read the groups of an aggregate.

    Raises:
        PlanError: There are columns without keys or keys without columns, or no such column.
        BinError: A key is no value of the columns.
    """
    names = (by,) if isinstance(by, str) else tuple(by or ())
    if bool(names) != (keys is not None):
        raise PlanError(
            f"{call}: by= and keys= go together: which groups to answer is given, or found with select(...)."
        )
    if not names:
        return Groups()
    columns = node.schema.expanded()
    schema = Schema(tuple(columns[name] for name in names))
    return Groups(schema, bin_frame(keys, schema, f"{call}(keys=...)"))
