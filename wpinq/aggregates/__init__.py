"""Aggregates of a numeric column: charged answers with intervals, sensible on empty and on one-row inputs.

Each is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wpinq.lazy import late

LATE = True  # not TYPE_CHECKING: mypy would look at such imports last, after `collection.py` that needs the types
if not LATE:
    from wpinq.aggregates.bounding import suggest_bound
    from wpinq.aggregates.buckets import histogram
    from wpinq.aggregates.clipping_loss import loss
    from wpinq.aggregates.heavy_hitters import mode, top
    from wpinq.aggregates.order_statistics import max, median, min, quantile, quantiles  # noqa: A004
    from wpinq.aggregates.quoted import QuotedAggregate
    from wpinq.aggregates.range_counts import quote_ranges, ranges
    from wpinq.aggregates.ranging import suggest_bounds
    from wpinq.aggregates.scoring import select_by
    from wpinq.aggregates.sums import count, count_distinct, mean, stdev, sum, variance  # noqa: A004

__all__ = [
    "QuotedAggregate", "count", "count_distinct", "histogram", "loss", "max", "mean", "median", "min", "mode",
    "quantile", "quantiles", "quote_ranges", "ranges", "select_by", "stdev", "suggest_bound", "suggest_bounds", "sum",
    "top", "variance",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    _HOMES = {
        "aggregates.bounding": "suggest_bound",
        "aggregates.buckets": "histogram",
        "aggregates.clipping_loss": "loss",
        "aggregates.heavy_hitters": "mode top",
        "aggregates.order_statistics": "max median min quantile quantiles",
        "aggregates.quoted": "QuotedAggregate",
        "aggregates.range_counts": "quote_ranges ranges",
        "aggregates.ranging": "suggest_bounds",
        "aggregates.scoring": "select_by",
        "aggregates.sums": "count count_distinct mean stdev sum variance",
    }
    __getattr__ = late(__name__, _HOMES)
