"""Sums, means and medians in the cells of a cross table, beside its counts.

Sums are moved as little as makes them add up, as counts are. A mean is the sum over the number of records that have
one: both were measured, and both add up. Its interval is Fieller's, as that of AVG: all t for which the sum less t
times the number may be noise. That noise is a norm of (1, t), for it is symmetric and log-concave, so between some t it
is below the straight line. A median is measured of each cell and total by itself, and never from others.

Source: Fieller, "Some problems in interval estimation", JRSS B 16, 1954; Bobkov, "Convex bodies and norms associated to
convex measures", Probability Theory and Related Fields 147, 2010, for the norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from wpinq.aggregates.ratios import farthest, ratio
from wpinq.aggregates.scale import Bounds
from wpinq.core.measurements.answer import LEVEL
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.html import numbers as shown
from wpinq.postprocess.degrees.posterior.law import NoiseTerm, half_width
from wpinq.sources.databases.postgres import quoted

if TYPE_CHECKING:
    import numpy.typing as npt

    from wpinq.collection import Collection as Records
    from wpinq.core.measurements.answer import Answer
    from wpinq.core.measurements.measurement import Measurement

    Floats: TypeAlias = npt.NDArray[np.float64]

CALL = "table"
FINE = 1000
"""Parts of a weight in which half widths are computed."""
SLOPES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Means, in halves of the bounds from their middle, for which noise is computed."""
HIDDEN = 10
"""How many times as wide as the step of shown sums their noise is, at least."""
NUMERIC = {Kind.INT, Kind.FLOAT}


@dataclass(frozen=True)
class Numbers:
    """Which columns are summed up, averaged and ranked.

    Attributes:
        sums, means, medians: Names of columns.
        bounds: The least and the largest number of each.
    """

    sums: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    medians: tuple[str, ...] = ()
    bounds: Mapping[str, Bounds] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.sums, *self.means, *self.medians)))

    @property
    def totalled(self) -> tuple[str, ...]:
        """Columns of which sums are measured, for themselves or for means."""
        return tuple(dict.fromkeys((*self.sums, *self.means)))

    @property
    def names(self) -> tuple[str, ...]:
        """What each is called in a frame, with the ends of its interval."""
        told = [*((name, "sum") for name in self.sums), *((name, "mean") for name in self.means),
                *((name, "median") for name in self.medians)]  # fmt: skip
        return tuple(f"{name}_{what}{end}" for name, what in told for end in ("", "_low", "_high"))

    @property
    def aggregates(self) -> tuple[str, ...]:
        """What SQL has for sums and means; the moments of a mean tell the sum too."""
        return tuple(f"{'AVG' if name in self.means else 'SUM'}({quoted(name)})" for name in self.totalled)

    @property
    def ranks(self) -> tuple[str, ...]:
        """What SQL has for medians."""
        return tuple(f"MEDIAN({quoted(name)})" for name in self.medians)


def read_numbers(
    records: Records, keys: Sequence[str], bounds: Mapping[str, Bounds] | None, **lists: str | Sequence[str]
) -> Numbers:
    """Read which numbers a table has.

    Args:
        records: What has the columns.
        keys: The columns that make cells.
        bounds: Those that were declared, of other columns too.
        lists: `sum`, `mean` and `median`: the name of a column, or a list of names.

    Raises:
        PlanError: A column is not there, holds no numbers, is listed twice, or makes cells; or bounds are of none.
    """
    if not isinstance(bounds, Mapping | None):
        raise PlanError(f"{CALL}: bounds= maps columns to pairs, for example {{'income': (0, 400000)}}.")
    for name in bounds or {}:
        if not isinstance(name, str) or name not in records.columns:
            raise PlanError(f"{CALL}(bounds=...): {str(name)[:40]!r} is no column of the records.")
    result = {}
    for what, columns in lists.items():
        names = [columns] if isinstance(columns, str) else columns
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise PlanError(f"{CALL}({what}=...): give the name of a column, or a list of names.")
        for name in names:
            if (kind := records._node.schema[name].kind) not in NUMERIC:
                raise PlanError(f"{CALL}({what}=...): column {name!r} holds {kind.value}, no numbers.")
            if name in keys or len(set(names)) < len(names):
                raise PlanError(
                    f"{CALL}({what}=...): {name!r} is there twice, or makes the cells; derive another column."
                )
        result[what] = tuple(names)
    wanted = {name for names in result.values() for name in names}
    declared = {name: pair for name, pair in (bounds or {}).items() if name in wanted}
    return Numbers(result["sum"], result["mean"], result["median"], declared)


