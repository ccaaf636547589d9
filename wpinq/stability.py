"""Stability: how far a measurement can move when one unit of a source comes or goes, and what that costs.

A plan that reaches a source by several paths moves by the sum over the paths of the product of the stabilities on each.
For source i with k_i that sum and U_i the unit's bound, the noise scale is max_i(k_i U_i) / epsilon and source i is
charged k_i U_i / scale, so epsilon is what the measurement costs the privacy unit. Source: design, Budget; privacy
rules 24 and 25.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from wpinq.errors import PlanError
from wpinq.plan import Node, Source, steps

if TYPE_CHECKING:
    from wpinq.dataset import DataSet

Parts: TypeAlias = tuple[tuple[str, str], ...]
"""The partitions that a path goes through and the part it takes of each, from the source on."""

Paths: TypeAlias = Mapping[tuple["DataSet", Parts], Fraction]
"""For each source, and each way through partitions, the summed stability of its paths."""


def paths(root: Node) -> Paths:
    """Follow all paths from the sources to the end of a plan."""
    found: dict[Node, dict[tuple[DataSet, Parts], Fraction]] = {}
    for node in steps(root):
        reached: dict[tuple[DataSet, Parts], Fraction] = defaultdict(Fraction)
        if isinstance(node, Source):
            reached[(node.data, ())] = Fraction(1)
        own: Parts = (node.part,) if node.part else ()
        for one, factor in zip(node.inputs, node.stability, strict=True):
            for (data, parts), stability in found[one].items():
                reached[(data, parts + own)] += stability * factor
        found[node] = dict(reached)
    return found[root]


def sensitivities(root: Node) -> dict[DataSet, Fraction]:
    """How far the plan's output can move, in weight, when one unit of each source comes or goes.

    Of the parts of one partition only the largest counts, as in the ledger.
    """
    found: dict[DataSet, list[tuple[Parts, Fraction]]] = defaultdict(list)
    for (data, parts), stability in paths(root).items():
        found[data].append((parts, stability * data.unit.bound))
    return {data: _largest(ways) for data, ways in found.items()}


def _largest(ways: list[tuple[Parts, Fraction]]) -> Fraction:
    """The sum of what stands alone and, for each partition, of the largest of its parts."""
    alone = sum((move for parts, move in ways if not parts), Fraction(0))
    groups: dict[str, dict[str, list[tuple[Parts, Fraction]]]] = defaultdict(lambda: defaultdict(list))
    for parts, move in ways:
        if parts:
            groups[parts[0][0]][parts[0][1]].append((parts[1:], move))
    return alone + sum((max(map(_largest, group.values())) for group in groups.values()), Fraction(0))


def noise_scale(root: Node, epsilon: Fraction) -> Fraction:
    """The scale of the noise, in weight, that makes a measurement of the plan cost epsilon.

    Raises:
        PlanError: The plan reads no protected source.
    """
    moves = sensitivities(root)
    if not moves:
        raise PlanError("measure(...): the plan reads no protected source, so there is nothing to measure.")
    return max(moves.values()) / epsilon
