"""Random plans of the steps of `wpinq.testing.checks.steps`, one or more for each operator, and what they must hold.

A contract test that covers all operators follows from one line there, and a sample of each step for the test of
fingerprints; `CALLS` has each with arguments that it takes, which `attacks/test_odd_arguments.py` exchanges.
"""

from fractions import Fraction

import polars as pl
from hypothesis import strategies as st
from strategies import protected

from wpinq.testing.checks.steps import BINARY, PAIR, UNARY, WHOLE

__all__ = ["BINARY", "PAIR", "UNARY", "WHOLE"]

STEPS = {name: (1, step) for name, step in UNARY.items()} | {name: (2, step) for name, step in BINARY.items()}
PRICES = (
    dict.fromkeys(["limit", "limit: function", "flat_map: whole", *WHOLE], (2,))
    | dict.fromkeys(["semijoin", "semijoin: function", "antijoin"], (2, 1))
    | dict.fromkeys(["join_rows", "join_rows: whole", "join_rows: left, result"], (2, 4))
    | {"join_rows: left": (2, 8)}
)
"""Stabilities that are not 1, said a second time."""
HEAVY = {"shave", "shave: thin", "shave: sequence", "shave: by record", "shave: by number", "shave: twice"}
"""Their output grows with weights, so they are tried on small weights only."""


UNITS = {name: (1, step) for name, step in WHOLE.items()}
CALLS = {
    "map": lambda views: (views.map, {"function": "page", "columns": ["p"]}),
    "filter": lambda views: (views.filter, {"predicate": "page='a'"}),
    "flat_map": lambda views: (
        views.flat_map,
        {"function": lambda page: [page], "columns": ["p"], "at_most": 2, "whole": False},
    ),
    "group_by": lambda views: (views.group_by, {"key": "page", "reduce": len, "columns": ["c"], "whole": False}),
    "join": lambda views: (views.join, {"other": views, "on": "page", "at_most": None, "columns": None}),
    "join_rows": lambda views: (
        views.limit("page").join_rows,
        {"other": views.limit("page"), "on": "page", "columns": None},
    ),
    "semijoin public": lambda views: (views.semijoin, {"other": pl.DataFrame({"page": ["a"]}), "on": "page"}),
    "join public": lambda views: (
        views.join,
        {
            "other": pl.DataFrame({"page": ["a"], "n": [1]}),
            "on": "page",
            "how": "left",
            "columns": None,
            "result": None,
        },
    ),
    "join two": lambda views: (views.join, {"other": views, "left": "page", "right": "user", "at_most": 3}),
    "semijoin": lambda views: (views.semijoin, {"other": views, "on": "page"}),
    "antijoin": lambda views: (views.antijoin, {"other": views, "left": "page", "right": "user"}),
    "limit": lambda views: (views.limit, {"key": "page", "at_most": 1}),
    "partition": lambda views: (views.partition, {"key": "page", "parts": ["a", "b"]}),
    "window": lambda views: (views.window, {"length": "1h", "at": "at", "zone": None}),
    "shave": lambda views: (views.shave, {"thickness": 1, "name": "index"}),
    "shave by": lambda views: (views.shave, {"thickness": lambda n: n, "name": "index", "step": 1}),
    "distinct": lambda views: (views.distinct, {"at_most": 1}),
    "concat": lambda views: (views.concat, {"other": views}),
    "union": lambda views: (views.union, {"other": views}),
    "intersect": lambda views: (views.intersect, {"other": views}),
    "subtract": lambda views: (views.subtract, {"other": views}),
}  # fmt: skip
"""Each operator with arguments that it takes, of records with user, page, x, n and at; `at_most` is of people."""


def source(name, fine=True, records=()):
    return protected(records, name=name, fine=fine, a="integer", b="integer")


def apply(name, *given):
    arity, step = (STEPS | UNITS)[name]
    return step(*given[:arity]).map(lambda x, y: (x, y), columns=["a", "b"])


trees = st.recursive(
    st.sampled_from(["left", "right"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), inner),
        st.tuples(st.sampled_from(sorted(BINARY)), inner, inner),
    ),
    max_leaves=4,
).filter(lambda tree: not isinstance(tree, str))
"""Plans of several steps over two sources, as names."""


def grow(tree, sources):
    """The collection that a tree of names describes."""
    if isinstance(tree, str):
        return sources[tree]
    return apply(tree[0], *(grow(one, sources) for one in tree[1:]))


def names(tree):
    return {tree} if isinstance(tree, str) else {tree[0]}.union(*map(names, tree[1:]))


SLACK = Fraction(2**12 + 1, 2**12)
"""For dithered plans: their bound of 1 + 2^-16 is for neighbours at a distance of 1, and tests try nearer ones."""
