"""Join rows: every pair of records with equal keys, counted, where a bound says how many records a key can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import cast

from wpinq.core.operators.join import Join, join, made
from wpinq.core.operators.keys import both_keyed
from wpinq.core.operators.pairs import PairWeighting
from wpinq.core.operators.resolution import node_of
from wpinq.core.plan.node import Builder, C, Node, Record, Weighted
from wpinq.core.plan.person_bound import key_weight, least
from wpinq.core.records.weights import WeightType
from wpinq.errors import PlanError


def join_rows(
    self: Builder[C], other: object, on: object = None, *, left: object = None, right: object = None,
    result: object = None, columns: Sequence[str] | Mapping[str, object] | None = None, how: str = "inner",
) -> C:  # fmt: skip
    """Pair the records of two collections that have equal keys, and count each pair, as SQL's JOIN does.

    Both sides must bound how many records one key has, whatever the data: because the key holds the column of people
    who have `at_most` records each (and of people in one period the column of the time too), or by `limit` on the key.
    Noise grows with the product of both bounds. What nothing bounds is joined by `join`, which weighs pairs instead.

    Weights:    out[x, y] = self[x] * other[y] for records of equal key; with how="left" also
                out[x, None] = self[x] * max(0, 1 - B), where the records of its key weigh B there, in absolute weight:
                1 for whole records without a partner
    Stability:  b for this collection and a for the other, where the records of one key weigh a at the most here and b
                there, in absolute weight. Proof: with the other side as it is, the pairs of x move by |d| * sum of
                |other[y]| over the y of its key, so by |d| * b at the most, when self[x] moves by d; all x together by
                b times what this side moves. The other side likewise; where both move, one after the other, each step
                starts and ends within the bounds, which hold for all data. That they do: the records of one person
                weigh `at_most` together by contribution bounding, those of a key n by `limit(key, n)`, and steps that
                keep the key's columns apart make no more of them (`core/plan/person_bound.py`). So a person with
                `at_most` a here and b there moves a * b pairs, and never half of them twice. With how="left" max(b, 1)
                and 2a. Proof: when self[x] moves by d, its pairs and out[x, None] together move by |d| (B + max(0, 1 -
                B)) = |d| max(B, 1). When other[y] moves by d, so does B by |d| at the most, so all out[x, None] of the
                key together move by a |d| at the most, and its pairs by a |d|.
    Source:     McSherry, PINQ, SIGMOD 2009 (joins by key); Tumult Analytics' private join with a number of rows for
                each person, Berghel et al., 2022.

    Args:
        other: The other collection; or a public table, whose key is unique, and all is as in `join`.
        on, left, right, result, columns: See `join`.
        how: "inner", or "left" to keep what has no partner, with None for the columns of the other side; its key is
            one of these.

    Raises:
        PlanError: Nothing bounds the records of one key on a side, or `how` is another word; or see `join`.

    >>> from wpinq import protect, users
    >>> from wpinq.testing import evaluate
    >>> unit = users("user", at_most=3)
    >>> visits = protect([], budget=1, columns={"user": str, "page": str}, unit=unit)
    >>> people = protect([], budget=1, columns={"user": str, "town": str}, unit=users("user", at_most=1))
    >>> towns = visits.join_rows(people, on="user", result=lambda page, town: (page, town))
    >>> sorted(evaluate(towns, [("ann", "a"), ("ann", "b")], [("ann", "Rome")]).items())
    [(('a', 'Rome'), 1), (('b', 'Rome'), 1)]
    """
    if not hasattr(other, "_node"):
        return join(
            self, cast("Builder[C]", other), on, left=left, right=right, result=result, columns=columns, how=how
        )
    sides, keys = both_keyed((self._node, node_of(other, "join_rows")), on, left, right, "join_rows")
    if how not in KINDS:
        raise PlanError(f"join_rows(how=...): takes one of {', '.join(map(repr, KINDS))}.")
    whole = KINDS[how](*sides, *keys, None, None)
    _ = whole.most
    return self._then(whole if result is None else made(whole, result, columns, "join_rows"))


@dataclass(frozen=True, eq=False)
class JoinRows(Join):
    """Plan node of `join_rows`."""

    scale = None
    rounding = ""
    bias = ""
    dithers = False

    @cached_property
    def most(self) -> tuple[Fraction, Fraction]:
        """What the records of one key weigh at the most, on both sides.

        Raises:
            PlanError: Nothing bounds it.
        """
        bounds = []
        for side, node, keys in zip(("left", "right"), self.inputs, (self.left_keys, self.right_keys), strict=True):
            weight = key_weight(node, frozenset(keys))
            if weight is None:
                names = ", ".join(keys)
                raise PlanError(
                    f"join_rows: nothing bounds how many records of one key ({names}) the {side} side has, so one "
                    "person could be in any number of pairs. Protect it with unit=users(COLUMN, at_most=...), keep "
                    "that column and join on it (where the unit is a person in one period, on the column of the time "
                    f"too); or bound the key first, .limit({names!r}, n); or weigh pairs: join."
                )
            bounds.append(weight)
        return bounds[0], bounds[1]

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
        equal = ", ".join(ours if ours == theirs else f"{ours} = {theirs}" for ours, theirs in pairs)
        return f"join_rows({equal})"

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """Records of one side that agree in these columns, each with what its key weighs on the other.

        Pairs that agree in the columns agree in those of each side, and in the key on both. A record y of the right
        side is in pairs that weigh |y| a together, where the records of one key weigh a at the most on the left.
        """
        return least(self._ours(columns, of), self._theirs(columns, of))

    def _ours(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """By the records of the left side."""
        ours = frozenset(column.name for side, column in map(self.places.__getitem__, columns) if side == 0)
        weight = of(self.left, ours)
        return None if weight is None else weight * self.stability[0]

    def _theirs(
        self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]
    ) -> Fraction | None:
        """By the records of the right side."""
        keys = dict(zip(self.left_keys, self.right_keys, strict=True))
        placed = [self.places[name] for name in columns]
        theirs = {column.name for side, column in placed if side == 1}
        theirs |= {keys[column.name] for side, column in placed if side == 0 and column.name in keys}
        weight = of(self.right, frozenset(theirs))
        return None if weight is None else weight * self.stability[1]

    def _weights(self, key: Record, sums: dict[Record, int], total: int) -> list[Fraction]:
        return [Fraction(product, self.resolution) for product in sums.values()]


@dataclass(frozen=True, eq=False)
class LeftRows(JoinRows):
    """Plan node of `join_rows(how="left")`."""

    both_keys = True

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """By the left side alone, whose records may stand alone."""
        return self._ours(columns, of)

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """A record here has pairs or is alone; one there makes others alone, and pairs."""
        ours, theirs = self.most
        return max(theirs, Fraction(1)), 2 * ours

    @property
    def needs(self) -> tuple[bool, ...]:
        """A record of the left side stands there alone, too."""
        return True, False

    @cached_property
    def gain(self) -> Fraction:
        """Each record of the left side has pairs or is alone."""
        return self.left.gain * self.stability[0]

    @property
    def rule(self) -> PairWeighting:
        """Products, and the rest of what has too few partners."""
        return replace(super().rule, alone=True)

    @property
    def title(self) -> str:
        return super().title.replace("join_rows(", "join_rows(left: ", 1)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Pairs, and what is left of each record without a partner."""
        out = super().define(*inputs)
        at = [[node.schema.names.index(name) for name in keys]
              for node, keys in zip(self.inputs, (self.left_keys, self.right_keys), strict=True)]  # fmt: skip
        partners: dict[Record, Fraction] = {}
        for record, weight in inputs[1].items():
            key = tuple(record[index] for index in at[1])
            partners[key] = partners.get(key, Fraction(0)) + abs(weight)
        for record, weight in inputs[0].items():
            rest = weight * max(Fraction(0), 1 - partners.get(tuple(record[index] for index in at[0]), Fraction(0)))
            values = dict(zip(self.left.schema.names, record, strict=True))
            alone = tuple(values[column.name] if side == 0 else None for side, column in self.places.values())
            out[alone] = out.get(alone, Fraction(0)) + rest
        return {record: weight for record, weight in out.items() if weight}


KINDS = {"inner": JoinRows, "left": LeftRows}
