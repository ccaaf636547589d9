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
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from wpinq.functions.traced.columnar import Columnar
from wpinq.operators.align import Align
from wpinq.operators.concat import Sum
from wpinq.operators.contribution.sample import Bound
from wpinq.operators.distinct import Distinct
from wpinq.operators.filter import Filter
from wpinq.operators.map import Map
from wpinq.operators.partition import Part
from wpinq.operators.shave import Shave
from wpinq.operators.union import Extreme
from wpinq.plan.node import Node, sources, steps
from wpinq.plan.stability import sensitivities
from wpinq.records.schema import Kind

if TYPE_CHECKING:
    from wpinq.plan.dataset import DataSet

EXACT = (Kind.TEXT, Kind.INT, Kind.BOOL)
"""What a function of columns passes on as it is; of other types it writes equal values alike."""


class UnitSensitivity(NamedTuple):
    """What one unit of a ledger can move, in units of 1/resolution.

    Attributes:
        moves: All bins together.
        most: One bin.
        times: How many data sets of the ledger the plan reads, each of which pays.
    """

    moves: int
    most: int
    times: int


def unit_sensitivities(node: Node) -> list[UnitSensitivity]:
    """For each ledger, how far one of its units can move the bins through all of its data sets; weights are whole."""
    kept = _kept(node)
    found: dict[str, UnitSensitivity] = {}
    for data, move in sensitivities(node).items():
        unit, share = data.unit, Fraction(1)
        if unit.per is not None and kept[data]:
            share = min(share, unit.per[1] / unit.bound)
        moves, most, times = found.get(data.ledger.identity, (0, 0, 0))
        own = math.floor(move * node.resolution), max(1, math.floor(move * share * node.resolution))
        found[data.ledger.identity] = UnitSensitivity(moves + own[0], most + own[1], times + 1)
    return list(found.values())


def _kept(root: Node) -> dict[DataSet, frozenset[str]]:
    """For each source the columns that hold the one of its `per`, to which all steps are local."""
    found: dict[Node, dict[DataSet, frozenset[str]]] = {}
    for node in steps(root):
        found[node] = {}
        for data in sources(node):
            if isinstance(node, Bound):
                found[node][data] = frozenset([node.unit.per[0]] if node.unit.per else [])
                continue
            names = LOCAL.get(type(node), lambda _: {})(node)
            moved = [found[one][data] for one in node.inputs if data in found[one]]
            found[node][data] = frozenset(
                new for new, old in names.items() if moved and all(old in columns for columns in moved)
            )
    return found[root]


def _same(node: Node) -> Mapping[str, str]:
    return {name: name for name in node.schema.names if all(name in one.schema for one in node.inputs)}


def _chosen(node: Map) -> Mapping[str, str]:
    """Columns that a function only passes on."""
    function = node.function
    if function.projection is not None:
        return dict(zip(node.schema.names, function.projection, strict=True))
    parts = function.nodes if isinstance(function, Columnar) else ()
    pairs = zip(node.schema.names, parts, strict=False)
    return {name: part.options[0] for name, part in pairs if part.name == "column" and part.kind in EXACT}


def _aligned(node: Align) -> Mapping[str, str]:
    pairs = zip(node.schema, node.source.schema, strict=True)
    return {new.name: old.name for new, old in pairs if new.kind is old.kind}


LOCAL: dict[type[Node], Callable[[Any], Mapping[str, str]]] = {
    Map: _chosen,
    Align: _aligned,
    **dict.fromkeys((Filter, Part, Distinct, Shave, Sum, Extreme), _same),
}
"""Steps that are local in each column that they pass on, with its name before. Of other steps nothing is proved here:
not of a dither, whose stability is one of the whole collection."""
