"""L1 and L-infinity sensitivity: how far one unit can change all bins together, and how far one bin.

`users(..., at_most=20, per=("page", 3))` keeps at most 3 records of a person with one page. A step is *local* in a
column when its output records with one value of the column follow, stably, from the input records with that value
alone. Where all steps from the source to the bins are local in the column, and the bins still have it, 3 records change
a bin at most: the L-infinity sensitivity is 3 / 20 of the L1 sensitivity. Each step's own proof of its stability then
holds for the records of one value, since the step treats them as if they were the whole collection.

Data sets of one ledger are versions of one data set: the same unit may be in each of them. Their epsilons and deltas
are charged one by one and add up. The probability that a bin of a unit alone is published does not add up, so it is
computed from the sensitivities through all of them together.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from wpinq.operators.contribution.sample import Bound
from wpinq.plan.node import Node, sources, steps
from wpinq.plan.stability import sensitivities

if TYPE_CHECKING:
    from wpinq.plan.dataset import DataSet


class UnitSensitivity(NamedTuple):
    """The sensitivity of a plan to one unit of a ledger, in units of 1/resolution.

    Attributes:
        l1: The L1 sensitivity: the largest change of all bins together.
        linf: The L-infinity sensitivity: the largest change of one bin.
        data_sets: How many data sets of the ledger the plan reads; each is charged.
    """

    l1: int
    linf: int
    data_sets: int


def unit_sensitivities(node: Node) -> list[UnitSensitivity]:
    """The sensitivities for each ledger, through all of its data sets together."""
    kept = _kept(node)
    result: dict[str, UnitSensitivity] = {}
    for data, move in sensitivities(node).items():
        unit, share = data.unit, Fraction(1)
        if unit.per is not None and kept[data]:
            share = min(share, unit.per[1] / unit.bound)
        l1, linf, data_sets = result.get(data.ledger.identity, (0, 0, 0))
        own = math.floor(move * node.resolution), max(1, math.floor(move * share * node.resolution))
        result[data.ledger.identity] = UnitSensitivity(l1 + own[0], linf + own[1], data_sets + 1)
    return list(result.values())


def _kept(root: Node) -> dict[DataSet, frozenset[str]]:
    """For each source the columns that hold the one of its `per`, to which all steps are local."""
    result: dict[Node, dict[DataSet, frozenset[str]]] = {}
    for node in steps(root):
        result[node] = {}
        for data in sources(node):
            if isinstance(node, Bound):
                result[node][data] = frozenset([node.unit.per[0]] if node.unit.per else [])
                continue
            names = node.local
            moved = [result[source_node][data] for source_node in node.inputs if data in result[source_node]]
            result[node][data] = frozenset(
                new for new, old in names.items() if moved and all(old in columns for columns in moved)
            )
    return result[root]