@dataclass(frozen=True)
class CellNumbers:
    """One number of each cell and total.

    Attributes:
        what: "sum", "mean" or "median".
        column: Of which column.
        values: The numbers, an axis for each key of the table, totals last.
        low, high: Where their intervals begin and end, before they were rounded.
        step: The number of which they are multiples, where they are rounded so that they add up.
        parts: How many steps each is, then.
        widest: How wide the interval is of which nothing is known.
    """

    what: str
    column: str
    values: Floats
    low: Floats
    high: Floats
    step: float | None = None
    parts: npt.NDArray[np.int64] | None = None
    widest: float | None = None

    @property
    def label(self) -> str:
        """How a page has it."""
        return f"{self.what} of {self.column}"

    @property
    def name(self) -> str:
        """The name of its column in a frame."""
        return f"{self.column}_{self.what}"

    @property
    def texts(self) -> list[str]:
        """Each as text, in the order of the table: a sum in its steps, else with the interval that noise leaves."""
        if self.parts is None or self.step is None:
            rows = zip(*(part.reshape(-1).tolist() for part in (self.values, self.low, self.high)), strict=True)
            widest = math.inf if self.widest is None else self.widest * (1 - 1e-9)
            return ["unknown" if high - low >= widest else shown.within(value, low, high) for value, low, high in rows]
        digits = max(0, -math.floor(math.log10(self.step) + 0.5))
        return [f"{value:,.{digits}f}" for value in self.values.reshape(-1).tolist()]

    @cached_property
    def faint(self) -> npt.NDArray[np.bool_]:
        """Which may be zero, as far as noise tells; none of what is no sum."""
        return (self.low <= 0) & (self.high >= 0) if self.what == "sum" else np.zeros(self.values.shape, bool)

    @property
    def note(self) -> str:
        """How to read it."""
        if self.step is not None:
            half = (self.high - self.low) / 2
            return (
                f"Noise moves the {self.label} of a cell by {shown.upwards(half[(0,) * half.ndim])} and that of all by"
                f" {shown.upwards(half[(-1,) * half.ndim])} at most with probability 0.95. Sums are rounded to"
                f" multiples of {self.step:,g} and add up."
            )
        if self.what == "mean":
            return (
                f"The {self.label} is of those who have one; beside it is how far noise moves it. Of few records noise"
                " leaves any mean possible, which is then unknown."
            )
        return f"The {self.label} was measured of each cell and each total by itself, and does not add up."


