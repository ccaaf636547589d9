"""A transaction of a ledger, under its lock: its verified rows, what they add up to, and rows that are staged.

An act is one transaction: what it stages is written at its end, all of it or nothing, with one new head. Rows of one
act say so (`act`, the number of the first), so that a head that is behind by one act is known for what it is: that of
a process that was killed in between.

The state of a ledger at one moment: what it promises, what was spent, and its last row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NamedTuple

from wpinq.core.ledger.replay import caught_up, replayed
from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.rows.chain import Change, RefusedError, Row
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.rows.side import MEANWHILE, SideTable, Turn
from wpinq.core.ledger.stores.store import Pages
from wpinq.core.ledger.sums.accountant import Accountant, Entry
from wpinq.core.ledger.sums.checkpoint import EVERY
from wpinq.core.ledger.sums.cost import Charge, Composition, key, write_amount
from wpinq.core.ledger.sums.privacy_filter import Promise
from wpinq.core.ledger.versions import Pin, name_of
from wpinq.core.records.fields import encode
from wpinq.errors import ChangedError, InternalError, LedgerError

if TYPE_CHECKING:
    import psycopg


class Seal(NamedTuple):
    """The digest of what a question about a version was answered from."""

    question: str
    version: str
    digest: bytes


@dataclass(frozen=True)
class LedgerState:
    """A ledger as one transaction read it; what others charge later does not change it.

    Attributes:
        name: The data set.
        unit: The privacy unit and its bound.
        promise: What it promises in all, and how charges are added up.
        spent: What was spent, in each sum that it keeps.
        questions: What was spent by name of the question: epsilon, or divergence where these are kept.
        rows: How many rows it has.
        code: The code of the last row, which covers all rows before it, in hexadecimal digits; empty without rows.
    """

    name: str
    unit: str
    promise: Promise
    spent: Composition
    questions: Mapping[str, Fraction]
    rows: int
    code: str

    @classmethod
    def of(cls, accountant: Accountant) -> LedgerState:
        """What an accountant holds now."""
        last = accountant.last
        return cls(
            accountant.name, accountant.people, accountant.promise, accountant.spent.including(()),
            dict(accountant.spent_on()), last.number if last else 0, last.mac.hex() if last else "",
        )  # fmt: skip

    @property
    def left(self) -> Fraction:
        """Epsilon that one more question may cost, whatever its noise."""
        return self.promise.left(self.spent)

    @property
    def told(self) -> str:
        """What charges add up to, for people, where divergences are added up too."""
        return self.promise.told(self.spent)


CLOSED = (
    "this version of the data is closed: what was measured before cannot be reproduced from the data as they are now."
    " Protect them under another version=, at a new charge."
)
CHANGED = (
    "{title}: holds other records than those first read as {version!r} on {day}; nothing was charged. If this is the"
    " next version, name it: version={today!r}."
)


class Transaction:
    """One act upon a ledger, under its lock.

    Args:
        pages: The locked ledger.
        secret: The data set's secret.
        known: What an earlier transaction of the same ledger has entered; new rows are verified and entered in it.

    Attributes:
        before: All rows that were durable when the transaction began.
        accountant: A draft of these and of the rows that are staged.

    Raises:
        RefusedError: The ledger cannot be trusted.
    """

    def __init__(self, pages: Pages, secret: Secret, known: Accountant) -> None:
        self._pages, self._secret = pages, secret
        self._pending: list[Row] = []
        self._changes: list[Change] = []
        self._turn = Turn.of(pages, secret)
        self.before = caught_up(pages, secret, known, self._turn)
        self.accountant = self.before.draft()

    def replayed(self) -> list[Entry]:
        """All rows, from the first, each of which is verified and entered again; side tables are verified too.

        Raises:
            RefusedError: They are not what was verified before.
        """
        for name in self._turn.digests:
            self.side(name)
        return replayed(self._pages, self._secret, self.before)

    def code(self, number: int) -> str | None:
        """The code of a row, which covers all rows before it; None where there is none."""
        row = next(iter(self._pages.rows(number)), None)
        return None if row is None or row.number != number else row.mac.hex()

    @property
    def database(self) -> psycopg.Connection[Any]:
        """The connection of a ledger in a database: what is written there is committed with this act, or not at all."""
        connection = self._pages.database
        if connection is None:
            raise InternalError("transaction: this ledger is in no database.")
        return connection

    @property
    def state(self) -> LedgerState:
        """What the ledger says, with what is staged."""
        return LedgerState.of(self.accountant)

    def end(self) -> None:
        """Write what is staged, and let the next transaction begin there."""
        self.commit()
        self.before.settled(self.accountant)

    def stage(self, body: dict[str, Any]) -> None:
        """Check a row against the totals and add it, and a checkpoint where one is due; nothing is written yet.

        Raises:
            BudgetError: A charge that does not fit.
            LedgerError: The ledger cannot be written.
        """
        if not self._pending:
            self._pages.insist_writable()
        self._add(body)
        if self._pending[-1].number % EVERY == EVERY - 1:
            self._add(self.accountant.checkpoint())

    def _add(self, body: dict[str, Any]) -> None:
        act = {"act": self._pending[0].number} if self._pending else {}
        body = {**body, **act, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        row = chain.link(self._secret, self.accountant.last, json.dumps(body, sort_keys=True))
        self.accountant.apply(body, row)
        self._pending.append(row)

    def side(self, name: str) -> SideTable:
        """A side table, without what is staged.

        Raises:
            RefusedError: It is not what was written.
        """
        return self._turn.table(self._pages, self._secret, name)

    def change(self, change: Change) -> None:
        """Stage an entry of a side table; nothing is written yet.

        Raises:
            RefusedError: The table is another one than that by which this was decided.
        """
        if change.basis is not None and change.basis != self._turn.digests.get(change.table, ""):
            raise RefusedError(MEANWHILE)
        self._changes.append(change)

    def commit(self) -> None:
        """Make what is staged durable now: all of it or nothing."""
        if not self._pending and not self._changes:
            return
        turn, written = self._turn, list[Change]()
        if self._changes:
            tables = {name: self.side(name).entries for name in {change.table for change in self._changes}}
            for change in self._changes:
                change.apply(tables[change.table])
            turn = turn.following(self._secret, tables)
            written = [*self._changes, turn.change]
        head = chain.head(self._secret, self.accountant.last, turn.number, turn.code)
        self._pages.commit(self._pending, written, head)
        self._pending, self._changes, self._turn = [], [], turn

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
        self.accountant.promise.insist_on_cap(self.accountant.name, epsilon, delta)
        if delta is not None:
            self.stage({"kind": "delta_cap", "analyst": analyst, "delta": write_amount(delta)})
        self.stage({"kind": "cap", "analyst": analyst, "epsilon": write_amount(epsilon)})

    def raise_budget(self, epsilon: Fraction) -> None:
        """Stage a budget that is higher."""
        self.stage({"kind": "raise", "epsilon": write_amount(epsilon)})

    def seal(self, seals: Sequence[Seal]) -> None:
        """Set digests, or compare them with those that are set; where some differ, close their versions, durably.

        Raises:
            LedgerError: A version is closed, now or before; no digest was set.
        """
        codes = {key(*entry[:2]): self.coded(*entry) for entry in seals}
        differ = [entry for entry in seals if not self._fits(key(*entry[:2]), codes[key(*entry[:2])])]
        for version in dict.fromkeys(entry.version for entry in differ):
            self.close(version)
        for question, version, _ in seals:
            self.refuse_closed(version)
            if key(question, version) not in self.accountant.charges:
                raise InternalError("seal: the question was never charged; charge it first.")
            if key(question, version) not in self.accountant.seals:
                mac = codes[key(question, version)]
                self.stage({"kind": "seal", "question": question, "version": version, "mac": mac.hex()})

    def _fits(self, charge_key: bytes, code: bytes) -> bool:
        held = self.accountant.seals.get(charge_key)
        return held is None or compare_digest(held, code)

    def pin(self, pin: Pin) -> None:
        """Stage the content of a version where none was pinned that was read so; else compare it.

        Raises:
            ChangedError: It is other content.
            LedgerError: The version is closed.
        """
        self.refuse_closed(pin.version)
        code = compared(self.accountant, self._secret, pin)
        if code is not None:
            self.stage({"kind": "seal", "question": pin.question, "version": pin.version, "mac": code.hex()})

    def coded(self, question: str, version: str, digest: bytes) -> bytes:
        """The code of a digest, from which nobody without the secret learns whether two are equal."""
        return coded(self.accountant, self._secret, question, version, digest)

    def close(self, version: str) -> None:
        """Close a version for every question, durably."""
        if version not in self.accountant.poisoned:
            self.stage({"kind": "poison", "version": version})
            self.commit()

    def refuse_closed(self, version: str) -> None:
        """Refuse a version whose data changed, with the same message for every query."""
        refuse_closed(self.accountant, version)


def refuse_closed(accountant: Accountant, version: str) -> None:
    """Refuse a version whose data changed.

    Raises:
        LedgerError: It is closed.
    """
    if version in accountant.poisoned:
        raise LedgerError(CLOSED)


def coded(accountant: Accountant, secret: Secret, question: str, version: str, digest: bytes) -> bytes:
    """The code of a digest in a ledger, from which nobody without the secret learns whether two are equal."""
    return secret.mac("ledger seal", encode(accountant.identity, question, version, digest))


def compared(accountant: Accountant, secret: Secret, pin: Pin) -> bytes | None:
    """The code of content that no row pins yet as it was read; None where there is none to pin, or it is pinned.

    Raises:
        ChangedError: Other content is pinned.
    """
    if pin.digest is None:
        return None
    code = coded(accountant, secret, pin.question, pin.version, pin.digest)
    held = accountant.seals.get(key(pin.question, pin.version))
    if held is None:
        return code
    if not compare_digest(held, code):
        today, day = datetime.now(UTC).date().isoformat(), accountant.contents[pin.version][:10]
        raise ChangedError(CHANGED.format(title=pin.title, version=name_of(pin.version), day=day, today=today))
    return None
