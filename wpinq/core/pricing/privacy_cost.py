"""Payment: what a measurement is asked to cost, and the noise that this buys.

Laplace noise costs epsilon. No epsilon holds for Gaussian noise with certainty: it costs rho (zero-concentrated
differential privacy, Bun and Steinke, TCC 2016). A unit that moves all bins together by S, and one bin by B at most,
loses rho = S B / (2 sigma^2), for the sum of the squares of its moves is at most S B. Where only S is known, B is S.

A ledger that adds up epsilons and deltas has Gaussian noise at (epsilon, delta), both added up: what is asked at once
needs noise 7% narrower so than by rho (`core/noise/gaussian_curve.py`).

In rho each path and part pays its share of the movement. Epsilon and delta of what is asked at once are of the whole.

Which noise is nearer to the truth follows from the plan, the unit and the amounts alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from wpinq.core.ledger.sums.cost import Cost
from wpinq.core.ledger.sums.privacy_filter import SHARE
from wpinq.core.ledger.sums.renyi import best_order, limit
from wpinq.core.noise import Mechanism, mechanism
from wpinq.core.noise.geometric import LARGEST
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.sensitivity import ledger_sensitivities, unit_sensitivities
from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import Amount, decimal, exact, positive

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet

LAPLACE, GAUSSIAN, BEST = "geometric", "gaussian", "best"
DIGITS = 8
"""Significant decimal digits of a rho that follows from epsilon and delta."""


@dataclass(frozen=True)
class Payment:
    """What a measurement costs the privacy unit, and the name of its noise.

    Attributes:
        noise: "geometric", "laplace" or "gaussian".
        epsilon: Of Laplace noise, and of Gaussian noise that costs a delta beside it.
        rho: Of Gaussian noise, in all data sets of a ledger together; 0 of what costs epsilon.
        delta: Of Gaussian noise that costs epsilon.
    """

    noise: str
    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def buys(self, survey: Survey) -> Mechanism:
        """The noise of a plan.

        Raises:
            PlanError: There is no such mechanism, its scale is out of range, or the plan reads no protected source.
        """
        if not (self.rho or self.delta):
            return mechanism(self.noise, survey.scale(self.epsilon) * survey.root.resolution)
        from wpinq.core.noise.gaussian import DiscreteGaussian  # few plans have this noise
        from wpinq.core.noise.gaussian_curve import square_of

        if self.rho:
            return DiscreteGaussian(moved_squared(survey) / (2 * self.rho))
        refuse_windowed(survey)
        bins = max(unit.l1 for unit in unit_sensitivities(survey))
        return DiscreteGaussian(square_of(moved_squared(survey), bins, self.epsilon, self.delta))

    def part(self, share: Fraction, call: str) -> Terms:
        """The terms of a part of what it buys."""
        delta = self.delta * share or None
        return Terms(self.epsilon * share or None, self.noise, self.rho * share or None, delta, call=call)

    @property
    def text(self) -> str:
        """It for people."""
        delta = f", delta {decimal(self.delta)}" if self.delta else ""
        return f"rho {decimal(self.rho)}" if self.rho else f"epsilon {decimal(self.epsilon)}{delta}"


@dataclass(frozen=True)
class Terms:
    """What the caller said of the cost: all of it, so that each combination is looked at once.

    Attributes:
        epsilon: See `measure`, as of all that follow but the last.
        mechanism: "geometric", "laplace", "gaussian" or "best".
        rho, delta, within, confidence: See `measure`.
        call: What the caller wrote, for messages.
    """

    epsilon: Amount | None = None
    mechanism: str = LAPLACE
    rho: Amount | None = None
    delta: Amount | None = None
    within: Amount | None = None
    confidence: Amount = Fraction(95, 100)
    call: str = "measure"

    def agreed(self, survey: Survey) -> Payment:
        """The payment.

        Raises:
            ExactnessError: An amount is not a finite number above zero, or there is none.
            PlanError: There are several, or they do not fit the mechanism or the ledger of a data set.
        """
        amounts = [what for what in ("epsilon", "rho", "within") if getattr(self, what) is not None]
        if not amounts:
            raise ExactnessError(
                f"{self.call}(): give either epsilon=, what it costs (or rho=, of Gaussian noise), or within=, by how "
                "much noise may move it."
            )
        if len(amounts) > 1:
            raise PlanError(
                f"{self.call}({'=, '.join(amounts)}=): give either epsilon= or rho=, what it costs, or within=, by how "
                "much noise may move it."
            )
        if self.mechanism == GAUSSIAN:
            return self._gaussian(survey)
        if self.mechanism == BEST:
            return self._best(survey)
        for what in ("rho", "delta"):
            if getattr(self, what) is not None:
                raise PlanError(
                    f"{self.call}({what}=...): is of Gaussian noise; add mechanism='gaussian', or mechanism='best', or "
                    "leave it out."
                )
        return Payment(self.mechanism, self._laplace(survey))

    def _laplace(self, survey: Survey) -> Fraction:
        if self.within is None:
            return positive(self.epsilon, f"{self.call}(epsilon=...)")
        within, resolution = self._within, survey.root.resolution
        moved = survey.scale(Fraction(1)) * resolution
        from wpinq.core.noise.accuracy import epsilon_within

        return epsilon_within(lambda scale: mechanism(self.mechanism, scale), moved, within * resolution, self._level)

    def _gaussian(self, survey: Survey) -> Payment:
        if self.delta is None or self.epsilon is None:
            refuse_pure(survey, self.call)
        if self.delta is not None and self.epsilon is None:
            raise PlanError(f"{self.call}(delta=...): goes with epsilon=; rho= and within= say all by themselves.")
        if self.rho is not None:
            return Payment(GAUSSIAN, rho=positive(self.rho, f"{self.call}(rho=...)"))
        if self.within is not None:
            moved, resolution = moved_squared(survey), survey.root.resolution
            return Payment(GAUSSIAN, rho=_rho_within(moved, self._within * resolution, self._level))
        if self.delta is None:
            raise PlanError(
                f"{self.call}(mechanism='gaussian', epsilon=...): no epsilon holds for Gaussian noise by itself; add "
                "delta=, or give rho=."
            )
        return self._at_once(survey)

    def _at_once(self, survey: Survey) -> Payment:
        """Gaussian noise of this epsilon and delta: a rho where all ledgers add up divergences, else both."""
        epsilon, delta = self._promised
        if all(data.ledger.curves for data in survey.sources):
            return Payment(GAUSSIAN, rho=rho_of(epsilon, delta))
        return Payment(GAUSSIAN, epsilon, delta=delta)

    def _best(self, survey: Survey) -> Payment:
        """Laplace noise of this epsilon, or Gaussian noise of this epsilon and delta where that is nearer."""
        if self.rho is not None:
            return self._gaussian(survey)
        if self.within is not None or self.delta is None:
            raise PlanError(
                f"{self.call}(mechanism='best'): compares noise of the same epsilon and delta; give both, or name the "
                "mechanism."
            )
        epsilon, _ = self._promised
        laplace, gaussian = Payment(LAPLACE, epsilon), self._at_once(survey)
        if not gaussian.rho and any(node.windows for node in survey.steps):
            return laplace
        half = [payment.buys(survey).half_width(self._level) for payment in (laplace, gaussian)]
        return laplace if half[0] <= half[1] else gaussian

    @property
    def _promised(self) -> tuple[Fraction, Fraction]:
        return positive(self.epsilon, f"{self.call}(epsilon=...)"), probability(
            0 if self.delta is None else self.delta, f"{self.call}(delta=...)"
        )

    @property
    def _within(self) -> Fraction:
        return positive(self.within, f"{self.call}(within=...)")

    @property
    def _level(self) -> Fraction:
        return exact(self.confidence, f"{self.call}(confidence=...)")


def refuse_pure(survey: Survey, call: str) -> None:
    """Refuse Gaussian noise where a budget is a sum of epsilons.

    Raises:
        PlanError: Some ledger's is; nothing was charged.
    """
    for data in survey.sources:
        if not data.ledger.curves:
            raise PlanError(
                f"{call}(mechanism='gaussian'): no epsilon holds for Gaussian noise, and the budget of "
                f"{data.name!r} is a sum of epsilons. Give epsilon= and delta=, take Laplace noise, or another ledger: "
                "protect(..., rho=...) or protect(..., budget=..., delta=..., accounting='renyi'). Nothing was charged."
            )


@lru_cache(256)
def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, of eight digits, that a ledger with this budget would hold (`Promise.of`).

    It is (epsilon, delta) by an order of Renyi divergence, with a hundredth of delta to spare, as a ledger has it.

    Source: Canonne, Kamath and Steinke, NeurIPS 2020 (arXiv 2004.00010), proposition 12.

    Raises:
        PlanError: There is none.

    >>> float(rho_of(Fraction(1), Fraction(1, 10**6)))
    0.024334203
    """
    spendable = delta - delta * SHARE
    order = best_order(epsilon, spendable)
    most = limit(epsilon, spendable, order) / order
    if most <= 0:
        raise PlanError(
            f"measure(epsilon={decimal(epsilon)}, delta={decimal(delta)}): no Gaussian noise is proved to hold it; "
            "take more of either, or Laplace noise."
        )
    unit = Fraction(10) ** (math.floor(math.log10(most)) + 1 - DIGITS)
    return math.floor(most / unit) * unit


