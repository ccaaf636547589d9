"""The accountant: adds up the charges of a ledger, and refuses what does not fit the budget (a privacy filter).

A row is checked by the same code when it is written and whenever it is read, so reading a ledger recomputes every
charge, every total and every refusal.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from wpinq.errors import BudgetError, InternalError, PlanError
from wpinq.exact import decimal
from wpinq.ledger.chain import RefusedError, Row
from wpinq.ledger.cost import ZERO, Composition, Cost, read, write

FORMAT = 1


@dataclass(frozen=True)
class Charge:
    """The charge for one query to one data set.

    Args:
        question: The question's fingerprint, in hexadecimal digits.
        costs: Every path from the data set to the measurement.
        version: The version of the data.
        label: The measurement's name, for people.
        analyst: Who asks, where that is known.
    """

    question: str
    costs: tuple[Cost, ...]
    version: str
    label: str
    analyst: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch("[0-9a-f]{8,128}", self.question):
            raise InternalError("charge(question=...): a question is known by 8 to 128 hexadecimal digits only.")
        if not self.costs:
            raise InternalError("charge(costs=...): a question costs something; none was given.")

    @property
    def key(self) -> tuple[str, str]:
        """Fingerprint and version; charges of equal keys are charged once."""
        return self.question, self.version

    def body(self) -> dict[str, Any]:
        """The charge as a row of the ledger."""
        costs = [[write(cost.epsilon), write(cost.delta), cost.under] for cost in self.costs]
        return {
            "kind": "charge", "question": self.question, "version": self.version, "label": self.label,
            "analyst": self.analyst, "costs": costs,
        }  # fmt: skip


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
    """What the rows of a ledger add up to."""

    identity: str = ""
    name: str = ""
    unit: str = ""
    budget: Fraction = ZERO
    delta: Fraction = ZERO
    spent: Composition = field(default_factory=Composition)
    entries: list[Entry] = field(default_factory=list)
    charges: dict[tuple[str, str], tuple[Cost, ...]] = field(default_factory=dict)
    seals: dict[tuple[str, str], str] = field(default_factory=dict)
    poisoned: set[str] = field(default_factory=set)
    caps: dict[str, Fraction] = field(default_factory=dict)
    paid: dict[str | None, Fraction] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def draft(self) -> Accountant:
        """A copy that can be changed; this object stays as it is."""
        result = copy(self)
        for name in ("entries", "charges", "seals", "poisoned", "caps", "paid", "rows"):
            setattr(result, name, copy(getattr(self, name)))
        return result

    def apply(self, body: dict[str, Any], row: Row) -> None:
        """Check one row and enter it.

        Args:
            body: The row's text, read.
            row: The row itself; later reads compare it, to see that the ledger is the same.

        Raises:
            BudgetError: A charge that does not fit.
        """
        entry = getattr(self, f"_{body['kind']}")(body)
        number, kind = len(self.entries) + 1, body["kind"]
        self.entries.append(Entry(number, body["at"], kind, **entry))
        self.rows.append(row)

    def _open(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.entries or body["format"] != FORMAT:
            raise RefusedError("it was written by another version of wpinq; use that version.")
        self.identity, self.name, self.unit = body["id"], body["name"], body["unit"]
        self.budget, self.delta = read(body["budget"]), read(body["delta"])
        return {"label": self.name, "epsilon": self.budget, "delta": self.delta}

    def _charge(self, body: dict[str, Any]) -> dict[str, Any]:
        costs = tuple(Cost(read(epsilon), read(delta), under) for epsilon, delta, under in body["costs"])
        charge = Charge(body["question"], costs, body["version"], body["label"], body["analyst"])
        after = self.spent.including(costs)
        epsilon, delta = after.epsilon - self.spent.epsilon, after.delta - self.spent.delta
        self._admit(charge, epsilon, delta)
        self.spent, self.charges[charge.key] = after, costs
        self.paid[charge.analyst] = self.paid.get(charge.analyst, ZERO) + epsilon
        return {
            "label": charge.label, "question": charge.question, "version": charge.version,
            "analyst": charge.analyst or "", "epsilon": epsilon, "delta": delta,
        }  # fmt: skip

    def _seal(self, body: dict[str, Any]) -> dict[str, Any]:
        self.seals[body["question"], body["version"]] = body["mac"]
        return {"question": body["question"], "version": body["version"]}

    def _poison(self, body: dict[str, Any]) -> dict[str, Any]:
        self.poisoned.add(body["version"])
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
        asked = f"costs epsilon {decimal(epsilon)}"
        if delta > left_delta:
            raise self.refusal(
                charge, epsilon, left, f"costs delta {decimal(delta)}, {decimal(left_delta)} is left {where}"
            )
        if epsilon > left:
            raise self.refusal(charge, epsilon, left, f"{asked}, {decimal(left)} is left {where}")
        if charge.analyst in self.caps:
            own = max(self.caps[charge.analyst] - self.paid.get(charge.analyst, ZERO), ZERO)
            if epsilon > own:
                cap = f"is left of the cap of analyst {charge.analyst!r}"
                raise self.refusal(charge, epsilon, min(own, left), f"{asked}, {decimal(own)} {cap} {where}")

    def refusal(self, charge: Charge, epsilon: Fraction, left: Fraction, why: str) -> BudgetError:
        """The error of a charge that does not fit."""
        spent = self.spent_on(charge.analyst)
        lines = "".join(f"\n  {decimal(amount):>10}  {label}" for label, amount in spent) or " nothing"
        message = f"{charge.label}: {why}; nothing was charged. Spent so far:{lines}"
        return BudgetError(message, requested=epsilon, remaining=left, spent=spent)

    def spent_on(self, analyst: str | None = None) -> tuple[tuple[str, Fraction], ...]:
        """What was spent, by name of the measurement; for one analyst, the sum of all others has no names."""
        sums: dict[str, Fraction] = {}
        for entry in self.entries:
            if entry.kind == "charge" and entry.epsilon is not None:
                label = entry.label if analyst is None or entry.analyst == analyst else "others"
                sums[label] = sums.get(label, ZERO) + entry.epsilon
        return tuple(sums.items())
