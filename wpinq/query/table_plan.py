"""Plans of tables: which margins to measure for wanted tables and a budget, and what noise leaves in each cell.

A plan follows from declared categories, the bound on a person's records and the budget; no record is read for it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from wpinq.arguments import FLAG, MAPPING, NAME, NAMES, NOTHING, PATH, TEXT, takes
from wpinq.collection import Collection
from wpinq.core.measurements.answer import LEVEL, save
from wpinq.core.measurements.measure import quote_terms
from wpinq.core.measurements.provenance import About
from wpinq.core.measurements.windows import windows
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import BEST, LAPLACE, Payment, Terms
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact
from wpinq.postprocess import shown
from wpinq.postprocess.cube import Cube, Floats, half_width
from wpinq.postprocess.shares import Workload, best
from wpinq.query.contribution import rebounded
from wpinq.query.crosstab import in_categories, labels, left_out

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.pricing.quote import Quote

CALL = "plan_tables"
MOST = 15
"""Columns of all tables: each doubles the margins that are looked at."""
CELLS = 1 << 21
"""Cells of a table that is wanted, and of a margin that is measured."""
PARTS = 10**6
"""Of a share: it is a multiple of the budget over this."""
LEAST = 1e-6
"""The standard deviation of noise that is as good as none."""
SHOWN = 20
"""Rows of each part of a plan that are printed."""
TAKEN = {"", "count", "low", "high", "table"}
"""Names that no column can have: those of what tables say of each count."""

Names: TypeAlias = "tuple[str, ...]"


@dataclass(frozen=True)
class TablePlan:
    """Which margins to measure for some tables, and the errors to expect; `measure` charges it. It has read no record.

    Attributes:
        records: What is counted: each record with the label of each column.
        categories: For each column its values, as tables have them.
        wanted: The columns of each table.
        shares: The columns of each margin that is measured, and its share of the budget; they sum to 1.
        payment: The budget.
        partial: The columns of which only records with a listed value are counted.
    """

    records: Collection
    categories: Mapping[str, Names]
    wanted: tuple[Names, ...]
    shares: Mapping[Names, Fraction]
    payment: Payment
    partial: Names

    @cached_property
    def cube(self) -> Cube:
        """All margins of the columns."""
        return Cube([len(values) for values in self.categories.values()])

    def number(self, names: Iterable[str]) -> int:
        """The number of a margin in the cube."""
        order = [*self.categories]
        return self.cube.margin(order.index(name) for name in names)

    def quotes(self, name: str | None = None, analyst: str | None = None) -> list[Quote[Measurement]]:
        """The price of each margin that is measured."""
        result = []
        for names, share in self.shares.items():
            margin = self.records.map([pl.col(each) for each in names] or [pl.lit("all").alias("total")])
            result.append(quote_terms(margin, self.payment.part(share, CALL), name, analyst))
        return result

    @cached_property
    def _noise(self) -> dict[int, Measurement]:
        """Of each margin, by its number, what would be measured: nothing but its noise is known of it."""
        return {self.number(names): quote.query for names, quote in zip(self.shares, self.quotes(), strict=True)}

    @cached_property
    def weights(self) -> Floats:
        """For each margin of the cube one over the variance of the noise of its cells; 0 where it is not measured."""
        result = np.zeros(len(self.cube.cells))
        for margin, measured in self._noise.items():
            result[margin] = max(measured.stddev, LEAST) ** -2
        return result

    @cached_property
    def errors(self) -> dict[Names, float]:
        """The standard deviation of each cell of each table."""
        variances = self.cube.variances(self.weights)
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
        scales, many = [], []
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
        spread = {names: self._noise[self.number(names)].stddev for names in self.shares}
        return {
            "cost": self.payment.text,
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
        return "\n".join([
            *_lines("measured", ordered, {"share": lambda row: f"{float(Fraction(row['share'])):.2%}"}),
            "",
            *_lines("table", plan["tables"], {"95% within": lambda row: f"{row['95%']:,}"}),
            "",
            f"All of it costs one unit {plan['cost']}; nothing is charged before measure().",
        ])  # fmt: skip


@dataclass(frozen=True)
class PlannedTables:
    """Tables of noisy counts that agree with each other, from one charge. Using them costs nothing more.

    Attributes:
        plan: What was planned.
        measurements: What was measured of each margin, by its columns; `wpinq.tools.mbi.marginals` takes them all.
    """

    plan: TablePlan
    measurements: Mapping[Names, Measurement]

    @cached_property
    def _estimates(self) -> dict[int, Floats]:
        plan = self.plan
        measured = {plan.number(names): self.cells(names) for names in self.measurements}
        return plan.cube.least_squares(measured, plan.weights, map(plan.number, plan.wanted))

    @takes(columns=NAMES)
    def cells(self, columns: str | Iterable[str]) -> Floats:
        """The noisy counts of a margin as they were measured: an axis for each of its columns, in the plan's order.

        Args:
            columns: Those of a margin that was measured.

        Raises:
            PlanError: It was not measured.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        wanted = {columns} if isinstance(columns, str) else {*columns}
        names = next((names for names in self.measurements if {*names} == wanted), None)
        if names is None:
            raise PlanError("cells(columns=...): it was not measured; measurements has the columns of what was.")
        bins = self._rows(names) if names else ["all"]
        shape = [len(self.plan.categories[name]) for name in names]
        return np.asarray(self.measurements[names].observe_many(bins), np.float64).reshape(shape)

    def _rows(self, names: Names) -> pl.DataFrame:
        rows = list(product(*(self.plan.categories[name] for name in names)))
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

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


