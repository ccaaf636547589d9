"""Every aggregate as a question and the truth that it is about.

What all aggregates must hold follows from one line here: `aggregates/test_aggregates_answers.py` asks each of many
records, of none and of one, and `attacks/test_odd_arguments.py` exchanges its arguments.
"""

import numpy as np

from wpinq import aggregates

TRUTH = {
    "count": len, "sum": np.sum, "mean": np.mean, "variance": np.var, "stdev": np.std, "median": np.median,
    "quantile": lambda x: np.quantile(x, 0.9), "min": np.min, "max": np.max,
}  # fmt: skip
"""What each is about, of numbers."""
NOISY, RANKS = ["count", "sum", "mean", "variance", "stdev"], ["median", "quantile", "min", "max"]
"""Those with added noise, and those that choose a rank: their intervals are tried in two ways."""
ELSEWHERE = {
    "QuotedAggregate", "count_distinct", "loss", "quantiles", "quote_ranges", "ranges", "suggest_bound",
    "suggest_bounds", "top", "mode", "histogram", "select_by",
}  # fmt: skip
"""Those that are no number of one column; they have tests of their own."""


def ask(which, collection, column="income", bounds=(0, 400_000), epsilon=1, **more):
    """Ask an aggregate, whose own arguments are given here where they are others."""
    if which == "count":
        more.pop("step", None)
        return aggregates.count(collection, epsilon, **more)
    if which == "quantile":
        return aggregates.quantile(collection, column, "0.9", bounds, epsilon, **more)
    return getattr(aggregates, which)(collection, column, bounds, epsilon, **more)


BOUNDED = {"column": "x", "bounds": (0, 5), "epsilon": 1, "by": "page", "keys": ["a"], "name": None, "analyst": None}
CALLS = {
    "count": lambda views: (views.count, {"epsilon": 1, "name": "n", "by": "page", "keys": ["a"]}),
    "count_distinct": lambda views: (views.count_distinct, {"columns": "page", "epsilon": 1}),
    "sum": lambda views: (views.sum, {**BOUNDED, "step": 0.5}),
    "mean": lambda views: (views.mean, BOUNDED),
    "min": lambda views: (views.min, BOUNDED),
    "max": lambda views: (views.max, BOUNDED),
    "median": lambda views: (views.median, BOUNDED),
    "variance": lambda views: (views.variance, {**BOUNDED, "sample": True}),
    "stdev": lambda views: (views.stdev, {**BOUNDED, "sample": True}),
    "quantile": lambda views: (views.quantile, {**BOUNDED, "share": 0.25, "interval": False}),
    "quantiles": lambda views: (views.quantiles, {**BOUNDED, "shares": [0.25, 0.5], "interval": False}),
    "top": lambda views: (
        views.top,
        {"columns": "page", "k": 1, "epsilon": 1, "keys": ["a"], "counts": None, "name": None, "analyst": None},
    ),
    "mode": lambda views: (views.mode, {"columns": "page", "epsilon": 1, "keys": ["a"], "counts": 1}),
    "select_by": lambda views: (
        views.select_by,
        {"score": "candidate", "candidates": [1, 2], "epsilon": 1, "sensitivity": 1, "name": None, "analyst": None},
    ),
    "histogram": lambda views: (
        views.histogram,
        {
            "column": "x",
            "edges": [0, 2, 5],
            "epsilon": 1,
            "within": None,
            "by": "page",
            "keys": ["a"],
            "name": None,
            "analyst": None,
            "confidence": 0.9,
        },
    ),
    "ranges": lambda views: (
        views.ranges,
        {"column": "x", "edges": [0, 2, 5], "epsilon": 1, "name": None, "analyst": None},
    ),
    "quote_ranges": lambda views: (
        views.quote_ranges,
        {"column": "x", "edges": [0, 2, 5], "epsilon": 1, "name": None, "analyst": None},
    ),
}
"""Each with arguments that it takes, of records with user, page, x, n and at."""
