"""Select: which bins there are, without their weights, as many as (epsilon, delta) allows."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from wpinq.arguments import FLAG, takes
from wpinq.core.measurements.continual_selection import ContinualSelection, continual_quote
from wpinq.core.measurements.query import commit
from wpinq.core.measurements.selected import Selection, WeightedSelection
from wpinq.core.noise.selection import PartitionSelection, selection
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import sources
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.quote import price
from wpinq.core.pricing.sensitivity import unit_sensitivities
from wpinq.core.pricing.threshold import delta_of, l1_sensitivity
from wpinq.core.pricing.weighted_names import nearer, pairs_of
from wpinq.core.runs.epochs import answered_from
from wpinq.core.runs.key_recovery import refuse_unnamed
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact, positive

if TYPE_CHECKING:
    from wpinq.core.plan.builder import Builder

WEIGHTED = "selection by weighted rounds, format 1"
"""What the key of such a selection is bound to, beside the plan and the amounts."""


@takes(continual=FLAG)
def select(
    self: Builder[Any], epsilon: Amount, delta: Amount | None = None, name: str | None = None,
    analyst: str | None = None, *, continual: bool = False, at_least: Amount = 1,
) -> Selection | ContinualSelection:  # fmt: skip
    """Charge for the names of bins: each with the largest probability that (epsilon, delta) allows for its weight.

    It finds smaller bins than a threshold on noisy weights does at the same cost, and tells no weights. It is optimal
    where one unit moves one bin by one step; where a unit can do more, the worst way to spread it is paid.

    Where people have many bins, and each person's are their own (`map("user, page").map("page")`, say), each of a
    person's k bins weighs 1 / sqrt(k) instead, however many records it has, and the noise of the sums is Gaussian
    (`core/noise/weighted_rounds.py`): whichever finds bins of fewer people, by plan and amounts alone. That is so in a
    ledger that adds up epsilons and deltas.

    The names are found by computing the plan once more, so a plan whose functions have no fingerprint (`explain` shows
    which) is refused, but for numbers of slices.

    Args:
        epsilon: What it costs the privacy unit, exact.
        delta: The probability that a bin which only one unit is in is named, over all of its bins together; what it
            costs each data set. By default as in `release`.
        name: Tells repetitions apart, and names the charge in the ledger.
        analyst: Who is charged, where the curator keeps caps for each analyst.
        continual: Of a live source, at every epoch, for ever, for this epsilon and delta in all: bins are published
            from the epoch on at which they pass a threshold, with noisy weights at each (`ContinualSelection.release`).
            Only where every step is linear for each record, as with `measure(continual=True)`, and none subtracts.
        at_least: With `continual`, the weight from which bins are looked at. The threshold is higher by what it is
            above 1, and epochs are closed sooner where most bins have less.

    Raises:
        PlanError: The plan has windows, which would have a selection each, or no fingerprint; or `continual` does not
            fit it.
        ExactnessError: `epsilon` is not above zero, or `delta` not strictly between 0 and 1.
        BudgetError: It costs more than is left; nothing was charged and nothing drawn.
        LedgerError: The ledger cannot be trusted or written; nothing was drawn.

    Source: Desfontaines, Voss, Gipson and Mandayam, PoPETs 2022(1); Gopi et al., ICML 2020; Swanberg, Desfontaines and
    Haney, PoPETs 2023.
    """
    cost, lost = positive(epsilon, "select(epsilon=...)"), delta_of(delta, sources(self._node), "select(delta=...)")
    if continual:
        least = exact(at_least, "select(at_least=...)")
        (forever,) = commit([continual_quote(fit_noise(self._node), cost, lost, least, name=name, analyst=analyst)])
        return forever
    if at_least != 1:
        raise PlanError("select(at_least=...): only with continual=True; else every bin of weight is looked at.")
    survey, epochs = answered_from(fit_noise(self._node), "select")
    refuse_unnamed(survey.root, "select")
    best = _mechanism(survey, cost, lost)
    pairs = pairs_of(survey) if epochs is None else None
    rounds = nearer(pairs, cost, lost, best) if pairs else None
    if pairs and rounds:
        kind: Any = partial(WeightedSelection, person=pairs.person, shown=survey.root.schema)
        quote = price(
            pairs.survey, cost, call="select", kind=kind, mechanism=rounds, fields=(WEIGHTED, lost, pairs.most),
            name=name, analyst=analyst, delta=lost,
        )  # fmt: skip
    else:
        quote = price(
            survey, cost, call="select", kind=Selection, mechanism=best, fields=("selection", lost), name=name,
            analyst=analyst, delta=lost, epochs=epochs,
        )  # fmt: skip
    result: Selection = commit([quote])[0]
    return result


def _mechanism(survey: Survey, epsilon: Fraction, delta: Fraction) -> PartitionSelection:
    """The selection that costs every unit at most what is charged, through all data sets of its ledger together.

    In each ledger a step of 1 costs the same epsilon, given by the largest L1 sensitivity. The least delta of such a
    step is enough for all ledgers.
    """
    furthest = l1_sensitivity(survey)
    fits = [
        selection(epsilon * unit_sensitivity.l1 / furthest, delta * unit_sensitivity.data_sets, unit_sensitivity.l1)
        for unit_sensitivity in unit_sensitivities(survey)
    ]
    return min(fits, key=lambda mechanism: mechanism.delta)
