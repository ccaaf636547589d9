"""Private partition selection by threshold: publish the bins whose noisy weight is at least a threshold.

The noise is that of the measurement, so only delta is charged: unless a bin that only one unit is in reaches the
threshold, the published table is a function of the noisy histogram. A threshold above the private one publishes fewer
bins, which is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from wpinq.core.noise import Mechanism
from wpinq.core.noise.threshold import least_threshold, tail_of
from wpinq.core.plan.node import Node, fingerprints
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import probability
from wpinq.core.pricing.sensitivity import ledger_sensitivities, moved_bins
from wpinq.core.state.histogram import is_steps
from wpinq.errors import PlanError
from wpinq.exact import Amount

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet

DEFAULT = Fraction(1, 10**6)
"""Delta of a release or selection, where nothing else is said."""
PART = Fraction(1, 10)
"""Of the delta that a ledger with Renyi accounting keeps for thresholds: what one of them takes by default."""


def delta_of(delta: Amount | None, sources: Iterable[DataSet], call: str) -> Fraction:
    """The delta that was asked for; by default what a ledger has for it: `DEFAULT`, or `PART` of less.

    Raises:
        ExactnessError: See `probability`.
    """
    if delta is not None:
        return probability(delta, call)
    promises = [data.ledger.promise for data in sources]
    return min([DEFAULT, *(promise.failing * PART for promise in promises if 0 < promise.failing < promise.delta)])


def private_threshold(node: Node, noise: Mechanism, delta: Fraction) -> int:
    """The least noisy weight to publish, in steps, such that bins of a unit alone are published with delta at most.

    A unit of several data sets of one ledger is in all of them and is charged for each: its sensitivity is the sum over
    them, and so is its delta.

    Raises:
        PlanError: The noise has a law that thresholds are not known for.
    """
    tail, scale = tail_of(noise, "release")
    survey = Survey.of(node)
    bins = moved_bins(survey)
    return max(
        least_threshold(scale, noise.grid, unit.l1, unit.data_sets * delta, unit.linf, bins=bins[book], tail=tail)
        for book, unit in ledger_sensitivities(survey).items()
    )


def threshold_of(node: Node, noise: Mechanism, delta: Fraction) -> float:
    """The same in weight, for people.

    Raises:
        PlanError: See `private_threshold`.
    """
    return float(Fraction(private_threshold(node, noise, delta), node.resolution * noise.grid))


def refuse_unnamed(node: Node, call: str) -> None:
    """Refuse a plan whose bins could not be named later: they are named by a second run, which needs a fingerprint.

    Raises:
        PlanError: The plan has no fingerprint; nothing was charged.
    """
    digests = fingerprints(node)
    if digests[node] is not None or is_steps(node.schema):
        return
    step = next(item for item, digest in digests.items() if digest is None)
    raise PlanError(
        f"{call}: the bins are named by computing the plan once more, and the function of {step.title} has no "
        "fingerprint: it holds or looks at something that may be another thing by then, such as an object of a class. "
        "Give the bins with keys= of release or sql, or write the function of plain values. Nothing was charged."
    )
