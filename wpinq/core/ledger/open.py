"""The first row of a ledger, and what must fit it when the ledger is opened again, or by another table.

Tables of the same people may share a ledger. A ledger says whom it protects, and each question how much of them it
looks at: a charge is what the question costs a person by its own bound, and all are added up, so that the total is what
one person loses over all questions and tables. The bounds of questions may differ, and so may the columns that tell
people apart in each table. Whose each record of a table is, is declared when the table comes, and stays: if a question
could choose the column, `users("sender")` and `users("receiver")` over one table would charge 1 for a move of 1,000.
Periods are those of all tables, so that the unit is one. A table of records may not join one of people: what a person
loses by it nobody bounds.

A new ledger warns once where its secret could leave with a commit, or others could replace it.
"""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatch
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.rows.chain import RefusedError
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.stores.address import address_of
from wpinq.core.ledger.stores.store import MemoryStore, Store
from wpinq.core.ledger.sums.accountant import Accountant
from wpinq.core.ledger.sums.cost import ALLOWED
from wpinq.core.ledger.sums.privacy_filter import PURE, RENYI, RHO, Promise
from wpinq.errors import ExactnessError, LedgerError
from wpinq.exact import decimal, exact, positive

if TYPE_CHECKING:
    from wpinq.core.ledger.stores.file import FileStore
    from wpinq.core.ledger.stores.postgres import PostgresStore

ASKED = {PURE: "pure epsilon, budget=", RENYI: "epsilon and delta, accounting='renyi'", RHO: "rho, rho="}


PEOPLE = re.compile(r"(?:user|owner) \([^()]+\)( in one window of (?P<length>\S+) by [^()\s]+(?P<zone> in \S+)?)?")
"""A unit that is a person, or a person in one period, or by a way an owner, as a ledger holds it (`Unit.whom`)."""


class Asked(NamedTuple):
    """What whoever opens a ledger says of its budget; None for what the ledger holds.

    Attributes:
        amount: Epsilon, or rho.
        delta: Delta in all.
        accounting: How charges are added up.
    """

    amount: Fraction | None
    delta: Fraction | None
    accounting: str | None

    @classmethod
    def of(
        cls, call: str, budget: object, delta: object = None, rho: object = None, accounting: object = None
    ) -> Asked:
        """Read it as it was written in a call.

        Raises:
            ExactnessError: An amount is not exact or out of its range, or two of them contradict.

        >>> Asked.of("protect", 1, "1e-6", accounting="renyi").accounting
        'renyi'
        """
        if accounting is not None and (not isinstance(accounting, str) or accounting not in (PURE, RENYI)):
            raise ExactnessError(f"{call}(accounting=...): takes 'pure' or 'renyi'; for rho, give rho= alone.")
        if rho is not None and (budget is not None or accounting is not None):
            other = "budget" if budget is not None else "accounting"
            raise ExactnessError(f"{call}(rho=..., {other}=...): rho is a budget and an accounting; give it alone.")
        extra = None if delta is None else exact(delta, f"{call}(delta=...)")
        if extra is not None and not 0 <= extra < 1:
            raise ExactnessError(f"{call}(delta={decimal(extra)}): delta is a probability, from 0 to below 1.")
        if rho is not None:
            return cls(positive(rho, f"{call}(rho=...)"), extra, RHO)
        amount = None if budget is None else positive(budget, f"{call}(budget=...)")
        result = cls(amount, extra, PURE if accounting is None and amount is not None else accounting)
        result.promise()
        return result

    def promise(self) -> Promise | None:
        """What a new ledger would promise; None without a budget.

        Raises:
            ExactnessError: Renyi accounting cannot keep it.
        """
        delta = ALLOWED if self.delta is None else self.delta
        return None if self.amount is None else Promise.of(self.amount, delta, self.accounting or PURE)


def opening(name: str, unit: str, terms: Asked) -> dict[str, Any]:
    """The first row.

    Raises:
        RefusedError: There is no budget.
    """
    promise = terms.promise()
    if promise is None:
        raise RefusedError("a new ledger needs a budget; give budget=, for example budget=0.2.")
    return {"kind": "open", "id": os.urandom(16).hex(), "name": name, "unit": unit, **promise.body()}


def joined(accountant: Accountant, name: str | None, unit: str, terms: Asked, *, shared: bool) -> dict[str, Any] | None:
    """The row of a table that comes to those that a ledger has; None where it has it.

    Raises:
        RefusedError: It may not come, or its unit or its budget is another one.
    """
    name = name or accountant.name
    held = accountant.unit if name == accountant.name else accountant.tables.get(name)
    if held is not None and held != unit:
        raise accountant.other_unit(unit, held)
    if held is None and not (shared and same_people(accountant.unit, unit)):
        raise RefusedError(
            f"it is data set {accountant.name!r}'s, not {name!r}'s; give each data set a ledger= of its own. Tables of"
            " the same people share one where ledger= and name= say so, and a column of each tells people apart, in the"
            f" same periods if in any; it is of {accountant.unit!r}, and this one of {unit!r}."
        )
    _check_budget(accountant.promise, terms)
    return None if held is not None else {"kind": "table", "name": name, "unit": unit}


