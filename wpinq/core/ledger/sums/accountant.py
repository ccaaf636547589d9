"""The accountant: adds up the charges of a ledger, and refuses what does not fit the budget (a privacy filter).

A row is checked by the same code when it is written and whenever it is read, so reading a ledger recomputes every
charge, every total and every refusal.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, MutableMapping
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from wpinq.core.ledger.rows.chain import RefusedError, Row
from wpinq.core.ledger.sums.checkpoint import EVERY, KIND, Since, restore
from wpinq.core.ledger.sums.cost import ZERO, Charge, Composition, Cost, Total, costs_of, key, read_amount, write_amount
from wpinq.core.ledger.sums.privacy_filter import PURE, RHO, Promise
from wpinq.core.ledger.versions import CONTENT, version_label
from wpinq.errors import BudgetError
from wpinq.exact import decimal

OTHERS = "others"
TOLD = 8
"""How many of the questions that were paid a refusal names, those that cost the most."""
WIDE = 80
"""How many letters of each."""
MAPS = ("charges", "seals", "poisoned", "caps", "paid", "labels", "contents", "tables", "asked", "lost", "delta_caps",
        "failed")  # fmt: skip
SCALARS = ("identity", "name", "unit", "promise", "last", "since")

SUMS = (("epsilon", "pure", "pure sums"), ("divergence", "renyi", "renyi sums"))
"""The sums whose parts are tables."""
GAUSSIAN = (
    "adds Gaussian noise, which no epsilon bounds, and the budget of data set {!r} is a sum of epsilons. Take Laplace"
    " noise, or another ledger with rho= or accounting='renyi'"
)
ROUNDED = " (a rounded number is above what it stands for: write '1/11', or take wpinq.budget(...).split(11))"


@dataclass(frozen=True)
class Entry:
    """One row of the ledger, as it is shown to the curator: no digest, no record, no count.

    `epsilon` and `delta` are what was charged, or the new amount of a cap or budget; no epsilon is one of Gaussian
    noise. `divergence` is what was charged beside it, at the order of a ledger that has one, and in a ledger of rho
    that, also of a cap or budget. `within` says of a table whose its records are, and of a charge within which bound of
    each person's records it was asked.
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
    divergence: Fraction | None = None
    within: str = ""

    @property
    def internal(self) -> bool:
        """Whether it is a seal or a checkpoint, which say nothing that a curator decided."""
        return self.kind in ("seal", KIND)