@takes(categories=MAPPING, mechanism=NAME, other=TEXT | NOTHING, alike=FLAG)
def plan_tables(
    records: Collection,
    tables: Sequence[str | Sequence[str]],
    *,
    categories: Mapping[str, Sequence[Any]],
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    delta: Amount | None = None,
    mechanism: str = LAPLACE,
    at_most: int | None = None,
    per: tuple[str, int] | None = None,
    other: str | None = "other",
    alike: bool = False,
) -> TablePlan:
    """Plan which counts to buy for some tables and a budget: the margins to measure, and the errors to expect.

    What is measured tells of all tables together, which then agree: least squares over all margins. So it may be the
    tables themselves, finer ones that several add up from, or both, in shares that leave the least mean square error.
    The plan is made of public things alone, and charges nothing; `plan.measure()` charges all of it at once.

    Args:
        records: What is counted.
        tables: The columns of each table: `["age", ("age", "sex"), ()]`; of no columns it is the total.
        categories: For each column the values that tables have; see `wpinq.table`.
        epsilon: What it costs one person in all, exact, with Laplace noise.
        rho: Instead of epsilon, with mechanism="gaussian": its noise needs least where many tables are wanted.
        delta: What goes with epsilon of Gaussian noise, in a ledger that adds up divergences.
        mechanism: What adds noise; see `measure`.
        at_most: How many records of each person are counted, where that was not said before.
        per: A column and a number: of one person's records with the same value of it no more are kept.
        other: What records are counted under that have none of the values; None leaves them out of all tables.
        alike: Whether each table counts alike, and not each cell: small tables then err less, large ones more.

    Raises:
        PlanError: The tables, categories or amounts do not fit.
        ExactnessError: An amount is not a finite number above zero.

    Source: see `wpinq/postprocess/shares.py`.

    >>> import wpinq
    >>> from wpinq.testing import protected
    >>> people = protected(sex="text", age="text")
    >>> kinds = {"sex": ["f", "m"], "age": ["young", "old", "older"]}
    >>> wpinq.plan_tables(people, ["sex", "age"], categories=kinds, other=None, epsilon=1)
    measured  cells  standard deviation of a cell    share
    sex, age      6                          1.36  100.00%
    <BLANKLINE>
    table  cells  standard deviation of a cell  95% within
    sex        2                          2.35           5
    age        3                          1.92           5
    <BLANKLINE>
    All of it costs one unit epsilon 1; nothing is charged before measure().
    """
    wanted = _wanted(tables)
    names = list(dict.fromkeys(name for columns in wanted for name in columns))
    if not isinstance(records, Collection):
        raise PlanError(f"{CALL}: give protected records, as protect(...) makes them.")
    if len(names) > MOST:
        raise PlanError(f"{CALL}: all tables together have {len(names)} columns, and {MOST} are the most.")
    if bad := [name for name in names if name.lower() in TAKEN]:
        raise PlanError(f"{CALL}: a column cannot be called {bad[0]!r} here; rename it with map.")
    if unknown := [str(name) for name in categories if name not in names]:
        raise PlanError(f"{CALL}(categories=...): {unknown[0]!r} is no column of a table.")
    records = rebounded({"records": records}, at_most, per)["records"]
    outside = left_out(records, names, categories, other)
    keys = {name: labels(records, name, categories.get(name), outside[name], CALL) for name in names}
    counted = in_categories(records, list(keys.items()), outside)
    paid = _payment(counted, Terms(epsilon, mechanism, rho, delta, call=CALL))
    empty = TablePlan(counted, keys, wanted, {}, paid, tuple(name for name in names if outside[name] is None))
    return TablePlan(counted, keys, wanted, _shares(empty, alike=alike), paid, empty.partial)


