"""How far one unit can move all bins, and how far one bin, where the unit bounds that and the plan keeps bins apart.

`users(..., at_most=20, per=("page", 3))` lets at most 3 records of a person with one page in. A step is *local* in a
column when its output records with one value of it follow, stably, from the input records with that value alone. Where
all steps from the source to the bins are local in the column, and the bins still have it, a bin moves by no more than 3
records make it move: by the share 3 / 20 of what the person moves in all. Each step's own proof of its stability then
holds for the records of one value, since the step does the same to them as if they were the whole collection.

Data sets of one ledger are versions of one: the same person, or the same record, may be in each of them. They pay one
after the other, so epsilons and deltas add up by themselves; but how a unit shows is no sum, so it is found for all
that the unit moves through all of them together.
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
    """What one unit of a ledger can move, in units of 1/resolution.

    Attributes:
        l1: All bins together.
        linf: One bin.
        data_sets: How many data sets of the ledger the plan reads, each of which pays.
    """

    l1: int
    linf: int
    data_sets: int


def unit_sensitivities(node: Node) -> list[UnitSensitivity]:
    """For each ledger, how far one of its units can move the bins through all of its data sets; weights are whole."""
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
