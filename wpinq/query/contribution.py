"""The bound of a query: how much of each person it looks at, in each of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wpinq.aggregates.automatic import Automatic, priced, waiting
from wpinq.collection import Collection
from wpinq.core.records.bins import bin_blocks
from wpinq.errors import PlanError
from wpinq.exact import Amount, positive
from wpinq.query.prepare import prepare
from wpinq.query.select.derived import CALL

if TYPE_CHECKING:
    from wpinq.query.statement import Statement


@dataclass(frozen=True)
class Settling:
    """A query whose bound is chosen first: the price of the choice, and the tables and epsilon of what follows.

    Attributes:
        tables: The tables, of which one waits for its bound.
        statement: The query over them.
        automatic: The choice.
    """

    tables: Mapping[str, Any]
    statement: Statement
    automatic: Automatic

    def under(self, number: int) -> Mapping[str, Any]:
        """The tables with a bound, where one waited."""
        names = [name for name, table in self.tables.items() if isinstance(table, Collection)]
        roots = self.automatic.bounds([self.tables[name]._node for name in names], number)
        bounded = {name: self.tables[name]._then(root) for name, root in zip(names, roots, strict=True)}
        return {**self.tables, **bounded}

    def settled(self) -> Mapping[str, Any]:
        """Charge for the choice, make it, and give the tables that it bounds.

        Raises:
            BudgetError, LedgerError: Nothing was charged.
        """
        return self.under(self.automatic.number(self.statement.groups))


def settling(
    query: str, tables: Mapping[str, Any], *, epsilon: Amount | None, keys: Any, bounds: Any, analyst: str | None
) -> Settling | None:
    """The choice of a bound that a query needs before it is asked; None where it needs none.

    Args:
        query: The query.
        tables: Its tables.
        epsilon: What choice and answers cost together.
        keys: The groups to show; None where they are published.
        bounds, analyst: Those of `sql`.

    Raises:
        PlanError: It cannot be read, several bounds wait, or no epsilon is given.
    """
    if not any(isinstance(table, Collection) and waiting([table._node]) for table in tables.values()):
        return None
    statement = prepare(query, tables, bounds)
    listed = keys is not None or not statement.keys
    bins = 1 if not statement.keys else None if keys is None else bin_blocks(keys, statement.schema).rows
    amount = positive(1 if epsilon is None else epsilon, f"{CALL}(epsilon=...)")
    measured = [
        *statement.counts,
        *statement.published_from(listed),
        *(number.collection for number in statement.numbers),
    ]
    plans = [collection._node for collection in measured]
    choice = priced(statement.groups, plans, amount, bins, parts=max(1, statement.parts(listed)), analyst=analyst)
    if choice is None:
        return None
    if epsilon is None:
        raise PlanError(f"{CALL}(at_most='auto'): the choice costs a part of epsilon; give epsilon=.")
    return Settling(tables, statement, choice)


def rebounded(tables: Mapping[str, Any], at_most: object, per: object) -> Mapping[str, Any]:
    """The tables under the bound of a query.

    Args:
        tables: The tables by name.
        at_most: How many records of each person, in each table of people, or by table; "auto" for a number that is
            chosen when the query is charged; None for the bound that they were protected with.
        per: A column and a number beside it, or by table.

    Raises:
        PlanError: There is no table of people, or none of a name; or see `Collection.at_most`.
    """
    if at_most is None:
        if per is not None:
            raise PlanError(f"{CALL}(per=...): goes with at_most=, a number of records.")
        return tables
    people = [
        name for name, table in tables.items() if isinstance(table, Collection) and table._node.bounds_units is not None
    ]
    numbers = at_most if isinstance(at_most, Mapping) else dict.fromkeys(people, at_most)
    columns = per if isinstance(per, Mapping) else dict.fromkeys(numbers, per)
    unknown = [name for name in (*numbers, *columns) if name not in people]
    if unknown or not people:
        which = f"table {unknown[0]!r}" if unknown else "each table"
        raise PlanError(f"{CALL}(at_most=...): {which} is no table of people, as protect(unit=users(...)) gives it.")
    return {
        name: table.at_most(numbers[name], per=columns.get(name)) if name in numbers else table
        for name, table in tables.items()
    }
