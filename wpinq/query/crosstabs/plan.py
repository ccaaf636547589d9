"""Plans of tables: what to measure for wanted tables and a budget, and what noise leaves in each cell.

A plan follows from declared categories, the bound on a person's records and the budget; no record is read for it. With
Gaussian noise residuals are measured (`core/measurements/residual.py`), else margins.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from wpinq.arguments import NAME, NAMES, NOTHING, PATH, takes
from wpinq.collection import Collection
from wpinq.core.measurements.answer import LEVEL, About, save
from wpinq.core.measurements.measure import quote_terms
from wpinq.core.measurements.residual import Residual, cells_of, quote_residual
from wpinq.core.pricing.privacy_cost import Payment
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact
from wpinq.html import numbers as shown
from wpinq.postprocess.cube import Cube, Floats, half_width

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.pricing.quote import Quote

    Measured: TypeAlias = "Measurement | Residual"

CALL = "plan_tables"
LEAST = 1e-6
"""The standard deviation of noise that is as good as none."""
SHOWN = 20
"""Rows of each part of a plan that are printed."""
Names: TypeAlias = "tuple[str, ...]"


@dataclass(frozen=True)
class TablePlan:
    """What to measure for some tables, and the errors to expect; `measure` charges it. It has read no record.

    Attributes:
        records: What is counted: each record with the label of each column.
        categories: For each column its values, as tables have them.
        wanted: The columns of each table.
        shares: The columns of each margin or residual that is measured, and its share of the budget; they sum to 1.
        payment: The budget.
        partial: The columns of which only records with a listed value are counted.
        residual: Whether residuals are measured: of each what it tells beyond those of fewer columns.
    """

    records: Collection
    categories: Mapping[str, Names]
    wanted: tuple[Names, ...]
    shares: Mapping[Names, Fraction]
    payment: Payment
    partial: Names
    residual: bool = False

    @cached_property
    def cube(self) -> Cube:
        """All margins of the columns."""
        return Cube([len(values) for values in self.categories.values()])

    def number(self, names: Iterable[str]) -> int:
        """The number of a margin in the cube."""
        order = [*self.categories]
        return self.cube.margin(order.index(name) for name in names)

    def margin(self, names: Sequence[str]) -> Collection:
        """Each record with these columns alone."""
        return self.records.map([pl.col(each) for each in names] or [pl.lit("all").alias("total")])

    def quotes(self, name: str | None = None, analyst: str | None = None) -> list[Quote[Any]]:
        """The price of each margin or residual that is measured."""
        result: list[Quote[Any]] = []
        for names, share in self.shares.items():
            margin = self.margin(names)
            if self.residual:
                categories = [self.categories[each] for each in names]
                paid = replace(self.payment, rho=self.payment.rho * share)
                result.append(quote_residual(margin, categories, paid, call=CALL, name=name, analyst=analyst))
            else:
                result.append(quote_terms(margin, self.payment.part(share, CALL), name, analyst))
        return result

    @cached_property
    def _noise(self) -> dict[int, Measured]:
        """Of each, by its number, what would be measured: nothing but its noise is known of it."""
        return {self.number(names): quote.query for names, quote in zip(self.shares, self.quotes(), strict=True)}

    @cached_property
    def weights(self) -> Floats:
        """For each margin or residual one over the variance of its noise; 0 where it is not measured."""
        result = np.zeros(len(self.cube.cells))
        for number, measured in self._noise.items():
            result[number] = max(measured.stddev(), LEAST) ** -2
        return result

    @property
    def _information(self) -> Floats:
        """Of each residual, as `Cube.variances` takes it."""
        return self.weights * self.cube.repeats if self.residual else self.cube.information(self.weights)

    @cached_property
    def errors(self) -> dict[Names, float]:
        """The standard deviation of each cell of each table."""
        variances = self.cube.variances(self._information)
        return {names: math.sqrt(variances[self.number(names)]) for names in self.wanted}

    @cached_property
    def halves(self) -> dict[Names, int]:
        """By how much noise moves a cell of each table, at most, with probability 0.95."""
        return {names: self.half(names, float(LEVEL)) for names in self.wanted}

    @cached_property
    def _known(self) -> dict[tuple[Names, float], int]:
        return {}

    def half(self, names: Names, level: float) -> int:
        """By how much noise moves a cell of a table, at most, with this probability."""
        if (names, level) not in self._known:
            self._known[names, level] = math.ceil(self._half(names, level))
        return self._known[names, level]

    def _half(self, names: Names, level: float) -> float:
        if all(measured.gaussian for measured in self._noise.values()):
            return self.errors[names] * NormalDist().inv_cdf((1 + level) / 2)
        scales, many = [], []  # of Laplace noise, so of margins
        for margin, factors, counts in self.cube.noise(self.weights, self.number(names)):
            scales.append(np.abs(factors) * float(self._noise[margin].scale))
            many.append(counts)
        return half_width(np.concatenate(scales), np.concatenate(many), level)

    @property
    def rmse(self) -> float:
        """The root of the mean of the variances of all cells of all tables."""
        cells = {names: self.cube.cells[self.number(names)] for names in self.wanted}
        total = sum(many * self.errors[names] ** 2 for names, many in cells.items())
        return float(math.sqrt(total / sum(cells.values())))

    @takes(name=NAME | NOTHING, analyst=NAME | NOTHING)
    def measure(self, name: str | None = None, analyst: str | None = None) -> PlannedTables:
        """Charge for all margins at once, or for none, and give the tables, computed when they are first looked at.

        Args:
            name: Tells repetitions apart, and names the charge in the ledger.
            analyst: Who is charged, where the curator keeps caps for each analyst.

        Raises:
            BudgetError: It costs more than is left; nothing was charged.
            PlanError, LedgerError: It cannot be charged; nothing was charged.
        """
        return PlannedTables(
            self, dict(zip(self.shares, self.records._commit(self.quotes(name, analyst)), strict=True))
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON has it: the cost, what is measured, and the errors of each table."""
        cube, spread = self.cube, {}
        for names in self.shares:
            number = self.number(names)
            part = cube.dimensions[number] / cube.cells[number] if self.residual else 1
            spread[names] = self._noise[number].stddev() * math.sqrt(part)
        return {
            "cost": self.payment.text,
            "of": "residuals" if self.residual else "margins",
            "columns": {name: len(values) for name, values in self.categories.items()},
            "measured": [
                {"columns": list(names), "cells": int(self.cube.cells[self.number(names)]), "share": decimal(share),
                 "standard deviation": spread[names]} for names, share in self.shares.items()
            ],
            "tables": [
                {"columns": list(names), "cells": int(self.cube.cells[self.number(names)]),
                 "standard deviation": self.errors[names], "95%": self.halves[names]} for names in self.wanted
            ],
        }  # fmt: skip

    def __repr__(self) -> str:
        plan = self.to_dict()
        ordered = sorted(plan["measured"], key=lambda row: -Fraction(row["share"]))
        measured = "residual" if self.residual else "measured"
        return "\n".join([
            *_lines(measured, ordered, {"share": lambda row: f"{float(Fraction(row['share'])):.2%}"}),
            "",
            *_lines("table", plan["tables"], {"95% within": lambda row: f"{row['95%']:,}"}),
            "",
            f"All of it costs one unit {plan['cost']}; nothing was charged yet.",
        ])  # fmt: skip


