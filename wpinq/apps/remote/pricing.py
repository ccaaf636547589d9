"""Prices: what a question costs, which noise it will have, and what the analyst has left before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec

from wpinq import Quote
from wpinq.aggregates.quoted import noise_of
from wpinq.apps.remote.wire import Expected, Left, Priced, told
from wpinq.core import LEVEL, About, Allowance, Charge, Ledger, allowances
from wpinq.query.answer import QuotedSql


def priced(
    quotes: Sequence[Quote[Any]], analyst: str | None, names: Sequence[str] = (), delta: Fraction = Fraction(0)
) -> Priced:
    """What some quotes cost together, and what is left; nothing is charged.

    Args:
        quotes: All that one question is charged for.
        analyst: Who asks; None for the curator.
        names: What their columns are called in the answer; what is left out is called by its last step.
        delta: What the question costs of delta.

    Raises:
        LedgerError: A ledger cannot be trusted or read.
    """
    ledgers: dict[str, tuple[Ledger, dict[bytes, Charge]]] = {}
    for ledger, charge in (request for quote in quotes for request in quote.charges):
        ledgers.setdefault(ledger.identity, (ledger, {}))[1][charge.key] = charge
    found = [allowances(ledger, analyst, list(charges.values())) for ledger, charges in ledgers.values()]
    about = About("", [quote.query for quote in quotes])
    cost = {"epsilon": told(about.epsilon), "delta": told(delta)}
    return Priced(
        cost=cost | ({"rho": told(about.rho)} if about.rho else {}),
        free=all(ledger.holds(charge) for ledger, charges in ledgers.values() for charge in charges.values()),
        expected=_expected(quotes, names),
        level=float(LEVEL),
        now=[left(now) for now, _ in found],
        after=[left(after) for _, after in found],
        more=min(after.more for _, after in found),
        fits=all(after.fits for _, after in found),
    )


def left(one: Allowance) -> Left:
    """What is left of a data set, as it is told."""
    cap, own, delta_cap, delta_own = (
        None if amount is None else told(amount) for amount in (one.cap, one.own, one.delta_cap, one.delta_own)
    )
    return Left(
        data=one.name, kind=one.kind, budget=told(one.budget), left=told(one.left), cap=cap, own=own,
        delta=told(one.delta), delta_left=told(one.delta_left), delta_cap=delta_cap, delta_own=delta_own,
    )  # fmt: skip


def _expected(quotes: Sequence[Quote[Any]], names: Sequence[str]) -> list[Expected]:
    """The noise of each column, from public facts only."""
    found = []
    for place, quote in enumerate(quotes):
        scale, half = noise_of(quote)
        found.append(
            Expected(
                column=names[place] if place < len(names) else quote.node.title,
                mechanism=str(getattr(quote.mechanism, "name", "")),
                scale=scale,
                half_width=half,
            )
        )
    return found


def priced_sql(asked: QuotedSql, analyst: str | None) -> Priced:
    """What a query costs, by its columns; nothing is charged.

    Raises:
        LedgerError: See `priced`.
    """
    labels = [item.label for item in asked.statement.items if type(item.node).__name__ == "Column"]
    names = [label for label in labels if label not in asked.statement.keys and not asked.statement.stepped]
    found = priced(asked.quotes, analyst, names, asked.lost or Fraction(0))
    return msgspec.structs.replace(found, threshold=asked.threshold)
