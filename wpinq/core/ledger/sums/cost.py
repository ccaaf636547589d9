"""What a query costs a data set, how costs compose, and as which row the ledger keeps the charge for it.

A cost belongs to one path from the data set to a measurement. Costs are added up (sequential composition), except that
of the parts of one partition (or its windows, or the union and intersection of one pair) only the largest counts
(parallel composition): the change that one unit causes in a collection is divided among its parts. By induction over
the plan, `loss <= c(node) * |change of node|`, where c(node) is the sum of 1 / scale over the measurements of the node
and of stability times c over the steps that read it, or for parts the largest of theirs.

What a unit moves of one part may be bounded by less than what it moves before the parts: who has twenty records moves
the people of a part by 1. Then the noise follows from the 1, and of the parts of a group the 20 largest count:
`Cost.times` is how much further a unit moves all parts than this one. With f_p the share of its loss that a unit loses
in part p, f_p <= 1 and the sum of f_p <= times, so sum(loss_p f_p) is at most the sum of so many largest. Where times
is no whole number, the next part counts in part. Proof: `so_many_largest_count` in tests/proofs.

This holds for the parts of one collection. A group is the name of that collection: a partition, windows or a pair of
one plan over one version of the data. The code that names a group must observe:

- Two versions of a data set are two collections, and so are two epochs of a live source. The name of a group holds the
  fingerprint of its plan, which depends on the version; so the costs of versions add up.
- Epochs may share a group only if a unit causes the same change of the collection at each of them (once its records
  have come): if all steps from the live source on are linear for each record, and the unit is a record. After a step
  that combines records (also a bound on users, whose sample changes), one early record can change another part at every
  epoch; there the name holds the epoch too (`wpinq.core.operators.window`).
- A user is in many parts: at one epoch the user's change is divided among them as a record's is, within the bound.
- A continual measurement answers for every epoch, but consists of linear steps, and keeps the first records of users,
  for ever: the change of all epochs together is divided among the parts.
"""

from __future__ import annotations

import json
import math
import re
from collections import ChainMap
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from wpinq.core.ledger.sums.renyi import Order, rate
from wpinq.core.records.fields import encode
from wpinq.errors import ExactnessError, InternalError
from wpinq.exact import exact

ZERO = Fraction(0)
ALLOWED = Fraction(1, 100_000)
"""The delta budget of a new ledger by default: ten releases at the default of 1e-6."""


@dataclass(frozen=True)
class Cost:
    """The cost of one path from a data set to a measurement.

    Args:
        epsilon: Privacy loss of the unit along this path, exact, not negative; 0 for Gaussian noise, which bounds none.
        delta: Its failure probability, exact, not negative.
        under: The parts that the path goes through, outermost first: each the name of its group (the fingerprint of
            the partition, windows or pair) and of the part.
        rho: Zero-concentrated privacy loss of Gaussian noise along this path, exact, not negative.
        times: How far a unit can move all parts of the outermost group together, in parts of how far it moves what was
            measured: of so many parts the losses count. 1 of what goes through no parts.
        curve: The Renyi curve of the epsilon of the whole charge (`curve.rate`): epsilon of the largest shift of one
            bin, through all paths together, and of one step of its noise. None where nothing is known: then a
            divergence is as large as epsilon.

    Raises:
        ExactnessError: An amount is not exact, is negative, or all are zero.

    >>> Cost(0.1) == Cost(Fraction(1, 10))
    True
    """

    epsilon: Fraction
    delta: Fraction = ZERO
    under: tuple[tuple[str, str], ...] = ()
    rho: Fraction = ZERO
    times: Fraction = Fraction(1)
    curve: tuple[Fraction, Fraction] | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "rho"):
            object.__setattr__(self, name, exact(getattr(self, name), f"Cost({name}=...)"))
        object.__setattr__(self, "under", tuple((group, part) for group, part in self.under))
        if not all(isinstance(name, str) for pair in self.under for name in pair):
            raise InternalError("Cost(under=...): a group and its part are known by text only.")
        if min(self.epsilon, self.delta, self.rho) < 0 or not (self.epsilon or self.delta or self.rho):
            raise ExactnessError("Cost(...): a privacy loss is above zero; give a positive epsilon, rho or delta.")
        if self.times < 1 or (self.times > 1 and not self.under):
            raise InternalError("Cost(times=...): parts together move as far as each of them, at the least.")
        if self.curve is not None and not 0 < self.curve[1] <= self.curve[0]:
            raise InternalError("Cost(curve=...): the shift of a bin is one step of its noise at least, above zero.")

    def at(self, order: Order) -> Fraction:
        """Its divergence at an order, or with None its zero-concentrated loss, along this path.

        >>> Cost(0.1, curve=(Fraction(1, 10), Fraction(1, 10))).at(None), Cost(0, rho=1).at(Fraction(8))
        (Fraction(1, 200), Fraction(8, 1))
        """
        pure = self.epsilon * rate(*self.curve, order) if self.curve else self.epsilon
        return pure + self.rho * (1 if order is None else order)


