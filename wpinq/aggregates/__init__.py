"""Aggregates of a numeric column: charged answers with intervals, sensible on empty and on one-row inputs.

scale      a column's numbers on a declared grid, and the one policy for odd values
groups     the groups that are answered, present or not
moments    count, sum and squares as one weighted collection
asked      an aggregate that was quoted, and the answer that follows from it
answers    what follows from noisy moments
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
