"""Stability: how far a measurement can move when one unit of a source comes or goes, and what that costs.

A plan that reaches a source by several paths moves by the sum over the paths of the product of the stabilities on each.
For source i with k_i that sum and U_i the unit's bound, the noise scale is max_i(k_i U_i) / epsilon and source i is
charged k_i U_i / scale, so epsilon is what the measurement costs the privacy unit. Source: privacy rules 24 and 25.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from wpinq.errors import PlanError
from wpinq.plan.node import Node, Source, digests, read_by, steps

if TYPE_CHECKING:
    from wpinq.plan.dataset import DataSet

PartPath: TypeAlias = tuple[tuple[str, str], ...]
"""The partitions that a path goes through and the part it takes of each, from the source on."""

Paths: TypeAlias = Mapping[tuple["DataSet", PartPath], Fraction]
"""For each source, and each way through partitions, the summed stability of its paths."""


@dataclass(frozen=True, eq=False)
class Survey:
    """What has to be known of a plan to price it, from one walk over its steps.

    Attributes:
        steps: Each step once, inputs before what reads them; the last one is the plan's root.
    """

    steps: Sequence[Node]

    @classmethod
    def of(cls, root: Node) -> Survey:
        """Walk over a plan."""
        return cls(steps(root))

    @property
    def root(self) -> Node:
        """The step that the plan ends in."""
        return self.steps[-1]

    @cached_property
    def sources(self) -> list[DataSet]:
        """The protected data sets that it reads, each once."""
        return read_by(self.steps)

    @cached_property
    def fingerprint(self) -> bytes | None:
        """A digest of what the plan means, or None when that is not known."""
        return digests(self.steps)[self.root]

    @cached_property
    def paths(self) -> Paths:
        """See `paths`."""
        result: dict[Node, dict[tuple[DataSet, PartPath], Fraction]] = {}
        for node in self.steps:
            reached: dict[tuple[DataSet, PartPath], Fraction] = defaultdict(Fraction)
            if isinstance(node, Source):
                reached[(node.data, ())] = Fraction(1)
            own: PartPath = (node.part,) if node.part else ()
            for source_node, factor in zip(node.inputs, node.stability, strict=True):
                for (data, parts), stability in result[source_node].items():
                    reached[(data, parts + own)] += stability * factor
            result[node] = dict(reached)
        return result[self.root]

    @cached_property
    def sensitivities(self) -> dict[DataSet, Fraction]:
        """See `sensitivities`."""
        result: dict[DataSet, list[tuple[PartPath, Fraction]]] = defaultdict(list)
        for (data, parts), stability in self.paths.items():
            result[data].append((parts, stability * data.unit.bound))
        return {data: _largest(ways) for data, ways in result.items()}

    def scale(self, epsilon: Fraction) -> Fraction:
        """See `noise_scale`.

        Raises:
            PlanError: The plan reads no protected source.
        """
        if not self.sensitivities:
            raise PlanError("measure(...): the plan reads no protected source, so there is nothing to measure.")
        return max(self.sensitivities.values()) / epsilon


def paths(root: Node) -> Paths:
    """Follow all paths from the sources to the end of a plan."""
    return Survey.of(root).paths


def sensitivities(root: Node) -> dict[DataSet, Fraction]:
    """How far the plan's output can move, in weight, when one unit of each source comes or goes.

    Of the parts of one partition only the largest counts, as in the ledger.
    """
    return Survey.of(root).sensitivities


def _largest(ways: list[tuple[PartPath, Fraction]]) -> Fraction:
    """The sum of what stands alone and, for each partition, of the largest of its parts."""
    alone = sum((move for parts, move in ways if not parts), Fraction(0))
    groups: dict[str, dict[str, list[tuple[PartPath, Fraction]]]] = defaultdict(lambda: defaultdict(list))
    for parts, move in ways:
        if parts:
            groups[parts[0][0]][parts[0][1]].append((parts[1:], move))
    return alone + sum((max(map(_largest, group.values())) for group in groups.values()), Fraction(0))


def noise_scale(root: Node, epsilon: Fraction) -> Fraction:
    """The scale of the noise, in weight, that makes a measurement of the plan cost epsilon.

    Raises:
        PlanError: The plan reads no protected source.
    """
    return Survey.of(root).scale(epsilon)
