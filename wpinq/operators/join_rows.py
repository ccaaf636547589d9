"""Join rows: every pair of records with equal keys, counted, where a bound says how many records a key can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from wpinq.errors import PlanError
from wpinq.operators.align import node_of
from wpinq.operators.join import Join, made
from wpinq.operators.keys import both_keyed
from wpinq.operators.pairs import PairWeighting
from wpinq.plan.builder import Builder, C
from wpinq.plan.key_weight import key_weight
from wpinq.plan.node import Node, Record
from wpinq.records.weights import WeightType


def join_rows(
    self: Builder[C], other: Builder[C], on: object = None, *, left: object = None, right: object = None,
    result: object = None, columns: Sequence[str] | Mapping[str, object] | None = None,
) -> C:  # fmt: skip
    """Pair the records of two collections that have equal keys, and count each pair, as SQL's JOIN does.

    Both sides must bound how many records one key has, whatever the data: because the key holds the column of people
    who have `at_most` records each, or by `limit` on the key. Noise grows with the product of both bounds. What nothing
    bounds is joined by `join`, which weighs pairs instead.

    Weights:    out[x, y] = self[x] * other[y] for records of equal key
    Stability:  b for this collection and a for the other, where the records of one key weigh a at the most here and b
                there, in absolute weight. Proof: with the other side as it is, the pairs of x move by |d| * sum of
                |other[y]| over the y of its key, so by |d| * b at the most, when self[x] moves by d; all x together by
                b times what this side moves. The other side likewise; where both move, one after the other, each step
                starts and ends within the bounds, which hold for all data. That they do: the records of one person
                weigh `at_most` together by contribution bounding, those of a key n by `limit(key, n)`, and steps that
                keep the key's columns apart make no more of them (`plan/key_weight.py`). So a person with `at_most` a
                here and b there moves a * b pairs, and never half of them twice.
    Source:     McSherry, PINQ, SIGMOD 2009 (joins by key); Tumult Analytics' private join with a number of rows for
                each person, Berghel et al., 2022.

    Args:
        other: The other collection.
        on, left, right, result, columns: See `join`.

    Raises:
        PlanError: Nothing bounds the records of one key on a side; or see `join`.

    >>> from wpinq import protect, users
    >>> from wpinq.testing import evaluate
    >>> unit = users("user", at_most=3)
    >>> visits = protect([], budget=1, columns={"user": str, "page": str}, unit=unit)
    >>> people = protect([], budget=1, columns={"user": str, "town": str}, unit=users("user", at_most=1))
    >>> towns = visits.join_rows(people, on="user", result=lambda page, town: (page, town))
    >>> sorted(evaluate(towns, [("ann", "a"), ("ann", "b")], [("ann", "Rome")]).items())
    [(('a', 'Rome'), 1), (('b', 'Rome'), 1)]
    """
    sides, keys = both_keyed((self._node, node_of(other, "join_rows")), on, left, right, "join_rows")
    whole = JoinRows(*sides, *keys, None, None)
    _ = whole.most
    return self._then(whole if result is None else made(whole, result, columns, "join_rows"))


@dataclass(frozen=True, eq=False)
class JoinRows(Join):
    """Plan node of `join_rows`."""

    scale = None
    rounding = ""
    bias = ""

    @cached_property
    def most(self) -> tuple[Fraction, Fraction]:
        """What the records of one key weigh at the most, on both sides.

        Raises:
            PlanError: Nothing bounds it.
        """
        found = []
        for side, node, keys in zip(("left", "right"), self.inputs, (self.left_keys, self.right_keys), strict=True):
            weight = key_weight(node, frozenset(keys))
            if weight is None:
                names = ", ".join(keys)
                raise PlanError(
                    f"join_rows: nothing bounds how many records of one key ({names}) the {side} side has, so one "
                    "person could be in any number of pairs. Protect it with unit=users(COLUMN, at_most=...), keep "
                    f"that column and join on it; or bound the key first, .limit({names!r}, n); or weigh pairs: join."
                )
            found.append(weight)
        return found[0], found[1]

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """What a key weighs at the most on the other side."""
        return self.most[::-1]

    @cached_property
    def gain(self) -> Fraction:
        """Each record of a side is paired with what its key weighs on the other."""
        return min(node.gain * factor for node, factor in zip(self.inputs, self.stability, strict=True))

    @property
    def rule(self) -> PairWeighting:
        """Products."""
        return PairWeighting(None, self.fine, None, WeightType.of(self.resolution, self.gain, self.title))

    @property
    def resolution(self) -> int:
        """Of products."""
        return self.fine**2

    @property
    def title(self) -> str:
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        return f"join_rows({', '.join(one if one == two else f'{one} = {two}' for one, two in pairs)})"

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """All pairs of one key."""
        keys = {name for name, (side, column) in self.places.items() if side == 0 and column.name in self.left_keys}
        whole = len(keys) == len(self.left_keys) and columns >= keys
        return self.most[0] * self.most[1] if whole else None

    def _weights(self, key: Record, sums: dict[Record, int], total: int) -> list[Fraction]:
        return [Fraction(product, self.resolution) for product in sums.values()]
