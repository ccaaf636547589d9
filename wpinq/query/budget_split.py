"""What each measurement of a query costs: equal shares of what the whole query is asked to cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from wpinq.core.ledger.sums.renyi import pure_within
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import BEST, GAUSSIAN, Terms
from wpinq.errors import PlanError
from wpinq.exact import Amount, positive
from wpinq.query.select.derived import CALL
from wpinq.query.statement import Statement


@dataclass(frozen=True)
class Share:
    """What each measurement of a query costs.

    Attributes:
        terms: Of counts, sums, means and spreads.
        epsilon: Of ranks and extremes, which an exponential mechanism chooses: beside Gaussian noise the largest whose
            zero-concentrated loss is the same rho.
    """

    terms: Terms
    epsilon: Fraction


def shared(statement: Statement, terms: Terms, *, listed: bool) -> Share:
    """Divide what a query costs one person equally among its measurements.

    Epsilon is divided among the tables of a ledger too, which a person may all be in; rho is of all of them together,
    and so are epsilon and delta of Gaussian noise.

    Args:
        statement: The query.
        terms: What it costs in all; of a mechanism that is "best", whichever keeps all of its counts nearer.
        listed: Whether its groups are given.

    Raises:
        PlanError: They do not fit together, or what is asked is neither count nor rank, of which alone `within`
            speaks.
    """
    if terms.within is not None:
        return _within(statement, terms, terms.within, listed=listed)
    if terms.epsilon is not None and terms.mechanism in (GAUSSIAN, BEST) and not listed:
        raise PlanError(
            f"{CALL}(mechanism={terms.mechanism!r}, epsilon=...): delta= pays for publishing groups here, so it cannot "
            "be that of the noise too; give rho= instead of epsilon=, or keys=. Nothing was charged."
        )
    paid = _agreed(statement, terms, listed=listed)
    parts = statement.parts(listed)
    if paid.rho is not None:
        rho = positive(paid.rho, f"{CALL}(rho=...)") / parts
        return Share(replace(paid, rho=rho), pure_within(rho, None) / statement.of_one_person[0])
    epsilon = positive(paid.epsilon, f"{CALL}(epsilon=...)") / parts
    each = epsilon / statement.of_one_person[0]
    if paid.delta is not None:
        return Share(replace(paid, epsilon=epsilon, delta=positive(paid.delta, f"{CALL}(delta=...)") / parts), each)
    return Share(replace(paid, epsilon=each), each)


def _agreed(statement: Statement, terms: Terms, *, listed: bool) -> Terms:
    """The cost of the whole query by the name of its noise, for the plans of all that has noise."""
    if terms.mechanism not in (GAUSSIAN, BEST) or terms.epsilon is None:
        terms = replace(terms, delta=None)  # which publishes groups
    plans = [count._node for count in (*statement.alone, *statement.published_from(listed))]
    plans += [ranges.records._node for ranges in statement.ranged]
    plans += [number.collection._node for number in statement.numbers]
    costs = [terms.agreed(Survey.of(fit_noise(plan))) for plan in plans]
    other = [cost for cost in costs if cost.noise != GAUSSIAN]
    paid = other[0] if other else costs[0]
    return Terms(paid.epsilon or None, paid.noise, paid.rho or None, paid.delta or None, call=CALL)


def _within(statement: Statement, terms: Terms, within: Amount, *, listed: bool) -> Share:
    """The cost of each count and rank for which all of them are so near to the truth, each with probability 0.95."""
    ranks = max((number.epsilon(within) for number in statement.numbers), default=None)
    plans = [Survey.of(fit_noise(item._node)) for item in (*statement.counts, *statement.published_from(listed))]
    costs = [replace(terms, delta=None).agreed(plan) for plan in plans]
    epsilon = max((cost.epsilon for cost in costs), default=Fraction(0))
    rho = max((cost.rho for cost in costs), default=Fraction(0))
    noise = Terms(epsilon or None, terms.mechanism, rho or None, call=CALL)
    return Share(noise, ranks or epsilon or pure_within(rho, None))
