"""The accountant: adds up the charges of a ledger, and refuses what does not fit the budget (a privacy filter).

A row is checked by the same code when it is written and whenever it is read, so reading a ledger recomputes every
charge, every total and every refusal.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import MutableMapping
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from wpinq.errors import BudgetError, InternalError, PlanError
from wpinq.exact import decimal
from wpinq.ledger.chain import RefusedError, Row
from wpinq.ledger.cost import ZERO, Composition, Cost, read, write
from wpinq.records.fields import encode

FORMAT = 1
BYTES = "bytes of files"
"""The question under which the digest of what files hold is sealed."""
MAPS = ("charges", "seals", "poisoned", "caps", "paid", "labels", "contents", "tables", "asked")
SCALARS = ("identity", "name", "unit", "budget", "delta", "last")


ROUNDED = " (a rounded number is above what it stands for: write '1/11', or take wpinq.budget(...).split(11))"


@dataclass(frozen=True)
class Charge:
    """The charge for one query to one data set.

    Args:
        question: The question's fingerprint, in hexadecimal digits.
        costs: Every path from the data set to the measurement.
        version: The version of the data.
        label: The measurement's name, for people.
        analyst: Who asks, where that is known.
        asked: What people take for one question, on whatever version; "" where that is not known. It decides nothing
            but a warning, and an older wpinq passes over it.
    """

    question: str
    costs: tuple[Cost, ...]
    version: str
    label: str
    analyst: str | None = None
    asked: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch("[0-9a-f]{8,128}", self.question):
            raise InternalError("charge(question=...): a question is known by 8 to 128 hexadecimal digits only.")
        if not self.costs:
            raise InternalError("charge(costs=...): a question costs something; none was given.")

    @property
    def key(self) -> bytes:
        """What makes it the same question: its fingerprint, on one version."""
        return key(self.question, self.version)

    @property
    def code(self) -> bytes:
        """What tells its costs from others, in whatever order."""
        return _code(self.costs)

    def body(self) -> dict[str, Any]:
        """The charge as a row of the ledger."""
        costs = list(map(_texts, self.costs))
        return {
            "kind": "charge", "question": self.question, "version": self.version, "label": self.label,
            "analyst": self.analyst, "costs": costs, **({"asked": self.asked} if self.asked else {}),
        }  # fmt: skip


def _texts(cost: Cost) -> list[Any]:
    return [write(cost.epsilon), write(cost.delta), cost.under]


@lru_cache(1024)
def _cost(epsilon: str, delta: str, under: tuple[tuple[str, str], ...]) -> Cost:
    return Cost(read(epsilon), read(delta), under)


@lru_cache(1024)
def _code(costs: tuple[Cost, ...]) -> bytes:
    text = "\n".join(sorted(json.dumps(_texts(cost)) for cost in costs))
    return blake2b(text.encode(), digest_size=32).digest()


def _asks(epsilon: Fraction) -> str:
    return f"costs epsilon {decimal(epsilon)}"


def key(question: str, version: str) -> bytes:
    """A question on one version, in 32 bytes, however long the name of the version is."""
    return blake2b(encode(question, version), digest_size=32).digest()


def wording(given: object, call: str) -> str | None:
    """A name that the ledger keeps: text, or a whole number, which is read as text, or None.

    Raises:
        PlanError: It is neither, or cannot be written as UTF-8.

    >>> wording("July", "measure(name=...)"), wording(7, "measure(name=...)"), wording(None, "measure(name=...)")
    ('July', '7', None)
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if given is not None and not isinstance(given, str):
        raise PlanError(f"{call}: takes text, and got {type(given).__name__}.")
    try:
        (given or "").encode()
    except UnicodeEncodeError:
        raise PlanError(f"{call}: holds what is no valid text; decode it first.") from None
    return given