@dataclass(frozen=True)
class Solver:
    """What a table knows of how its cells were measured.

    Attributes:
        frame: The groups that were measured, in their order.
        solved: Makes measured numbers of the groups add up: an axis for each key, totals last.
        noises: For each kind of cell, which cells of the table are of it, and the terms of their noise.
        rounded: Makes a table whole.
        empty: The places that no record is in, as everybody knows; their numbers are zero in what `solved` gives.
    """

    frame: pl.DataFrame
    solved: Callable[[Floats], Floats]
    noises: Callable[[Measurement], Sequence[tuple[Any, tuple[NoiseTerm, ...]]]]
    rounded: Callable[[Floats], npt.NDArray[np.int64]]
    empty: Collection[tuple[int, ...]] = ()

    def half(self, measured: Measurement, terms: tuple[NoiseTerm, ...], slope: float = 0.0) -> float:
        """How far noise moves a number, less another one times a slope."""
        both = [*terms, *(term._replace(scale=term.scale * slope) for term in terms if slope)]
        step = (1 + slope) / measured.node.resolution
        return half_width(tuple(term._replace(scale=FINE * term.scale) for term in both), float(LEVEL)) / FINE + step

    def moment(self, measured: Measurement, power: int) -> Floats:
        """One moment of each cell, and its totals."""
        bins = self.frame.with_columns(pl.lit(power, pl.Int64).alias(measured.node.schema.names[-1]))
        return self.solved(np.asarray(measured.observe_many(bins), np.float64))

    def numbers(self, wanted: Numbers, measurements: Sequence[Any], kinds: Mapping[str, Kind]) -> list[CellNumbers]:
        """Sums and means, from what was measured of each column."""
        sums, means = {}, {}
        for column, measured in zip(wanted.totalled, measurements, strict=True):
            plan: Any = measured.node
            unit = float(plan.scale.centre), float(plan.scale.spacing) * plan.reach
            total = self.moment(measured, 1)
            number = self.moment(measured, 0) if 0 in plan.powers else None
            if column in wanted.sums:
                sums[column] = self._sum(column, measured, (number, total), unit, kinds[column])
            if number is not None and column in wanted.means:
                means[column] = self._mean(column, measured, total, number, unit)
        return [*(sums[column] for column in wanted.sums), *(means[column] for column in wanted.means)]

    def _sum(
        self, column: str, measured: Measurement, moments: tuple[Floats | None, Floats], unit: tuple[float, float],
        kind: Kind,
    ) -> CellNumbers:  # fmt: skip
        (middle, spacing), (number, total) = unit, moments
        values = spacing * total + (0 if number is None else middle * number)
        half = np.empty(values.shape)
        for cells, terms in self.noises(measured):
            half[cells] = spacing * self.half(measured, terms, 0.0 if number is None else abs(middle) / spacing)
        step = 10.0 ** math.floor(math.log10(half.min() / HIDDEN))
        for place in self.empty:
            half[place] = 0
        step = max(step, 1.0) if kind is Kind.INT else step
        parts = self.rounded(values / step)
        shown_values: Floats = np.asarray(parts * step if step >= 1 else parts / round(1 / step), np.float64)
        return CellNumbers("sum", column, shown_values, values - half, values + half, step, parts)

    def _mean(
        self, column: str, measured: Measurement, total: Floats, number: Floats, unit: tuple[float, float]
    ) -> CellNumbers:
        middle, spacing = unit
        ends = np.empty((2, *number.shape))
        for cells, terms in self.noises(measured):
            halves = [self.half(measured, terms, slope) for slope in SLOPES]
            ends[0][cells], ends[1][cells] = _fieller(total[cells], number[cells], halves)
        low, high = middle + spacing * ends
        return CellNumbers("mean", column, middle + spacing * ratio(total, number), low, high, widest=2 * spacing)


def _fieller(total: Floats, number: Floats, halves: Sequence[float]) -> tuple[Floats, Floats]:
    """All means for which the total less the mean times the number is no more than noise.

    The noise grows with the mean by no more than that of one moment, so beyond that number the means are an interval.
    """

    def plausible(mean: Floats) -> npt.NDArray[np.bool_]:
        result: npt.NDArray[np.bool_] = np.abs(total - mean * number) <= np.interp(np.abs(mean), SLOPES, halves)
        return result

    value, known = ratio(total, number), number > halves[0]
    low = np.where(known, farthest(plausible, value, np.full_like(value, -1)), -1)
    return low, np.where(known, farthest(plausible, value, np.full_like(value, 1)), 1)


def medians(
    wanted: Numbers, answer: Answer, shape: Sequence[int], empty: Collection[tuple[int, ...]] = ()
) -> list[CellNumbers]:
    """Medians, from the answer of all cells and totals in the order of the table; of no records none is known."""
    cells, ends = answer.released
    result = []
    for column, name in zip(wanted.medians, cells.columns[-len(wanted.medians) :], strict=True):
        low, high = (end.cast(pl.Float64).to_numpy().reshape(shape).copy() for end in ends[name])
        least, largest = map(float, wanted.bounds[column])
        for place in empty:
            low[place], high[place] = least, largest
        values = cells[name].to_numpy().reshape(shape)
        result.append(CellNumbers("median", column, values, low, high, widest=largest - least if empty else None))
    return result
