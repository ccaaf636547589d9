"""Aggregates of a numeric column: charged answers with intervals, sensible on empty and on one-row inputs.

`README.md` says what each file knows.
"""

from wpinq.aggregates.bounding import suggest_bound
from wpinq.aggregates.buckets import histogram
from wpinq.aggregates.choosing import mode, top
from wpinq.aggregates.losses import loss
from wpinq.aggregates.quantiles import max, median, min, quantile  # noqa: A004
from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.aggregates.ranging import suggest_bounds
from wpinq.aggregates.sums import count, count_distinct, mean, stdev, sum, variance  # noqa: A004

__all__ = [
    "QuotedAggregate", "count", "count_distinct", "histogram", "loss", "max", "mean", "median", "min", "mode",
    "quantile", "stdev", "suggest_bound", "suggest_bounds", "sum", "top", "variance",
]  # fmt: skip
