"""What a query costs a data set, and how costs compose.

A cost belongs to one path from the data set to a measurement. Costs are added up (sequential composition), except that
of the parts of one partition (or its windows, or the union and intersection of one pair) only the largest counts
(parallel composition): the change that one unit causes in a collection is divided among its parts. By induction over
the plan, `loss <= c(node) * |change of node|`, where c(node) is the sum of 1 / scale over the measurements of the node
and of stability times c over the steps that read it, or for parts the largest of theirs.

This holds for the parts of one collection. A group is the name of that collection: a partition, windows or a pair of
one plan over one version of the data. The code that names a group must observe:

- Two versions of a data set are two collections, and so are two epochs of a live source. The name of a group holds the
  fingerprint of its plan, which depends on the version; so the costs of versions add up.
- Epochs may share a group only if a unit causes the same change of the collection at each of them (once its records
  have come): if all steps from the live source on are linear for each record, and the unit is a record. After a step
  that combines records (also a bound on users, whose sample changes), one early record can change another part at every
  epoch; there the name holds the epoch too (`wpinq.operators.parallel`).
- A user is in many parts: at one epoch the user's change is divided among them as a record's is, within the bound.
- A continual measurement answers for every epoch, but consists of linear steps, and keeps the first records of users,
  for ever: the change of all epochs together is divided among the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from wpinq.errors import ExactnessError, InternalError
from wpinq.exact import exact

ZERO = Fraction(0)
ALLOWED = Fraction(1, 100_000)
"""The delta budget of a new ledger by default: ten releases at the default of 1e-6."""


@dataclass(frozen=True)
class Cost:
    """The cost of one path from a data set to a measurement.

    Args:
        epsilon: Privacy loss of the unit along this path, exact, not negative.
        delta: Its failure probability, exact, not negative; epsilon and delta are not both zero.
        under: The parts that the path goes through, outermost first: each the name of its group (the fingerprint of
            the partition, windows or pair) and of the part.

    Raises:
        ExactnessError: An amount is not exact, is negative, or both are zero.

    >>> Cost(0.1) == Cost(Fraction(1, 10))
    True
    """

    epsilon: Fraction
    delta: Fraction = ZERO
    under: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, exact(getattr(self, name), f"Cost({name}=...)"))
        object.__setattr__(self, "under", tuple((group, part) for group, part in self.under))
        if not all(isinstance(name, str) for pair in self.under for name in pair):
            raise InternalError("Cost(under=...): a group and its part are known by text only.")
        if self.epsilon < 0 or self.delta < 0 or not (self.epsilon or self.delta):
            raise ExactnessError("Cost(...): a privacy loss is above zero; give a positive epsilon or delta.")


@dataclass(frozen=True)
class Composition:
    """The total of many costs, as an immutable tree of groups and parts.

    `plus` returns a new total, so a charge can be priced without being made. Deltas are added up over parts as well,
    because one user may be in many parts, and seen in each.

    Source: McSherry, PINQ, SIGMOD 2009 (sequential and parallel composition).

    >>> left, right = ("by day", "Monday"), ("by day", "Tuesday")
    >>> Composition().including([Cost("0.1"), Cost("0.1", under=(left,)), Cost("0.3", under=(right,))]).epsilon
    Fraction(2, 5)
    """

    epsilon: Fraction = ZERO
    delta: Fraction = ZERO
    groups: Mapping[str, Mapping[str, Composition]] = field(default_factory=dict)

    def plus(self, epsilon: Fraction, delta: Fraction, under: tuple[tuple[str, str], ...]) -> Composition:
        """Add one cost; only the growth of the largest part of each group is added to the total."""
        if not under:
            return Composition(self.epsilon + epsilon, self.delta + delta, self.groups)
        (group, part), *inner = under
        parts = self.groups.get(group, {})
        after = {**parts, part: parts.get(part, Composition()).plus(epsilon, delta, tuple(inner))}
        growth = _largest(after) - _largest(parts)
        return Composition(self.epsilon + growth, self.delta + delta, {**self.groups, group: after})

    def including(self, costs: Iterable[Cost]) -> Composition:
        """Add several costs."""
        result = self
        for cost in costs:
            result = result.plus(cost.epsilon, cost.delta, cost.under)
        return result


def _largest(parts: Mapping[str, Composition]) -> Fraction:
    return max((part.epsilon for part in parts.values()), default=ZERO)


def write(number: Fraction) -> str:
    """Write a rational exactly as "p/q". Decimals have no limit on digits, as integers have."""
    return f"{Decimal(number.numerator)}/{Decimal(number.denominator)}"


def read(text: str) -> Fraction:
    """Read what `write` has written.

    >>> read(write(Fraction(-1, 3)))
    Fraction(-1, 3)
    """
    numerator, _, denominator = text.partition("/")
    return Fraction(int(Decimal(numerator)), int(Decimal(denominator)))