def _rho_within(moved: Fraction, within: Fraction, level: Fraction) -> Fraction:
    """The least rho, in four significant digits, for which a bin is within a distance of the truth."""
    from wpinq.core.noise.accuracy import least
    from wpinq.core.noise.gaussian import DiscreteGaussian

    def enough(rho: Fraction) -> bool:
        square = moved / (2 * rho)
        return square <= LARGEST**2 and DiscreteGaussian(square).half_width(level) <= within

    if not 0 < level < 1:
        raise PlanError(f"measure(confidence=...): {decimal(level)} is not strictly between 0 and 1; write 0.95, say.")
    wide = NormalDist().inv_cdf(min(max(float(1 + level) / 2, 0.5001), 1 - 1e-16))
    return least(enough, moved * Fraction(wide) ** 2 / (2 * within**2))


def probability(delta: Amount, call: str) -> Fraction:
    """Read a delta.

    Raises:
        ExactnessError: It is not strictly between 0 and 1.
    """
    number = positive(delta, call)
    if number >= 1:
        raise ExactnessError(f"{call}: {delta} is not below 1; delta is a small probability, for example 1e-6.")
    return number


def refuse_windowed(survey: Survey) -> None:
    """Refuse Gaussian noise that costs a delta where each window is a question: windows would not be parallel.

    Raises:
        PlanError: There is a window; nothing was charged.
    """
    if any(node.windows for node in survey.steps):
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
    part of the whole; so costs of paths and parts compose as epsilons do (`core/ledger/sums/cost.py`). What several
    data sets of a ledger pay together is of the sum of their movements.
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
