"""Questions that are charged again: on another version of the data, or by another version of Python. It is said first.

A new version of the data is a new release, of which people who are in both versions lose the sum. Nothing is decided
here but whether to go on: what a question costs is decided by its fingerprint.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger.versions import name_of
from wpinq.core.plan.node import fingerprints
from wpinq.errors import BudgetError, PlanError
from wpinq.progress import notebook, terminal

if TYPE_CHECKING:
    from wpinq.core.pricing.quote import Quote

REPEATS = ("charge", "ask", "refuse")
STREAM = (
    "a stream goes on with what it was charged for, and nothing was charged. Start it with the Python, wpinq and "
    "libraries of before, or ask by another name=, which is charged; wpinq.versioned spares the next time."
)
UNKNOWN = (
    "{}: a function in it has no fingerprint, so after a restart of the stream (live(recover=...)) it would be charged "
    'again as a new question; nothing was charged. Name the function, wpinq.versioned(f, "1"), or write SQL.'
)


def announce(quotes: Sequence[Quote[Any]]) -> None:
    """Say which questions would be charged again, and ask or refuse where the data set says so (`protect(repeat=)`).

    Raises:
        BudgetError: It is refused; nothing was charged.
        PlanError: Of a stream that is kept for a restart it would be charged at each; nothing was charged.
    """
    for quote in quotes:
        if any(data.kept for data in quote.sources) and not fingerprints(quote.node)[quote.node]:
            raise PlanError(UNKNOWN.format(quote.label))
        before = {ledger.repeated(charge): charge for ledger, charge in quote.charges if charge.asked}
        before.pop(None, None)
        if not before:
            continue
        version, charge = next(iter(before.items()))
        what = _announced(quote, version or "", same=version == charge.version)
        modes = {data.repeat for data in quote.sources}
        if version == charge.version and any(data.live for data in quote.sources):
            raise BudgetError(f"{what}; {STREAM}", requested=quote.epsilon or quote.rho)
        if "refuse" in modes or ("ask" in modes and not _agreed(what)):
            raise BudgetError(
                f"{what}; repeat= refuses that, and nothing was charged.", requested=quote.epsilon or quote.rho
            )
        if "ask" not in modes:
            warnings.warn(f"{what}.", RuntimeWarning, stacklevel=2)


def _announced(quote: Quote[Any], version: str, *, same: bool) -> str:
    names = " and ".join(repr(data.name) for data in quote.sources)
    why = (
        "by another version of Python, wpinq or of a library, which may compute something else"
        if same
        else f"for another version, {name_of(version)!r}, of the data; who is in both loses both"
    )
    return f"{quote.label}: this question about {names} was answered {why}: it costs {quote.payment.text} again"


def _agreed(what: str) -> bool:
    """Nobody agrees where nobody can be asked."""
    return reply(f"{what}. Charge it? [y/N] ").lower() in ("y", "yes")


def reply(question: str) -> str:
    """Ask at a terminal or in a notebook; an empty text where nobody can be asked."""
    if not (notebook() or (terminal(sys.stdin) and terminal(sys.stderr))):
        return ""
    sys.stderr.write(question)
    sys.stderr.flush()
    try:
        return input().strip()
    except (EOFError, OSError):
        return ""