@dataclass(frozen=True)
class Entry:
    """One row of the ledger, as it is shown to the curator: no digest, no record, no count.

    `epsilon` and `delta` are what was charged, or the new amount of a cap or budget.
    """

    number: int
    at: str
    kind: str
    label: str = ""
    question: str = ""
    version: str = ""
    analyst: str = ""
    epsilon: Fraction | None = None
    delta: Fraction | None = None


@dataclass
class Accountant:
    """The state of a ledger after some of its rows.

    Attributes:
        last: The last of these rows.
        charges: A code of the costs of every charge, by a code of its question and version.
        seals: The seals, by the same code.
        labels: Epsilon by analyst and label.
        contents: The versions whose bytes are known.
        asked: The version that a question was charged on last, by what people take for one question.
        tables: The units of further tables of the same people, by name.
        torn: Whether an interrupt came while drafted rows were settled.
    """

    identity: str = ""
    name: str = ""
    unit: str = ""
    budget: Fraction = ZERO
    delta: Fraction = ZERO
    last: Row | None = None
    spent: Composition = field(default_factory=Composition)
    charges: MutableMapping[bytes, bytes] = field(default_factory=dict)
    seals: MutableMapping[bytes, str] = field(default_factory=dict)
    poisoned: MutableMapping[str, bool] = field(default_factory=dict)
    caps: MutableMapping[str | None, Fraction] = field(default_factory=dict)
    paid: MutableMapping[str | None, Fraction] = field(default_factory=dict)
    labels: MutableMapping[tuple[str | None, str], Fraction] = field(default_factory=dict)
    contents: MutableMapping[str, bool] = field(default_factory=dict)
    tables: MutableMapping[str, str] = field(default_factory=dict)
    asked: MutableMapping[str, str] = field(default_factory=dict)
    torn: bool = False

    def draft(self) -> Accountant:
        """A layer to write on; this accountant stays as it is until the draft is settled."""
        draft = copy(self)
        for name in MAPS:
            setattr(draft, name, ChainMap({}, getattr(self, name)))
        draft.spent = self.spent.including(())
        return draft

    def settled(self, draft: Accountant) -> Accountant:
        """Take over what a draft of this accountant holds, in time that depends on the draft alone."""
        self.torn = True
        for name in MAPS:
            getattr(self, name).update(getattr(draft, name).maps[0])
        for name in SCALARS:
            setattr(self, name, getattr(draft, name))
        self.spent.settle(draft.spent)
        self.torn = False
        return self

    def apply(self, body: dict[str, Any], row: Row) -> dict[str, Any]:
        """Check one row and enter it; where it is refused, nothing was entered.

        Args:
            body: The row's text, read.
            row: The row itself, by which the ledger is known to go on.

        Returns:
            What an `Entry` shows of it.

        Raises:
            BudgetError: A charge that does not fit.
        """
        shown: dict[str, Any] = getattr(self, f"_{body['kind']}")(body)
        self.last = Row(row.number, "", row.mac)
        return {"number": row.number, "at": body["at"], "kind": body["kind"], **shown}

    def _open(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.last is not None or body["format"] != FORMAT:
            raise RefusedError("it was written by another version of wpinq; use that version.")
        self.identity, self.name, self.unit = body["id"], body["name"], body["unit"]
        self.budget, self.delta = read(body["budget"]), read(body["delta"])
        return {"label": self.name, "epsilon": self.budget, "delta": self.delta}

    def _table(self, body: dict[str, Any]) -> dict[str, Any]:
        self.tables[body["name"]] = body["unit"]
        return {"label": body["name"]}

    def _charge(self, body: dict[str, Any]) -> dict[str, Any]:
        costs = tuple(_cost(epsilon, delta, tuple(map(tuple, under))) for epsilon, delta, under in body["costs"])
        charge = Charge(body["question"], costs, body["version"], body["label"], body["analyst"])
        after = self.spent.including(costs)
        epsilon, delta = after.epsilon - self.spent.epsilon, after.delta - self.spent.delta
        self._admit(charge, epsilon, delta)
        self.spent.settle(after)
        self.charges[charge.key] = charge.code
        if "asked" in body:
            self.asked[body["asked"]] = charge.version
        self.paid[charge.analyst] = self.paid.get(charge.analyst, ZERO) + epsilon
        on = charge.analyst, charge.label
        self.labels[on] = self.labels.get(on, ZERO) + epsilon
        return {
            "label": charge.label, "question": charge.question, "version": charge.version,
            "analyst": charge.analyst or "", "epsilon": epsilon, "delta": delta,
        }  # fmt: skip

    def _seal(self, body: dict[str, Any]) -> dict[str, Any]:
        self.seals[key(body["question"], body["version"])] = body["mac"]
        if body["question"] == BYTES:
            self.contents[body["version"]] = True
        return {"question": body["question"], "version": body["version"]}

    def _poison(self, body: dict[str, Any]) -> dict[str, Any]:
        self.poisoned[body["version"]] = True
        return {"version": body["version"]}

    def _cap(self, body: dict[str, Any]) -> dict[str, Any]:
        self.caps[body["analyst"]] = read(body["epsilon"])
        return {"analyst": body["analyst"], "epsilon": read(body["epsilon"])}

    def _raise(self, body: dict[str, Any]) -> dict[str, Any]:
        self.budget = read(body["epsilon"])
        return {"epsilon": self.budget}

    def _admit(self, charge: Charge, epsilon: Fraction, delta: Fraction) -> None:
        """Refuse a charge that does not fit the budget, its delta or the analyst's cap."""
        left, left_delta = self.budget - self.spent.epsilon, self.delta - self.spent.delta
        where = f"of data set {self.name!r}"
        if delta > left_delta:
            raise self.refusal(
                charge, epsilon, left, f"costs delta {decimal(delta)}, {decimal(left_delta)} is left {where}"
            )
        if epsilon > left:
            short = ROUNDED if epsilon - left < epsilon / 10**9 else ""
            raise self.refusal(charge, epsilon, left, f"{_asks(epsilon)}, {decimal(left)} is left {where}{short}")
        if charge.analyst in self.caps:
            own = max(self.caps[charge.analyst] - self.paid.get(charge.analyst, ZERO), ZERO)
            if epsilon > own:
                cap = f"is left of the cap of analyst {charge.analyst!r}"
                raise self.refusal(charge, epsilon, min(own, left), f"{_asks(epsilon)}, {decimal(own)} {cap} {where}")

    def other_unit(self, unit: str, own: str) -> RefusedError:
        """The error of a question with another privacy unit: what to do, and what that costs."""
        return RefusedError(
            f"its privacy unit is {own!r}, not {unit!r}; it is fixed when the ledger is made. Ask with its unit,"
            " or give another ledger: ledger=PATH, on the command line --ledger PATH. What both spend adds up for the"
            f" same people; epsilon {decimal(self.spent.epsilon)} is spent in this one."
        )

    def refusal(self, charge: Charge, epsilon: Fraction, left: Fraction, why: str) -> BudgetError:
        """The error of a charge that does not fit."""
        spent = self.spent_on(charge.analyst)
        lines = "".join(f"\n  {decimal(amount):>10}  {label}" for label, amount in spent) or " nothing"
        message = f"{charge.label}: {why}; nothing was charged. Spent so far:{lines}"
        return BudgetError(message, requested=epsilon, remaining=left, spent=spent)

    def spent_on(self, analyst: str | None = None) -> tuple[tuple[str, Fraction], ...]:
        """What was spent, by name of the measurement; for one analyst, the sum of all others has no names."""
        sums: dict[str, Fraction] = {}
        for (who, label), epsilon in self.labels.items():
            name = label if analyst is None or who == analyst else "others"
            sums[name] = sums.get(name, ZERO) + epsilon
        return tuple(sums.items())
