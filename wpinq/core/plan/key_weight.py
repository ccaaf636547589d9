"""Key weight: how much the records of one key weigh together at the most, whatever the data."""

from __future__ import annotations

from fractions import Fraction

from wpinq.core.plan.node import Node


class KeyWeights:
    """Key weights of the steps of one plan; what was found is remembered."""

    def __init__(self) -> None:
        self._known: dict[tuple[Node, frozenset[str]], Fraction | None] = {}

    def of(self, node: Node, columns: frozenset[str]) -> Fraction | None:
        """The most that the records of a step with the same values in some columns weigh together; None if unbounded.

        It is the weight that a contribution bound or `limit` leaves to a key, followed through the steps that keep the
        columns apart: what such a step makes of the records of one value is what it would make of them alone, so it
        weighs no more than they do times its stability. Records that agree in more columns are some of those that
        agree in fewer.
        """
        if (node, columns) not in self._known:
            self._known[node, columns] = least(node.bounds(columns, self.of), self._followed(node, columns))
        return self._known[node, columns]

    def _followed(self, node: Node, columns: frozenset[str]) -> Fraction | None:
        total = Fraction(0)
        for index, (source_node, factor) in enumerate(zip(node.inputs, node.stability, strict=True)):
            before = node.kept_apart(index)
            weight = self.of(source_node, frozenset(before[name] for name in columns if name in before))
            if weight is None:
                return None
            total += weight * factor
        return total if node.inputs else None


def key_weight(root: Node, columns: frozenset[str]) -> Fraction | None:
    """The most that the records of a step with the same values in some columns weigh together; see `KeyWeights.of`."""
    return KeyWeights().of(root, columns)


def least(bound: Fraction | None, another: Fraction | None) -> Fraction | None:
    """The smaller of two bounds."""
    return bound if another is None else another if bound is None else min(bound, another)
