"""One locked use of a ledger: its verified rows, the accountant's totals, and rows that are still to be written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hmac import compare_digest
from typing import Any

from wpinq.errors import LedgerError, WpinqError
from wpinq.ledger import chain
from wpinq.ledger.accountant import Accountant, Charge
from wpinq.ledger.chain import RefusedError, Row
from wpinq.ledger.secret import Secret
from wpinq.ledger.store import Pages
from wpinq.records.fields import encode

CLOSED = (
    "this version of the data is closed: what was measured before cannot be reproduced from the data as they are now."
    " Protect them anew, under another version= where one is declared, at a new charge."
)


class Session:
    """One use of a ledger, under its lock.

    Args:
        pages: The locked ledger.
        secret: The data set's secret.
        known: The accountant of an earlier session of the same ledger, so that only new rows are verified and added.

    Attributes:
        accountant: The totals of all durable rows and of those that are staged.

    Raises:
        RefusedError: The ledger cannot be trusted.
    """

    def __init__(self, pages: Pages, secret: Secret, known: Accountant) -> None:
        self._pages, self._secret = pages, secret
        rows = pages.rows()
        count = len(known.rows)
        same = rows[:count] == known.rows
        if chain.verify(secret, rows, pages.head(), count if same else 0):
            pages.adopt(chain.head(secret, rows[-1]))
        self._last = rows[-1] if rows else None
        self._pending: list[Row] = []
        self.accountant = known.draft()
        if not same:
            raise RefusedError("it is another ledger than the one that was opened; open it again.")
        for row in rows[count:]:
            _enter(self.accountant, row)

    def stage(self, body: dict[str, Any]) -> None:
        """Check a row against the totals and add it; nothing is written yet.

        Raises:
            BudgetError: A charge that does not fit.
        """
        body = {**body, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        row = chain.link(self._secret, self._last, json.dumps(body, sort_keys=True))
        draft = self.accountant.draft()
        draft.apply(body, row)
        self.accountant, self._last = draft, row
        self._pending.append(row)

    def commit(self) -> None:
        """Make what was staged durable, row by row."""
        for row in self._pending:
            self._pages.commit(row, chain.head(self._secret, row))
        self._pending = []

    def charge(self, charge: Charge) -> bool:
        """Stage a charge, unless it was made before."""
        self.refuse_closed(charge.version)
        held = self.accountant.charges.get(charge.key)
        if held is None:
            self.stage(charge.body())
            return True
        if sorted(map(repr, held)) != sorted(map(repr, charge.costs)):
            raise LedgerError(f"{charge.label}: it was charged before at another cost; give the measurement a name=.")
        return False

    def seal(self, question: str, version: str, digest: bytes) -> None:
        """Set a digest or compare it with the one that is set; close the version when they differ."""
        self.refuse_closed(version)
        code = self._secret.mac("ledger seal", encode(self.accountant.identity, question, version, digest)).hex()
        held = self.accountant.seals.get((question, version))
        if held is None:
            self.stage({"kind": "seal", "question": question, "version": version, "mac": code})
            self.commit()
        elif not compare_digest(held, code):
            self.close(version)
            raise LedgerError(CLOSED)

    def close(self, version: str) -> None:
        """Close a version for every question, durably."""
        if version not in self.accountant.poisoned:
            self.stage({"kind": "poison", "version": version})
            self.commit()

    def refuse_closed(self, version: str) -> None:
        """Refuse a version whose data changed, with the same message for every query."""
        if version in self.accountant.poisoned:
            raise LedgerError(CLOSED)


def _enter(accountant: Accountant, row: Row) -> None:
    """Add a row that was read. Its code is valid, so if it cannot be read another version of wpinq wrote it."""
    try:
        accountant.apply(json.loads(row.body), row)
    except (WpinqError, KeyError, ValueError, TypeError, AttributeError):
        raise RefusedError("its rows were written by another version of wpinq; use that version.") from None
