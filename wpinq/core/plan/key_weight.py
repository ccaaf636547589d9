"""Key weight: how much the records of one key weigh together at the most, whatever the data."""

from __future__ import annotations

from fractions import Fraction

from wpinq.core.plan.node import Node


def key_weight(root: Node, columns: frozenset[str]) -> Fraction | None:
    """The most that the records of a step with the same values in some columns weigh together; None without a bound.

    It is the weight that a contribution bound or `limit` leaves to a key, followed through the steps that keep the
    columns apart: what such a step makes of the records of one value is what it would make of them alone, so it weighs
    no more than they do times its stability. Records that agree in more columns are some of those that agree in fewer.
    """
    known: dict[tuple[Node, frozenset[str]], Fraction | None] = {}

    def found(node: Node, names: frozenset[str]) -> Fraction | None:
        if (node, names) not in known:
            known[node, names] = least(node.bounds(names, found), followed(node, names))
        return known[node, names]

    def followed(node: Node, names: frozenset[str]) -> Fraction | None:
        local = node.local
        before = frozenset(local[name] for name in names if name in local)
        weights = [found(one, before) for one in node.inputs]
        total = Fraction(0)
        for weight, factor in zip(weights, node.stability, strict=True):
            if weight is None:
                return None
            total += weight * factor
        return total if weights else None

    return found(root, columns)


def least(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    """The smaller of two bounds."""
    return one if other is None else other if one is None else min(one, other)
