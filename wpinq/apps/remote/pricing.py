"""Prices: what a question costs, which noise it will have, and what the analyst has left before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec

from wpinq import Quote
from wpinq.aggregates.expected_noise import ExpectedNoise
from wpinq.apps.remote.wire import Expected, Left, Priced, exact_text
from wpinq.core import LEVEL, About, Allowance, Charge, Ledger
from wpinq.query import Quoted


def priced(quotes: Sequence[Quote[Any]], analyst: str | None, expected: Sequence[ExpectedNoise]) -> Priced:
    """What some quotes cost together, and what is left; nothing is charged.

    Args:
        quotes: All that one question is charged for.
        analyst: Who asks; None for the curator.
        expected: The noise of each column of the answer.

    Raises:
        LedgerError: A ledger cannot be trusted or read.
    """
    ledgers = _charges(quotes)
    allowed = [Allowance.of(ledger, analyst, list(charges.values())) for ledger, charges in ledgers.values()]
    about = About("", [quote.query for quote in quotes])
    cost = {"epsilon": exact_text(about.epsilon), "delta": exact_text(delta_of(quotes))}
    return Priced(
        cost=cost | ({"rho": exact_text(about.rho)} if about.rho else {}),
        free=all(ledger.holds(charge) for ledger, charges in ledgers.values() for charge in charges.values()),
        expected=[msgspec.convert(noise, Expected, from_attributes=True) for noise in expected],
        level=float(LEVEL),
        now=[left(now) for now, _ in allowed],
        after=[left(after) for _, after in allowed],
        more=min(after.more for _, after in allowed),
        fits=all(after.fits for _, after in allowed),
    )


def _charges(quotes: Sequence[Quote[Any]]) -> dict[str, tuple[Ledger, dict[bytes, Charge]]]:
    """What each ledger is asked for, each charge once."""
    ledgers: dict[str, tuple[Ledger, dict[bytes, Charge]]] = {}
    for ledger, charge in (request for quote in quotes for request in quote.charges):
        ledgers.setdefault(ledger.identity, (ledger, {}))[1][charge.key] = charge
    return ledgers


def delta_of(quotes: Sequence[Quote[Any]]) -> Fraction:
    """The delta that some quotes cost together: of publishing groups, and of Gaussian noise; the most of any ledger."""
    paid = [[cost.delta for charge in each.values() for cost in charge.costs] for _, each in _charges(quotes).values()]
    return max((sum(deltas, Fraction(0)) for deltas in paid), default=Fraction(0))


def left(allowance: Allowance) -> Left:
    """What is left of a data set, as it is told."""
    cap, own_left, delta_cap, delta_own = (
        None if amount is None else exact_text(amount)
        for amount in (allowance.cap, allowance.own, allowance.delta_cap, allowance.delta_own)
    )
    return Left(
        data=allowance.name, kind=allowance.kind, budget=exact_text(allowance.budget),
        left=exact_text(allowance.left), cap=cap, own=own_left, delta=exact_text(allowance.delta),
        delta_left=exact_text(allowance.delta_left), delta_cap=delta_cap, delta_own=delta_own,
    )  # fmt: skip


def priced_sql(quote: Quoted, analyst: str | None) -> Priced:
    """What a query costs, by its columns; nothing is charged.

    Raises:
        LedgerError: See `priced`.
    """
    price = priced(quote.quotes, analyst, quote.expected)
    return msgspec.structs.replace(price, threshold=quote.threshold)
