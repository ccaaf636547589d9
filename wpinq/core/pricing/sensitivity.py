"""L1 and L-infinity sensitivity: how far one unit can change all bins together, and how far one bin.

The change that one unit causes in a step's output is followed from the source to the bins as *masses*: how far all
records that agree in some columns can move together, by the names of these columns; for no columns it is the L1
sensitivity. `users("user", at_most=20, per=("page", 3))` begins with 20 for no columns and 3 for the page.

A step is *local* in a column when its output records with one value of the column follow, stably, from the input
records with that value alone: its proof of stability then holds for these records, as if they were the whole
collection, so their mass grows by its stability. A step that is local in two columns is so in both together. After
other steps only the mass for no columns is known.

- Columns that name the unit, and in which all steps so far are local, are *fixed*: all records that move hold the same
  value there, the unit's. So records that agree in the others agree in all, and a later step may drop these columns.
  Where inputs meet, a column stays fixed if it holds the same column of the source in all of them: concat of (a, b)
  and (b, a) moves two records, also where the unit is a record.
- A step that makes several records of each, one for every value of a column, may be more stable in each of these
  *slices* alone (`Node.slices`): of the moments of a mean each moves as far as its records do, and both twice as far.
- A step may bound the weight of a record (`Node.record_moves`: `distinct` by 1), and so how far a record moves, however
  many records of the unit it came from. So after `map("user, page").distinct()` one person moves a bin of `map("page")`
  by 1: the records that move differ in the page.

The L2 sensitivity, squared, is at most the L1 times the L-infinity sensitivity.

Data sets of one ledger are versions of one data set: the same unit may be in each of them. Their epsilons and deltas
are charged one by one and add up. The probability that a bin of a unit alone is published does not add up, so it is
computed from the sensitivities through all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.share import Share
from wpinq.core.operators.dither import GRID
from wpinq.core.plan.node import Node, Source, sources, steps
from wpinq.core.plan.stability import sensitivities

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet

Masses: TypeAlias = Mapping[frozenset[str], Fraction]
NONE: frozenset[str] = frozenset()


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


class Change(NamedTuple):
    """What is known of the change that one unit causes in the output of a step, in weight.

    Attributes:
        fixed: Columns in which all records that move hold the same value: for each the column of the source whose value
            of the unit that is.
        masses: How far records that agree in these columns move together.
    """

    fixed: Mapping[str, str]
    masses: Masses


def unit_sensitivities(node: Node) -> list[UnitSensitivity]:
    """The sensitivities for each ledger, through all of its data sets together."""
    return list(ledger_sensitivities(node).values())


def ledger_sensitivities(node: Node) -> dict[str, UnitSensitivity]:
    """The same by the identities of the ledgers."""
    changes = _changes(node)
    result: dict[str, UnitSensitivity] = {}
    for data, move in sensitivities(node).items():
        most = min(move, *changes[data].masses.values())
        l1, linf, data_sets = result.get(data.ledger.identity, (0, 0, 0))
        own = math.floor(move * node.resolution), max(1, math.floor(most * node.resolution))
        if node.resolution >= GRID:  # a dither keeps to the bound of all records together, not to that of one bin
            own = own[0], min(own[0], own[1] + (own[0] >> 16) + 1)
        result[data.ledger.identity] = UnitSensitivity(l1 + own[0], linf + own[1], data_sets + 1)
    return result


def epsilon_left(node: Node) -> Fraction:
    """Epsilon that is left for one measurement of a plan over data sets of one ledger."""
    (found,), ledger = unit_sensitivities(node), sources(node)[0].ledger
    return ledger.remaining(Fraction(found.l1, found.linf))


def _changes(root: Node) -> dict[DataSet, Change]:
    """The change of a plan's output, for each data set."""
    result: dict[Node, dict[DataSet, Change]] = {}
    for node in steps(root):
        result[node] = {}
        for data in dict.fromkeys(data for entry in node.inputs for data in result[entry]):
            moved = [result[entry].get(data) for entry in node.inputs]
            result[node][data] = _bounded(node, _entered(node, data) or _after(node, moved))
        if isinstance(node, Source):
            result[node][node.data] = Change({name: name for name in node.schema.names}, {NONE: node.data.unit.bound})
    return result[root]


def _entered(node: Node, data: DataSet) -> Change | None:
    """What a unit that is a person brings, where its records are bounded."""
    if not isinstance(node, (Bound, Share)):
        return None
    per = {frozenset([data.unit.per[0]]): Fraction(data.unit.per[1])} if data.unit.per else {}
    name = data.unit.column or ""
    return Change({name: name}, {NONE: data.unit.bound, **per})


def _after(node: Node, moved: list[Change | None]) -> Change:
    """The change of the output of a step, from those of its inputs; None where that does not move."""
    names = node.local
    inputs = [(change, factor) for change, factor in zip(moved, node.stability, strict=True) if change is not None]
    origins = {new: {change.fixed.get(old, "") for change, _ in inputs} for new, old in names.items()}
    fixed = {new: min(found) for new, found in origins.items() if len(found) == 1 and min(found)}
    masses: Masses = {NONE: Fraction(0)}
    for change, factor in inputs:
        own = _renamed(change, names)
        masses = _least(
            (one | other, mass + more * factor) for one, mass in masses.items() for other, more in own.items()
        )
    for column, alone in node.slices.items():
        sliced = ((columns | {column}, mass * alone / node.stability[0]) for columns, mass in masses.items())
        masses = _least([*masses.items(), *sliced])
    return Change(fixed, masses)


def _renamed(change: Change, names: Mapping[str, str]) -> Masses:
    """The masses by the names after a step that is local in the columns with these names; others are not known."""
    after = {old: new for new, old in names.items()}
    free = ((columns - change.fixed.keys(), mass) for columns, mass in change.masses.items())
    return _least((frozenset(after[old] for old in left), mass) for left, mass in free if left <= after.keys())


def _bounded(node: Node, change: Change) -> Change:
    """The same change, where the step bounds the weight of a record."""
    if node.record_moves is None:
        return change
    return Change(change.fixed, _least([*change.masses.items(), (frozenset(node.schema.names), node.record_moves)]))


def _least(masses: Iterable[tuple[frozenset[str], Fraction]]) -> Masses:
    """The smallest of the masses by each of the columns."""
    result: dict[frozenset[str], Fraction] = {}
    for columns, mass in masses:
        result[columns] = min(mass, result.get(columns, mass))
    return result
