"""SUM and AVG in a query: of one column each, whose numbers are clamped to declared bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.aggregates import Answer as Aggregate
from wpinq.aggregates import mean
from wpinq.aggregates import sum as total
from wpinq.aggregates.options import Bounds
from wpinq.aggregates.scale import limits
from wpinq.errors import PlanError
from wpinq.exact import decimal, exact
from wpinq.functions.terms import shown
from wpinq.query.tables import CALL

if TYPE_CHECKING:
    from fractions import Fraction

    from wpinq.collection import Collection

NUMBERS = {"Sum": total, "Avg": mean}
"""What is asked for each of these in a query."""


@dataclass(frozen=True)
class Number:
    """A sum or a mean that a query asks for.

    Attributes:
        collection: Its records are the group keys and, last, the number.
        kind: Which one: Sum or Avg.
        bounds: The least and the largest number.

    Raises:
        PlanError: The column holds no numbers, or the bounds are none.
        ExactnessError: A bound is no finite number.
    """

    collection: Collection
    kind: str
    bounds: Bounds

    def __post_init__(self) -> None:
        limits(self.collection._node, self.collection.columns[-1], self.bounds, None, CALL)

    @property
    def text(self) -> str:
        """How `explain` shows it."""
        low, high = (decimal(exact(bound, CALL)) for bound in self.bounds)
        return f"{self.kind.upper()}({self.collection.columns[-1]}), clamped to {low}..{high}"

    def measure(self, epsilon: Fraction, groups: pl.DataFrame | None, name: str | None) -> Aggregate:
        """Charge for it in each of the groups, or in all."""
        *by, column = self.collection.columns
        keys = None if groups is None else groups if groups.width > 1 else groups.to_series()
        return NUMBERS[self.kind](self.collection, column, self.bounds, epsilon, by=by or None, keys=keys, name=name)


class Declared:
    """Bounds of columns, by `column` or `table.column`.

    Raises:
        PlanError: They are not given by name.
    """

    def __init__(self, bounds: Mapping[str, Bounds] | None) -> None:
        self._unused = dict(bounds or {})
        self._bounds = dict(self._unused)

    def of(self, node: Any) -> Bounds:
        """The bounds of what is summed.

        Raises:
            PlanError: There are none, or it is not one column.
        """
        what = node.this
        if type(what).__name__ != "Column":
            raise PlanError(f"{CALL}: {shown(node)}: SUM and AVG take one column; compute it with map in Python first.")
        for name in (f"{what.text('table')}.{what.name}", what.name):
            if name in self._bounds:
                self._unused.pop(name, None)
                return self._bounds[name]
        raise PlanError(f"{CALL}: {shown(node)}: sums and means need declared bounds, which do not depend on the data: "
                        f"bounds={{{what.name!r}: (low, high)}}, or --bounds {what.name}=LOW..HIGH.")  # fmt: skip

    def check(self) -> None:
        """Refuse bounds of a column that is not summed, which is most likely misspelled.

        Raises:
            PlanError: There are such.
        """
        if self._unused:
            raise PlanError(f"{CALL}: bounds are given of {', '.join(map(repr, self._unused))}, "
                            "which no SUM or AVG is of.")  # fmt: skip
