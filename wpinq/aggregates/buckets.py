"""Buckets: a histogram of a numeric column between declared edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.aggregates.groups import Groups, groups
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.scale import Cells, refuse_no_numbers
from wpinq.aggregates.sums import ask_count
from wpinq.arguments import NAME, NAMES, NOTHING, takes
from wpinq.core.measurements.answer import LEVEL, Answer, Released
from wpinq.core.pricing.privacy_cost import LAPLACE
from wpinq.core.records.schema import Kind, Schema, in_columns
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder

MOST = 1 << 20
"""Edges."""


@takes(column=NAME, mechanism=NAME, by=NAMES | NOTHING)
def histogram(
    self: Builder[Any], column: str, edges: Sequence[Amount], epsilon: Amount | None = None, *,
    within: Amount | None = None, confidence: Amount = LEVEL,
    mechanism: str = LAPLACE, rho: Amount | None = None, delta: Amount | None = None,
    by: str | Sequence[str] | None = None, keys: Any = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for how many records have a number between each two edges, in all or in each of the given groups.

    A bucket holds its lower edge and not its upper one, but for the last, which holds both, as NumPy's do. Numbers
    below the first edge or above the last, a null and a NaN are in no bucket. A record is in one bucket at the most, so
    all buckets together cost what one does.

    Args:
        column: A column of numbers.
        edges: Numbers that rise and do not depend on the data; the first may be minus infinity, the last infinity.
        epsilon: What it costs the privacy unit, exact.
        within, confidence, mechanism, rho, delta: Instead of it or beside it, as in `count`.
        by: Columns that make groups; this and what follows as in `count`.
        keys: The groups to answer.
        name: Tells repetitions apart.
        analyst: Who is charged.

    Returns:
        A row for each bucket: `from`, `to`, `count` and its interval.

    Raises:
        PlanError: The column holds no numbers, or edges are not two or more that rise.
        BinError, ExactnessError, BudgetError, LedgerError: See `count`.

    >>> import wpinq
    >>> people = wpinq.protect([(age,) for age in (3, 17, 18, 40, 65)], budget=100, columns={"age": int})
    >>> people.histogram("age", [0, 18, 65], epsilon=100).rows
    ((0.0, 18.0, 2.0), (18.0, 65.0, 3.0))
    """
    refuse_no_numbers(self._node, column, "histogram")
    cuts = Edges.of(column, edges, whole=self._node.schema[column].kind is not Kind.FLOAT)
    where = groups(self._node, by, keys, "histogram")
    cells = Cells(self._node, where.by, cuts, f"histogram({column})")
    buckets = Buckets.of(where, cells.schema, cuts)
    grouped = (*where.by, cells.schema.names[-1]), buckets.bucket_keys
    options = Options(*grouped, name, analyst, None, confidence, within, mechanism, rho, delta)
    quoted = ask_count(self, Moments(cells, (), None, (0,), f"histogram({column})"), epsilon, options)
    (made,) = self._commit([quoted.quote])
    return quoted.answer(made, buckets)


