"""The ledger: the durable budget of one data set.

A query is charged first, durably, then computed, and never refunded. All versions of the data share one budget. The
ledger cannot detect a backup or snapshot that restores ledger, secret and head together, nor a copied directory, which
is a second budget with the same secret.

Source: privacy rules 2, 3, 7, 25, 28, 38 and 39.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from wpinq.core.ledger.open import Asked, check_place, joined, ledger_exists, opening, placed, warn_of
from wpinq.core.ledger.rows.chain import Change, RefusedError
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.rows.side import SideTable
from wpinq.core.ledger.stores.address import ledger_path, ledger_title
from wpinq.core.ledger.stores.store import Store
from wpinq.core.ledger.sums.accountant import Accountant, Entry
from wpinq.core.ledger.sums.cost import ZERO, Charge, Cost, key
from wpinq.core.ledger.sums.privacy_filter import Promise
from wpinq.core.ledger.transaction import LedgerState, Seal, Transaction, compared, refuse_closed
from wpinq.core.ledger.versions import Pin, state_code, version_label, wording
from wpinq.errors import ExactnessError, LedgerError, PlanError
from wpinq.exact import decimal, exact, positive


class Ledger:
    """The budget of one data set and everything that was charged to it; use `Ledger.open`.

    Safe under threads and processes. Every use verifies new rows and the head, or all rows (`replay.py`).
    """

    path = staticmethod(ledger_path)
    title = staticmethod(ledger_title)
    exists = staticmethod(ledger_exists)

    def __init__(self, store: Store, secret: Secret) -> None:
        self._store, self._secret = store, secret
        self._accountant = Accountant()
        self.made: Path | None = None
        """Where it was made just now; None for one that was there, or that is in memory."""

    @classmethod
    def open(
        cls, path: Path | None, *, name: str, unit: str, budget: Fraction | None = None,
        delta: Fraction | None = ZERO, terms: Asked | None = None, secret: Secret | None = None, found: bool = False,
        shared: bool = False, tables: Sequence[str] = (), least: Fraction | None = None,
    ) -> Ledger:  # fmt: skip
        """Open a data set's ledger; make it, its secret and its head where there is none.

        Args:
            path: The ledger's file, with `PATH.secret`, `PATH.head` and `PATH.lock` beside it, or what `Ledger.path`
                makes of a URL. None keeps it in the memory of this process.
            name: The data set's name. A ledger may hold several tables of the same people, each by its name.
            unit: The privacy unit, as text.
            budget: Epsilon that may be spent in all; None for what an existing ledger holds.
            delta: Delta that may be spent in all; None for what an existing ledger holds, and `ALLOWED` in a new one.
            terms: The budget, delta and how charges are added up, instead of `budget` and `delta`.
            secret: The data set's secret; by default that of the environment, else that in `PATH.secret`.
            found: Whether nobody gave the name: a ledger that exists has one of its own.
            shared: Whether another table of the same people may join those that the ledger has.
            tables: Names of tables of the same people that join it too.
            least: The budget is raised to it, where it is less.

        Raises:
            LedgerError: It is of other people, or damaged, rolled back, forked, incomplete or not writable.
            ExactnessError: An amount is not exact, or is negative or zero.

        >>> ledger = Ledger.open(None, name="views", unit="record", budget=Fraction(3, 10))
        >>> ledger.charge("5eed5eed", [Cost("0.1")], version="1", label="pages")
        True
        >>> ledger
        <Ledger 'views': budget 0.3, remaining 0.2>
        """
        terms = Asked.of("Ledger.open", budget, delta) if terms is None else terms
        ledger = cls(*placed(path, secret, new=terms.amount is not None))
        with ledger.transaction() as transaction:
            row = (
                joined(transaction.accountant, None if found else name, unit, terms, shared=shared)
                if transaction.accountant.last
                else opening(name, unit, terms)
            )
            if row is not None:
                transaction.stage(row)
                ledger.made = path
            for table in tables:
                more = joined(transaction.accountant, table, unit, Asked(None, None, None), shared=True)
                if more is not None:
                    transaction.stage(more)
            if least is not None and least > transaction.accountant.promise.budget:
                transaction.raise_budget(least)
        warn_of(path if row is not None and row["kind"] == "open" else None)
        return ledger

    @classmethod
    def existing(cls, path: Path, *, secret: Secret | None = None) -> Ledger:
        """Open the ledger at `path` as its curator, whatever data set it belongs to.

        Raises:
            LedgerError: There is none, or it cannot be trusted.
        """
        check_place(path)
        ledger = cls(*placed(path, secret, new=False))
        with ledger.transaction() as transaction:
            if not transaction.accountant.last:
                raise RefusedError("it holds nothing yet; protect(..., budget=..., ledger=...) opens it.")
        return ledger

    @classmethod
    def find(cls, path: Path) -> Ledger | None:
        """The same, or None where none was opened there yet; see `exists`.

        Raises:
            LedgerError: It cannot be trusted.
        """
        return cls.existing(path) if cls.exists(path) else None

    @property
    def secret(self) -> Secret:
        """The data set's secret, from which all keys are derived."""
        return self._secret

    @property
    def name(self) -> str:
        """The data set's name."""
        return self._accountant.name

    @property
    def tables(self) -> frozenset[str]:
        """The names of its tables, where it has several: that of the data set, and of those that came later."""
        return frozenset([self.name, *self._accountant.tables] if self._accountant.tables else ())

    @property
    def identity(self) -> str:
        """A random name that no other ledger has, not even one of the same data set and secret."""
        return self._accountant.identity

    @property
    def unit(self) -> str:
        """The privacy unit, by the columns of its tables where these differ."""
        return self._accountant.people

    def of_table(self, name: str, unit: str, terms: Asked, *, shared: bool = False) -> Ledger:
        """Give this ledger for one of its tables, as it was opened already; of those that it has without a transaction.

        Args:
            name: The table.
            unit: Its privacy unit, as text.
            terms: Its budget.
            shared: Whether it may come now.

        Raises:
            LedgerError: It has no such table, as far as this process has read it, or another unit or budget.
        """
        if joined(self._accountant, name, unit, terms, shared=shared) is not None:
            with self.transaction() as transaction:
                row = joined(transaction.accountant, name, unit, terms, shared=shared)
                if row is not None:
                    transaction.stage(row)
        return self

    def check_table(self, name: str | None, unit: str, terms: Asked, *, shared: bool = False) -> None:
        """Refuse what `open` would refuse of a table; nothing is written.

        Args:
            name: The table; None where nobody gave its name.
            unit: Its privacy unit, as text.
            terms: Its budget.
            shared: Whether it may come now.

        Raises:
            LedgerError: It is of other people, or has another unit or budget.
        """
        with self.transaction() as transaction:
            joined(transaction.accountant, name, unit, terms, shared=shared)

    def state(self) -> LedgerState:
        """What it says now, read and verified in one transaction.

        Raises:
            LedgerError: It cannot be trusted or read.
        """
        with self.transaction() as transaction:
            return transaction.state

    @property
    def known(self) -> LedgerState:
        """What it said when this process read it last."""
        return LedgerState.of(self._accountant)

    def __fspath__(self) -> str:
        return str(self._store.path)

    @property
    def promise(self) -> Promise:
        """What it promises in all, and how charges are added up."""
        return self.state().promise

    @property
    def budget(self) -> Fraction:
        """Epsilon that may be spent in all; rho in a ledger of rho."""
        return self.promise.budget

    @property
    def delta_budget(self) -> Fraction:
        """Delta that thresholds and selections may spend in all."""
        return self.promise.failing

    @property
    def divergence(self) -> Fraction:
        """What divergences add up to, or rho; 0 where only epsilons are added up."""
        return self.state().spent.divergence

    @property
    def told(self) -> str:
        """What charges add up to, for people, where divergences are added up too."""
        return self.state().told

    @property
    def curves(self) -> bool:
        """Whether it adds up Renyi divergences beside epsilons; that never changes."""
        return self._accountant.spent.curves

    def charge(
        self, question: str, costs: Sequence[Cost], *, version: str, label: str, analyst: str | None = None
    ) -> bool:
        """Charge a query (`Charge` says of what), durably, unless it has been charged before.

        Returns:
            True when it was charged now, False when it was charged before and is free.

        Raises:
            BudgetError: It is more than is left; nothing was written.
            LedgerError: The ledger cannot be trusted or written, or the version is closed.
        """
        with self.transaction() as transaction:
            return transaction.charge(Charge(question, tuple(costs), version, label, analyst))

    def holds(self, charge: Charge) -> bool:
        """Whether a question was charged before, as far as this process has read the ledger."""
        return charge.key in self._accountant.charges

    def repeated(self, charge: Charge) -> str | None:
        """The version on which a question that is to be charged was charged before; None where it was not, or is free.

        What another process charged a moment ago need not be known.
        """
        known = self._accountant
        return None if charge.key in known.charges else known.asked.get(charge.asked)

    def pinned(self, version: str) -> bool:
        """Whether the content of a version is pinned, as far as this process has read the ledger."""
        return version in self._accountant.contents

    def content_code(self, pin: Pin) -> bytes | None:
        """The code of the digest that is pinned for a version as it was read; None where this process knows of none."""
        return self._accountant.seals.get(key(pin.question, pin.version))

    def recalls(self, version: str, state: str | None) -> bool:
        """Whether files in this state were compared with the pinned content of a version."""
        code = None if state is None else state_code(self._secret, self.identity, version, state)
        return code is not None and self.pinned(version) and self._store.recalls(code)

    def remember(self, version: str, state: str) -> None:
        """Note in which state files were that hold the pinned content; nothing depends on it."""
        self._store.remember(state_code(self._secret, self.identity, version, state))

    def forget_people(self) -> int:
        """Remove the files of records by person beside it, also such as were left half written; how many there were.

        Raises:
            LedgerError: One cannot be removed.
        """
        ledger = Path(self)
        beside = {path for pattern in ("*", ".*") for path in ledger.parent.glob(pattern)}
        from wpinq.core.ledger.stores.file import PEOPLE

        files = [path for path in beside if path.name.removeprefix(".").startswith(f"{ledger.name}{PEOPLE}")]
        for path in files:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise LedgerError(f"{path}: {error.strerror}; it holds records by person: remove it.") from None
        return len(files)

    def seal(self, question: str, version: str, digest: bytes) -> None:
        """Store the digest of what a question is answered from before the first answer; later, compare it.

        Raises:
            LedgerError: See `seal_all`.
        """
        self.seal_all([Seal(question, version, digest)])

    def seal_all(self, seals: Sequence[Seal]) -> None:
        """Store the digests of measured histograms before the first answers; later, compare them with the stored ones.

        Only codes are stored, so the ledger does not show which histograms are equal (privacy rules 2, 3 and 7).

        Raises:
            LedgerError: A digest differs; its version is now closed for every query, and none of these is answered.
        """
        with self.transaction() as transaction:
            transaction.seal(seals)

    def check_version(self, version: str) -> None:
        """Refuse a version that this process knows to be closed, with a LedgerError; a seal refuses any that is."""
        refuse_closed(self._accountant, version)

    def compare(self, pin: Pin) -> None:
        """Compare what a version holds with what this process knows to be pinned; a charge compares it once more.

        Raises:
            ChangedError: It is other content.
            LedgerError: The version is closed.
        """
        refuse_closed(self._accountant, pin.version)
        compared(self._accountant, self._secret, pin)

    def pin(self, pin: Pin) -> None:
        """Pin the content of a version, or compare it with what is pinned.

        Raises:
            ChangedError: It is other content.
            LedgerError: The version is closed.
        """
        with self.transaction() as transaction:
            transaction.pin(pin)

    def poison(self, version: str) -> None:
        """Close a version for every question, for good."""
        with self.transaction() as transaction:
            transaction.close(version)

    def cap(self, analyst: str, epsilon: Fraction, delta: Fraction | None = None) -> None:
        """Cap what one analyst may spend, of divergences the same part. Answers are shared by all analysts.

        Without `delta`, a cap of delta stays as it is.

        Raises:
            ExactnessError: A cap is negative or above what all may spend together.
            PlanError: The analyst is no text.
        """
        if (who := wording(analyst, "cap(analyst=...)")) is None:
            raise PlanError("cap(analyst=...): takes text, and got None.")
        amounts = exact(epsilon, "cap(epsilon=...)"), None if delta is None else exact(delta, "cap(delta=...)")
        with self.transaction() as transaction:
            transaction.cap(who, *amounts)

    def raise_budget(self, epsilon: Fraction) -> None:
        """Raise the budget to `epsilon`, or rho, in all; this is the curator's decision, and is recorded.

        Raises:
            ExactnessError: It is not above the budget that there is.
        """
        epsilon = positive(epsilon, "raise_budget(epsilon=...)")
        with self.transaction() as transaction:
            if epsilon <= transaction.accountant.promise.budget:
                held = f"is not above the budget that there is, {decimal(transaction.accountant.promise.budget)}"
                raise ExactnessError(
                    f"a budget of {decimal(epsilon)} {held}; give the new one in all. A budget is never lowered: use a"
                    " cap."
                )
            transaction.raise_budget(epsilon)

    def side(self, name: str) -> SideTable:
        """A side table (`side.py`).

        Raises:
            LedgerError: They, or the ledger, cannot be trusted or read.
        """
        with self.transaction() as transaction:
            return transaction.side(name)

    def change(self, *changes: Change) -> None:
        """Change entries of side tables: all of them, durably, or none."""
        with self.transaction() as transaction:
            for change in changes:
                transaction.change(change)

    def spent(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that were spent; Gaussian noise adds nothing to the epsilon."""
        with self.transaction() as transaction:
            return transaction.accountant.spent.epsilon, transaction.accountant.spent.delta

    def remaining(self, bins: Fraction = Fraction(1)) -> Fraction:
        """Epsilon that one more question may cost, whatever its noise; of so many bins at least (`Promise.left`)."""
        with self.transaction() as transaction:
            return transaction.accountant.promise.left(transaction.accountant.spent, bins)

    def entries(self) -> list[Entry]:
        """All rows, in order, as the curator may see them; each is read, verified and entered again, or refused."""
        with self.transaction() as transaction:
            return transaction.replayed()

    def shown(self, charge: Charge) -> tuple[str, str]:
        """The question and the version of a charge, as `entries` shows them."""
        return charge.question, version_label(charge.version, self.name)

    def code_of_row(self, number: int) -> str | None:
        """The code of one of its rows; None where it has no such row.

        Raises:
            LedgerError: It cannot be trusted or read.
        """
        with self.transaction() as transaction:
            return transaction.code(number)

    def __repr__(self) -> str:
        left = decimal(self._accountant.left)
        return f"<Ledger {self.name!r}: budget {decimal(self.budget)}, remaining {left}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Ledger is never copied or pickled; open it again by its path.")

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Lock, read what is new, and write at the end what was staged; after an error nothing is written.

        What the rows say is remembered, so that they are entered only once.

        Raises:
            LedgerError: It cannot be trusted, read or written.
        """
        with self._store.locked(self._secret) as pages:
            transaction = Transaction(pages, self._secret, self._accountant)
            self._accountant = transaction.before
            yield transaction
            transaction.end()
