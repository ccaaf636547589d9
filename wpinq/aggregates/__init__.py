"""Aggregates of a numeric column: charged answers with intervals, sensible on empty and on one-row inputs.

scale      a column's numbers on a declared grid, and the policy for nulls, NaN and infinities
groups     the groups that are answered, present or not
moments    count, sum and squares as one weighted collection
quoted     a quoted aggregate, and its answer once it is charged
answers    answers that are computed from noisy moments
sums       count, count_distinct, sum, mean, variance, stdev
cells      the grid point of each record
ranks      the exponential mechanism on ranks
quantiles  min, max, median, quantile
bounding   suggest_bound
ranging    suggest_bounds
"""

from wpinq.aggregates.bounding import suggest_bound
from wpinq.aggregates.quantiles import max, median, min, quantile  # noqa: A004
from wpinq.aggregates.quoted import QuotedAggregate
from wpinq.aggregates.ranging import suggest_bounds
from wpinq.aggregates.sums import count, count_distinct, mean, stdev, sum, variance  # noqa: A004

__all__ = [
    "QuotedAggregate", "count", "count_distinct", "max", "mean", "median", "min", "quantile", "stdev",
    "suggest_bound", "suggest_bounds", "sum", "variance",
]  # fmt: skip
