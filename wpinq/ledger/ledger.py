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

from wpinq.errors import ExactnessError, InternalError
from wpinq.exact import decimal, exact, positive
from wpinq.ledger.accountant import Accountant, Entry
from wpinq.ledger.chain import RefusedError
from wpinq.ledger.charge import Charge, key
from wpinq.ledger.cost import ZERO, Cost, write
from wpinq.ledger.opening import Asked, check_place, joined, opening, placed
from wpinq.ledger.place import warn_of
from wpinq.ledger.promise import Promise
from wpinq.ledger.secret import Secret
from wpinq.ledger.session import Session
from wpinq.ledger.store import Store
from wpinq.ledger.versions import Pin, state_code


class Ledger:
    """The budget of one data set and everything that was charged to it; use `Ledger.open`.

    Safe under threads and processes. Every use verifies new rows and the head, or all rows (`verified.py`).
    """

    def __init__(self, store: Store, secret: Secret) -> None:
        self._store, self._secret = store, secret
        self._accountant = Accountant()
        self.made: Path | None = None
        """Where it was made just now; None for one that was there, or that is in memory."""

    @classmethod
    def open(
        cls, path: Path | None, *, name: str, unit: str, budget: Fraction | None = None,
        delta: Fraction | None = ZERO, asked: Asked | None = None, secret: Secret | None = None, found: bool = False,
        shared: bool = False,
    ) -> Ledger:  # fmt: skip
        """Open a data set's ledger; make it, its secret and its head where there is none.

        Args:
            path: The ledger's file, with `PATH.secret`, `PATH.head`, `PATH.lock` and `PATH.verified` beside it. None
                keeps it in the memory of this process.
            name: The data set's name. A ledger may hold several tables of the same people, each by its name.
            unit: The privacy unit and its bound, as text.
            budget: Epsilon that may be spent in all; None for what an existing ledger holds.
            delta: Delta that may be spent in all; None for what an existing ledger holds, and `ALLOWED` in a new one.
            asked: The budget, delta and how charges are added up, instead of `budget` and `delta`.
            secret: The data set's secret; by default that of the environment, else that in `PATH.secret`.
            found: Whether nobody gave the name: a ledger that exists has one of its own.
            shared: Whether another table of the same people may join those that the ledger has.

        Raises:
            LedgerError: It is of other people, or damaged, rolled back, forked, incomplete or not writable.
            ExactnessError: An amount is not exact, or is negative or zero.

        >>> ledger = Ledger.open(None, name="views", unit="record", budget=Fraction(3, 10))
        >>> ledger.charge("5eed5eed", [Cost("0.1")], version="1", label="pages")
        True
        >>> ledger
        <Ledger 'views': budget 0.3, remaining 0.2>
        """
        asked = Asked.of("Ledger.open", budget, delta) if asked is None else asked
        ledger = cls(*placed(path, secret, new=asked.amount is not None))
        with ledger._session() as session:
            row = (
                joined(session.accountant, None if found else name, unit, asked, shared=shared)
                if session.accountant.last
                else opening(name, unit, asked)
            )
            if row is not None:
                session.stage(row)
                session.commit()
                ledger.made = path
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
        with ledger._session() as session:
            if not session.accountant.last:
                raise RefusedError("it holds nothing yet; protect(..., budget=..., ledger=...) opens it.")
        return ledger

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
        """The privacy unit and its bound."""
        return self._accountant.unit

    @property
    def promise(self) -> Promise:
        """What it promises in all, and how charges are added up."""
        with self._session() as session:
            return session.accountant.promise

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
        with self._session() as session:
            return session.accountant.spent.divergence

    @property
    def told(self) -> str:
        """What charges add up to, for people, where divergences are added up too."""
        with self._session() as session:
            return session.accountant.promise.told(session.accountant.spent)

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
        with self._session() as session:
            charged = session.charge(Charge(question, tuple(costs), version, label, analyst))
            session.commit()
            return charged

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

    def recalls(self, version: str, state: str | None) -> bool:
        """Whether files in this state were compared with the pinned content of a version."""
        code = None if state is None else state_code(self._secret, self.identity, version, state)
        return code is not None and self.pinned(version) and self._store.recalls(code)

    def remember(self, version: str, state: str) -> None:
        """Note in which state files were that hold the pinned content; nothing depends on it."""
        self._store.remember(state_code(self._secret, self.identity, version, state))

    def seal(self, question: str, version: str, digest: bytes) -> None:
        """Store the digest of the measured histogram before the first answer; later, compare it with the stored one.

        Only a code is stored, so the ledger does not show which histograms are equal (privacy rules 2, 3 and 7).

        Raises:
            LedgerError: The digest differs; the version is now closed for every query.
        """
        with self._session() as session:
            if key(question, version) not in session.accountant.charges:
                raise InternalError("seal: the question was never charged; charge it first.")
            session.seal(question, version, digest)

    def check_version(self, version: str) -> None:
        """Refuse a closed version, with a LedgerError."""
        with self._session() as session:
            session.refuse_closed(version)

    def pin(self, pin: Pin) -> None:
        """Pin the content of a version, or compare it with what is pinned.

        Raises:
            ChangedError: It is other content.
            LedgerError: The version is closed.
        """
        with self._session() as session:
            session.pin(pin)
            session.commit()

    def poison(self, version: str) -> None:
        """Close a version for every question, for good."""
        with self._session() as session:
            session.close(version)

    def cap(self, analyst: str, epsilon: Fraction, delta: Fraction | None = None) -> None:
        """Cap what one analyst may spend, of divergences the same part. Answers are shared by all analysts.

        Without `delta`, a cap of delta stays as it is.

        Raises:
            ExactnessError: A cap is negative or above what all may spend together.
        """
        amounts = exact(epsilon, "cap(epsilon=...)"), None if delta is None else exact(delta, "cap(delta=...)")
        with self._session() as session:
            session.cap(analyst, *amounts)
            session.commit()

    def raise_budget(self, epsilon: Fraction) -> None:
        """Raise the budget to `epsilon`, or rho, in all; this is the curator's decision, and is recorded.

        Raises:
            ExactnessError: It is not above the budget that there is.
        """
        epsilon = positive(epsilon, "raise_budget(epsilon=...)")
        with self._session() as session:
            if epsilon <= session.accountant.promise.budget:
                held = f"is not above the budget, {decimal(session.accountant.promise.budget)}"
                raise ExactnessError(
                    f"raise_budget: {decimal(epsilon)} {held}; give the new budget in all. A budget is never lowered:"
                    " use a cap."
                )
            session.stage({"kind": "raise", "epsilon": write(epsilon)})
            session.commit()

    def spent(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that were spent; Gaussian noise adds nothing to the epsilon."""
        with self._session() as session:
            return session.accountant.spent.epsilon, session.accountant.spent.delta

    def remaining(self, bins: Fraction = Fraction(1)) -> Fraction:
        """Epsilon that one more question may cost, whatever its noise; of so many bins at least (`Promise.left`)."""
        with self._session() as session:
            return session.accountant.promise.left(session.accountant.spent, bins)

    def entries(self) -> list[Entry]:
        """All rows, in order, as the curator may see them; each is read, verified and entered again, or refused."""
        with self._session() as session:
            return session.replayed()

    def __repr__(self) -> str:
        left = decimal(self._accountant.left)
        return f"<Ledger {self.name!r}: budget {decimal(self.budget)}, remaining {left}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Ledger is never copied or pickled; open it again by its path.")

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """Lock, and read what is new; what the rows say is remembered, so that they are entered only once."""
        with self._store.locked(self._secret) as pages:
            session = Session(pages, self._secret, self._accountant)
            self._accountant = session.before
            yield session
            session.ended()
