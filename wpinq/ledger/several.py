"""One measurement over several data sets, each with a ledger of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from wpinq.ledger.books import Charge
from wpinq.ledger.ledger import Ledger


def charge_all(requests: Sequence[tuple[Ledger, Charge]]) -> list[bool]:
    """Charge one measurement to several data sets: all or none.

    All ledgers are locked in one order and checked before the first is written. A crash in between leaves a
    charge without an answer, never an answer without a charge. Requests of one question, version and ledger
    are added up: the people of two sources that share a ledger lose the sum.

    Returns:
        For each request whether it was charged now.

    Raises:
        BudgetError: One of them does not fit; nothing was written.
        LedgerError: One of them cannot be trusted or written.
    """
    ledgers = {ledger._store.key: ledger for ledger, _ in requests}
    merged: dict[tuple[tuple[int, int], tuple[str, str]], Charge] = {}
    for ledger, charge in requests:
        place = ledger._store.key, charge.key
        costs = (*merged[place].costs, *charge.costs) if place in merged else charge.costs
        merged[place] = Charge(charge.question, costs, charge.version, charge.label, charge.analyst)
    with ExitStack() as stack:
        sessions = {key: stack.enter_context(ledgers[key]._session()) for key in sorted(ledgers)}
        charged = {place: sessions[place[0]].charge(charge) for place, charge in merged.items()}
        for session in sessions.values():
            session.commit()
    return [charged[ledger._store.key, charge.key] for ledger, charge in requests]
