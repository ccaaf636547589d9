"""What the curator sees and does over HTTP: the ledgers, caps, and tokens; and what an analyst has asked."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

from wpinq.apps.remote.admin import Cap, Capped, GrantTold, History, Ledgers, LedgerTold, Paid, Row, Tokens
from wpinq.apps.remote.pricing import left
from wpinq.apps.remote.wire import Left, exact_text
from wpinq.apps.serve.catalogue import Opened
from wpinq.apps.serve.operations import Call, Operation
from wpinq.apps.serve.refusals import RefusedError
from wpinq.apps.serve.tokens import Grant
from wpinq.core import Allowance, Entry, Ledger
from wpinq.exact import exact

LAST = 1_000
"""Rows that are told of a ledger: the last ones. `wpinq ledger export` has them all."""


async def ledger(call: Call[None]) -> Ledgers:
    """The ledgers of the data sets: what was charged, by whom, and the caps. For curators."""

    def ledgers() -> Ledgers:
        return Ledgers(data=[_described(data, call.grant.analyst) for data in _mine(call)])

    return await call.site.desk.quoted(call.grant.analyst, ledgers)


async def cap(call: Call[Cap]) -> Left:
    """Cap what an analyst may spend of a data set: all in all, of what was spent before too. For curators."""
    wanted = [data for data in _mine(call) if data.name == call.body.data]
    if not wanted:
        raise RefusedError(403)

    def done() -> Left:
        account = wanted[0].ledger
        delta = None if call.body.delta is None else exact(call.body.delta, "delta")
        account.cap(call.body.analyst, exact(call.body.cap, "cap"), delta)
        return left(Allowance.of(account, call.body.analyst)[0])

    return await call.site.desk.quoted(call.grant.analyst, done)


async def tokens(call: Call[None]) -> Tokens:
    """The tokens for the curator's data sets, without what opens anything. For curators."""
    return Tokens(tokens=[_grant_shown(grant) for grant in call.site.tokens.all() if _within(grant, call.grant)])


async def revoke(call: Call[None]) -> GrantTold:
    """Refuse a token from now on, at every server of this file of tokens. For curators."""
    name = call.path["id"]
    if not any(grant.id == name and _within(grant, call.grant) for grant in call.site.tokens.all()):
        raise RefusedError(403)
    call.site.tokens.revoke(name)
    return next(_grant_shown(grant) for grant in call.site.tokens.all() if grant.id == name)


async def history(call: Call[None]) -> History:
    """What this analyst has asked and paid, the last thousand questions."""

    def answer() -> History:
        rows: list[Paid] = []
        for data in _mine(call):
            charges = [
                row for row in _entries(data.ledger) if row.kind == "charge" and row.analyst == call.grant.analyst
            ]
            rows += [Paid(at=row.at, name=row.label, analyst=row.analyst, epsilon=_amount(row.epsilon),
                          delta=_amount(row.delta)) for row in charges]  # fmt: skip
        return History(analyst=call.grant.analyst, asked=sorted(rows, key=lambda row: row.at)[-LAST:])

    return await call.site.desk.quoted(call.grant.analyst, answer)


_READ: WeakKeyDictionary[Ledger, tuple[tuple[int, str], list[Entry]]] = WeakKeyDictionary()


def _entries(ledger: Ledger) -> list[Entry]:
    """The rows of a ledger, read once for as long as none was added: reading all of them keeps charges waiting."""
    state, read = ledger.state(), _READ.get(ledger)
    last = state.rows, state.code
    if read is None or read[0] != last:
        read = _READ[ledger] = last, ledger.entries()
    return read[1]


def _mine(call: Call[Any]) -> list[Opened]:
    """The data sets of a token, each ledger once."""
    ledgers = {data.ledger.identity: data for data in call.site.catalogue.data.values() if data.name in call.grant.data}
    return list(ledgers.values())


def _within(grant: Grant, curator: Grant) -> bool:
    return set(grant.data) <= set(curator.data)


def _grant_shown(grant: Grant) -> GrantTold:
    return GrantTold(
        id=grant.id, analyst=grant.analyst, data=list(grant.data), made=grant.made, expires=grant.expires,
        curator=grant.curator, revoked=grant.revoked,
    )  # fmt: skip


def _described(of: Opened, curator: str) -> LedgerTold:
    account = of.ledger
    capped = [
        Capped(analyst=name, cap=exact_text(allowance.cap), spent=exact_text(allowance.spent),
               delta_spent=exact_text(allowance.delta_spent),
               delta_cap=None if allowance.delta_cap is None else exact_text(allowance.delta_cap))
        for name, allowance in Allowance.capped(account).items()
    ]  # fmt: skip
    rows = [row for row in account.entries() if not row.internal]
    return LedgerTold(
        unit=account.unit, left=left(Allowance.of(account, curator)[0]), caps=capped, rows=len(rows),
        entries=_rows(rows[-LAST:]),
    )  # fmt: skip


def _amount(number: Fraction | None) -> str | None:
    return None if number is None else exact_text(number)


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
