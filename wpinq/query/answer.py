"""Answers to SQL queries: a SELECT, or UNION ALL of several, is priced, charged and answered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias, Unpack

from wpinq.aggregates.scale import Bounds
from wpinq.arguments import MAPPING, NAME, TEXT, takes
from wpinq.core.measurements.answer import Answer
from wpinq.core.plan.node import sources
from wpinq.core.pricing.privacy_cost import LAPLACE
from wpinq.errors import PlanError
from wpinq.exact import Amount
from wpinq.query.contribution import rebounded, settling
from wpinq.query.explained import explains
from wpinq.query.quoted_select import Alike, QuotedSql, quoted_select
from wpinq.query.select.clauses import ALONE, branches
from wpinq.query.select.derived import CALL
from wpinq.query.select.google import google
from wpinq.query.united import QuotedUnion, check_columns, divided


@takes(query=TEXT, tables=MAPPING, mechanism=NAME)
def sql(
    query: str,
    tables: Mapping[str, Any],
    *,
    epsilon: Amount | None = None,
    within: Amount | None = None,
    mechanism: str = LAPLACE,
    rho: Amount | None = None,
    delta: Amount | None = None,
    keys: Any = None,
    bounds: Mapping[str, Bounds] | None = None,
    loss: Amount | None = None,
    at_most: int | str | Mapping[str, int | str] | None = None,
    per: tuple[str, int] | Mapping[str, tuple[str, int]] | None = None,
    name: str | None = None,
    analyst: str | None = None,
) -> Answer:
    """Answer one SELECT: aggregates over the records of a protected table, in groups.

    `SELECT page, COUNT(*) AS c FROM views WHERE ... GROUP BY page HAVING c >= 50 ORDER BY c DESC LIMIT 10`. There are
    COUNT(*), COUNT(x), COUNT(DISTINCT x) (with `unit=users(...)`, COUNT(DISTINCT user) counts people), SUM, AVG, MIN,
    MAX, MEDIAN, PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY x), VARIANCE and STDDEV (_SAMP and _POP) of columns and
    of expressions such as `price * qty`, each with FILTER (WHERE ...), and JOINs of public tables on a unique key.
    All but counts need `bounds`, or follow from those of their columns. An extreme is a point of a grid of a
    thousandth of the bounds that a few records are beyond. Quantiles of one expression are one measurement: nine
    cost what one does (see `quantiles`). Of no records an answer is noise, not NULL. Which groups there are is
    itself private, so they are either given as `keys`, or published by COUNT(*), or the first count, where its
    noisy value passes a threshold that costs `delta`; HAVING then only leaves out more.
    Subqueries in FROM and WITH are tables: without GROUP BY they cost nothing, and with it twice as much, for of each
    key one record is left, and who adds a record changes it; grouped by the person, who counts once pays once. How many
    keys have c records is asked of a `shave`, with half of that variance. Counts of ranges of one column, such as
    COUNT(*) FILTER (WHERE age BETWEEN 18 AND 64), are one measurement together, whose noise is less than theirs alone.
    EXPLAIN SELECT ... answers with the price of each measurement, for which nothing is charged.

    Public tables are joined ON a key that is unique there; other conditions of ON look at the table or at the record
    alone, and of a LEFT JOIN those that look at both are written in CASE. UNION ALL of answers takes 64 SELECTs at the
    most, each with an equal part of epsilon, rho and delta; `keys`, `loss` and `at_most="auto"` are of one SELECT. The
    key of a ROLLUP, a CUBE or GROUPING SETS has one number more, the GROUPING of all keys. BigQuery's SELECT WITH
    DIFFERENTIAL_PRIVACY OPTIONS(...) is read, with bounds in CLAMPED BETWEEN or `contribution_bounds_per_row` and the
    columns DP_INTERVAL_LOW(c) and DP_INTERVAL_HIGH(c); what bounds a person there is not done, and `answer.bias` says
    so. STD and SD are of a sample, also where MySQL means the population (STDDEV_POP).

    **Differences from PostgreSQL** (`tests/attacks/fuzz/databases.py`): what raises on a value is NULL; NaN is NULL,
    and -0.0 is 0; 1.5 is a double, so the last digit of a root may differ, and a half is rounded to the even number;
    SUM of no records is 0, and SUM of whole numbers is whole, so half of it is cut; in a subquery COUNT(DISTINCT (a,
    b)) leaves out pairs with a NULL; case is Unicode's, and letters are ordered as in the collation C.UTF-8. CONCAT of
    a boolean gives t or f as there, and no true or false. In HAVING of ROLLUP, CUBE and GROUPING SETS a key that is a
    constant is NULL where it is not grouped by, as other keys are, and as in PostgreSQL from 18 on.

    Args:
        query: One SELECT in PostgreSQL's dialect; conditions have SQL's three values.
        tables: The protected collection and public tables (frames, paths, ...) by name. Of a public CSV file all
            columns are text; give a pair of it and its columns' types otherwise: `("pages.csv", {"size": int})`.
        epsilon: What it costs one person in all, exact, who may be in all tables of a ledger; several aggregates share
            it equally, and so does a count that is added for where groups are published.
        within: Instead of it, by how much noise may move each count, and by how many records each rank may be off (see
            `quantile`), with probability 0.95: the least epsilon that does it is charged. Not for sums, means and
            spreads.
        mechanism: What adds noise to counts, sums, means and spreads; see `measure`. With an epsilon and a delta of
            Gaussian noise all counts are one measurement, whose noise grows with the root of their number. A rank is
            chosen by an exponential mechanism, which of a cost in rho spends the largest epsilon that costs no more of
            it.
        rho: Instead of epsilon, what it costs one person with Gaussian noise, in all tables of a ledger together.
        delta: What publishing the groups costs alike; `protect(delta=)` allows it. Where they are given as `keys`, what
            goes with epsilon, of Gaussian noise.
        keys: The groups to show, present or not, as `observe_many` takes bins; costs no delta. Of many in a lazy frame
            (`pl.scan_parquet`) a block at a time is held, where HAVING leaves few and all that is asked are counts.
        bounds: For each column or expression that is summed or ranked, as the query has it, the least and the largest
            number, to which its numbers are clamped; they do not depend on the data.
        loss: Epsilon to spend beside that on how much is left out: `answer.loss` then tells about how many people lost
            how many records by the bound, and how much is counted in groups that are not shown.
        at_most: How many records of each person this query looks at, in every table of people or by the table's name;
            by default as they were protected. What WHERE leaves out of one table takes no places of it. "auto" chooses
            the number first, for a part of epsilon: half for one total, less for many groups, and of many unknown
            groups a quarter. It is no more than the number that the table was protected with.
        per: A column and a number: of one person's records with the same value of it no more are kept.
        name: Tells repetitions apart, and names the charge in the ledger.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: The query cannot be read, or cannot be private, or its groups are to be published from a plan
            without a fingerprint (see `Measurement.release`); nothing was charged.
        BudgetError: It costs more than is left; nothing was charged.
        BinError: A key is no group of the query; nothing was charged.
        SourceError, EngineError, LedgerError: The dataflow could not run.

    >>> import wpinq
    >>> views = wpinq.protect([("ann", "a")] * 90, budget=90, columns={"user": str, "page": str})
    >>> wpinq.sql("SELECT page, COUNT(*) AS c FROM views GROUP BY page", {"views": views}, epsilon=90, keys=["a"]).rows
    (('a', 90),)
    """
    shown = explains(query)
    epsilon, delta = google(query).with_terms(epsilon, delta)
    tables, rest = rebounded(tables, at_most, per), epsilon
    first = settling(shown or query, tables, epsilon=epsilon, keys=keys, bounds=bounds, analyst=analyst)
    if first is not None:
        tables = first.settled() if shown is None else first.under(1)
        rest = first.automatic.rest
    quote = quoted(
        shown or query, tables, epsilon=rest, within=within, mechanism=mechanism, rho=rho, delta=delta, keys=keys,
        bounds=bounds, loss=loss, name=name, analyst=analyst,
    )  # fmt: skip
    return quote.charge() if shown is None else quote.explained(None if first is None else first.automatic.quote)


Quoted: TypeAlias = QuotedSql | QuotedUnion
"""A query that was priced and not charged yet, of which commands, servers and releases read the same."""


def quoted(
    query: str, tables: Mapping[str, Any], *, epsilon: Amount | None = None, rho: Amount | None = None,
    delta: Amount | None = None, keys: Any = None, bounds: Mapping[str, Bounds] | None = None,
    loss: Amount | None = None, **alike: Unpack[Alike],
) -> Quoted:  # fmt: skip
    """Price a query as `sql` would ask it; nothing is charged.

    The SELECTs of a UNION ALL share epsilon, rho and delta equally; `within` holds for each count of each.

    Args:
        alike: What each SELECT of a UNION ALL is asked alike: `within`, `mechanism`, `name`, `analyst`, and `insist`,
            which refuses what was read, before it is priced. The other arguments are those of `sql`; `keys` may be
            `WrittenKeys`, too.

    Raises:
        PlanError, BinError, BudgetError: See `sql`.
    """
    parts, written = branches(query), google(query)
    ask = partial(quoted_select, tables=tables, **alike)
    if parts is None:
        return ask(query, epsilon=epsilon, rho=rho, delta=delta, keys=keys, bounds=bounds, loss=loss)
    if keys is not None or loss is not None:
        raise PlanError(f"{CALL}: {ALONE}.")
    epsilon, delta = written.with_terms(epsilon, delta)
    share, limits = divided(len(parts), epsilon=epsilon, rho=rho, delta=delta), written.with_bounds(bounds)
    quotes = [
        ask(part, epsilon=share["epsilon"], rho=share["rho"], delta=share["delta"], bounds=limits) for part in parts
    ]
    check_columns([each.statement for each in quotes])
    for each in quotes:
        written.check_unit(sources(each.statement.groups._node))
    return QuotedUnion(query, quotes, written.notes)
