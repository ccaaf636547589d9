"""One locked use of a ledger: its verified rows, the accountant's totals, and rows that are still to be written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from hmac import compare_digest
from itertools import islice
from typing import Any

from wpinq.errors import ChangedError, ExactnessError, LedgerError, WpinqError
from wpinq.exact import decimal
from wpinq.ledger import chain
from wpinq.ledger.accountant import CONTENT, Accountant, Entry
from wpinq.ledger.chain import RefusedError, Row
from wpinq.ledger.charge import Charge, key
from wpinq.ledger.cost import ZERO, write
from wpinq.ledger.secret import Secret
from wpinq.ledger.store import Pages
from wpinq.ledger.versions import BETWEEN, Pin
from wpinq.records.fields import encode

CLOSED = (
    "this version of the data is closed: what was measured before cannot be reproduced from the data as they are now."
    " Protect them under another version=, at a new charge."
)
CHANGED = (
    "{title}: holds other records than those first read as {version!r} on {day}; nothing was charged. If this is the"
    " next version, name it: version={today!r}."
)


class Session:
    """One use of a ledger, under its lock.

    Args:
        pages: The locked ledger.
        secret: The data set's secret.
        known: What an earlier session of the same ledger has entered; new rows are verified and entered in it.

    Attributes:
        before: All rows that were durable when the session began.
        accountant: A draft of these and of the rows that are staged.

    Raises:
        RefusedError: The ledger cannot be trusted.
    """

    def __init__(self, pages: Pages, secret: Secret, known: Accountant) -> None:
        self._pages, self._secret = pages, secret
        self._pending: list[Row] = []
        self.before = self._caught_up(known)
        self.accountant = self.before.draft()

    def _caught_up(self, known: Accountant) -> Accountant:
        start = known if known.last and not known.torn else self._pages.kept()
        if self._pages.untouched and self._extends(start, whole=False):
            return start
        if self._extends(start, whole=True):
            return start
        if start is known:
            raise RefusedError("it is another ledger than the one that was opened; open it again.")
        fresh = Accountant()
        self._extends(fresh, whole=True)
        return fresh

    def _extends(self, start: Accountant, *, whole: bool) -> bool:
        """Enter the rows that came after those that an accountant has, if it has rows of this ledger.

        Args:
            start: The accountant.
            whole: Whether all rows are verified, and not only those that come after.

        Raises:
            RefusedError: The rows or the head cannot be trusted.
        """
        before: Row | None = None
        last = start.last
        rows = self._pages.rows(None if whole or not last else last.number - 1)
        if not whole and last:
            near = {row.number: row for row in islice(rows, 2 if last.number > 1 else 1)}
            if last.number not in near or not compare_digest(near[last.number].mac, last.mac):
                return False
            before = near.get(last.number - 1)
        else:
            last = None
        draft = start.draft() if start.last else start
        ours = not whole or start.last is None
        for row in chain.follow(self._secret, last, rows):
            before, last = last, row
            if ours:
                enter(draft, row)
            elif start.last and row.number == start.last.number:
                ours = compare_digest(row.mac, start.last.mac)
        if chain.behind(self._secret, before, last, self._pages.head()):
            self._pages.adopt(chain.head(self._secret, last))
        if ours and draft is not start:
            start.settled(draft)
        return ours

    def replayed(self) -> list[Entry]:
        """All rows, from the first, each of which is verified and entered again.

        Raises:
            RefusedError: They are not what was verified before.
        """
        fresh = Accountant()
        rows = chain.follow(self._secret, None, self._pages.rows(None))
        entries = [Entry(**enter(fresh, row)) for row in rows]
        if fresh != self.before:
            raise RefusedError(chain.EDITED)
        return entries

    def code(self, number: int) -> str | None:
        """The code of a row, which covers all rows before it; None where there is none."""
        row = next(iter(self._pages.rows(number)), None)
        return None if row is None or row.number != number else row.mac.hex()

    def ended(self) -> None:
        """Take over what was made durable, and let the next session begin there."""
        if not self._pending:
            self._pages.keep(self.before.settled(self.accountant))

    def stage(self, body: dict[str, Any]) -> None:
        """Check a row against the totals and add it; nothing is written yet.

        Raises:
            BudgetError: A charge that does not fit.
        """
        body = {**body, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        row = chain.link(self._secret, self.accountant.last, json.dumps(body, sort_keys=True))
        self.accountant.apply(body, row)
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
            self.accountant.refuse_gaussian(charge)
            self.stage(charge.body(curves=self.accountant.spent.curves))
            return True
        if held != charge.code:
            raise LedgerError(f"{charge.label}: it was charged before at another cost; give the measurement a name=.")
        return False

    def cap(self, analyst: str, epsilon: Fraction, delta: Fraction | None) -> None:
        """Stage an analyst's caps.

        Raises:
            ExactnessError: One is negative or above what all may spend together.
        """
        promise = self.accountant.promise
        for amount, most, what in ((epsilon, promise.budget, "budget"), (delta or ZERO, promise.failing, "delta")):
            if not 0 <= amount <= most:
                raise ExactnessError(f"cap: {decimal(amount)} is not between 0 and the {what}, {decimal(most)}.")
        if delta is not None:
            self.stage({"kind": "delta_cap", "analyst": analyst, "delta": write(delta)})
        self.stage({"kind": "cap", "analyst": analyst, "epsilon": write(epsilon)})

    def seal(self, question: str, version: str, digest: bytes) -> None:
        """Set a digest or compare it with the one that is set; close the version when they differ."""
        self.refuse_closed(version)
        code = self.coded(question, version, digest)
        held = self.accountant.seals.get(key(question, version))
        if held is None:
            self.stage({"kind": "seal", "question": question, "version": version, "mac": code})
            self.commit()
        elif not compare_digest(held, code):
            self.close(version)
            raise LedgerError(CLOSED)

    def pin(self, pin: Pin) -> None:
        """Stage the content of a version where none was pinned that was read so; else compare it.

        Raises:
            ChangedError: It is other content.
            LedgerError: The version is closed.
        """
        self.refuse_closed(pin.version)
        if pin.digest is None:
            return
        question = f"{CONTENT} {pin.way}".strip()
        code, held = self.coded(question, pin.version, pin.digest), self.pinned(pin)
        if held is None:
            self.stage({"kind": "seal", "question": question, "version": pin.version, "mac": code})
        elif not compare_digest(held, code):
            now = datetime.now(UTC).date().isoformat()
            day, name = self.accountant.contents[pin.version][:10], pin.version.rpartition(BETWEEN)[2]
            raise ChangedError(CHANGED.format(title=pin.title, version=name, day=day, today=now))

    def pinned(self, pin: Pin) -> str | None:
        """The code of the content that is pinned, of a version that was read so."""
        return self.accountant.seals.get(key(f"{CONTENT} {pin.way}".strip(), pin.version))

    def coded(self, question: str, version: str, digest: bytes) -> str:
        """The code of a digest, from which nobody without the secret learns whether two are equal."""
        return self._secret.mac("ledger seal", encode(self.accountant.identity, question, version, digest)).hex()

    def close(self, version: str) -> None:
        """Close a version for every question, durably."""
        if version not in self.accountant.poisoned:
            self.stage({"kind": "poison", "version": version})
            self.commit()

    def refuse_closed(self, version: str) -> None:
        """Refuse a version whose data changed, with the same message for every query."""
        if version in self.accountant.poisoned:
            raise LedgerError(CLOSED)


def enter(accountant: Accountant, row: Row) -> dict[str, Any]:
    """Enter a row that was read; its code was right, so only another version of wpinq explains a failure."""
    try:
        return accountant.apply(json.loads(row.body), row)
    except (WpinqError, KeyError, ValueError, TypeError, AttributeError):
        raise RefusedError("its rows were written by another version of wpinq; use that version.") from None