@dataclass
class Total:
    """The sum of one kind of loss; of a group of parts the largest counts, or so many as `Cost.times` says.

    Attributes:
        amount: Of all costs.
        parts: The amount of each part, by the names on its path, and the largest of each group, by those without the
            last: so that one more cost is added up in the same time, however many there are.
        sums: The sum of the costs of a part, where several parts count: by its outermost group, times, and its name.
        largest: By group and times the largest of these sums, by part, so many as count: what one more cost changes
            follows from them. It follows from `sums`, and is found there once.
    """

    amount: Fraction = ZERO
    parts: MutableMapping[tuple[str, ...], Fraction] = field(default_factory=dict)
    sums: MutableMapping[tuple[str, ...], Fraction] = field(default_factory=dict)
    largest: MutableMapping[tuple[str, str], dict[str, Fraction]] = field(default_factory=dict, compare=False)

    def draft(self) -> Total:
        """A layer to add to; this one stays as it is until it is settled."""
        return Total(self.amount, ChainMap({}, self.parts), ChainMap({}, self.sums), ChainMap({}, self.largest))

    def settle(self, after: Total) -> None:
        """Become what was made of a draft of this one."""
        held: MutableMapping[Any, Any]
        for held, added in ((self.parts, after.parts), (self.sums, after.sums), (self.largest, after.largest)):
            if isinstance(added, ChainMap):
                held.update(added.maps[0])
        self.amount = after.amount

    def add(self, under: tuple[tuple[str, str], ...], loss: Fraction, times: Fraction = Fraction(1)) -> None:
        """Add the loss of one path; of so many parts of its outermost group losses count."""
        self.amount += self._largest(under, loss) if times == 1 else self._several(under[0], loss, times)

    def _several(self, part: tuple[str, str], loss: Fraction, times: Fraction) -> Fraction:
        """Add to a part of which several count, and return by how much the group grows."""
        group, name = part
        of = (group, write_amount(times))
        before = self._counted(of, times)
        self.sums[(*of, name)] = grown = self.sums.get((*of, name), ZERO) + loss
        after = _largest_of(
            {**before, name: grown}, times
        )  # sums only grow: what did not count counts when it has grown
        self.largest[of] = after
        return so_many_largest(after.values(), times) - so_many_largest(before.values(), times)

    def _counted(self, of: tuple[str, str], times: Fraction) -> dict[str, Fraction]:
        """The largest sums of a group, by part."""
        if of not in self.largest:
            self.largest[of] = _largest_of(
                {key[2]: amount for key, amount in self.sums.items() if key[:2] == of}, times
            )
        return self.largest[of]

    def _largest(self, under: tuple[tuple[str, str], ...], growth: Fraction) -> Fraction:
        """Add to a part; of a group only the growth of the largest goes on to what holds the group."""
        path = [name for pair in under for name in pair]
        while path:
            part = tuple(path)
            self.parts[part] = amount = self.parts.get(part, ZERO) + growth
            largest = self.parts.get(part[:-1], ZERO)
            self.parts[part[:-1]] = max(amount, largest)
            growth = max(amount - largest, ZERO)
            del path[-2:]
        return growth


def _largest_of(losses: dict[str, Fraction], times: Fraction) -> dict[str, Fraction]:
    """The largest of some losses, as many as count, also in part."""
    many = math.ceil(times)
    return losses if len(losses) <= many else dict(sorted(losses.items(), key=lambda entry: -entry[1])[:many])


def so_many_largest(losses: Iterable[Fraction], times: Fraction) -> Fraction:
    """The sum of so many largest losses; of a part of one, where it is no whole number.

    >>> so_many_largest([Fraction(3), Fraction(1), Fraction(2)], Fraction(3, 2))
    Fraction(4, 1)
    """
    ordered, whole = sorted(losses, reverse=True), math.floor(times)
    return sum(ordered[:whole], ZERO) + (times - whole) * sum(ordered[whole : whole + 1], ZERO)


