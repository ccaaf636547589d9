"""Cross tables: counts and numbers by several columns with all totals, from one charge, that add up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wpinq.aggregates.scale import Bounds
from wpinq.arguments import MAPPING, NAME, NOTHING, TEXT, takes
from wpinq.collection import Collection
from wpinq.core.measurements.answer import beside
from wpinq.core.measurements.query import commit
from wpinq.core.pricing.privacy_cost import LAPLACE
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact
from wpinq.query.answer import sql
from wpinq.query.contribution import rebounded
from wpinq.query.crosstabs.answer import Table, axes_of
from wpinq.query.crosstabs.hierarchy import Hierarchy, read_hierarchies
from wpinq.query.crosstabs.labels import in_categories, labels, left_out
from wpinq.query.crosstabs.medians import Ranking
from wpinq.query.crosstabs.names import NameChoice, choose_names, placeholders
from wpinq.query.crosstabs.numbers import Numbers, read_numbers
from wpinq.query.crosstabs.public import Public, read_public
from wpinq.query.quoted_select import QuotedSql, quoted_select
from wpinq.sources.databases.postgres import quoted as name_of

CALL = "table"
MOST = 6
"""Columns of a table: each doubles the totals that share epsilon."""
CELLS = 1_000_000
"""Counts of a table, with its totals."""
TAKEN = {"", "count", "low", "high", "grouping"}
"""Names that a column of a table cannot have: those of what it says of each count."""


@takes(categories=MAPPING | NOTHING, hierarchy=MAPPING | NOTHING, mechanism=NAME, other=TEXT | NOTHING, total=TEXT)
def table(
    records: Collection,
    down: str | Sequence[str] = (),
    across: str | Sequence[str] = (),
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    delta: Amount | None = None,
    mechanism: str = LAPLACE,
    at_most: int | None = None,
    per: tuple[str, int] | None = None,
    other: str | None = "other",
    total: str = "all",
    sum: str | Sequence[str] = (),  # noqa: A002
    mean: str | Sequence[str] = (),
    median: str | Sequence[str] = (),
    bounds: Mapping[str, Bounds] | None = None,
    hierarchy: Mapping[str, Mapping[str, str]] | None = None,
    keep: Sequence[tuple[Mapping[str, str], int]] = (),
    name: str | None = None,
    analyst: str | None = None,
) -> Table:
    """Count records by several columns, with all totals, in whole numbers that add up; sum up and average them, too.

    The cells are measured, and of columns with many values also the totals (`GROUP BY ROLLUP`), which then share
    epsilon equally: whatever leaves less noise. All counts are moved as little as makes them add up, and made whole. A
    person who has several records counts so often, up to the bound. Nothing is left out because it is small.

    Numbers share epsilon equally with the counts: each column that is summed up or averaged is one measurement, sum and
    mean of one column together, and each median is another. Sums add up as counts do. A mean is a sum over the number
    of records that have one. Medians are measured of cells and of all totals, and cost as many sets of keys.

    Args:
        records: What is counted.
        down: The columns at the side of the table.
        across: The columns above it.
        categories: For each column the values that the table has; they do not depend on the records. Of a column that
            is true or false they may be left out, and so are then records without a value. Of another one that is left
            out, the values are told that enough records have, for `delta`; all else is under `other`.
        epsilon: What it costs one person in all, exact.
        rho: Instead of epsilon, with Gaussian noise.
        delta: What goes with epsilon of Gaussian noise; or what values that nobody listed cost, beside an equal part of
            epsilon for each such column.
        mechanism: What adds noise; see `measure`.
        at_most: How many records of each person are counted, where that was not said before.
        per: A column and a number: of one person's records with the same value of it no more are kept.
        other: What records are counted under that have none of the values; None leaves them out of the table.
        total: What totals are called.
        sum, mean, median: Columns of numbers, each one or several. A record without a number is counted, and not in
            these.
        bounds: For each of them the least and the largest number, which do not depend on the records; see
            `suggest_bounds`. Numbers beyond are clamped.
        hierarchy: For a column of codes the code above each, as of NUTS, ICD or NACE: `{"region": {"DE1": "DE"}}`. The
            table has a row of each level; records hold the finest codes, and coarser rows are their sums. Medians are
            measured of each level.
        keep: Counts that are public and stay as they are, such as what cannot be: `[({"age": "0-9", "job": "yes"},
            0)]`. Of a column that is left out the total is meant. Where a count is zero, sums are zero too, and means
            and medians are unknown. Of a column whose values nobody listed only totals are kept.
        name: Tells repetitions apart, and names the charge in the ledger.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: The columns or categories do not fit; nothing was charged.
        BudgetError: It costs more than is left; nothing was charged.
        SourceError, EngineError, LedgerError: The dataflow could not run.

    Source: least squares as in Hay, Rastogi, Miklau, Suciu, PVLDB 3(1), 2010; products of strategies as in McKenna,
    Miklau, Hay, Machanavajjhala, "Optimizing error of high-dimensional statistical queries", PVLDB 11(10), 2018.

    >>> import wpinq
    >>> rows = [("ann", "IT"), ("bob", "IT"), ("eve", "HR")]
    >>> staff = wpinq.protect(rows, budget=99, columns={"who": str, "team": str})
    >>> wpinq.table(staff, "team", categories={"team": ["HR", "IT"]}, other=None, epsilon=99).counts.tolist()
    [1, 2, 3]
    """
    numbers = {"sum": sum, "mean": mean, "median": median}

    def laid_out(names: Mapping[str, Sequence[str]] | None = None) -> Layout:
        return layout(
            records, down, across, categories or {}, other=other, total=total, numbers=numbers, bounds=bounds,
            bound=(at_most, per), names=names, hierarchy=hierarchy,
        )  # fmt: skip

    asking: dict[str, Any] = {"mechanism": mechanism, "name": name, "analyst": analyst}
    costs: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "delta": delta}
    made = laid_out()
    public = made.public(keep)
    choice = made.choice(costs, **asking)
    if choice is not None:
        costs = dict(choice.rest)
        choice.insist([quote for query in priced(made, costs, **asking) for quote in query.quotes])
        made = laid_out(choice.charge([other or "", total], made.others))
        public = made.public(keep)  # totals, which stand elsewhere now; what was read before is read again
    if not made.numbers.medians:
        answer = sql(made.query, {"records": made.records}, keys=made.groups, bounds=made.numbers.bounds,
                     **asking, **costs)  # fmt: skip
        ranked = None
    else:
        first, second = priced(made, costs, **asking)
        paid = commit([*first.quotes, *second.quotes])
        ranked = second.answer(paid[len(first.quotes) :])
        answer = beside(first.answer(paid[: len(first.quotes)]), made.ranking.query, paid[len(first.quotes) :])
    if choice is not None:
        answer = choice.described(answer)
    kinds = {column: made.records._node.schema[column].kind for column in made.numbers.columns}
    return Table(
        answer, made.keys, made.down, made.totals, made.partial, made.numbers, kinds, made.groups, ranked,
        made.unlisted, made.hierarchies, public,
    )  # fmt: skip


def priced(made: Layout, costs: Mapping[str, Amount | None], **asking: Any) -> list[QuotedSql]:
    """Price what a table asks: its counts and sums, and its medians, where there are any. Nothing is charged.

    Args:
        made: The table.
        costs: What it costs in all, as `epsilon`, `rho` and `delta`; each measurement has an equal part.
        asking: The other arguments of `sql`.

    Raises:
        PlanError, BudgetError: See `sql`.
    """
    ranks, parts = len(made.numbers.medians), made.parts
    asked: list[tuple[str, pl.DataFrame, int, Mapping[str, Any]]] = [(made.query, made.groups, parts - ranks, {})]
    if ranks:
        asked.append((made.ranking.query, made.ranking.groups, ranks, made.ranking.tables))
    result = []
    for query, groups, part, tables in asked:
        share: dict[str, Any] = {
            what: None if cost is None else exact(cost, f"{CALL}({what}=...)") * part / parts
            for what, cost in costs.items()
        }
        result.append(
            quoted_select(
                query, {"records": made.records, **tables}, keys=groups, bounds=made.numbers.bounds, **asking, **share
            )
        )
    return result


@dataclass(frozen=True)
class Layout:
    """What a table asks, before anything is charged.

    Attributes:
        records: What it counts, as `records`: the label of each column, and the numbers.
        keys: For each column its name and its labels, the last of which is the total.
        down: How many of the columns stand at the side.
        totals: For each column whether its totals are measured, too.
        partial: The columns of which only records with a listed value are counted.
        numbers: What it tells beside counts.
        source: The records under their bound.
        unlisted: The columns whose values nobody listed.
        hierarchies: The columns that have one.
    """

    records: Collection
    keys: tuple[tuple[str, tuple[str, ...]], ...]
    down: int
    totals: tuple[bool, ...]
    partial: tuple[str, ...]
    numbers: Numbers
    source: Collection
    unlisted: tuple[str, ...]
    hierarchies: Mapping[str, Hierarchy]

    @property
    def parts(self) -> int:
        """How many measurements share what it costs."""
        return 1 + len(self.numbers.totalled) + len(self.numbers.medians)

    def public(self, keep: Sequence[tuple[Mapping[str, str], int]]) -> Public:
        """Read the numbers that are kept.

        Raises:
            PlanError: See `read_public`.
        """
        return read_public(keep, self.keys, axes_of(self.keys, self.totals, self.hierarchies), self.unlisted)

    @property
    def others(self) -> int:
        """How many cells and totals it has by the columns whose values are listed."""
        return math.prod(len(values) for name, values in self.keys if name not in self.unlisted)

    def choice(self, costs: Mapping[str, Amount | None], **asking: Any) -> NameChoice | None:
        """Price the choice of the names that nobody listed; None where all are.

        Raises:
            PlanError: See `choose_names`.
        """
        return choose_names(self.source, self.unlisted, costs, self.parts, **asking) if self.unlisted else None

    @property
    def query(self) -> str:
        """The query that counts and sums up."""
        names = [name_of(name) for name, _ in self.keys]
        parts = [f"ROLLUP ({name})" if measured else name for name, measured in zip(names, self.totals, strict=True)]
        chosen = ", ".join([*names, 'COUNT(*) AS "count"', *self.numbers.aggregates])
        return f"SELECT {chosen} FROM records GROUP BY {', '.join(parts)}"  # noqa: S608

    @property
    def ranking(self) -> Ranking:
        """What asks for medians."""
        return Ranking(self.keys, self.hierarchies, self.numbers.ranks)

    @property
    def groups(self) -> pl.DataFrame:
        """All groups that are counted, in the order of the table."""
        frame = pl.DataFrame({"grouping": [0]}, schema={"grouping": pl.Int64})
        for (name, values), measured in zip(self.keys, self.totals, strict=True):
            finest = self.hierarchies[name].finest if name in self.hierarchies else values[:-1]
            column = pl.DataFrame({name: [*finest, *([None] if measured else [])]}, schema={name: pl.String})
            frame = frame.join(column, how="cross", maintain_order="left_right").with_columns(
                grouping=2 * pl.col("grouping") + pl.col(name).is_null().cast(pl.Int64)
            )
        return frame.select(*(name for name, _ in self.keys), *(["grouping"] if any(self.totals) else []))


def layout(
    records: Collection,
    down: str | Sequence[str],
    across: str | Sequence[str],
    categories: Mapping[str, Sequence[Any]],
    *,
    other: str | None,
    total: str,
    numbers: Mapping[str, str | Sequence[str]] | None = None,
    bounds: Mapping[str, Bounds] | None = None,
    bound: tuple[int | None, tuple[str, int] | None] = (None, None),
    names: Mapping[str, Sequence[str]] | None = None,
    hierarchy: Mapping[str, Mapping[str, str]] | None = None,
) -> Layout:
    """Read what a table is to be.

    Args:
        numbers: The columns of `sum`, `mean` and `median`.
        hierarchy: For a column of codes the code above each.
        names: The values that were chosen of columns whose values nobody listed; None before they are.
        bound: How many records of each person are counted, and how many with the same value. The other arguments are
            those of `table`.

    Raises:
        PlanError: The columns or categories do not fit.
    """
    if not isinstance(records, Collection):
        raise PlanError(f"{CALL}: give protected records, as protect(...) makes them.")
    side = _names(down, "down")
    columns = [*side, *_names(across, "across")]
    if not columns or len(set(columns)) < len(columns) or len(columns) > MOST:
        raise PlanError(f"{CALL}: give one to {MOST} different columns, down and across.")
    if taken := [name for name in columns if name.lower() in TAKEN]:
        raise PlanError(f"{CALL}: a column cannot be called {taken[0]!r} here; rename it with map.")
    if unknown := [str(name) for name in categories if name not in columns]:
        raise PlanError(f"{CALL}(categories=...): {unknown[0]!r} is no column of the table.")
    records = rebounded({"records": records}, *bound)["records"]
    wanted = read_numbers(records, columns, bounds, **{"sum": (), "mean": (), "median": (), **(numbers or {})})
    if clash := [name for name in wanted.names if name in columns]:
        raise PlanError(f"{CALL}: the table tells {clash[0]!r} of each cell, so no column can be called so; rename it.")
    trees = read_hierarchies({} if hierarchy is None else hierarchy, columns, categories, other)
    categories = {**categories, **{name: list(tree.leaves) for name, tree in trees.items()}}
    unlisted = placeholders(records, columns, categories)
    if unlisted and other is None:
        raise PlanError(
            f"{CALL}(categories=...): list the values of {next(iter(unlisted))!r}, or give other= for the rest."
        )
    values = {**categories, **unlisted, **(names or {})}
    outside = left_out(records, columns, values, other)
    partial = tuple(name for name, label in outside.items() if label is None)
    keys = tuple(
        (name, (*values[name], other or "", total))
        if name in (names or {})
        else (name, (*_without(total, name, labels(records, name, values.get(name), outside[name], CALL)), total))
        for name in columns
    )
    totals = tuple(name not in trees and measured_too(len(values) - 1) for name, values in keys)
    listed = [(name, values[:-1]) for name, values in keys]
    labelled = in_categories(records, listed, outside, wanted.columns)
    every = tuple((name, trees[name].labels(total) if name in trees else values) for name, values in keys)
    if math.prod(len(values) for _, values in every) > CELLS:
        raise PlanError(f"{CALL}: has more than {CELLS:,} counts; list fewer categories, or leave a column out.")
    return Layout(labelled, every, len(side), totals, partial, wanted, records, tuple(unlisted), trees)


def measured_too(size: int) -> bool:
    """Whether the totals of a column of so many values are to be measured, for the least variance on the average.

    Measured, they double what one record moves, so each variance is 4 times as large; least squares leave n / (n + 1)
    of that. Summed, a total has n times the variance of a value. Errors of several columns multiply, so each column is
    decided by itself: by public sizes alone.

    >>> [measured_too(size) for size in (2, 5, 6)]
    [False, False, True]
    """
    return 4 * size / (size + 1) < (1 + size) / 2


def _names(columns: str | Sequence[str], word: str) -> list[str]:
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise PlanError(f"{CALL}({word}=...): give the name of a column, or a list of names.")
    return list(names)


def _without(total: str, name: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """The values of a column, none of which is called as totals are."""
    if not total.isprintable():
        raise PlanError(f"{CALL}: total= holds what cannot be printed.")
    if total in values:
        raise PlanError(f"{CALL}: a value of {name!r} and total= have one name.")
    return values
