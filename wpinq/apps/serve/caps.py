"""Caps: an analyst without one asks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from wpinq import Quote
from wpinq.apps.serve.catalogue import Opened
from wpinq.apps.serve.config import Limits
from wpinq.apps.serve.refusals import RefusedError
from wpinq.core import allowances
from wpinq.errors import PlanError
from wpinq.exact import exact

CAPLESS = "the curator has set no cap for this analyst, so nothing can be asked: wpinq token make ... --cap EPSILON."


DELTA = (
    "the curator has set no cap of delta for this analyst, so groups are given, and not published: keys=[...], or"
    " wpinq token make ... --cap-delta DELTA."
)


def insist_on_any_cap(data: Iterable[Opened], analyst: str) -> None:
    """Refuse an analyst without any cap, before a question is read: it must cost nothing to refuse.

    Raises:
        RefusedError: The analyst has none in any of the ledgers.
    """
    ledgers = {opened.ledger.identity: opened.ledger for opened in data}.values()
    if ledgers and all(allowances(ledger, analyst)[0].cap is None for ledger in ledgers):
        raise RefusedError(409, CAPLESS)


def insist_on_cap(quotes: Sequence[Quote[Any]], analyst: str, limits: Limits, delta: Fraction | None = None) -> None:
    """Refuse an analyst without a cap: a budget that one analyst may spend alone is no allocation.

    What costs delta needs a cap of delta too, and what costs next to nothing is refused.

    A cap is never taken away, so whoever has one now has one when it is charged; the ledger checks both in one
    transaction.

    Raises:
        RefusedError: The analyst has none in one of the ledgers.
        PlanError: It costs less than the least.
    """
    least = exact(limits.least, "limits.least")
    if any(quote.epsilon < least and 2 * quote.rho < least**2 for quote in quotes):
        raise PlanError(f"a part of it costs less than epsilon {limits.least}, the least here; spend more on it.")
    for ledger in {data.ledger.identity: data.ledger for quote in quotes for data in quote.sources}.values():
        allowance = allowances(ledger, analyst)[0]
        if allowance.cap is None:
            raise RefusedError(409, CAPLESS)
        if (delta or any(quote.delta for quote in quotes)) and allowance.delta_cap is None:
            raise RefusedError(409, DELTA)