@dataclass(frozen=True)
class Edges:
    """Numbers of a column as the buckets that hold them.

    Attributes:
        column: Its name.
        edges: They rise; None where there is no end.
        whole: Whether the column holds whole numbers, which are compared exactly; others with the nearest floats.
    """

    column: str
    edges: tuple[Fraction | None, ...]
    whole: bool

    @classmethod
    def of(cls, column: str, edges: Any, *, whole: bool) -> Edges:
        """Read edges.

        Raises:
            PlanError: They are not two or more numbers that rise.
            ExactnessError: One is no number.
        """
        if isinstance(edges, (str, bytes)) or not hasattr(edges, "__len__") or not hasattr(edges, "__iter__"):
            raise PlanError(f"histogram(edges=...): takes a list of numbers; {type(edges).__name__} was given.")
        if not 2 <= len(edges) <= MOST:
            raise PlanError(f"histogram(edges=...): takes from 2 to {MOST:,} numbers.")
        ends = list(edges)
        read = [None if _endless(ends, at) else exact(edge, "histogram(edges=...)") for at, edge in enumerate(ends)]
        numbers = [edge for edge in read if edge is not None]
        result = cls(column, tuple(read), whole)
        if any(low >= high for low, high in pairwise(numbers)) or any(a >= b for a, b in pairwise(result.numbers)):
            raise PlanError("histogram(edges=...): each is a number above the one before it.")
        return result

    @property
    def numbers(self) -> list[float]:
        """The edges, as the nearest floats."""
        first, *rest = self.edges
        ends = [-math.inf if first is None else float(first)]
        return ends + [math.inf if edge is None else float(edge) for edge in rest]

    @cached_property
    def limits(self) -> tuple[Any, Any]:
        """The least number of each bucket, and the largest of the last."""
        if not self.whole:
            return np.array(self.numbers[:-1]), self.numbers[-1]
        first, last = -(2**63), 2**63 - 1
        least = [first if edge is None else min(max(math.ceil(edge), first), last) for edge in self.edges[:-1]]
        end = self.edges[-1]
        return np.array(least, np.int64), last if end is None else min(max(math.floor(end), first - 1), last)

    @property
    def bias(self) -> str:
        """What is left out, as a clause."""
        low, high = ("" if edge is None else decimal(edge) for edge in (self.edges[0], self.edges[-1]))
        outside = [f"below {low}" if low else "", f"above {high}" if high else ""]
        return f"{self.column} {' or '.join(filter(None, outside))} is not in it" if low or high else ""

    def steps(self) -> pl.Expr:
        """The bucket of each number, or null."""
        number = pl.col(self.column).cast(pl.Int64 if self.whole else pl.Float64)
        number = number if self.whole else number.fill_nan(None)
        return number.map_batches(self._buckets, return_dtype=pl.Int64)

    def steps_of(self, value: object) -> int | None:
        """The same for one value."""
        if not isinstance(value, (int, float)) or value != value:  # noqa: PLR0124  a NaN
            return None
        least, most = self.limits
        bucket = sum(value >= low for low in least.tolist()) - 1
        return bucket if bucket >= 0 and value <= most else None

    def _buckets(self, numbers: pl.Series) -> pl.Series:
        least, most = self.limits
        known = numbers.is_not_null().to_numpy()
        values = numbers.fill_null(0).to_numpy()
        buckets = np.searchsorted(least, values, side="right") - 1
        return pl.Series(buckets, dtype=pl.Int64).set(pl.Series(~known | (buckets < 0) | (values > most)), None)


def _endless(edges: list[Any], at: int) -> bool:
    wanted = {0: -math.inf, len(edges) - 1: math.inf}.get(at)
    return isinstance(edges[at], float) and edges[at] == wanted


@dataclass(frozen=True)
class Buckets(Groups):
    """Groups and buckets."""

    edges: tuple[float, ...] = ()

    @classmethod
    def of(cls, where: Groups, schema: Schema, cuts: Edges) -> Buckets:
        """Each group with each bucket."""
        label, count = schema.names[-1], len(cuts.edges) - 1
        cells = pl.DataFrame([pl.Series(label, range(count), dtype=pl.Int64)])
        keys = cells if where.keys is None else where.keys.join(cells, how="cross", maintain_order="left_right")
        return cls(schema, keys, tuple(cuts.numbers))

    @property
    def bucket_keys(self) -> list[tuple[Any, ...]] | list[Any]:
        """Its keys, as bins."""
        bins = self.bins([0])
        return [key[:-1] if len(key) > 2 else key[0] for key in bins]

    def released(self, values: Any, low: Any, high: Any, *more: pl.Series) -> Released:
        """The edges in place of the number of a bucket."""
        table, ends = super().released(values, low, high, *more)
        ((name, both),) = ends.items()
        cell = table.columns[-2]
        fresh = self.schema.fresh if self.schema else str
        sides = (("from", self.edges[:-1]), ("to", self.edges[1:]))
        least, most = (pl.Series(fresh(word), part).gather(table[cell]) for word, part in sides)
        count = fresh("count")
        return in_columns([*table.get_columns()[:-2], least, most, table[name].alias(count)]), {count: both}
