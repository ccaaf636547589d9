"""What the curator sees and does over HTTP: the ledgers, caps, and tokens; and what an analyst has asked."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

from wpinq.apps.remote.admin import Cap, Capped, GrantTold, History, Ledgers, LedgerTold, Paid, Row, Tokens
from wpinq.apps.remote.pricing import left
from wpinq.apps.remote.wire import Left, told
from wpinq.apps.serve.catalogue import Opened
from wpinq.apps.serve.operations import Call, Operation
from wpinq.apps.serve.refusals import RefusedError
from wpinq.apps.serve.tokens import Grant
from wpinq.core import Entry, Ledger, allowances, caps
from wpinq.exact import exact

LAST = 1_000
"""Rows that are told of a ledger: the last ones. `wpinq ledger export` has them all."""


async def ledger(call: Call[None]) -> Ledgers:
    """The ledgers of the data sets: what was charged, by whom, and the caps. For curators."""

    def found() -> Ledgers:
        return Ledgers(data=[_told(one, call.grant.analyst) for one in _mine(call)])

    return await call.site.desk.quoted(call.grant.analyst, found)


async def cap(call: Call[Cap]) -> Left:
    """Cap what an analyst may spend of a data set: all in all, of what was spent before too. For curators."""
    wanted = [one for one in _mine(call) if one.name == call.body.data]
    if not wanted:
        raise RefusedError(403)

    def done() -> Left:
        account = wanted[0].ledger
        delta = None if call.body.delta is None else exact(call.body.delta, "delta")
        account.cap(call.body.analyst, exact(call.body.cap, "cap"), delta)
        return left(allowances(account, call.body.analyst)[0])

    return await call.site.desk.quoted(call.grant.analyst, done)


async def tokens(call: Call[None]) -> Tokens:
    """The tokens for the curator's data sets, without what opens anything. For curators."""
    return Tokens(tokens=[_granted(one) for one in call.site.tokens.all() if _within(one, call.grant)])


async def revoke(call: Call[None]) -> GrantTold:
    """Refuse a token from now on, at every server of this file of tokens. For curators."""
    name = call.path["id"]
    if not any(one.id == name and _within(one, call.grant) for one in call.site.tokens.all()):
        raise RefusedError(403)
    call.site.tokens.revoke(name)
    return next(_granted(one) for one in call.site.tokens.all() if one.id == name)


async def history(call: Call[None]) -> History:
    """What this analyst has asked and paid, the last thousand questions."""

    def found() -> History:
        rows: list[Paid] = []
        for one in _mine(call):
            own = [row for row in _entries(one.ledger) if row.kind == "charge" and row.analyst == call.grant.analyst]
            rows += [Paid(at=row.at, name=row.label, analyst=row.analyst, epsilon=_amount(row.epsilon),
                          delta=_amount(row.delta)) for row in own]  # fmt: skip
        return History(analyst=call.grant.analyst, asked=sorted(rows, key=lambda row: row.at)[-LAST:])

    return await call.site.desk.quoted(call.grant.analyst, found)


_READ: WeakKeyDictionary[Ledger, tuple[tuple[int, str], list[Entry]]] = WeakKeyDictionary()


def _entries(ledger: Ledger) -> list[Entry]:
    """The rows of a ledger, read once for as long as none was added: reading all of them keeps charges waiting."""
    state, found = ledger.state(), _READ.get(ledger)
    last = state.rows, state.code
    if found is None or found[0] != last:
        found = _READ[ledger] = last, ledger.entries()
    return found[1]


def _mine(call: Call[Any]) -> list[Opened]:
    """The data sets of a token, each ledger once."""
    found = {one.ledger.identity: one for one in call.site.catalogue.data.values() if one.name in call.grant.data}
    return list(found.values())


def _within(one: Grant, curator: Grant) -> bool:
    return set(one.data) <= set(curator.data)


def _granted(one: Grant) -> GrantTold:
    return GrantTold(
        id=one.id, analyst=one.analyst, data=list(one.data), made=one.made, expires=one.expires,
        curator=one.curator, revoked=one.revoked,
    )  # fmt: skip


def _told(of: Opened, curator: str) -> LedgerTold:
    account = of.ledger
    found = [
        Capped(analyst=name, cap=told(one.cap), spent=told(one.spent), delta_spent=told(one.delta_spent),
               delta_cap=None if one.delta_cap is None else told(one.delta_cap))
        for name, one in caps(account).items()
    ]  # fmt: skip
    rows = [row for row in account.entries() if not row.internal]
    return LedgerTold(
        unit=account.unit, left=left(allowances(account, curator)[0]), caps=found, rows=len(rows),
        entries=_rows(rows[-LAST:]),
    )  # fmt: skip


def _amount(number: Fraction | None) -> str | None:
    return None if number is None else told(number)


def _rows(rows: Iterable[Entry]) -> list[Row]:
    return [
        Row(number=row.number, at=row.at, kind=row.kind, name=row.label, version=row.version,
            analyst=row.analyst, epsilon=_amount(row.epsilon), delta=_amount(row.delta), within=row.within)
        for row in rows
    ]  # fmt: skip


CURATING = (
    Operation("GET", "/api/history", History, history),
    Operation("GET", "/api/ledger", Ledgers, ledger, curator=True),
    Operation("PUT", "/api/caps", Left, cap, Cap, curator=True),
    Operation("GET", "/api/tokens", Tokens, tokens, curator=True),
    Operation("DELETE", "/api/tokens/{id}", GrantTold, revoke, curator=True),
)
