"""What a curator asks and is told, histories, and published releases: the rest of the contract."""

from __future__ import annotations

import datetime as dt
from typing import Any

from wpinq.apps.remote.wire import Amount, Left, Request, Told, Word


class Cap(Request, frozen=True, kw_only=True):
    """What an analyst may spend of a data set: epsilon, or rho, and delta; without it a cap of delta stays as it is."""

    data: Word
    analyst: Word
    cap: Amount
    delta: Amount | None = None


class Capped(Told, frozen=True):
    """An analyst's caps, and what was spent of them."""

    analyst: str
    cap: str
    spent: str
    delta_cap: str | None
    delta_spent: str


class Row(Told, frozen=True):
    """A row of a ledger: what was charged, by whom, on which version; or a cap, or a new budget.

    `within` says of a table whose its records are, and of a charge within which bound of each person's it was asked.
    """

    number: int
    at: str
    kind: str
    name: str
    version: str
    analyst: str
    epsilon: str | None
    delta: str | None
    within: str = ""


class LedgerTold(Told, frozen=True):
    """A ledger: its unit, what is left, the caps, how many rows it has, and the last ones."""

    unit: str
    left: Left
    caps: list[Capped]
    rows: int
    entries: list[Row]


class Ledgers(Told, frozen=True):
    """The ledgers of some data sets."""

    data: list[LedgerTold]


class Paid(Told, frozen=True):
    """A question that an analyst has asked, and what it cost: nothing that follows from records, such as a version."""

    at: str
    name: str
    analyst: str
    epsilon: str | None
    delta: str | None


class History(Told, frozen=True):
    """What an analyst has asked and paid."""

    analyst: str
    asked: list[Paid]


class GrantTold(Told, frozen=True):
    """A token, without what opens anything."""

    id: str
    analyst: str
    data: list[str]
    made: dt.datetime
    expires: dt.datetime
    curator: bool
    revoked: dt.datetime | None


class Tokens(Told, frozen=True):
    """Some tokens."""

    tokens: list[GrantTold]


class Edition(Told, frozen=True):
    """A published period: from its start to its end, with the tables and files that were published of it."""

    period: str
    files: list[str]
    start: str
    end: str
    tables: list[str]


class Editions(Told, frozen=True):
    """The published periods of a release."""

    periods: list[Edition]


class WindowsAsked(Request, frozen=True, kw_only=True):
    """Which windows to tell: of one table, those that come after a period; without one, from the first on."""

    table: Word
    after: Word | None = None


class WindowTold(Told, frozen=True):
    """What was published of one period: rows, and the ends of their intervals; None where a cell is not noisy."""

    period: str
    start: str
    end: str
    rows: list[list[Any]]
    intervals: list[list[tuple[float, float] | None]]


class Windows(Told, frozen=True):
    """Windows of a release in the order of time; where there are `more`, ask again after the last."""

    columns: list[str]
    types: list[str]
    windows: list[WindowTold]
    more: bool


class Content(Told, frozen=True):
    """A file, in Base64."""

    file: str
    content: bytes
