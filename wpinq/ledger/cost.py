"""What a question costs a data set, and how costs add up.

A cost is one path from the data set to a measurement. Costs are summed, except that of the parts of one partition (or
windows, or the union and intersection of one pair) only the largest counts: what a unit moves of a collection is split
among its parts. By induction over the plan, `loss <= c(node) * |movement of node|`, where c(node) sums 1 / scale over
the measurements of the node and the stability times c of the steps that read it, but takes the largest of its parts.

That speaks of one collection, so a group stands for one: a partition, windows or a pair of one plan over one version of
the data. Whoever names a group must see to that:

- Two versions of a data set are two collections, and so are two epochs of a live source. What depends on the version,
  the fingerprint of a plan, is in the name of its group, and the costs of versions add up.
- Epochs may share a group only where a unit moves the collection alike at each of them (once its records are there):
  where all steps from the live source on are linear for each record, and the unit is a record. Below a step in which
  records meet (also a bound on people, whose sample changes), one early record can move another part at every epoch;
  there the epoch is in the name too (`wpinq.operators.parallel`).
- A person is in many parts: its movement is split among them as a record's is, within its bound, at one epoch.
- A continual measurement speaks of every epoch, but is made of linear steps, and of people it keeps the first records,
  for ever: of the movement of all epochs together each part has its own share.
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
"""The delta of a new ledger where nothing is said: ten releases at their usual 1e-6."""


@dataclass(frozen=True)
class Cost:
    """The cost of one path from a data set to a measurement.

    Args:
        epsilon: Privacy loss of the unit along this path, exact, not negative.
        delta: Its failure probability, exact, not negative; not both are zero.
        under: The parts that the path runs through, outermost first, each a pair of the fingerprint of
            the partition, window or union-intersect pair, and the part's own name.

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
    """The total of many costs, as a tree of parts that is never changed, only extended.

    `plus` shares what it does not touch, so a charge can be priced without being made. Deltas are summed over parts as
    well: a user is in many of them, and shows in each.

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
