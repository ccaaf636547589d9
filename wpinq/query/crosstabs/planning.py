"""Planning of tables: which margins or residuals to measure for wanted tables and a budget, before any charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from wpinq.arguments import MAPPING, NAME, NOTHING, TEXT, takes
from wpinq.collection import Collection
from wpinq.core.measurements.residual import longest
from wpinq.core.measurements.windows import windows
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import BEST, LAPLACE, Payment, Terms, moved_squared
from wpinq.core.pricing.sensitivity import unit_sensitivities
from wpinq.errors import PlanError
from wpinq.exact import Amount
from wpinq.postprocess.shares import AIMS, Prices, planned
from wpinq.query.contribution import rebounded
from wpinq.query.crosstabs.labels import in_categories, labels, left_out
from wpinq.query.crosstabs.plan import CALL, Names, TablePlan

MOST = 15
"""Columns of all tables: each doubles the margins that are looked at."""
CELLS = 1 << 21
"""Cells of a table that is wanted, and of a margin that is measured."""
PARTS = 10**9
"""Of a share: it is a multiple of the budget over this."""
COARSE = 1 << 10
"""Of a finer resolution of weights margins are measured: noise of residuals could be too wide to be drawn."""
TAKEN = {"", "count", "low", "high", "table"}
"""Names that no column can have: those of what tables say of each count."""


@takes(categories=MAPPING, mechanism=NAME, other=TEXT | NOTHING, aim=NAME)
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
    aim: str = "cells",
) -> TablePlan:
    """Plan which counts to buy for some tables and a budget: what to measure, and the errors to expect.

    What is measured tells of all tables together, which then agree. With Laplace noise it is margins: the tables
    themselves, finer ones that several add up from, or both. With Gaussian noise it is residuals, each of which is
    what a margin tells beyond smaller ones: no other way of measuring errs less by the aim. (Where a person's records
    are known to lie in many cells, margins may be better, and are measured then.) The plan is made of public things
    alone, and charges nothing; `plan.measure()` charges all of it at once.

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
        aim: What is made least: the mean variance of all "cells"; that of all "tables", where each counts the same,
            so that small ones err less, and large ones more; or "max", the largest variance of any cell, for Laplace
            noise as far as a few attempts find it.

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
    All of it costs one unit epsilon 1; nothing was charged yet.
    """
    if aim not in AIMS:
        raise PlanError(f"{CALL}(aim={aim!r}): write {', '.join(map(repr, AIMS[:-1]))} or {AIMS[-1]!r}.")
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
    shares, residual = _shares(empty, aim)
    return replace(empty, shares=shares, residual=residual)


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


def _shares(plan: TablePlan, aim: str) -> tuple[dict[Names, Fraction], bool]:
    """The best shares, in parts of the budget, and whether they are of residuals.

    Raises:
        PlanError: A table has too many cells.
    """
    cube, wanted = plan.cube, [plan.number(table) for table in plan.wanted]
    if cube.cells[wanted].max() > CELLS:
        raise PlanError(f"{CALL}: a table has more than {CELLS:,} cells; list fewer categories, or leave a column out.")
    found, residual = planned(cube, wanted, cube.cells <= CELLS, _prices(plan), aim=aim)
    exact = found * PARTS
    parts = np.where(exact > 0, np.maximum(np.floor(exact), 1), 0).astype(int)
    parts[np.argsort(parts - exact, kind="stable")[: PARTS - int(parts.sum())]] += 1
    names = [*plan.categories]
    shares = {
        tuple(names[index] for index in cube.columns(int(margin))): Fraction(int(parts[margin]), PARTS)
        for margin in np.flatnonzero(parts)
    }
    return shares, residual


def _prices(plan: TablePlan) -> Prices | None:
    """The variance that a budget of 1 buys of each residual and margin; None where residuals are not measured.

    A unit moves all cells of each margin by the same together, and one cell of a coarser margin by more.
    """
    cube, survey = plan.cube, Survey.of(fit_noise(plan.records._node))
    if not plan.payment.rho or survey.root.resolution > COARSE:
        return None
    widths, spread = np.ones(len(cube.cells)), cube.dimensions / cube.cells
    residuals = spread.copy()
    if longest(survey) > 1:
        most = max(unit.l1 for unit in unit_sensitivities(survey)) ** 2
        names = [*plan.categories]
        for number in cube.below(map(plan.number, plan.wanted)):
            columns = [names[index] for index in cube.columns(number)]
            margin = Survey.of(fit_noise(plan.margin(columns)._node))
            widths[number] = moved_squared(margin) / most
            residuals[number] = widths[number] * min(1, spread[number] * float(longest(margin)))
    return residuals, widths
