"""Select: which bins there are, without their weights, as many as (epsilon, delta) allows.

An answer of `select` is the names of bins. `WeightedSelection` publishes names by rounds: in each, a person's names
weigh less the more of them there are.

Where people's names are their own, `select` may weigh each of a person's k names 1 / sqrt(k). That is where the plan
ends in a choice of columns, of a step in which the unit is alone (`core/plan/person_bound.py`):
f(D + unit) = f(D) + records that hold the unit in the fixed columns, and f(D) holds none such. Then the records of that
step, by these columns and the chosen ones, are for each value of the fixed columns the pairs of one person; one person
more adds pairs of their own and changes nobody else's. All the plan's movement is of one ledger's people.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from wpinq.arguments import FLAG, takes
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.continual_selection import ContinualSelection, continual_quote
from wpinq.core.measurements.published import by_name
from wpinq.core.measurements.query import ChargedQuery, commit
from wpinq.core.noise import Words
from wpinq.core.noise.selection import PartitionSelection, selection
from wpinq.core.noise.weighted_rounds import OfRound, WeightedRounds, weighted_rounds, weights
from wpinq.core.operators.map import Map, choose
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import sources
from wpinq.core.plan.person_bound import Constant
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.pricing.sensitivity import l1_sensitivity, unit_sensitivities
from wpinq.core.pricing.threshold import delta_of, refuse_unnamed
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Schema
from wpinq.core.runs.epochs import answered_from
from wpinq.core.runs.key_recovery import names_of, present
from wpinq.core.state.table import Ids
from wpinq.errors import PlanError, redacted
from wpinq.exact import Amount, decimal, exact, positive

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder


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
    if names_survey.fingerprint is None or any(node.windows for node in names_survey.steps):
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


class Selection(ChargedQuery):
    """Charged names of bins, found when they are first asked for and the same for ever."""

    purpose = "selection"

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        self.delta = quote.delta
        self._mechanism: PartitionSelection = quote.mechanism
        self._shown: Schema = self.node.schema
        self._found: pl.DataFrame | None = None

    @property
    def bins(self) -> pl.DataFrame:
        """The bins that were selected, ordered by name: one column for each of the collection's.

        Raises:
            SourceError, EngineError, LedgerError: The dataflow could not run.
        """
        refuse_inside("select")
        if self._found is None:
            histogram, words = self._settled()
            keep = self._mechanism.keep
            chosen = redacted(
                "select", lambda: [known[keep(words, ids, true)] for known, ids, true in present(histogram, self.node)]
            )
            self._found = by_name(names_of(self.node, chosen), self.node.schema)
        return self._found

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        cost = f"epsilon {decimal(self.epsilon)}, delta {decimal(self.delta)}"
        return f"<selection {label}{self._shown}, {cost}>"


class WeightedSelection(Selection):
    """Charged names of bins, by rounds (`core/noise/weighted_rounds.py`). Its plan gives pairs of a person and a name.

    The noise of a name in a round is a keyed function of both, so the names are the same for ever.
    """

    def __init__(self, quote: Quote[Any], person: tuple[str, ...], shown: Schema) -> None:
        super().__init__(quote)
        self._rounds: WeightedRounds = quote.mechanism
        self._person, self._shown = person, shown

    @property
    def bins(self) -> pl.DataFrame:
        """The names that were selected, ordered: one column for each of the collection's."""
        refuse_inside("select")
        if self._found is None:
            histogram, words = self._settled()
            there = redacted("select", lambda: [known[true > 0] for known, _, true in present(histogram, self.node)])
            pairs = names_of(self.node, there)
            self._found = redacted("select", lambda: self._selected(pairs, words))
        return self._found

    def _selected(self, pairs: pl.DataFrame, words: Words) -> pl.DataFrame:
        """The names that some round publishes."""
        names = [name for name in self.node.schema.names if name not in self._person]
        _, _, person = self._numbered(pairs.select(self._person))
        ids, first, name = self._numbered(pairs.select(names))
        published = np.zeros(len(ids), np.bool_)
        for number, round_ in enumerate(self._rounds.rounds):
            left = ~published[name]
            many = np.bincount(person[left], minlength=len(person) + 1)
            total = np.zeros(len(ids), np.int64)
            np.add.at(total, name[left], weights(many[person[left]]))
            published |= total + round_.noise.draw(OfRound(words, number), ids) >= round_.threshold
        chosen = pairs.select(names)[first[published]].rename(dict(zip(names, self._shown.names, strict=True)))
        return by_name(chosen, self._shown)

    def _numbered(self, frame: pl.DataFrame) -> tuple[Ids, np.ndarray, np.ndarray]:
        """The distinct rows of a frame: their identities, where each stands first, and for each row its number."""
        ids = identities(frame, self.node.schema.select(frame.columns), self.key_owner.identity_key)
        both = np.ascontiguousarray(ids).view([("low", np.uint64), ("high", np.uint64)]).reshape(-1)
        _, first, number = np.unique(both, return_index=True, return_inverse=True)
        return ids[first], first, number


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
    result: Selection = commit([quote_select(self, cost, lost, name=name, analyst=analyst)])[0]
    return result


def quote_select(
    self: Builder[Any], cost: Fraction, lost: Fraction, *, name: str | None = None, analyst: str | None = None
) -> Quote[Any]:
    """Price a selection, as `select` would ask for it; nothing is charged.

    Args:
        cost: Its epsilon.
        lost: Its delta. The other arguments are those of `select`.

    Raises:
        PlanError, ExactnessError: See `select`.
    """
    survey, epochs = answered_from(fit_noise(self._node), "select")
    refuse_unnamed(survey.root, "select")
    best = _mechanism(survey, cost, lost)
    pairs = pairs_of(survey) if epochs is None else None
    rounds = nearer(pairs, cost, lost, best) if pairs else None
    if pairs and rounds:
        kind: Any = partial(WeightedSelection, person=pairs.person, shown=survey.root.schema)
        return price(
            pairs.survey, cost, call="select", kind=kind, mechanism=rounds, fields=(WEIGHTED, lost, pairs.most),
            name=name, analyst=analyst, delta=lost,
        )  # fmt: skip
    return price(
        survey, cost, call="select", kind=Selection, mechanism=best, fields=("selection", lost), name=name,
        analyst=analyst, delta=lost, epochs=epochs,
    )  # fmt: skip


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