def same_people(first: str, second: str) -> bool:
    """Whether units of two tables are the same people, in the same periods, whatever the columns are called.

    Names with brackets, and of times with spaces, are compared as they are: what could be read in two ways is no proof.

    >>> same_people("user (user_id)", "user (uid)"), same_people("user (id)", "user (id) in one window of 1d by at")
    (True, False)
    """
    if first == second:
        return True
    matches = [PEOPLE.fullmatch(unit) for unit in (first, second)]
    periods = [None if each is None else (each["length"], each["zone"]) for each in matches]
    return periods[0] is not None and periods[0] == periods[1]


def _check_budget(held: Promise, terms: Asked) -> None:
    """Refuse another budget; floats were once read as the decimals that they print, and are still known."""
    if terms.accounting is not None and terms.accounting != held.accounting:
        raise RefusedError(
            f"its budget is {held.text}, and was asked for as one of {ASKED[terms.accounting]}. How charges are added"
            " up is what the ledger promises, so it is fixed when the ledger is made: leave the budget out to use this"
            " one as it is, or give another ledger; what both spend adds up for the same people."
        )
    if terms.amount is None:
        return
    delta = held.delta if terms.delta is None else terms.delta
    pairs = ((terms.amount, held.budget), (delta, held.delta))
    if any(amount != known and float(amount) != float(known) for amount, known in pairs):
        raise RefusedError(
            f"its budget is {held.text}, and not {replace(held, budget=terms.amount, delta=delta).text}, as was given."
            " Give what it holds, or to spend more: `wpinq ledger raise PATH EPSILON`."
        )


def placed(path: Path | None, secret: Secret | None, *, new: bool) -> tuple[Store, Secret]:
    """Find the ledger's store and secret; where there are none and `new` is set, make both."""
    if secret is not None and not isinstance(secret, Secret):
        raise LedgerError("secret=: takes a wpinq.Secret(32 bytes); or set WPINQ_SECRET or WPINQ_SECRET_FILE.")
    if path is None:
        secret = secret or Secret.fresh()
        return MemoryStore(chain.head(secret, None)), secret
    store = store_at(path)
    if not new and store.fresh:
        raise LedgerError(f"{store.label}: there is none; give a budget to open a new one.")
    return store, store.opened(secret or Secret.from_environment())


def store_at(path: Path) -> FileStore | PostgresStore:
    """The store that a path stands for (`address.py`)."""
    address = address_of(path)
    if address is None:
        from wpinq.core.ledger.stores.file import FileStore

        return FileStore(path)
    from wpinq.core.ledger.stores.postgres import PostgresStore  # here: most ledgers are files

    return PostgresStore(address)


def ledger_exists(path: Path) -> bool:
    """Whether there is a ledger that was opened; one whose making was killed before that still needs its budget.

    Raises:
        LedgerError: It is damaged, or the server of one in a database cannot be asked.
    """
    return store_at(path).begun


def check_place(path: Path) -> None:
    """Refuse a path where there is no ledger; for a data file, name the ledger that is likely meant."""
    store = store_at(path)
    if store.fresh or store.foreign:
        right = path.with_name(f"{path.name}.ledger")
        hint = "check the path" if address_of(path) is None else "check the URL"
        hint = f"the ledger of {path.name} is {right}" if right.exists() else hint
        raise LedgerError(f"{store.label}: there is none; {hint}.")


def warn_of(ledger: Path | None) -> None:
    """Warn where a ledger that was just made lies in a git work tree that does not ignore it, or in a shared folder.

    Nobody but their owner can read a ledger and its secret (mode 0600), so a folder is shared where others may write:
    they could remove both. Nothing is refused, and what cannot be looked at is not said.
    """
    try:
        faults = [] if ledger is None or address_of(ledger) else list(_faults(ledger.resolve()))
    except OSError:
        return
    for line in faults:
        warnings.warn(f"ledger {ledger}: {line}", RuntimeWarning, stacklevel=4)


def _faults(ledger: Path) -> Iterable[str]:
    root = next((folder for folder in ledger.parents if (folder / ".git").exists()), None)
    if root is not None and not all(_ignored(path, root) for path in (ledger, Path(f"{ledger}.secret"))):
        yield (
            f"it lies in the git work tree {root}; whoever gets its secret by a commit knows all noise. Add "
            f"{ledger.name}* to .gitignore, or give ledger= another place."
        )
    if _open_to_others(ledger.parent.stat().st_mode):
        yield (
            f"others may write into {ledger.parent}, so they could remove it and its secret. Give ledger= a folder of "
            "your own, or take their right to write away."
        )


def _open_to_others(mode: int) -> bool:
    """Whether others may remove files of a folder that are not theirs."""
    return bool(mode & (stat.S_IWGRP | stat.S_IWOTH)) and not mode & stat.S_ISVTX


def _ignored(path: Path, root: Path) -> bool:
    """Whether a plain line of a .gitignore from the root on names the file, or a folder that it is in."""
    for folder in path.parents:
        lines = folder / ".gitignore"
        if lines.is_file():
            patterns = [line.strip().strip("/") for line in lines.read_text("utf-8", "replace").splitlines()]
            parts = path.relative_to(folder).parts
            if any(
                fnmatch(part, pattern) for pattern in patterns if pattern[:1] not in ("", "#", "!") for part in parts
            ):
                return True
        if folder == root:
            break
    return False