@dataclass
class Composition:
    """The total of many costs.

    Deltas are summed over parts as well: a user is in many of them, and shows in each. Divergences are added up as
    epsilons are, since each is linear in the movement of a unit (`curve.py`).

    Attributes:
        pure: Of epsilons.
        delta: Of all costs.
        renyi: Of divergences at the order, where these are kept.
        gaussian: Whether there was Gaussian noise, which no epsilon bounds.
        order: Of the divergences; None for zero-concentrated losses.
        curves: Whether divergences are kept.

    Source: McSherry, PINQ, SIGMOD 2009 (sequential and parallel composition).

    >>> left, right = ("by day", "Monday"), ("by day", "Tuesday")
    >>> Composition().including([Cost("0.1"), Cost("0.1", under=(left,)), Cost("0.3", under=(right,))]).epsilon
    Fraction(2, 5)
    """

    pure: Total = field(default_factory=Total)
    delta: Fraction = ZERO
    renyi: Total = field(default_factory=Total)
    gaussian: bool = False
    order: Order = None
    curves: bool = False

    @property
    def epsilon(self) -> Fraction:
        """Of all costs; Gaussian noise adds nothing here."""
        return self.pure.amount

    @property
    def divergence(self) -> Fraction:
        """Of all costs, at the order."""
        return self.renyi.amount

    def including(self, costs: Iterable[Cost], number: int = 1) -> Composition:
        """The total with more costs, so often; this one stays as it is."""
        result = replace(self, pure=self.pure.draft(), renyi=self.renyi.draft())
        result.add(costs, number)
        return result

    def add(self, costs: Iterable[Cost], number: int = 1) -> None:
        """Add costs, each so often: what all come to follows from the sum of each part, in whatever order."""
        for cost in costs:
            self.pure.add(cost.under, cost.epsilon * number, cost.times)
            if self.curves:
                self.renyi.add(cost.under, cost.at(self.order) * number, cost.times)
            self.delta += cost.delta * number
            self.gaussian = self.gaussian or cost.rho > 0

    def since(self, before: Composition) -> Fraction:
        """Epsilon that was added to an earlier total; of Gaussian noise alone, rho."""
        if self.only_gaussian(before):
            return (self.divergence - before.divergence) / (self.order or 1)
        return self.epsilon - before.epsilon

    def only_gaussian(self, before: Composition) -> bool:
        """Whether what was added to an earlier total is Gaussian noise alone, whose cost is a rho."""
        return self.gaussian and self.epsilon == before.epsilon and self.divergence > before.divergence

    def settle(self, after: Composition) -> None:
        """Become what `including` has made of this one."""
        self.pure.settle(after.pure)
        self.renyi.settle(after.renyi)
        self.delta, self.gaussian, self.order, self.curves = after.delta, after.gaussian, after.order, after.curves


def write_amount(number: Fraction) -> str:
    """Write a rational exactly as "p/q". Decimals have no limit on digits, as integers have."""
    return f"{Decimal(number.numerator)}/{Decimal(number.denominator)}"


def read_amount(text: str) -> Fraction:
    """Read what `write_amount` has written.

    >>> read_amount(write_amount(Fraction(-1, 3)))
    Fraction(-1, 3)
    """
    numerator, _, denominator = text.partition("/")
    return Fraction(int(Decimal(numerator)), int(Decimal(denominator)))


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
        within: Within which bound of each person's records it was asked, for people; it decides nothing.
    """

    question: str
    costs: tuple[Cost, ...]
    version: str
    label: str
    analyst: str | None = None
    asked: str = ""
    within: str = ""

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

    def body(self, *, curves: bool = False) -> dict[str, Any]:
        """The charge as a row of the ledger; with the curves of its costs, which a ledger of pure epsilon has not."""
        costs = [[*_texts(cost), *(_curve(cost) if curves else ())] for cost in self.costs]
        optional = {name: value for name, value in (("asked", self.asked), ("within", self.within)) if value}
        return {
            "kind": "charge", "question": self.question, "version": self.version, "label": self.label,
            "analyst": self.analyst, "costs": costs, **optional,
        }  # fmt: skip


def _texts(cost: Cost) -> list[Any]:
    return [write_amount(cost.epsilon), write_amount(cost.delta), cost.under, write_amount(cost.times)]


def _curve(cost: Cost) -> list[Any]:
    return [write_amount(cost.rho), None if cost.curve is None else [write_amount(loss) for loss in cost.curve]]


def costs_of(body: dict[str, Any], *, curves: bool) -> tuple[Cost, ...]:
    """The costs of a charge, as its row says them.

    Raises:
        ValueError: They have curves in a ledger that has none, or none in one that has.
    """
    return tuple(_cost(curves, *map(_frozen, fields)) for fields in body["costs"])


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@lru_cache(1024)
def _cost(curves: bool, epsilon: str, delta: str, under: tuple[tuple[str, str], ...], times: str, *more: Any) -> Cost:
    rho, curve = more if curves else ("0/1", None, *more)
    known = None if curve is None else (read_amount(curve[0]), read_amount(curve[1]))
    return Cost(read_amount(epsilon), read_amount(delta), under, read_amount(rho), read_amount(times), known)


@lru_cache(1024)
def _code(costs: tuple[Cost, ...]) -> bytes:
    texts = ([*_texts(cost), *([write_amount(cost.rho)] if cost.rho else [])] for cost in costs)
    return blake2b("\n".join(sorted(map(json.dumps, texts))).encode(), digest_size=16).digest()


def key(question: str, version: str) -> bytes:
    """A question on one version, in 32 bytes, however long the name of the version is."""
    return blake2b(encode(question, version), digest_size=32).digest()
