"""Prices: what a question costs, which noise it will have, and what the analyst has left before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from wpinq.ledger import Allowance, Charge, Ledger, allowances
from wpinq.measurements.about import About
from wpinq.measurements.answer import LEVEL
from wpinq.measurements.quote import Quote
from wpinq.remote.wire import Expected, Left, Priced, told
from wpinq.serve.refusals import RefusedError

CAPLESS = "the curator has set no cap for this analyst, so nothing can be asked: wpinq token make ... --cap EPSILON."


def priced(quotes: Sequence[Quote[Any]], analyst: str, expected: list[Expected], delta: Fraction) -> Priced:
    """What some quotes cost together, and what is left; nothing is charged.

    Raises:
        RefusedError: The analyst has no cap.
        LedgerError: A ledger cannot be trusted or read.
    """
    insist_on_cap(quotes, analyst)
    ledgers: dict[str, tuple[Ledger, dict[bytes, Charge]]] = {}
    for ledger, charge in (request for quote in quotes for request in quote.charges):
        ledgers.setdefault(ledger.identity, (ledger, {}))[1][charge.key] = charge
    found = [allowances(ledger, analyst, list(charges.values())) for ledger, charges in ledgers.values()]
    about = About("", [quote.query for quote in quotes])
    cost = {"epsilon": told(about.epsilon), "delta": told(delta)}
    return Priced(
        cost=cost | ({"rho": told(about.rho)} if about.rho else {}),
        free=all(ledger.holds(charge) for ledger, charges in ledgers.values() for charge in charges.values()),
        expected=expected,
        level=float(LEVEL),
        now=[left(now) for now, _ in found],
        after=[left(after) for _, after in found],
        more=min(after.more for _, after in found),
    )


def insist_on_cap(quotes: Sequence[Quote[Any]], analyst: str) -> None:
    """Refuse an analyst without a cap: a budget that one analyst may spend alone is no allocation.

    A cap is never taken away, so whoever has one now has one when it is charged; the ledger checks both in one
    transaction.

    Raises:
        RefusedError: The analyst has none in one of the ledgers.
    """
    for ledger in {data.ledger.identity: data.ledger for quote in quotes for data in quote.sources}.values():
        if allowances(ledger, analyst)[0].cap is None:
            raise RefusedError(409, CAPLESS)


def left(one: Allowance) -> Left:
    """What is left of a data set, as it is told."""
    return Left(
        data=one.name, kind=one.kind, budget=told(one.budget), left=told(one.left),
        cap=None if one.cap is None else told(one.cap), own=None if one.own is None else told(one.own),
        delta=told(one.delta), delta_left=told(one.delta_left),
    )  # fmt: skip


def expected(quotes: Sequence[Quote[Any]], names: Sequence[str]) -> list[Expected]:
    """The noise of each column, from public facts only."""
    found = []
    for place, quote in enumerate(quotes):
        half = getattr(quote.query, "interval", None)
        found.append(
            Expected(
                column=names[place] if place < len(names) else quote.node.title,
                mechanism=str(getattr(quote.mechanism, "name", "")),
                scale=float(quote.scale),
                half_width=None if half is None else float(half(LEVEL)),
            )
        )
    return found
