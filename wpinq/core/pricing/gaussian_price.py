"""Gaussian noise: how far one unit moves what it hides, and what each data set pays for it.

In rho each path and part pays its share of the movement. Epsilon and delta of what is asked at once are of the whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from wpinq.core.ledger import Cost
from wpinq.core.noise import DiscreteGaussian
from wpinq.core.operators.window import Window
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.explain import rounded, short
from wpinq.core.pricing.sensitivity import ledger_sensitivities, unit_sensitivities
from wpinq.errors import PlanError
from wpinq.exact import decimal

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet


def refuse_windowed(survey: Survey) -> None:
    """Refuse Gaussian noise that costs a delta where each window is a question: windows would not be parallel.

    Raises:
        PlanError: There is a window; nothing was charged.
    """
    if any(isinstance(node, Window) for node in survey.steps):
        raise PlanError(
            "measure(mechanism='gaussian', delta=...): windows are charged as parts, which epsilon and delta of "
            "Gaussian noise are not; take Laplace noise, or a ledger with accounting='renyi'. Nothing was charged."
        )


def moved_squared(survey: Survey) -> Fraction:
    """The largest S B of a ledger: how far one unit moves all bins together, times one bin, in units of 1/resolution.

    Raises:
        PlanError: The plan reads no protected source.
    """
    survey.scale(Fraction(1))
    return max(Fraction(unit.l1 * unit.linf) for unit in unit_sensitivities(survey))


def rho_by_weight(survey: Survey, square: Fraction) -> dict[DataSet, Fraction]:
    """For each data set the rho that it pays for Gaussian noise, for each weight by which one unit moves all bins.

    A unit that moves by less than it could, through some paths or all of them, loses by convexity no more than that
    part of the whole; so costs of paths and parts compose as epsilons do (`core/ledger/cost.py`). What several data
    sets of a ledger pay together is of the sum of their movements.
    """
    units = ledger_sensitivities(survey)
    whole: dict[str, Fraction] = defaultdict(Fraction)
    for data, move in survey.sensitivities.items():
        whole[data.ledger.identity] += move
    rhos = {name: unit.l1 * unit.linf / (2 * square) / whole[name] for name, unit in units.items()}
    return {data: rhos[data.ledger.identity] for data in survey.sensitivities}


def gaussian_costs(survey: Survey, square: Fraction) -> dict[DataSet, list[Cost]]:
    """What each data set pays for Gaussian noise, by path."""
    rates = rho_by_weight(survey, square)
    costs: dict[DataSet, list[Cost]] = defaultdict(list)
    for (data, parts), move in survey.moves.items():
        times = survey.times(data) if parts else Fraction(1)
        costs[data].append(Cost(Fraction(0), under=parts, rho=move * rates[data], times=times))
    return dict(costs)


def costs_at_once(survey: Survey, epsilon: Fraction, delta: Fraction) -> dict[DataSet, list[Cost]]:
    """What each data set pays for Gaussian noise of an epsilon and a delta: in each ledger both, by what moves.

    It is of all that is asked at once, whatever paths and parts it goes through: a unit that moves a part by half of
    what it moves in all loses more than half of epsilon at this delta, so these costs are added up over parts.
    """
    whole: dict[str, Fraction] = defaultdict(Fraction)
    for data, move in survey.sensitivities.items():
        whole[data.ledger.identity] += move
    shares = {data: move / whole[data.ledger.identity] for data, move in survey.sensitivities.items()}
    return {data: [Cost(epsilon * share, delta * share)] for data, share in shares.items()}


def gaussian_lines(
    survey: Survey, noise: DiscreteGaussian, often: str, epsilon: Fraction, delta: Fraction, *,
    widths: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """What a measurement with Gaussian noise costs each data set and is worth, for `explain` and quotes.

    Args:
        widths: Replaces the lines about the noise of one answer.
    """
    resolution = survey.root.resolution
    if delta:
        terms = f"epsilon={short(epsilon)}, delta={decimal(delta)}"
        costs = {data: f"epsilon {short(cost.epsilon)}, delta {decimal(cost.delta)}"
                 for data, (cost,) in costs_at_once(survey, epsilon, delta).items()}  # fmt: skip
    else:
        terms, rates = f"rho={short(noise.rho(moved_squared(survey)))}", rho_by_weight(survey, noise.square)
        costs = {data: f"rho {short(move * rates[data])}" for data, move in survey.sensitivities.items()}
    moved = max(unit_sensitivities(survey), key=lambda unit: unit.l1 * unit.linf)
    whole, largest = Fraction(moved.l1, resolution), Fraction(moved.linf, resolution)
    spread = (
        f"and one bin by at most {short(largest)}" if largest < whole else "and nothing says that one bin moves by less"
    )
    half = noise.half_width(Fraction(95, 100)) / resolution
    wide = [
        f"measure({terms})  gaussian noise of standard deviation {rounded(float(noise.scale) / resolution)}",
        f"  noise moves a bin by {rounded(noise.mean() / resolution)} on average, and by at most {rounded(half)} with "
        "probability 0.95",
    ]
    return [
        *(widths or wide),
        f"  one unit moves all bins by at most {short(whole)} together, {spread}",
        *(f"  data set {data.name!r}: {cost}{often}" for data, cost in costs.items()),
    ]
