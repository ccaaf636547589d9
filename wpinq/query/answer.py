"""Answers to queries: measured or published, then finished with released numbers only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

from wpinq.bins import bin_frame
from wpinq.errors import BudgetError, PlanError
from wpinq.exact import Amount, positive
from wpinq.ledger.cost import people
from wpinq.measurement import Measurement
from wpinq.plan import sources
from wpinq.query.statement import Statement, prepare
from wpinq.query.tables import CALL
from wpinq.selection.table import readable


@dataclass(frozen=True)
class Answer:
    """The rows of a query.

    Attributes:
        columns: Their names.
        rows: The largest first count first, where the query has no ORDER BY and no keys were given.
        intervals: For each cell that is a count, the 95% interval of its noise; None for others.
        cost: What it cost the privacy unit: `epsilon` and `delta`.
        measurements: What was measured, one for each count.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    intervals: tuple[tuple[tuple[float, float] | None, ...], ...]
    cost: dict[str, float]
    measurements: tuple[Measurement, ...]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"columns": self.columns, "rows": self.rows, "intervals": self.intervals, "cost": self.cost}


def sql(
    query: str,
    tables: Mapping[str, Any],
    *,
    epsilon: Amount,
    delta: Amount | None = None,
    keys: Any = None,
    name: str | None = None,
) -> Answer:
    """Answer one SELECT: count the records of a protected table, in groups.

    `SELECT page, COUNT(*) AS c FROM views WHERE ... GROUP BY page HAVING c >= 50 ORDER BY c DESC LIMIT 10`. There are
    COUNT(*), COUNT(column), COUNT(DISTINCT column) (with `unit=users(...)`, COUNT(DISTINCT user) counts people), and
    JOINs of public tables on a unique key. Which groups there are is itself private, so they are either given as
    `keys`, or published from a threshold that costs `delta`; HAVING then only leaves out more.

    Args:
        query: One SELECT in PostgreSQL's dialect; conditions have SQL's three values.
        tables: The protected collection and public tables (frames, paths, ...) by name.
        epsilon: What it costs in all, exact; several counts share it equally.
        delta: What publishing the groups costs; `protect(delta=)` allows it.
        keys: The groups to show, present or not, as `observe_many` takes bins; costs no delta.
        name: Tells repetitions apart, and names the charge in the ledger.

    Raises:
        PlanError: The query cannot be read, or cannot be private; nothing was charged.
        BudgetError: It costs more than is left; of several counts those before it stay charged.
        BinError: A key is no group of the query; nothing was charged.
        SourceError, EngineError, LedgerError: The dataflow could not run.

    >>> import wpinq
    >>> views = wpinq.protect([("ann", "a")] * 90, budget=90, columns={"user": str, "page": str})
    >>> wpinq.sql("SELECT page, COUNT(*) AS c FROM views GROUP BY page", {"views": views}, epsilon=90, keys=["a"]).rows
    (('a', 90),)
    """
    asked = prepare(query, tables)
    cost = positive(epsilon, "sql(epsilon=...)")
    schema = asked.counts[0]._node.schema
    known = None
    if not asked.keys:
        known = pl.DataFrame({"all": [0]})
    elif keys is not None:
        known = bin_frame(keys, schema).unique(maintain_order=True)
    elif delta is None:
        raise PlanError(f"{CALL}: which groups there are is private too; give keys=, or delta= (for example 1e-6).")
    allowed = sources(asked.counts[0]._node)[0].ledger.delta_budget
    if known is None and delta is not None and positive(delta, "sql(delta=...)") > allowed:
        raise BudgetError(f"{CALL}: delta {delta} is asked, and {people(allowed)} is allowed; set protect(delta=...).")
    share = cost / len(asked.counts)
    measured = tuple(_measure(one, share, name) for one in asked.counts)
    if known is None:
        assert delta is not None  # noqa: S101  refused above
        known = measured[0].release(delta=delta).frame.select(schema.names)
        paid = float(positive(delta, "sql(delta=...)"))
    else:
        known = known.with_columns(readable(known[one.name], one.kind) for one in schema) if asked.keys else known
        paid = 0.0
    return _finished(asked, known, measured, {"epsilon": float(cost), "delta": paid})


def _measure(collection: Any, epsilon: Fraction, name: str | None) -> Measurement:
    found: Measurement = collection.measure(epsilon=epsilon, name=name)
    return found


def _finished(
    asked: Statement, groups: pl.DataFrame, measured: tuple[Measurement, ...], cost: dict[str, float]
) -> Answer:
    """HAVING, ORDER BY, LIMIT and the columns of the answer, from released numbers."""
    counts = [pl.Series(f"count {place}", one.observe_many(groups if groups.width > 1 else groups.to_series()))
              for place, one in enumerate(measured)]  # fmt: skip
    keys = [groups[name].alias(f"key {place}") for place, name in enumerate(groups.columns)]
    frame = pl.DataFrame([*(keys if asked.keys else []), *counts])
    reader = asked.reader()
    if asked.having is not None:
        frame = frame.filter(reader.condition(asked.having).value)
    if asked.order:
        terms, descending, first = zip(*asked.order, strict=True)
        by = [reader.term(node).value for node in terms]
        frame = frame.sort(by, descending=descending, nulls_last=[not one for one in first], maintain_order=True)
    frame = frame.slice(*asked.limit)
    cells = frame.select(reader.term(item.node).value.alias(str(place)) for place, item in enumerate(asked.items))
    half = {f"count {place}": one.interval() for place, one in enumerate(measured)}
    widths = [half.get(item.node.name) if type(item.node).__name__ == "Column" else None for item in asked.items]
    intervals = (
        tuple(None if width is None else (cell - width, cell + width) for cell, width in zip(row, widths, strict=True))
        for row in cells.rows()
    )
    return Answer(tuple(item.label for item in asked.items), tuple(cells.rows()), tuple(intervals), cost, measured)
