"""Names of a table's columns that nobody listed: those of enough records are told, and the others stand under one.

Which names there are is chosen first (`select`), for a part of epsilon and for delta; then the table counts the records
of these names, and all other records as `other`. Names and table are asked only where both fit what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.ledger.budget import Allowance
from wpinq.core.ledger.sums.renyi import pure_within
from wpinq.core.measurements.answer import beside
from wpinq.core.measurements.query import commit
from wpinq.core.measurements.select import quote_select
from wpinq.core.plan.stability import Survey, by_ledger
from wpinq.core.pricing.privacy_cost import BEST, GAUSSIAN, probability
from wpinq.core.records.schema import Kind
from wpinq.errors import BudgetError, PlanError
from wpinq.exact import Amount, exact, positive
from wpinq.html.numbers import nearly

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core.measurements.answer import Answer
    from wpinq.core.pricing.quote import Quote

CALL = "table"
PLACEHOLDERS = {Kind.TEXT: "?", Kind.INT: "0", Kind.DATE: "2000-01-01"}
"""What stands for names that are not known yet, where the table is priced."""
ROOM = 1_000_000
"""Cells of a table; of more names than fit, the first by name are told."""


def placeholders(
    records: Collection, names: Sequence[str], categories: Mapping[str, Sequence[Any]]
) -> dict[str, list[str]]:
    """The columns whose values nobody listed, and which have no few values by their type; what stands for these."""
    kinds = {name: records._node.schema[name].kind for name in names if categories.get(name) is None}
    return {name: [PLACEHOLDERS[kind]] for name, kind in kinds.items() if kind in PLACEHOLDERS}


@dataclass(frozen=True)
class NameChoice:
    """The choice of the names of some columns.

    Attributes:
        quotes: What the choice of the names of each column costs.
        delta: What all of them cost each data set.
        rest: What is left for the table: `epsilon`, `rho` and `delta`.
    """

    quotes: Mapping[str, Quote[Any]]
    delta: Fraction
    rest: Mapping[str, Any]

    @property
    def lines(self) -> list[str]:
        """What it costs, for those who read the price."""
        return [
            f"names of {name} of enough records: epsilon {nearly(quote.epsilon)}, delta {nearly(quote.delta)}"
            for name, quote in self.quotes.items()
        ]

    def insist(self, others: Sequence[Quote[Any]]) -> None:
        """Refuse what costs more than is left, names and table together, before any is charged.

        Raises:
            BudgetError: It does.
        """
        quotes = [*self.quotes.values(), *others]
        ledgers = {ledger.identity: (ledger, charge.analyst) for quote in quotes for ledger, charge in quote.charges}
        for identity, (ledger, analyst) in ledgers.items():
            charges = [charge for quote in quotes for of, charge in quote.charges if of.identity == identity]
            if not Allowance.of(ledger, analyst, charges)[1].fits:
                raise BudgetError(
                    f"{CALL}: names and table cost more together than is left of the budget of {ledger.name!r}, or of"
                    " its delta; nothing was charged."
                )

    def charge(self, taken: Sequence[str], others: int) -> dict[str, list[str]]:
        """Charge for the names, and tell them: those that can be printed and are not taken.

        Args:
            taken: What the table calls other records, and totals.
            others: How many values the other columns have together.

        Raises:
            BudgetError, LedgerError: Nothing was charged.
        """
        most = int((ROOM / others) ** (1 / len(self.quotes))) - 2
        result = {}
        for name, selection in zip(self.quotes, commit(list(self.quotes.values())), strict=True):
            texts = selection.bins.to_series().cast(pl.String).drop_nulls().to_list()
            result[name] = [text for text in texts if text.isprintable() and text not in taken][:most]
        return result

    def described(self, answer: Answer) -> Answer:
        """The answer of the table, with what names cost beside it; they were charged."""
        made = commit(list(self.quotes.values()))
        return beside(answer, f"names of {' and '.join(self.quotes)}", made, self.delta)


def choose_names(
    records: Collection, columns: Sequence[str], costs: Mapping[str, Amount | None], parts: int, *, mechanism: str,
    name: str | None = None, analyst: str | None = None,
) -> NameChoice:  # fmt: skip
    """Price the choice of names.

    Args:
        records: The records under their bound.
        columns: Whose names are chosen.
        costs: What names and table cost in all: `epsilon` or `rho`, and `delta`, which is of the names.
        parts: How many measurements the table has; each, and the names of each column, cost the same.
        mechanism: What adds noise to the table.
        name, analyst: See `table`.

    Raises:
        PlanError: No delta is given, or it would be that of the noise too.
    """
    delta = costs.get("delta")
    if delta is None:
        raise PlanError(
            f"{CALL}(categories=...): list the values of {columns[0]!r}, which do not depend on the records; or give"
            " delta=, for example 1e-6, to name those of enough records."
        )
    if mechanism in (GAUSSIAN, BEST) and costs.get("epsilon") is not None:
        raise PlanError(
            f"{CALL}(mechanism={mechanism!r}, epsilon=...): delta= pays for names here, so it cannot be that of the"
            " noise too; give rho= instead of epsilon=, or list all values."
        )
    paid = by_ledger(Survey.of(records._node).shares).values()
    ledgers, tables = max(sum(each, Fraction(0)) for each in paid), max(map(len, paid))
    lost = probability(delta, f"{CALL}(delta=...)") / len(columns) / tables
    part, rest = Fraction(1, parts + len(columns)), dict(costs, delta=None)
    for what in ("epsilon", "rho"):
        if costs.get(what) is not None:
            rest[what] = positive(costs[what], f"{CALL}({what}=...)") * part * parts
    if costs.get("rho") is not None:
        cost = pure_within(exact(costs["rho"], CALL) * part, None) / ledgers
    else:
        cost = positive(costs.get("epsilon"), f"{CALL}(epsilon=...)") * part / ledgers
    quotes = {
        column: quote_select(records.map(pl.col(column)), cost, lost, name=name, analyst=analyst) for column in columns
    }  # fmt: skip
    return NameChoice(quotes, lost * len(columns), rest)