@dataclass
class Accountant:
    """The state of a ledger after some of its rows.

    Attributes:
        last: The last of these rows.
        charges: A code of the costs of every charge, by a code of its question and version.
        seals: The seals, by the same code.
        caps: Of the budget, what each of some analysts may spend.
        paid: Epsilon by analyst.
        lost: Divergence by analyst, where divergences are kept.
        delta_caps: Of the delta that thresholds and selections may spend, what each of some analysts may.
        failed: Delta by analyst.
        labels: By analyst and label, epsilon, or divergence where these are kept.
        contents: When the content of a version was pinned.
        asked: The version that a question was charged on last, by what people take for one question.
        tables: The units of further tables of the same people, by name.
        since: What the rows since the last checkpoint changed.
        torn: Whether an interrupt came while drafted rows were settled.
    """

    identity: str = ""
    name: str = ""
    unit: str = ""
    promise: Promise = field(default_factory=Promise)
    last: Row | None = None
    spent: Composition = field(default_factory=Composition)
    charges: MutableMapping[bytes, bytes] = field(default_factory=dict)
    seals: MutableMapping[bytes, bytes] = field(default_factory=dict)
    poisoned: MutableMapping[str, bool] = field(default_factory=dict)
    caps: MutableMapping[str | None, Fraction] = field(default_factory=dict)
    paid: MutableMapping[str | None, Fraction] = field(default_factory=dict)
    labels: MutableMapping[tuple[str | None, str], Fraction] = field(default_factory=dict)
    contents: MutableMapping[str, str] = field(default_factory=dict)
    tables: MutableMapping[str, str] = field(default_factory=dict)
    asked: MutableMapping[str, str] = field(default_factory=dict)
    lost: MutableMapping[str | None, Fraction] = field(default_factory=dict)
    delta_caps: MutableMapping[str | None, Fraction] = field(default_factory=dict)
    failed: MutableMapping[str | None, Fraction] = field(default_factory=dict)
    since: Since = field(default_factory=Since, compare=False, repr=False)
    torn: bool = False

    @property
    def left(self) -> Fraction:
        """Epsilon that one more question may cost, whatever its noise."""
        return self.promise.left(self.spent)

    @property
    def left_delta(self) -> Fraction:
        """Delta that thresholds and selections may still spend."""
        return self.promise.failing - self.spent.delta

    @property
    def told(self) -> str:
        """Both sums, in brackets, where there are two."""
        told = self.promise.told(self.spent)
        return f" ({told})" if told else ""

    @property
    def people(self) -> str:
        """Whom it protects: where tables tell people apart by other columns, by each of them."""
        others = {name: unit for name, unit in self.tables.items() if unit != self.unit}
        return "; ".join([self.unit, *(f"{unit} in {name}" for name, unit in others.items())])

    def draft(self) -> Accountant:
        """A layer to write on; this accountant stays as it is until the draft is settled."""
        draft = copy(self)
        for name in MAPS:
            setattr(draft, name, ChainMap({}, getattr(self, name)))
        draft.spent, draft.since = self.spent.including(()), self.since.draft()
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
            ValueError: A checkpoint does not say what the rows before it say, or stands where none is.
        """
        checkpoint = body["kind"] == KIND
        if checkpoint != (row.number % EVERY == 0):
            raise ValueError
        shown: dict[str, Any] = getattr(self, f"_{body['kind']}")(body)
        if checkpoint:
            self.since = Since(row)
        else:
            self.since.row(row)
        self.last = Row(row.number, "", row.mac)
        return {"number": row.number, "at": body["at"], "kind": body["kind"], **shown}

    def checkpoint(self) -> dict[str, Any]:
        """The checkpoint that may follow."""
        ledger = {"id": self.identity, "name": self.name, "unit": self.unit, **self.promise.body()}
        spent = {name: write_amount(getattr(self.spent, name)) for name in ("epsilon", "delta", "divergence")}
        return {**self.since.body(self._all()), "ledger": ledger, "spent": {**spent, "gaussian": self.spent.gaussian}}

    def _checkpoint(self, body: dict[str, Any]) -> dict[str, Any]:
        if any(body[name] != value for name, value in self.checkpoint().items()):
            raise ValueError
        return {}

    def _all(self) -> dict[str, MutableMapping[Any, Any]]:
        """All tables by name, those of the sums too."""
        tables = {name: getattr(self, name) for name in MAPS}
        pure, renyi = self.spent.pure, self.spent.renyi
        return {**tables, "pure": pure.parts, "renyi": renyi.parts, "pure sums": pure.sums, "renyi sums": renyi.sums}

    @classmethod
    def resumed(cls, checkpoints: Iterable[dict[str, Any]], last: Row) -> Accountant:
        """The accountant that all checkpoints of a ledger make together; each was verified.

        Args:
            checkpoints: All of them, from the first.
            last: The row of the last.

        Raises:
            KeyError, ValueError, TypeError: Another version of wpinq has written them.
        """
        result, body = cls(), dict[str, Any]()
        tables = result._all()
        for body in checkpoints:
            restore(body["changed"], tables)
        ledger, spent = body["ledger"], body["spent"]
        result.promise = Promise.opened(ledger)
        result.identity, result.name, result.unit = ledger["id"], ledger["name"], ledger["unit"]
        pure, renyi = (Total(read_amount(spent[name]), tables[part], tables[sums]) for name, part, sums in SUMS)
        result.spent = replace(
            result.promise.begun(),
            pure=pure,
            renyi=renyi,
            delta=read_amount(spent["delta"]),
            gaussian=spent["gaussian"],
        )
        result.last, result.since = Row(last.number, "", last.mac), Since(last)
        return result

    def _set(self, table: str, key: Any, value: Any) -> None:
        getattr(self, table)[key] = value
        self.since.change(table, key)

    def _open(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.last is not None:
            raise RefusedError("it was written by another version of wpinq; use that version.")
        self.promise = Promise.opened(body)
        self.identity, self.name, self.unit = body["id"], body["name"], body["unit"]
        self.spent = self.promise.begun()
        return {
            "label": self.name,
            "delta": self.promise.delta,
            "within": self.unit,
            **self._amount(self.promise.budget),
        }

    def _shown(self, version: str) -> str:
        return version_label(version, self.name)

    def _amount(self, budget: Fraction) -> dict[str, Any]:
        """An amount of the budget, as an entry shows it."""
        return {"divergence" if self.promise.accounting == RHO else "epsilon": budget}

    def _table(self, body: dict[str, Any]) -> dict[str, Any]:
        self._set("tables", body["name"], body["unit"])
        return {"label": body["name"], "within": body["unit"]}

    def _charge(self, body: dict[str, Any]) -> dict[str, Any]:
        curves = self.spent.curves
        costs = costs_of(body, curves=curves)
        charge = Charge(body["question"], costs, body["version"], body["label"], body["analyst"])
        after = self.spent.including(costs)
        epsilon, delta = after.epsilon - self.spent.epsilon, after.delta - self.spent.delta
        divergence = after.divergence - self.spent.divergence
        self._admit(charge, after)
        self.spent.settle(after)
        self._set("charges", charge.key, charge.code)
        if "asked" in body:
            self._set("asked", body["asked"], charge.version)
        who, on = charge.analyst, (charge.analyst, charge.label)
        self._set("paid", who, self.paid.get(who, ZERO) + epsilon)
        if delta:
            self._set("failed", who, self.failed.get(who, ZERO) + delta)
        if curves:
            self._set("lost", who, self.lost.get(who, ZERO) + divergence)
        self._set("labels", on, self.labels.get(on, ZERO) + (divergence if curves else epsilon))
        self._parts(costs)
        return {
            "label": charge.label, "question": charge.question, "version": self._shown(charge.version),
            "analyst": who or "", "epsilon": None if any(cost.rho for cost in costs) else epsilon, "delta": delta,
            "within": body.get("within", ""), **({"divergence": divergence} if curves else {}),
        }  # fmt: skip

    def _parts(self, costs: Iterable[Cost]) -> None:
        """Which sums of parts were changed: of each path, those of all that begin it."""
        for cost in costs:
            if cost.times > 1:
                self.since.change("sums", (cost.under[0][0], write_amount(cost.times), cost.under[0][1]))
        whole = [cost for cost in costs if cost.times == 1]
        for path in dict.fromkeys(tuple(name for pair in cost.under for name in pair) for cost in whole):
            for size in range(1, len(path) + 1):
                self.since.change("parts", path[:size])

    def _seal(self, body: dict[str, Any]) -> dict[str, Any]:
        self._set("seals", key(body["question"], body["version"]), bytes.fromhex(body["mac"]))
        if body["question"].startswith(CONTENT) and body["version"] not in self.contents:
            self._set("contents", body["version"], body["at"])
        return {"question": body["question"], "version": self._shown(body["version"])}

    def _poison(self, body: dict[str, Any]) -> dict[str, Any]:
        self._set("poisoned", body["version"], True)
        return {"version": self._shown(body["version"])}

    def _cap(self, body: dict[str, Any]) -> dict[str, Any]:
        amount = read_amount(body["epsilon"])
        self._set("caps", body["analyst"], amount)
        return {"analyst": body["analyst"], **self._amount(amount)}

    def _delta_cap(self, body: dict[str, Any]) -> dict[str, Any]:
        amount = read_amount(body["delta"])
        self._set("delta_caps", body["analyst"], amount)
        return {"analyst": body["analyst"], "delta": amount}

    def _raise(self, body: dict[str, Any]) -> dict[str, Any]:
        self.promise = self.promise.raised(read_amount(body["epsilon"]))
        return self._amount(self.promise.budget)

    def refuse_gaussian(self, charge: Charge) -> None:
        """Refuse noise of which a sum of epsilons says nothing, before a row of it is made.

        Raises:
            BudgetError: The ledger is one of pure epsilon.
        """
        if self.promise.accounting == PURE and any(cost.rho for cost in charge.costs):
            raise self.refusal(charge, sum((cost.rho for cost in charge.costs), ZERO), ZERO, GAUSSIAN.format(self.name))

    def _admit(self, charge: Charge, after: Composition) -> None:
        """Refuse a charge that does not fit the budget, its delta or the analyst's caps.

        Args:
            charge: The charge.
            after: What is spent with it.
        """
        capped = charge.analyst in self.caps or charge.analyst in self.delta_caps
        if not capped and after.delta <= self.promise.failing and self.promise.holds(after):
            return
        where, costs = f"of data set {self.name!r}", after.since(self.spent)
        if after.delta > self.promise.failing:
            delta = f"costs delta {decimal(after.delta - self.spent.delta)}, {decimal(self.left_delta)} is left {where}"
            raise self.refusal(charge, costs, self.left, f"{delta}{self.promise.told_share}")
        if not self.promise.holds(after):
            left = self.promise.rho_left(self.spent) if after.only_gaussian(self.spent) else self.left
            short = ROUNDED if ZERO < costs - left < costs / 10**9 else ""
            text = f"{self.promise.asks(after, self.spent)}, {decimal(left)} is left {where}{self.told}{short}"
            raise self.refusal(charge, costs, left, text, "budget")
        mine = self.by(charge.analyst, after)
        if charge.analyst in self.caps:
            share, before = self.promise.share(self.caps[charge.analyst]), self.by(charge.analyst, self.spent)
            if not share.holds(mine):
                left = share.left(before)
                cap = f"{decimal(left)} is left of the cap of analyst {charge.analyst!r} {where}"
                text = f"{self.promise.asks(after, self.spent)}, {cap}"
                raise self.refusal(charge, costs, min(left, self.left), text, "cap")
        if mine.delta > self.delta_caps.get(charge.analyst, mine.delta):
            asks = after.delta - self.spent.delta
            left = max(self.delta_caps[charge.analyst] - mine.delta + asks, ZERO)
            cap = f"{decimal(left)} is left of the delta cap of analyst {charge.analyst!r} {where}"
            raise self.refusal(charge, costs, self.left, f"costs delta {decimal(asks)}, {cap}", "cap")

    def by(self, analyst: str | None, after: Composition) -> Composition:
        """What an analyst has spent, with what all have beyond what the ledger holds now."""
        epsilon = self.paid.get(analyst, ZERO) + after.epsilon - self.spent.epsilon
        lost = self.lost.get(analyst, ZERO) + after.divergence - self.spent.divergence
        delta = self.failed.get(analyst, ZERO) + after.delta - self.spent.delta
        return replace(after, pure=Total(epsilon), renyi=Total(lost), delta=delta)

    def other_unit(self, unit: str, held: str) -> RefusedError:
        """The error of a question with another privacy unit: what to do, and what that costs."""
        return RefusedError(
            f"its privacy unit is {held!r}, not {unit!r}; whom it protects is fixed when it is made. Ask with its"
            " unit, or give another ledger: ledger=PATH, on the command line --ledger PATH. What both spend adds up for"
            f" the same people; epsilon {decimal(self.spent.epsilon)} is spent in this one."
        )

    def refusal(
        self, charge: Charge, epsilon: Fraction, left: Fraction, why: str, what: str | None = None
    ) -> BudgetError:
        """The error of a charge that does not fit: `what` is what a curator could raise, where that helps."""
        spent = self.spent_on(charge.analyst)
        own = [each for each in spent if what != "cap" or each[0] != OTHERS]  # a cap holds what its analyst spends
        most = sorted(own, key=lambda each: -each[1])[:TOLD]
        told = [(decimal(amount), label if len(label) <= WIDE else f"{label[: WIDE - 3]}...")
                for label, amount in own if (label, amount) in most]  # fmt: skip
        if len(own) > len(most):
            told.append((decimal(sum((amount for _, amount in own), ZERO) - sum((amount for _, amount in most), ZERO)),
                         f"{len(own) - len(most)} more"))  # fmt: skip
        lines = ";".join(f"\n  {amount:>10}  {label}" for amount, label in told) or " nothing"
        kind = "" if self.promise.accounting == PURE else f", as {self.promise.kind}"
        do = f" Ask for less, or let the curator raise the {what}." if what else ""
        message = f"{charge.label}: {why}; nothing was charged.{do} Spent so far{kind}:{lines}"
        return BudgetError(message, requested=epsilon, remaining=left, spent=spent)

    def spent_on(self, analyst: str | None = None) -> tuple[tuple[str, Fraction], ...]:
        """What was spent, by name of the measurement; for one analyst, the sum of all others has no names."""
        sums: dict[str, Fraction] = {}
        for (who, label), epsilon in self.labels.items():
            name = label if analyst is None or who == analyst else OTHERS
            sums[name] = sums.get(name, ZERO) + epsilon
        return tuple(sums.items())