def _wanted(tables: Any) -> tuple[Names, ...]:
    if isinstance(tables, str) or not isinstance(tables, (list, tuple)) or not tables:
        raise PlanError(f'{CALL}(tables=...): list the columns of each table: ["age", ("age", "sex")].')
    wanted = [(table,) if isinstance(table, str) else table for table in tables]
    for table in wanted:
        if not isinstance(table, (list, tuple)) or not all(map(NAME.holds, table)) or len(set(table)) < len(table):
            raise PlanError(f"{CALL}(tables=...): a table is the name of a column, or a list of different names.")
    if len({frozenset(table) for table in wanted}) < len(wanted):
        raise PlanError(f"{CALL}(tables=...): a table is there twice.")
    if not any(wanted):
        raise PlanError(f"{CALL}(tables=...): all that is wanted is one total; ask records.count(...) for it.")
    return tuple(map(tuple, wanted))


def _payment(counted: Collection, terms: Terms) -> Payment:
    """What it all costs.

    Raises:
        PlanError: It cannot be shared out, or the records have windows.
    """
    survey = Survey.of(fit_noise(counted._node))
    if windows(survey.steps):
        raise PlanError(f"{CALL}: plans tables of all records, and these are in windows; filter one of them instead.")
    if terms.mechanism == BEST:
        raise PlanError(f"{CALL}(mechanism='best'): name the mechanism; plans are cheap, so compare two of them.")
    paid = terms.agreed(survey)
    if paid.delta:
        raise PlanError(
            f"{CALL}(mechanism='gaussian', delta=...): many margins are paid in rho, and the ledger adds up epsilons "
            "and deltas; protect with rho=, or with accounting='renyi'. Nothing was charged."
        )
    return paid


def _shares(plan: TablePlan, *, alike: bool) -> dict[Names, Fraction]:
    """The best shares, in millionths."""
    cube, wanted = plan.cube, [plan.number(table) for table in plan.wanted]
    if cube.cells[wanted].max() > CELLS:
        raise PlanError(f"{CALL}: a table has more than {CELLS:,} cells; list fewer categories, or leave a column out.")
    importance = np.zeros(len(cube.cells))
    importance[wanted] = 1 / cube.cells[wanted] if alike else 1
    exact = best(Workload(cube, importance, cube.cells <= CELLS, gaussian=bool(plan.payment.rho))) * PARTS
    parts = np.floor(exact).astype(int)
    parts[np.argsort(parts - exact, kind="stable")[: PARTS - int(parts.sum())]] += 1
    names = [*plan.categories]
    return {
        tuple(names[index] for index in cube.columns(int(margin))): Fraction(int(parts[margin]), PARTS)
        for margin in np.flatnonzero(parts)
    }
