"""L1 and L-infinity sensitivity: how far one unit can change all bins together, and how far one bin.

Both follow from what one unit changes (`core/plan/person_bound.py`). The L2 sensitivity, squared, is at most the L1
times the L-infinity sensitivity.

Data sets of one ledger are versions of one data set: the same unit may be in each of them. Their epsilons and deltas
are charged one by one and add up. The probability that a bin of a unit alone is published does not add up, so it is
computed from the sensitivities through all of them together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import NamedTuple

from wpinq.core.operators.resolution import GRID
from wpinq.core.plan.node import Node, sources
from wpinq.core.plan.person_bound import mover
from wpinq.core.plan.stability import Survey, known


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


def unit_sensitivities(plan: Node | Survey) -> list[UnitSensitivity]:
    """The sensitivities for each ledger, through all of its data sets together."""
    return list(ledger_sensitivities(plan).values())


def ledger_sensitivities(plan: Node | Survey) -> dict[str, UnitSensitivity]:
    """The same by the identities of the ledgers; a plan that was surveyed is not walked again."""
    survey = plan if isinstance(plan, Survey) else Survey.of(plan)
    fine = survey.root.resolution
    moved: dict[object, Fraction] = defaultdict(Fraction)
    for data, move in survey.sensitivities.items():
        moved[mover(data)] += move
    result: dict[str, UnitSensitivity] = {}
    done: set[object] = set()
    for data in survey.sensitivities:
        l1, linf, data_sets = result.get(data.ledger.identity, (0, 0, 0))
        unit = mover(data)
        if unit not in done:
            done.add(unit)
            most = min(moved[unit], known(survey.changes[unit].linf))
            change = math.floor(moved[unit] * fine), max(1, math.floor(most * fine))
            if fine >= GRID:  # a dither keeps to the bound of all records together, not to that of one bin
                change = change[0], min(change[0], change[1] + (change[0] >> 16) + 1)
            l1, linf = l1 + change[0], linf + change[1]
        result[data.ledger.identity] = UnitSensitivity(l1, linf, data_sets + 1)
    return result


def moved_bins(plan: Node | Survey) -> dict[str, int | None]:
    """How many bins one unit of each ledger moves at the most, through all of its data sets; None where unknown."""
    survey = plan if isinstance(plan, Survey) else Survey.of(plan)
    result: dict[str, int | None] = {}
    for unit, change in survey.changes.items():
        for book in {data.ledger.identity for data in survey.sources if mover(data) == unit}:
            so_far = result.get(book, 0)
            result[book] = None if so_far is None or change.l0 is None else so_far + change.l0
    return result


def epsilon_left(node: Node) -> Fraction:
    """Epsilon that is left for one measurement of a plan over data sets of one ledger."""
    (unit,), ledger = unit_sensitivities(node), sources(node)[0].ledger
    return ledger.remaining(Fraction(unit.l1, unit.linf))


def l1_sensitivity(survey: Survey) -> int:
    """The largest L1 sensitivity of a data set, in units of 1/resolution, rounded up: the change that costs epsilon.

    For pure differential privacy it suffices: a unit of two data sets of one ledger loses the sum of both charges.
    """
    return max(math.ceil(move * survey.root.resolution) for move in survey.sensitivities.values())