@dataclass(frozen=True)
class PlannedTables:
    """Tables of noisy counts that agree with each other, from one charge. Using them costs nothing more.

    Attributes:
        plan: What was planned.
        measurements: What was measured of each margin or residual, by its columns; `wpinq.tools.mbi.marginals` takes
            them all.
    """

    plan: TablePlan
    measurements: Mapping[Names, Measured]

    @cached_property
    def _estimates(self) -> dict[int, Floats]:
        plan = self.plan
        measured = {plan.number(names): self.cells(names) for names in self.measurements}
        if plan.residual:
            return {number: plan.cube.of_residuals(number, measured) for number in map(plan.number, plan.wanted)}
        return plan.cube.least_squares(measured, plan.weights, map(plan.number, plan.wanted))

    @takes(columns=NAMES)
    def cells(self, columns: str | Iterable[str]) -> Floats:
        """The noisy cells of a margin or residual as they were measured: an axis for each column, in the plan's order.

        Of a residual they add up to zero along each axis.

        Args:
            columns: Those of what was measured.

        Raises:
            PlanError: It was not measured.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        wanted = {columns} if isinstance(columns, str) else {*columns}
        names = next((names for names in self.measurements if {*names} == wanted), None)
        if names is None:
            raise PlanError("cells(columns=...): it was not measured; measurements has the columns of what was.")
        measured = self.measurements[names]
        if isinstance(measured, Residual):
            return measured.observe()
        bins = self._rows(names) if names else ["all"]
        shape = [len(self.plan.categories[name]) for name in names]
        return np.asarray(measured.observe_many(bins), np.float64).reshape(shape)

    def _rows(self, names: Names) -> pl.DataFrame:
        return cells_of({name: self.plan.categories[name] for name in names})

    @takes(columns=NAMES)
    def table(self, columns: str | Iterable[str], level: Amount = LEVEL) -> pl.DataFrame:
        """One table: a row for each cell, with its count and the ends of its interval, `low` and `high`.

        Args:
            columns: Those of a table of the plan.
            level: How often an interval holds the true count, for the noise.

        Raises:
            PlanError: It is no table of the plan, or the level is not strictly between 0 and 1.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        wanted = {columns} if isinstance(columns, str) else {*columns}
        names = next((names for names in self.plan.wanted if {*names} == wanted), None)
        if names is None:
            raise PlanError(f"table(columns=...): {', '.join(sorted(wanted))} is no table of the plan.")
        share = exact(level, "table(level=...)")
        if not 0 < share < 1:
            raise PlanError("table(level=...): is not strictly between 0 and 1; write 0.95, say.")
        order = sorted(names, key=[*self.plan.categories].index)
        cells = self._estimates[self.plan.number(names)].transpose([order.index(name) for name in names]).ravel()
        half = self.plan.half(names, float(share))
        numbers = pl.DataFrame({"count": cells, "low": cells - half, "high": cells + half})
        return pl.concat([self._rows(names), numbers], how="horizontal") if names else numbers

    @property
    def tables(self) -> dict[Names, pl.DataFrame]:
        """All tables, by their columns."""
        return {names: self.table(names) for names in self.plan.wanted}

    @property
    def frame(self) -> pl.DataFrame:
        """All tables below each other: `table` names the columns of each, and a column that it lacks is null."""
        start = pl.DataFrame(schema={"table": pl.String, **dict.fromkeys(self.plan.categories, pl.String)})
        parts = [frame.with_columns(table=pl.lit(", ".join(names) or "(all)")) for names, frame in self.tables.items()]
        return pl.concat([start, *parts], how="diagonal")

    @property
    def about(self) -> dict[str, Any]:
        """What describes them, as files hold it: query, data set, unit, cost, level, what is not in them."""
        query = "; ".join(f"records by {', '.join(names)}" if names else "records" for names in self.plan.wanted)
        return About(query, list(self.measurements.values())).described(LEVEL)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of them, in sentences."""
        partial = self.plan.partial
        left_out = [f"Left out are records with another value, or none, of {' or '.join(partial)}."] if partial else []
        agree = (
            "All tables agree, by least squares; intervals are of noise alone, each by itself with probability 0.95."
        )
        return (f"Counted {shown.whose(self.about)}.", *left_out, agree, *shown.footnotes(self.about)[1:])

    @takes(path=PATH)
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `frame` and what describes it: `.csv` or `.parquet`, as `Answer.save` does.

        Raises:
            SourceError: The suffix is another, or the place cannot be written.
        """
        save(self.frame, {**self.about, "notes": self.notes}, path, (".csv", ".parquet"))

    def __repr__(self) -> str:
        tables = [
            "\n".join(shown.lines(frame.drop("low", "high"), {"count": (frame["low"], frame["high"])}))
            for frame in self.tables.values()
        ]
        return "\n\n".join([*tables, "\n".join(self.notes)])


def _lines(head: str, rows: Sequence[Mapping[str, Any]], more: Mapping[str, Any]) -> list[str]:
    """Lines of a table of margins, the first ones where there are many."""
    texts = [[head, "cells", "standard deviation of a cell", *more]]
    texts += [
        [", ".join(row["columns"]) or "(all)", f"{row['cells']:,}", f"{row['standard deviation']:,.3g}",
         *(write(row) for write in more.values())] for row in rows[:SHOWN]
    ]  # fmt: skip
    widths = [max(map(len, entries)) for entries in zip(*texts, strict=True)]
    result = [
        "  ".join(text.rjust(width) if index else text.ljust(width) for index, (text, width) in enumerate(line))
        for line in (list(zip(entries, widths, strict=True)) for entries in texts)
    ]
    return [*result, *([f"and {len(rows) - SHOWN:,} more: to_dict() has them"] if len(rows) > SHOWN else [])]
