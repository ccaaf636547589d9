"""For which plans people's names are their own: there `select` may weigh each of a person's k names 1 / sqrt(k).

That is where the plan ends in a choice of columns, of a step in which the unit is alone (`core/plan/person_bound.py`):
f(D + unit) = f(D) + records that hold the unit in the fixed columns, and f(D) holds none such. Then the records of that
step, by these columns and the chosen ones, are for each value of the fixed columns the pairs of one person; one person
more adds pairs of their own and changes nobody else's. All the plan's movement is of one ledger's people.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from wpinq.core.noise.selection import PartitionSelection
from wpinq.core.noise.weighted_rounds import WeightedRounds, weighted_rounds
from wpinq.core.operators.map import Map, choose
from wpinq.core.operators.window import Window
from wpinq.core.plan.person_bound import Constant
from wpinq.core.plan.stability import Survey
from wpinq.errors import PlanError


class Pairs(NamedTuple):
    """People and their names.

    Attributes:
        survey: The plan that gives them.
        person: The columns that tell people apart; the others are the name.
        most: How many names one person has at the most.
    """

    survey: Survey
    person: tuple[str, ...]
    most: int


def pairs_of(survey: Survey) -> Pairs | None:
    """The pairs of people and names of a plan, where each person's are their own, and a ledger adds up deltas."""
    root = survey.root
    if any(data.ledger.curves for data in survey.sources) or any(parts for _, parts in survey.paths):
        return None
    if not isinstance(root, Map) or root.function.projection is None or len(survey.changes) != 1:
        return None
    (change,) = Survey.of(root.source).changes.values()
    person = [name for name, origin in change.fixed.items() if not isinstance(origin, Constant)]
    chosen = root.function.projection
    if not change.alone or not person or set(person) & set(chosen) or len(set(chosen)) < len(chosen):
        return None
    names_survey = Survey.of(choose(root.source, [*person, *chosen], "select"))
    if names_survey.fingerprint is None or any(isinstance(node, Window) for node in names_survey.steps):
        return None
    (moved,) = names_survey.changes.values()
    if moved.l1 is None:  # nothing bounds how many names a person has
        return None
    return Pairs(names_survey, tuple(person), math.floor(moved.l1 * names_survey.root.resolution))


def nearer(pairs: Pairs, epsilon: Fraction, delta: Fraction, other: PartitionSelection) -> WeightedRounds | None:
    """The weighted rounds, where people who all have the most names are published sooner than by another selection.

    That follows from the plan, the unit and the amounts alone.
    """
    try:
        rounds = weighted_rounds(epsilon, delta, pairs.most)
    except PlanError:
        return None
    often, _ = other.bounds(max(1, math.ceil(rounds.people) * pairs.survey.root.resolution), 64)
    return rounds if often < 1 << 63 else None
