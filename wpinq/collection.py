"""The face of a plan: a protected collection, lazily described. One line for each operator."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq import aggregates
from wpinq.core import methods
from wpinq.core.ledger.sums.privacy_filter import PURE
from wpinq.core.plan.node import Builder, holding, sources
from wpinq.core.plan.phrase import phrase
from wpinq.errors import PlanError
from wpinq.lazy import Methods

if TYPE_CHECKING:
    from wpinq.core.ledger.budget import Budget
    from wpinq.core.plan.node import Node
else:
    from wpinq.aggregates.bound_first import chooses

    chosen, quoting = Methods(methods, around=chooses), Methods(aggregates)
    methods, aggregates = Methods(methods), Methods(aggregates, around=chooses)


class Collection(Builder["Collection"]):
    """A protected collection of weighted records, or what transformations make of one.

    Nothing is read until a measurement of it is observed. A collection has no length and no items, because each of
    them would be an answer that was not charged.
    """

    __slots__ = ()

    at_most = methods.at_most
    map = methods.map
    filter = methods.filter
    flat_map = methods.flat_map
    shave = methods.shave
    concat = methods.concat
    subtract = methods.subtract
    union = methods.union
    intersect = methods.intersect
    distinct = methods.distinct
    group_by = methods.group_by
    join = methods.join
    join_rows = methods.join_rows
    semijoin = methods.semijoin
    antijoin = methods.antijoin
    limit = methods.limit
    partition = methods.partition
    window = methods.window

    quote = methods.quote
    if TYPE_CHECKING:
        measure = methods.measure
    else:
        measure = chosen.measure
    select = methods.select
    explain = methods.explain

    count = aggregates.count
    count_distinct = aggregates.count_distinct
    sum = aggregates.sum
    mean = aggregates.mean
    variance = aggregates.variance
    stdev = aggregates.stdev
    min = aggregates.min
    max = aggregates.max
    median = aggregates.median
    quantile = aggregates.quantile
    quantiles = aggregates.quantiles
    histogram = aggregates.histogram
    ranges = aggregates.ranges
    if TYPE_CHECKING:
        quote_ranges = aggregates.quote_ranges
    else:
        quote_ranges = quoting.quote_ranges
    top = aggregates.top
    mode = aggregates.mode
    select_by = aggregates.select_by

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self._node.schema.names

    @property
    def budget(self) -> Budget:
        """What the budget of its data set holds, what was spent on what, and what is left.

        Raises:
            PlanError: It is made of data sets with several ledgers.
            LedgerError: The ledger cannot be trusted.
        """
        from wpinq.core.ledger.budget import Budget

        ledgers = {data.ledger.identity: data.ledger for data in sources(self._node)}
        if len(ledgers) > 1:
            raise PlanError("budget: the collection is made of data sets with several ledgers; ask for each of them.")
        return Budget.of(next(iter(ledgers.values())))

    @property
    def left(self) -> Fraction:
        """Epsilon that is left of the budget for one measurement of this collection; see `budget`.

        Where divergences are added up, it is more where a unit moves many bins by a little than where it moves one.
        """
        from wpinq.core.pricing.sensitivity import epsilon_left

        budget = self.budget
        return epsilon_left(self._node) if budget.promise.accounting != PURE else budget.left

    def _then(self, node: Node) -> Collection:
        return Collection(holding(node))

    def _commit(self, quotes: Sequence[Any]) -> list[Any]:
        from wpinq.core.measurements.query import commit

        named = [quote if quote.of is self._node or quote.words else quote.worded(phrase(self._node, quote.node.title))
                 for quote in quotes]  # fmt: skip
        return commit(named)

    def __repr__(self) -> str:
        return f"<protected collection {self._node.schema} by {self._node.title}>"

    def _repr_html_(self) -> str:
        from wpinq.show.notebook import plan_html

        return plan_html(self._node, f"Protected collection {self._node.schema}")

    __iter__ = None
    __contains__ = None
    __hash__ = object.__hash__
